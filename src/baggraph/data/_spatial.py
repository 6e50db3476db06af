"""Folds that are blocks of neighbours, by halving again and again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.data._columns import canonical_column
from baggraph.data._split_checks import bad_data, bag_at, bit_stream, check_counts

Index = NDArray[np.int64]


def spatial_folds(
    coords: Any, *, folds: int = 10, repeats: int = 1, random_state: int = 0, geographic: bool = False
) -> NDArray[np.int16]:
    """Folds (repeats, B) that are blocks of neighbours, equal in size to within one.

    The bags are halved across the direction in which they spread, then each half again.  That direction is
    ``C g``, with ``C`` the covariance of the positions and ``g`` random: long blocks are cut across their length,
    round ones anywhere, and so the blocks differ from repeat to repeat.  ``coords`` are (B, 2) or (B, 3); with
    ``geographic``, they are longitude and latitude in degrees and become points on the unit sphere.

    >>> spatial_folds([[0, 0], [9, 1], [0, 1], [9, 0]], folds=2).tolist()
    [[0, 1, 0, 1]]
    """
    stage = "spatial folds"
    points = _points(stage, coords, geographic)
    check_counts(stage, folds, repeats, len(points), "bags")
    bits = bit_stream(stage, random_state)
    edges = np.arange(folds + 1) * len(points) // folds
    result = np.empty((repeats, len(points)), dtype=np.int16)
    for row in result:
        order = np.arange(len(points))
        _bisect(points, order, edges, bits)
        row[order] = np.repeat(np.arange(folds), np.diff(edges))
    return result


def _bisect(points: NDArray[np.float64], order: Index, edges: Index, bits: np.random.PCG64) -> None:
    """Reorder in place, until the bags between any two of the edges are neighbours."""
    if len(edges) == 2:
        return
    block = order[edges[0] : edges[-1]]
    block[:] = block[_along_spread(points[block], bits)]
    middle = (len(edges) - 1) // 2
    _bisect(points, order, edges[: middle + 1], bits)
    _bisect(points, order, edges[middle:], bits)


def _along_spread(points: NDArray[np.float64], bits: np.random.PCG64) -> Index:
    # fsum and elementwise products round alike on every machine; BLAS and reductions do not.
    centred = points - [math.fsum(column) / len(points) for column in points.T]
    start = (bits.random_raw(points.shape[1]) >> np.uint64(11)) * 2.0**-52 - 1.0
    along = _project(centred, start)
    direction = np.array([math.fsum(column * along) for column in centred.T])
    return np.lexsort((bits.random_raw(len(points)), _project(centred, direction)))


def _project(points: NDArray[np.float64], direction: Any) -> NDArray[np.float64]:
    result = np.zeros(len(points))
    for column, weight in zip(points.T, direction, strict=True):
        result += column * weight
    return result


def _points(stage: str, coords: Any, geographic: bool) -> NDArray[np.float64]:
    points = canonical_column(coords, "coordinates", len(coords), bag_at)
    wanted = (2,) if geographic else (2, 3)
    if points.ndim != 2 or points.shape[1] not in wanted:
        expected = "longitude and latitude of every bag" if geographic else "two or three coordinates a bag"
        raise bad_data(stage, expected, f"shape {points.shape}", "pass a (bags, 2) array")
    bad = ~np.isfinite(points).all(axis=1)
    if geographic:
        bad |= (points[:, 0] < -180) | (points[:, 0] > 360) | (np.abs(points[:, 1]) > 90)
    if bad.any():
        first = int(np.argmax(bad))
        expected = "longitudes from -180 to 360 and latitudes from -90 to 90" if geographic else "finite coordinates"
        got = f"{points[first].tolist()} for {bag_at(first)}"
        raise bad_data(stage, expected, got, "correct it or leave that bag out")
    return on_sphere(points) if geographic else points / (np.abs(points).max(initial=0.0) or 1.0)


def on_sphere(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    longitude, latitude = np.radians(degrees).T
    ring = np.cos(latitude)
    # Sines differ in the last digit between machines; 12 digits are a few micrometres on Earth.
    return np.round(np.stack([ring * np.cos(longitude), ring * np.sin(longitude), np.sin(latitude)], axis=1), 12)
