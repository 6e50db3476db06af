"""One page that holds everything: what was asked, what was found, how sure, and what to be careful about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from baggraph.data.readers._atomic import replacing
from baggraph.data.results import ResultTable
from baggraph.report import _charts as charts
from baggraph.report import _views as views
from baggraph.report._palette import colours_of
from baggraph.report._pieces import asset, bundle, environment, html_table
from baggraph.report._provenance import provenance
from baggraph.report._scores import comparison, graph_sentences, leading_sentence
from baggraph.report.content import Content

__all__ = ["report", "write_page"]

MOST_DRAWN = 2_000  # bags in the drawing that stands still


class Section(NamedTuple):
    """A part of the page, with the name that links lead to."""

    name: str
    title: str
    short: str
    body: str


def report(table: ResultTable | None = None, path: str | Path = "report.html", **about: Any) -> Path:
    """Write one self-contained HTML page: scores, audit, graph of the bags, calibration, where it all comes from.

    Parameters
    ----------
    table
        Scores, as :func:`~baggraph.cross_validate` gives them; None for a page without a comparison.
    path
        Where to write it.
    about
        ``bags``, ``model`` (fitted on them), ``truth`` (labels that the model did not see), ``audit``,
        ``explained``, ``title`` and ``commands``, as in :meth:`~baggraph.report.content.Content.of`.

    Examples
    --------
    >>> import tempfile, baggraph as bg
    >>> rows = [{"method": "majority", "dataset": "d", "metric": "accuracy", "fold": f, "value": 0.5} for f in (0, 1)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = report(bg.ResultTable.from_rows(rows), f"{folder}/report.html")
    ...     "majority" in page.read_text(encoding="utf-8")
    True

    """
    return write_page(Content.of(about.pop("bags", None), **about), table, path)


def write_page(content: Content, table: ResultTable | None, path: str | Path) -> Path:
    """Draw content and scores; the file is there whole or not at all."""
    template = environment().get_template("page.html.j2")
    script = bundle()
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    text = template.render(
        title=content.title,
        version=content.version,
        sections=_sections(content, table),
        atlas=None if content.atlas is None else content.atlas.replace("</", "<\\/"),  # no text ends the script early
        style=asset("page.css"),
        script=script and script.replace("</script", "<\\/script"),
    )
    with replacing(target) as draft:
        draft.write_text(text, encoding="utf-8")
    return target


def _sections(content: Content, table: ResultTable | None) -> list[Section]:
    found = [Section("summary", "Summary", "Summary", _summary(content, table))]
    if content.findings is not None:
        found.append(Section("audit", "What to be careful about", "Audit", _audit(content.findings)))
    if table is not None and len(table):
        found.append(Section("comparison", "Comparison", "Comparison", comparison(table)))
    if content.atlas is not None:
        atlas = json.loads(content.atlas)
        found.append(Section("graph", "The bags and their graph", "Graph", _graph(atlas)))
        for name, title, short, body in (
            ("map", "The bags on the map", "Map", views.maps(atlas)),
            ("instances", "The instances that tell most", "Instances", views.instances(atlas)),
        ):
            found += [Section(name, title, short, body)] if body else []
    if content.spread or content.trust:
        found.append(Section("trust", "How far to trust it", "Trust", _trust(content)))
    found.append(Section("provenance", "Where this comes from", "Provenance", provenance(content, table)))
    return found


# ---------------------------------------------------------------------- parts


def _summary(content: Content, table: ResultTable | None) -> str:
    told = [f'<p class="key">{escape(content.question)}</p>'] if content.question else []
    told += [f"<p>{_counted(content.data)}</p>"] if content.data else []
    grave = [f for f in content.findings or () if f["severity"] != "note"]
    if grave:
        listed = "; ".join(f"{escape(f['title'])} ({escape(f['code'])})" for f in grave)
        told.append(f"<p><strong>Read this first.</strong> The audit found: {listed}.</p>")
    elif content.findings is not None:
        told.append("<p>The audit found nothing above a note.</p>")
    if table is not None and len(table):
        told.append(f"<p>{escape(leading_sentence(table))}</p>")
        if verdicts := graph_sentences(table):
            told.append(f"<p>Does the graph help? {escape(' '.join(verdicts))}</p>")
    trust = content.trust
    if "accuracy" in trust:
        text = f"The model saw the labels of {trust['seen']:,} bags. Of the {trust['tested']:,} others it got "
        text += f"{100 * trust['accuracy']:.1f} % right; by its own probabilities it had expected "
        told.append(f"<p>{text}{100 * trust['confidence']:.1f} %{_modesty(trust)}.</p>")
        if trust["sure_and_wrong"]:
            worst = ", ".join(escape(bag) for bag in trust["sure_and_wrong"])
            told.append(f"<p>Surest of those that it got wrong: {worst}. Look at them in the graph below.</p>")
    elif "rmse" in trust:
        text = f"The model saw the labels of {trust['seen']:,} bags; on the {trust['tested']:,} others it errs by "
        told.append(f"<p>{text}{trust['rmse']:.4g} (root mean square).</p>")
    return "\n".join(told)


def _counted(data: Mapping[str, Any]) -> str:
    bags, labelled = data["bags"], data["bags with a label"]
    seen = "all of them with a label" if labelled == bags else f"{labelled:,} with a label that was used"
    sizes = f"{data['smallest bag']:,} to {data['largest bag']:,} instances each, {data['instances']:,} in all"
    return f"There are {bags:,} bags, {seen}; {sizes}, {data['features']:,} features."


def _modesty(trust: Mapping[str, Any]) -> str:
    """Whether it was surer or less sure than it should be, where that is more than chance: two standard errors."""
    gap = trust["accuracy"] - trust["confidence"]
    error = float(np.sqrt(max(trust["confidence"] * (1 - trust["confidence"]), 1e-9) / trust["tested"]))
    if abs(gap) < 2 * error:
        return ", which chance explains"
    return ": it is less sure than it might be" if gap > 0 else ": it is too sure of itself, so calibrate it"


def _audit(findings: Sequence[Mapping[str, Any]]) -> str:
    if not findings:
        return "<p>Nothing was found.</p>"
    parts = []
    for found in findings:
        head = f'<span class="severity">{escape(found["severity"])}</span> {escape(found["title"])} '
        head += f'<span class="quiet">{escape(found["code"])}</span>'
        words = (("Measured", "measured"), ("Why it matters", "why"), ("What to do", "advice"))
        text = "".join(f"<p><strong>{word}:</strong> {escape(found[name])}</p>" for word, name in words)
        kind = escape(found["severity"])
        if kind == "note":  # worth knowing, but nothing that spoils a comparison: folded away
            parts.append(f'<details class="finding note"><summary>{head}</summary>{text}</details>')
        else:
            parts.append(f'<div class="finding {kind}"><h3>{head}</h3>{text}</div>')
    return "\n".join(parts)


def _graph(atlas: Mapping[str, Any]) -> str:
    points, bags = len(atlas["ids"]), atlas["bags"]
    told = f"{bags:,} bags, {atlas['edges']:,} edges"
    told += f"; drawn are {points:,} groups of similar bags and what joins these." if points < bags else "."
    told += "" if atlas["edges"] else " No graph joins them; those that lie near each other are alike."
    script = bundle() is not None
    note = "" if script else "This page was made without its interactive part; the drawing stands still."
    live = [asset("explorer.html")] if script else []
    stage = f'<div class="stage"><div id="still">{_still(atlas)}</div>'
    keys = "Graph of the bags; arrow keys move, plus and minus zoom, 0 shows all"
    stage += (
        f'<div id="explorer" tabindex="0" role="application" aria-label="{keys}" hidden></div></div>'
        if script
        else "</div>"
    )
    panel = (
        '<div id="panel" tabindex="0" role="region" aria-live="polite" aria-label="The chosen bag"></div>'
        if script
        else ""
    )
    table = '<div id="bag-table"></div>' if script else _plain_table(atlas)
    parts = [f"<p>{told}</p>", f'<p class="quiet" id="explorer-note">{note}</p>', *live]
    return "\n".join([*parts, f'<div class="workbench">{stage}{panel}</div>', table])


def _still(atlas: Mapping[str, Any]) -> str:
    if len(atlas["ids"]) > MOST_DRAWN:
        return '<p class="quiet">Too many bags to draw them here; the table below has them.</p>'
    places = np.array(next(iter(atlas["views"].values()))).T.reshape(-1, 2)
    first = atlas["columns"][0]
    colours = colours_of(first)[0]
    return charts.still(places, (np.array(atlas["source"], int), np.array(atlas["target"], int)), colours)


def _plain_table(atlas: Mapping[str, Any]) -> str:
    """Bags without a script: of very many, those that a page can carry."""
    count = min(len(atlas["ids"]), MOST_DRAWN)
    columns = atlas["columns"]
    shown = [[_shown(column, i) for column in columns] for i in range(count)]
    rows = [[name, *row] for name, row in zip(atlas["ids"][:count], shown, strict=True)]
    return html_table(
        ["bag", *(c["name"] for c in columns)],
        rows,
        "All bags" if count == len(atlas["ids"]) else f"The first {count:,} bags",
    )


def _shown(column: Mapping[str, Any], i: int) -> str:
    value = column["values"][i]
    return "" if value is None else column["levels"][value] if column["levels"] else f"{value:g}"


def _trust(content: Content) -> str:
    figures = []
    trust, spread = content.trust, content.spread
    if trust.get("counts"):
        n, classes = trust["tested"], "accuracy" in trust
        drawn = charts.reliability(
            np.array(trust["said"]), np.array(trust["came"]), np.array(trust["counts"]), "Calibration"
        )
        what = "answers given with about that probability that were right" if classes else "values inside the interval"
        figures.append(
            _figure(drawn, f"Share of {what}, {n:,} bags whose labels the model did not see; whiskers hold 90 %.")
        )
    else:
        kept = "No label was kept from the model, so nothing here says how often it is right"
        figures.append(f"<p>{kept}; scores of folds are in the comparison.</p>")
    if spread:
        drawn = charts.histogram(
            np.array(spread["counts"]), np.array(spread["edges"]), "What is believed", spread["unit"]
        )
        figures.append(_figure(drawn, "What the model believes of all bags."))
    below = views.ladder(content.ladder) if content.ladder else ""
    return f'<div class="two">{"".join(figures)}</div>{below}'


def _figure(drawn: str, caption: str) -> str:
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"
