"""Adjacency matrices from edges and from positions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from baggraph.data._columns import canonical_column
from baggraph.data._graph_checks import bad_parameter, places, refuse_self_loops, refuse_weights, wrong
from baggraph.data._spatial import on_sphere
from baggraph.data._split_checks import is_count

Index = NDArray[np.int64]
Places = NDArray[np.float64]

EARTH_KM = 6371.0
# A tree rounds distances in its own way; a wider search and one formula of distance decide ties alike everywhere.
MARGIN = 1 + 1e-9


def join(rows: Any, columns: Any, count: int) -> sp.csr_array:
    """Weight 1 between these bags, both ways, however often a pair is named.

    >>> join([0, 1], [1, 0], 2).toarray().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    one_way = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(count, count))
    both = sp.csr_array(one_way + one_way.T)
    both.data[:] = 1.0
    return both


# ---------------------------------------------------------------------- edges


def edge_columns(edges: Iterable[Any]) -> tuple[list[str], list[str], list[Any]]:
    """Sources, targets and weights of edges ``(id, id)`` or ``(id, id, weight)``."""
    listed = list(edges)
    for edge in listed:
        if isinstance(edge, str) or len(edge) not in (2, 3):
            raise wrong("edges (id, id) or (id, id, weight)", repr(edge), "correct that edge")
    ends = [[str(edge[end]) for edge in listed] for end in (0, 1)]
    return ends[0], ends[1], [edge[2] if len(edge) == 3 else 1.0 for edge in listed]


def from_columns(sources: list[str], targets: list[str], weights: Any, names: NDArray[Any]) -> sp.csr_array:
    """Undirected edges, each pair of bags once, in either order."""
    both = places([*sources, *targets], names, "edges between known bags", "drop that edge or add the bag")
    rows, columns = both[: len(sources)], both[len(sources) :]
    _refuse_repeated(rows, columns, names)
    values = _numbers(weights, sources, targets)
    ends = (np.concatenate([rows, columns]), np.concatenate([columns, rows]))
    matrix = sp.csr_array((np.concatenate([values, values]), ends), shape=(len(names), len(names)))
    refuse_weights(matrix, names, names)
    refuse_self_loops(matrix, names)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _refuse_repeated(rows: Index, columns: Index, names: NDArray[Any]) -> None:
    pairs = np.minimum(rows, columns) * len(names) + np.maximum(rows, columns)
    kinds, first = np.unique(pairs, return_index=True)
    if len(kinds) < len(pairs):
        again = int(np.setdiff1d(np.arange(len(pairs)), first)[0])
        got = f"{names[rows[again]]!r} - {names[columns[again]]!r} more than once"
        raise wrong("every pair of bags once", got, "add up or drop the repeated edges")


