"""Colours that stay apart for colour-blind readers, the same as in the live part of the page (its palette.ts)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

LEVELS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
    "#8c6d1f", "#7a5195", "#5f6b73", "#3b7a57", "#b2476b", "#8ea7c2",
)  # fmt: skip
SEQUENCE = ("#1d4a8c", "#4a5f86", "#737378", "#a1976f", "#cfb751", "#eccb2f")
DIVERGING = ("#b35806", "#f1a340", "#d8d3cb", "#7fb0d8", "#1b6ca8")
UNKNOWN = "#9aa0a6"


def colours_of(column: Mapping[str, Any]) -> tuple[list[str], list[tuple[str, str]]]:
    """A colour a point, and what some of them mean, of a column as the atlas writes it.

    >>> colours_of({"levels": ["calm", "stormy"], "values": [1, None]})
    (['#d55e00', '#9aa0a6'], [('calm', '#0072b2'), ('stormy', '#d55e00')])
    >>> colours_of({"levels": None, "values": [0.0, 1.0]})[0]
    ['#1d4a8c', '#eccb2f']
    """
    values = column["values"]
    if column["levels"] is not None:
        legend = [(name, LEVELS[level % len(LEVELS)]) for level, name in enumerate(column["levels"])]
        return [UNKNOWN if value is None else LEVELS[value % len(LEVELS)] for value in values], legend
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(known):
        return [UNKNOWN] * len(values), []
    low, high = (float(v) for v in np.quantile(known, [0.01, 0.99], method="nearest"))  # outliers do not stretch it
    stops: tuple[str, ...] = SEQUENCE
    if low < 0 < high:
        stops, high = DIVERGING, max(-low, high)
        low = -high
    at = lambda value: _blend(stops, (value - low) / (high - low) if high > low else 0.5)  # noqa: E731
    colours = [UNKNOWN if value is None else at(value) for value in values]
    return colours, [(f"{value:.3g}", at(value)) for value in (low, (low + high) / 2, high)]


def _blend(stops: tuple[str, ...], share: float) -> str:
    place = min(max(share, 0.0), 1.0) * (len(stops) - 1)
    below = min(int(place), len(stops) - 2)
    pair = [np.array([int(stop[k : k + 2], 16) for k in (1, 3, 5)]) for stop in stops[below : below + 2]]
    return "#" + "".join(f"{round(v):02x}" for v in pair[0] + (pair[1] - pair[0]) * (place - below))
