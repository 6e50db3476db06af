"""A short model card: what a fitted model was made from, and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from baggraph.estimators._parcel import versions


def model_card(
    model: Any, *, data: Mapping[str, Any], scores: Mapping[str, str], scored: str, command: str | None = None
) -> str:
    """Markdown on a fitted model; ``data`` are facts about the bags, ``scored`` says how ``scores`` came about."""
    kind = type(model).__name__
    parts = [f"# {kind}", "", *([f"Made by `{command}`.", ""] if command else [])]
    parts += ["## Data", "", *_table(("", ""), data.items()), ""]
    parts += ["## Scores", "", scored, "", *(_table(("score", "value"), scores.items()) if scores else []), ""]
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


def _uncertainty(model: Any) -> str:
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
        return "None: bags are judged one by one."
    return f"{model.graph_!r}. New bags are joined to it, each as if it came alone."