def _numbers(weights: Any, sources: list[str], targets: list[str]) -> NDArray[np.float64]:
    try:
        return np.array(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        first = next(i for i, weight in enumerate(weights) if not _is_number(weight))
        got = f"{weights[first]!r} between {sources[first]!r} and {targets[first]!r}"
        raise wrong("a number as weight of every edge", got, "correct or drop that edge") from error


def _is_number(value: Any) -> bool:
    try:
        np.float64(value)
    except (TypeError, ValueError):
        return False
    return np.ndim(value) == 0


# ---------------------------------------------------------------------- positions


def from_places(
    coords: Any, names: NDArray[Any], *, n_neighbors: int | None, radius: float | None, geographic: bool
) -> sp.csr_array:
    """Bags near each other; see :meth:`BagGraph.from_coordinates`."""
    if (n_neighbors is None) == (radius is None):
        got = "neither" if radius is None else "both"
        raise bad_parameter("n_neighbors or radius", got, "pass exactly one of the two")
    points = _points(coords, names, geographic)
    if radius is None:
        if not is_count(n_neighbors) or not 1 <= n_neighbors < len(names):  # type: ignore[operator]
            got = f"n_neighbors={n_neighbors!r} with {len(names)} bags"
            raise bad_parameter("n_neighbors from 1 to below the number of bags", got, "lower it or pass more bags")
        return join(*nearest(points, int(n_neighbors)), len(names))  # type: ignore[arg-type]
    if not 0 < radius < math.inf:
        raise bad_parameter("a finite radius above 0", f"radius={radius!r}", "pass a distance")
    return join(*within(points, _chord(radius) if geographic else float(radius)), len(names))


def _points(coords: Any, names: NDArray[Any], geographic: bool) -> Places:
    points = canonical_column(coords, "coordinates", len(names), lambda i: f"bag {names[i]!r}")
    if points.ndim != 2 or points.shape[1] not in ((2,) if geographic else (2, 3)):
        expected = "longitude and latitude of every bag" if geographic else "two or three coordinates a bag"
        raise wrong(expected, f"shape {points.shape}", "pass a (bags, 2) array")
    bad = ~np.isfinite(points).all(axis=1)
    if geographic:
        bad |= (points[:, 0] < -180) | (points[:, 0] > 360) | (np.abs(points[:, 1]) > 90)
    if bad.any():
        first = int(np.argmax(bad))
        expected = "longitudes from -180 to 360 and latitudes from -90 to 90" if geographic else "finite coordinates"
        remedy = "correct it or leave that bag out"
        raise wrong(expected, f"{points[first].tolist()} for bag {names[first]!r}", remedy)
    return on_sphere(points) if geographic else points


def _chord(kilometres: float) -> float:
    """Straight distance on the unit sphere of places so far apart along the ground.

    >>> round(_chord(EARTH_KM * math.pi / 2) ** 2, 12)
    2.0
    """
    angle = kilometres / EARTH_KM
    return 2 * math.sin(angle / 2) if angle < math.pi else 3.0  # no two places are farther apart than 2


def within(points: Places, radius: float) -> tuple[Index, Index]:
    """Pairs at most so far apart.

    >>> [ends.tolist() for ends in within(np.array([[0.0, 0], [1, 0], [3, 0]]), 1.0)]
    [[0], [1]]
    """
    first, second = cKDTree(points).query_pairs(radius * MARGIN, output_type="ndarray").T
    near = _squared(points[first], points[second]) <= radius**2
    return first[near], second[near]


def nearest(points: Places, count: int) -> tuple[Index, Index]:
    """Every bag with each of its nearest others; of equally distant ones, the first come first.

    >>> [ends.tolist() for ends in nearest(np.array([[0.0, 0], [1, 0], [3, 0], [1, 0]]), 1)]
    [[0, 1, 2, 3], [1, 3, 1, 1]]
    """
    # Of many bags in one place, the first count + 1 come before all others for everybody.
    choices = np.flatnonzero(_rank_in_place(points) <= count)
    tree = cKDTree(points[choices])
    reach = tree.query(points, k=count + 1)[0][:, -1]  # one of them is the bag itself, or stands in its place
    found = tree.query_ball_point(points, reach * MARGIN)
    rows = np.repeat(np.arange(len(points)), [len(some) for some in found])
    columns = choices[np.fromiter(chain.from_iterable(found), dtype=np.int64, count=len(rows))]
    rows, columns = rows[rows != columns], columns[rows != columns]
    order = np.lexsort((columns, _squared(points[rows], points[columns]), rows))
    rows, columns = rows[order], columns[order]
    kept = _rank(rows) < count
    return rows[kept], columns[kept]


def _rank_in_place(points: Places) -> Index:
    """How many bags of the same place come before."""
    home = np.unique(points, axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(home, kind="stable")
    rank = np.empty(len(points), dtype=np.int64)
    rank[order] = _rank(home[order])
    return rank


def _rank(groups: Index) -> Index:
    """Position of every entry within its group, of groups in rising order."""
    return np.arange(len(groups)) - np.searchsorted(groups, groups)


def _squared(left: Places, right: Places) -> Places:
    return np.asarray(((left - right) ** 2).sum(axis=1))
