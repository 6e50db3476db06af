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
from scipy.spatial import ConvexHull

from baggraph.data.graph import BagGraph
from baggraph.report._figure import INK, SOFT, Figure
from baggraph.report._figure import canvas as blank

PALEST = 0.15
EDGE = 0.04  # of the width, that is left around
BLANK = "#e8eaed"
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
        Values (B,) by title; regions without one are grey.
    uncertainty
        Standard deviations (B,) by title: the smallest of all is drawn full, the largest pale.
    polygons
        Corners (n, 2) of every region; those far outside of all centroids, as of cells without an end, are cut off.
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
    shapes = None if polygons is None else _cut(polygons, xy)
    made, grid = _panels(len(values), _window(xy if shapes is None else np.concatenate(shapes)))
    for axes, (title, panel) in zip(grid, values.items(), strict=False):
        known = ~np.isnan(panel)
        sure = opacity[title][known] if title in opacity else 1.0
        _regions(axes, xy, shapes, ~known, {"facecolors": BLANK})
        _regions(axes, xy, shapes, known, {"cmap": colours, "norm": norm, "alpha": sure, "array": panel[known]})
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


def _regions(axes: Axes, xy: Array, shapes: Sequence[Array] | None, which: Any, how: dict[str, Any]) -> None:
    """Some of the regions, as polygons or dots."""
    if not which.any():
        return
    if shapes is not None:
        some = [shape for shape, chosen in zip(shapes, which, strict=True) if chosen]
        axes.add_collection(PolyCollection(some, edgecolors="white", linewidths=0.4, **how))
        return
    colour = {"c": how["array"]} if "array" in how else {}
    rest = {name: value for name, value in how.items() if name != "array"}
    axes.scatter(xy[which, 0], xy[which, 1], s=9, linewidths=0, **colour, **rest)


def _cut(polygons: Sequence[Array], xy: Array) -> list[Array]:
    """Polygons without what lies outside of all centroids (Sutherland & Hodgman 1974); whole where that is all."""
    if len(xy) < 4 or np.linalg.matrix_rank(xy - xy.mean(axis=0)) < 2:
        return list(polygons)
    hull = xy[ConvexHull(xy).vertices]
    middle = hull.mean(axis=0)
    hull = middle + (1 + EDGE) * (hull - middle) + EDGE * np.sign(hull - middle) * np.ptp(xy, axis=0)
    found = []
    for polygon in polygons:
        left = np.asarray(polygon, dtype=np.float64)
        for start, stop in zip(hull, np.roll(hull, -1, axis=0), strict=True):
            left = _half(left, start, stop)
        found.append(left if len(left) > 2 else np.asarray(polygon, dtype=np.float64))
    return found


def _half(polygon: Array, start: Array, stop: Array) -> Array:
    """The part of a polygon on the left of a line."""
    if not len(polygon):
        return polygon
    along = stop - start
    side = along[0] * (polygon[:, 1] - start[1]) - along[1] * (polygon[:, 0] - start[0])
    found = []
    for here, there, a, b in zip(polygon, np.roll(polygon, -1, axis=0), side, np.roll(side, -1), strict=True):
        if a >= 0:
            found.append(here)
        if (a >= 0) != (b >= 0):
            found.append(here + a / (a - b) * (there - here))
    return np.array(found).reshape(-1, 2)


def _window(points: Array) -> tuple[Array, Array]:
    """Lower left and upper right corners of what is shown."""
    low, high = points.min(axis=0), points.max(axis=0)
    span = np.where(high > low, high - low, max(float((high - low).max()), 1e-6))
    return low - EDGE * span, high + EDGE * span


def _panels(count: int, window: tuple[Array, Array]) -> tuple[Canvas, list[Axes]]:
    low, high = window
    stretch = float(1 / np.cos(np.radians((low[1] + high[1]) / 2)))
    shape = float((high - low)[1] * stretch / (high - low)[0])
    columns = min(count, 2 if count <= 4 else 3)
    rows, width = -(-count // columns), 4.8 if columns < 3 else 3.6
    made = Canvas(figsize=(width * columns + 0.8, rows * (width * shape + 0.3)), layout="constrained")
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
