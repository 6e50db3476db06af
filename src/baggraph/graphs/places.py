"""Links between new bags and known ones by where they lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from baggraph.data._columns import canonical_ids
from baggraph.data._graph_builders import _points

__all__ = ["place_links"]


def place_links(new: Any, known: Any, n_neighbors: int, *, geographic: bool = False) -> sp.csr_array:
    """Weight 1 from every new place to its nearest known ones, (m, n): ``links`` of new bags to a graph of places.

    ``geographic`` places are longitude and latitude in degrees.  What :meth:`BagGraph.from_coordinates` is among bags.

    >>> place_links([[0.0, 0.0]], [[5.0, 0.0], [1.0, 0.0], [0.0, 2.0]], 2).toarray().tolist()
    [[0.0, 1.0, 1.0]]
    """
    parts = [_on_map(values, geographic) for values in (new, known)]
    count = min(n_neighbors, len(parts[1]))
    nearest = cKDTree(parts[1]).query(parts[0], k=[*range(1, count + 1)])[1]
    rows = np.repeat(np.arange(len(parts[0])), count)
    shape = (len(parts[0]), len(parts[1]))
    return sp.csr_array((np.ones(len(rows)), (rows, nearest.ravel())), shape=shape)


def _on_map(values: Any, geographic: bool) -> NDArray[np.float64]:
    return _points(np.asarray(values, dtype=np.float64), canonical_ids(None, len(values)), geographic)
