"""A graph as a covariance: the spectrum of its Laplacian, and rows for bags that come later."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data.graph import BagGraph
from baggraph.errors import InvalidGraphError

__all__ = ["attached_rows", "laplacian", "spectrum"]

Array = NDArray[np.float64]
MOST_BAGS = 8000  # half a gigabyte of eigenvectors, ten minutes


def laplacian(graph: BagGraph) -> sp.csr_array:
    """``I - D^-1/2 A D^-1/2`` (B, B); isolates, which no neighbour says anything about, have 1 on the diagonal.

    >>> laplacian(BagGraph.from_edges([(0, 1)], ids=[0, 1, 2])).toarray().tolist()
    [[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return sp.csr_array(sp.eye_array(len(graph), format="csr") - graph.normalised(self_loops=0.0))


def spectrum(graph: BagGraph) -> tuple[Array, Array]:
    """Eigenvalues (B,) from 0 to 2 and eigenvectors (B, B) of the Laplacian; a row of the latter describes a bag.

    >>> spectrum(BagGraph.from_edges([(0, 1)], ids=[0, 1]))[0].round(6).tolist()
    [0.0, 2.0]
    """
    if len(graph) > MOST_BAGS:
        remedy = "use the sparse process of baggraph.inference.gp_sparse"
        raise InvalidGraphError(
            "spectrum", expected=f"at most {MOST_BAGS:,} bags", got=f"{len(graph):,}", remedy=remedy
        )
    values, vectors = np.linalg.eigh(laplacian(graph).toarray())
    return np.clip(values, 0.0, 2.0), vectors


def attached_rows(vectors: Array, links: Any) -> Array:
    """Rows (m, B) of new bags: the mean of their neighbours' rows, by the weights ``links`` (m, B).

    A new bag is heard as if it came alone, and leaves the covariance of the others as it was.  One without a neighbour
    gets zeros: the graph says nothing of it.
    """
    weights = sp.csr_array(links, dtype=np.float64)
    total = np.asarray(weights.sum(axis=1))
    scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    return np.asarray(weights @ vectors) * scale[:, None]
