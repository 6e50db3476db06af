"""Views of single bags that need no script: what is believed of each, the instances that tell most, the map."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.report import _charts as charts
from baggraph.report._palette import UNKNOWN, colours_of
from baggraph.report._pieces import html_table

MOST_TOLD = 12  # instances on either side
MOST_PLACES = 2_000  # bags on a map that stands still
SHOWN_ON_MAPS = ("label", "prediction", "probability", "uncertainty")


def ladder(values: Mapping[str, Any]) -> str:
    """Every bag, or some of very many, in the order of what is believed, with its interval."""
    low, mid, high = (np.array(values[name], dtype=np.float64) for name in ("low", "mid", "high"))
    drawn = charts.ladder(low, mid, high, values["marks"], values["unit"], "What is believed of every bag")
    count = "All" if values["of"] == len(mid) else f"{len(mid):,} of"
    whiskers = "; whiskers hold 90 %" if (low < high).any() else ""
    told = f"{count} {values['of']:,} bags in the order of what is believed of them{whiskers}."
    marks = [name for name in charts.MARKS if name in values["marks"]]
    legend = "".join(f'<span class="level"><span class="dot {name}"></span>{_MEANING[name]}</span>' for name in marks)
    caption = f'<figcaption>{escape(told)} <span class="legend">{legend}</span></figcaption>'
    return f'<figure tabindex="0" aria-label="What is believed of every bag">{drawn}{caption}</figure>'


_MEANING = {
    "right": "hidden label, answer right",
    "wrong": "hidden label, answer wrong",
    "seen": "label seen in the fit",
    "none": "no label",
}


def instances(atlas: Mapping[str, Any]) -> str:
    """The instances that move answers most, up and down; empty where nothing was explained."""
    rows = [
        (told["share"], atlas["ids"][int(point)], atlas["about"].get(point, "score"), told)
        for point, some in atlas["instances"].items()
        for told in some
        if told["share"]
    ]
    ups = sorted((row for row in rows if row[0] > 0), key=lambda row: -row[0])[:MOST_TOLD]
    downs = sorted((row for row in rows if row[0] < 0), key=lambda row: row[0])[:MOST_TOLD]
    if not rows:
        return ""
    told = f"Of the {len(atlas['instances']):,} bags of which the model is least sure. A number is what the instance "
    told += "adds to the score of its bag; click a bag in the graph for its own list."
    sides = [(title, some) for title, some in (("They raise it most", ups), ("They lower it most", downs)) if some]
    if "picture" in rows[0][3]:
        shown = "".join(f"<h3>{title}</h3>{_gallery(some)}" for title, some in sides)
    else:
        shown = f'<div class="two">{"".join(_plain(some, title) for title, some in sides)}</div>'
    return f"<p>{told}</p>{shown}"


def _gallery(chosen: list[tuple[float, str, str, Mapping[str, Any]]]) -> str:
    cards = [
        f'<li><img src="{escape(told["picture"])}" alt="picture of {escape(told["name"])}" width="64" height="64">'
        f"<strong>{_signed(share)}</strong> <span>bag {escape(bag)}</span></li>"
        for share, bag, _, told in chosen
    ]
    return f'<ul class="gallery">{"".join(cards)}</ul>'


def _plain(chosen: list[tuple[float, str, str, Mapping[str, Any]]], title: str) -> str:
    rows = [[told["name"], bag, about, _signed(share)] for share, bag, about, told in chosen]
    return html_table(["instance", "bag", "of what", "adds"], rows, title, right=3)


def maps(atlas: Mapping[str, Any]) -> str:
    """Bags where they are, by label, by answer and by doubt; empty without coordinates, or with too many bags."""
    if "map" not in atlas["views"] or len(atlas["ids"]) > MOST_PLACES:
        return ""
    places: NDArray[np.float64] = np.array(atlas["views"]["map"]).T
    figures = []
    for wanted in SHOWN_ON_MAPS:
        column = next((c for c in atlas["columns"] if c["name"].startswith(wanted)), None)
        if column is None or (wanted == "prediction" and column["levels"]):
            continue  # classes are told by their probability
        colours, legend = colours_of(column)
        absent = any(value is None for value in column["values"])
        shown = [*legend, *([("not known", UNKNOWN)] if absent else [])]
        keys = "".join(
            f'<span class="level"><span class="dot" style="background:{c}"></span>{escape(t)}</span>' for t, c in shown
        )
        drawn = charts.places(places, colours, f"Map by {column['name']}")
        figures.append(
            f"<figure>{drawn}<figcaption><strong>{escape(column['name'])}</strong> {keys}</figcaption></figure>"
        )
    return f'<div class="maps">{"".join(figures)}</div>' if figures else ""


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{abs(value):.3g}"
