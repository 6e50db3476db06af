"""The plain graph of nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from baggraph.data._columns import canonical_ids
from baggraph.data.graph import BagGraph
from baggraph.graphs._problem import embeddings
from baggraph.graphs.neighbors import nearest

__all__ = ["knn_graph"]


def knn_graph(Z: Any, n_neighbors: int, *, ids: Any = None, count_self: bool = False, device: str = "cpu") -> BagGraph:
    """Weight 1 between bags where either is among the nearest of the other, by embeddings Z (n, d).

    With ``count_self`` every bag is the first of its own neighbours, as in the published code: one other fewer.

    >>> knn_graph([[0.0], [1.0], [3.0]], 1, ids=["a", "b", "c"]).to_table()
      source target  weight
    0      a      b     1.0
    1      b      c     1.0
    """
    tensor = embeddings(Z, device, "float64")
    n = len(tensor)
    found = nearest(tensor, n_neighbors, method="exact", count_self=count_self).indices.cpu().numpy()
    rows, columns = np.repeat(np.arange(n), found.shape[1]), found.ravel()
    others = rows != columns
    entries = (np.ones(int(others.sum())), (rows[others], columns[others]))
    adjacency = sp.csr_array(sp.coo_array(entries, shape=(n, n)))
    return BagGraph._trusted(adjacency.maximum(adjacency.T), canonical_ids(ids, n))
