"""Which areas share a border: corners in common, found by sorting corners and not by comparing areas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data._graph_builders import join
from baggraph.data._graph_checks import bad_parameter, wrong
from baggraph.data._split_checks import is_count

WELL_KNOWN_TEXT = re.compile(r"\s*(?:MULTI)?POLYGON\s*(?:Z|M|ZM)?\s*\(.*\)\s*", re.IGNORECASE | re.DOTALL)
RING = re.compile(r"\(([^()]*)\)")
GRID = 10**9  # steps across the map: corners closer than one are the same


def from_polygons(polygons: Sequence[Any], names: NDArray[Any], shared: int) -> sp.csr_array:
    """Bags whose boundaries share corners; see :meth:`BagGraph.from_polygons`."""
    if not is_count(shared) or shared < 1:
        raise bad_parameter("shared corners of 1 or more", f"shared={shared!r}", "pass 2 for a common border")
    if len(polygons) != len(names):
        got = f"{len(polygons)} for {len(names)} bags"
        raise wrong("one polygon a bag", got, "pass them in the order of the ids")
    corners = [corners_of(polygon, name) for polygon, name in zip(polygons, names, strict=True)]
    if not corners:
        return sp.csr_array((0, 0), dtype=np.float64)
    bag = np.repeat(np.arange(len(names)), [len(some) for some in corners])
    kinds, kind = np.unique(_on_grid(np.concatenate(corners)), return_inverse=True)
    has = sp.csr_array((np.ones(len(kind)), (bag, kind)), shape=(len(names), len(kinds)))
    has.data[:] = 1.0  # a corner that a ring visits twice is one corner
    in_common = sp.triu(has @ has.T, k=1).tocoo()
    first, second = (ends[in_common.data >= shared] for ends in in_common.coords)
    return join(first, second, len(names))


def _on_grid(corners: NDArray[np.float64]) -> NDArray[np.int64]:
    """One integer a corner, equal where two corners lie at the same place."""
    low = corners.min(axis=0)
    extent = float((corners.max(axis=0) - low).max()) or 1.0
    steps = np.rint((corners - low) / extent * GRID).astype(np.int64)
    return np.asarray(steps[:, 0] * (GRID + 1) + steps[:, 1])


def corners_of(polygon: Any, name: str) -> NDArray[np.float64]:
    """All corners of all rings, (m, 2).

    >>> corners_of("POLYGON ((0 0, 1 0, 1 1, 0 0))", "a").tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    """
    expected = "a polygon as corners, rings, well-known text or GeoJSON"
    remedy = "pass one polygon or multipolygon a bag"
    try:
        rings = [np.asarray(ring, dtype=np.float64) for ring in _rings(polygon)]
    except (LookupError, TypeError, ValueError) as error:
        shown = repr(polygon)
        got = f"{shown if len(shown) <= 40 else shown[:37] + '...'} for bag {name!r}"
        raise wrong(expected, got, remedy) from error
    for ring in rings:
        if ring.ndim != 2 or ring.shape[1] not in (2, 3) or len(ring) < 3:
            raise wrong("three corners or more a ring", f"shape {ring.shape} for bag {name!r}", remedy)
        if not np.isfinite(ring[:, :2]).all():
            raise wrong("finite corners", f"others for bag {name!r}", "correct that polygon")
    if not rings:
        raise wrong(expected, f"no ring for bag {name!r}", remedy)
    return np.concatenate([ring[:, :2] for ring in rings])


def _rings(polygon: Any) -> list[Any]:
    polygon = getattr(polygon, "__geo_interface__", polygon)  # how shapely and its like speak GeoJSON
    if isinstance(polygon, str):
        return _rings_of_text(polygon)
    if isinstance(polygon, dict):
        parts = {"Polygon": [polygon["coordinates"]], "MultiPolygon": polygon["coordinates"]}[polygon["type"]]
        return list(chain.from_iterable(parts))
    return [polygon] if np.ndim(polygon[0]) == 1 else list(polygon)


def _rings_of_text(text: str) -> list[Any]:
    if WELL_KNOWN_TEXT.fullmatch(text) is None:
        raise ValueError(text)
    return [[corner.split()[:2] for corner in ring.split(",")] for ring in RING.findall(text)]
