"""A short model card: what a fitted model was made from, and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from baggraph.estimators._auto_base import AutoBase
from baggraph.estimators._parcel import versions


def model_card(
    model: Any, *, data: Mapping[str, Any], scores: Mapping[str, str], scored: str, command: str | None = None
) -> str:
    """Markdown on a fitted model; ``data`` are facts about the bags, ``scored`` says how ``scores`` came about."""
    kind = type(model).__name__
    parts = [f"# {kind}", "", *([f"Made by `{command}`.", ""] if command else [])]
    parts += ["## Data", "", *_table(("", ""), data.items()), ""]
    parts += ["## Scores", "", scored, "", *(_table(("score", "value"), scores.items()) if scores else []), ""]
    parts += _members(model) if isinstance(model, AutoBase) else []
    parts += ["## Uncertainty", "", _uncertainty(model), ""]
    parts += ["## Graph", "", _graph(model), ""]
    parts += ["## Parameters", "", *_table(("parameter", "value"), _parameters(model)), ""]
    parts += ["## Versions", "", *_table(("", ""), versions().items()), ""]
    parts += ["## Use", "", "```python", "import baggraph as bg", 'model = bg.load("this folder")', "```", ""]
    return "\n".join(parts)


def _table(heads: tuple[str, str], rows: Any) -> list[str]:
    lines = [f"| {heads[0]} | {heads[1]} |", "|---|---|"]
    return lines + [f"| {_cell(key)} | {_cell(value)} |" for key, value in rows]


def _cell(value: Any) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")


def _parameters(model: Any) -> list[tuple[str, str]]:
    default = type(model)().get_params(deep=False)
    shown = []
    for name, value in model.get_params(deep=False).items():
        if name == "verbose":
            continue
        plain = repr(value) if isinstance(value, str | int | float | bool | tuple | list | type(None)) else str(value)
        same = plain == repr(default[name])
        shown.append((f"`{name}`", f"`{plain}`" + ("" if same else " (not the default)")))
    return shown


def _members(model: AutoBase) -> list[str]:
    """Who has a say in a committee, and what the graph brought."""
    told = model.contributions()
    loss = next(name for name in told.columns if name not in ("weight", "graph"))
    rows = [(name, f"{row['weight']:.2f}, {row[loss]:.3f}") for name, row in told.iterrows()]
    mean, low, high = model.graph_gain()
    interval = f"(95 %: {low:.3f} to {high:.3f})"
    if told["graph"].any():
        gain = f"Members that use a graph take {mean:.3f} nats off the loss of bags left out {interval}."
    else:
        gain = f"No member that uses a graph has a say: the gain on bags left out is {mean:.3f} nats {interval}."
    gain = gain.replace("-0.000", "0.000")
    skipped = [f"There was no time for {', '.join(model.skipped_)}.", ""] if model.skipped_ else []
    why = "What each adds to the answer on a bag, and what its instances count, says `model.explain(bags)`."
    table = _table(("member", "weight, loss on bags left out"), rows)
    return ["## Members", "", *table, "", gain, "", *skipped, why, ""]


def _uncertainty(model: Any) -> str:
    if isinstance(model, AutoBase):
        count = len(model.conformal_.scores)
        return (
            f"Calibrated on {count} labelled bags, each scored by folds without it; so are conformal sets or intervals."
        )
    draws = f"Averages of {len(model.posterior_.draws)} draws."
    if model.conformal_ is None:
        return draws + " Not calibrated: no bag was held out of training for it."
    count = len(model.conformal_.scores)
    what = f"Calibrated on {count} bags that were held out of training"
    if hasattr(model, "temperature_"):
        return f"{draws} {what}: temperature {model.temperature_:.3g}, conformal sets."
    return f"{draws} {what}: noise standard deviation {_numbers(np.sqrt(model.noise_))}, conformal intervals."


def _numbers(values: Any) -> str:
    return ", ".join(f"{value:.3g}" for value in np.atleast_1d(values))


def _graph(model: Any) -> str:
    if model.graph_ is None:
        return "None is known." if isinstance(model, AutoBase) else "None: bags are judged one by one."
    if isinstance(model, AutoBase):
        return f"{model.graph_!r}, known. New bags are joined to it by links that are told, or else by none."
    return f"{model.graph_!r}. New bags are joined to it, each as if it came alone."
