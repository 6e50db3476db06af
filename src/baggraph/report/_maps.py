"""Bags where they are: maps, and graphs between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import Normalize, TwoSlopeNorm
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray

from baggraph.data.graph import BagGraph
from baggraph.report._figure import INK, SOFT, Figure
from baggraph.report._figure import canvas as blank

PALEST = 0.15
EDGE = 0.04  # of centroids on either side, and of the width, that polygons without an end may be cut at
Array = NDArray[np.float64]


def region_map(
    places: Any,
    panels: Mapping[str, Any],
    *,
    uncertainty: Mapping[str, Any] | None = None,
    polygons: Sequence[Array] | None = None,
    center: float | None = None,
    label: str = "",
    ids: Sequence[Any] | None = None,
) -> Figure:
    """Maps side by side: colour is the value of a region, paleness its uncertainty where that is given.

    Parameters
    ----------
    places : (B, 2)
        Longitude and latitude of the centroids, drawn as dots where there are no ``polygons``.
    panels
        Values (B,) by title; regions without one stay blank.
    uncertainty
        Standard deviations (B,) by title: the smallest of all is drawn full, the largest pale.
    polygons
        Corners (n, 2) of every region.
    center
        The value that is drawn neutral, as 0.5 of shares; without, colours run from low to high.

    Examples
    --------
    >>> places = [[0.0, 50.0], [1.0, 51.0]]
    >>> found = region_map(places, {"truth": [1.0, 2.0]}, uncertainty={"truth": [0.1, 0.2]})
    >>> found.frame().columns.tolist()
    ['longitude', 'latitude', 'truth', 'truth, sd']

    """
    xy = np.asarray(places, dtype=np.float64)
    values = {title: np.asarray(panel, dtype=np.float64) for title, panel in panels.items()}
    spread = {title: np.asarray(part, dtype=np.float64) for title, part in (uncertainty or {}).items()}
    norm = _norm(np.concatenate(list(values.values())), center)
    colours = "RdBu_r" if center is not None else "viridis"
    opacity = _opacity(spread)
    window = _window(xy, polygons)
    made, grid = _panels(len(values), window)
    for axes, (title, panel) in zip(grid, values.items(), strict=False):
        known = np.flatnonzero(~np.isnan(panel))
        sure = opacity[title][known] if title in opacity else 1.0
        how: dict[str, Any] = {"cmap": colours, "norm": norm, "alpha": sure}
        if polygons is None:
            axes.scatter(xy[known, 0], xy[known, 1], c=panel[known], s=9, linewidths=0, **how)
        else:
            shapes = [polygons[int(b)] for b in known]
            axes.add_collection(PolyCollection(shapes, array=panel[known], edgecolors="white", linewidths=0.4, **how))
        axes.set_title(title, fontsize=10, color=INK)
    bar = made.colorbar(ScalarMappable(norm, colours), ax=list(grid), shrink=0.6, aspect=30, label=label)
    bar.outline.set_visible(False)
    index = pd.Index(range(len(xy)) if ids is None else ids, name="bag")
    columns: dict[str, Any] = {"longitude": xy[:, 0], "latitude": xy[:, 1], **values}
    columns |= {f"{title}, sd": part for title, part in spread.items()}
    return Figure(made, pd.DataFrame(columns, index=index))


def _norm(values: Array, center: float | None) -> Normalize:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if center is None:
        return Normalize(low, high)
    reach = max(abs(high - center), abs(low - center))
    return TwoSlopeNorm(center, center - reach, center + reach)


def _opacity(spread: Mapping[str, Array]) -> dict[str, Array]:
    """From 1 at the smallest uncertainty of all panels down to the palest at their largest."""
    if not spread:
        return {}
    low, high = (f([f(part) for part in spread.values()]) for f in (np.nanmin, np.nanmax))
    return {title: 1 - (1 - PALEST) * (part - low) / max(high - low, 1e-12) for title, part in spread.items()}


def _window(xy: Array, polygons: Sequence[Array] | None) -> tuple[Array, Array]:
    """Lower left and upper right corners of what is shown; far ends of polygons are cut off."""
    low, high = np.quantile(xy, [0.0, 1.0] if polygons is None else [EDGE, 1 - EDGE], axis=0)
    span = np.where(high > low, high - low, max(float((high - low).max()), 1e-6))
    margin = (EDGE if polygons is None else 0.15) * span
    return low - margin, high + margin


def _panels(count: int, window: tuple[Array, Array]) -> tuple[Canvas, list[Axes]]:
    low, high = window
    stretch = float(1 / np.cos(np.radians((low[1] + high[1]) / 2)))
    shape = float((high - low)[1] * stretch / (high - low)[0])
    columns = min(count, 2)
    rows = -(-count // columns)
    made = Canvas(figsize=(4.8 * columns + 0.8, rows * (4.8 * shape + 0.3)), layout="constrained")
    grid = np.atleast_1d(made.subplots(rows, columns)).ravel().tolist()
    for axes in grid:
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect=stretch)
        axes.set_axis_off()
    return made, grid


def graph_drawing(graph: BagGraph, places: Any, values: Any, *, label: str = "", title: str = "") -> Figure:
    """A graph over bags at places (B, 2): width of a line is its weight, colour of a dot the value of a bag.

    >>> graph = BagGraph.from_edges([("a", "b")], ids=["a", "b"])
    >>> graph_drawing(graph, [[0, 0], [1, 1]], [0.0, 1.0]).frame().to_dict("records")
    [{'source': 'a', 'target': 'b', 'weight': 1.0}]
    """
    xy = np.asarray(places, dtype=np.float64)
    table = graph.to_table()
    place = {name: number for number, name in enumerate(graph.ids.tolist())}
    ends = table[["source", "target"]].map(lambda name: place[name]).to_numpy(dtype=np.int64)
    weight = table["weight"].to_numpy(dtype=np.float64)
    canvas, axes = blank(5.6, 4.8)
    widths = 0.2 + 1.8 * weight / (weight.max() if len(weight) else 1.0)
    axes.add_collection(LineCollection(list(xy[ends]), colors=SOFT, linewidths=widths, alpha=0.8, zorder=1))
    drawn = axes.scatter(
        xy[:, 0], xy[:, 1], c=values, s=26, cmap="viridis", edgecolors="white", linewidths=0.5, zorder=2
    )
    canvas.colorbar(drawn, ax=axes, shrink=0.7, label=label).outline.set_visible(False)
    axes.set_axis_off()
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    return Figure(canvas, table)
