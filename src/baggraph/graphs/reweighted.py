"""Known edges, made weaker where embeddings of their ends are far apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from baggraph.data.graph import BagGraph
from baggraph.errors import InvalidGraphError
from baggraph.graphs._attach import AbstractRule
from baggraph.graphs._problem import embeddings
from baggraph.graphs.wiring import AbstractWiring, Wired, aligned

__all__ = ["EdgeRule", "ReweightedWiring"]


@dataclass(frozen=True, eq=False)
class EdgeRule(AbstractRule):
    """Known links of new bags, weakened as the edges of the graph were; embeddings alone make no link."""

    fitted: Tensor
    scale: float

    def weigh(self, links: sp.csr_array, Z_new: Any) -> sp.csr_array:
        """Known weights (m, n) of new bags with embeddings (m, d), times ``exp(-d / scale)``."""
        found = links.tocoo()
        rows, columns = found.coords
        new = torch.as_tensor(np.asarray(Z_new)).to(self.fitted)
        factors = _factors(new, self.fitted, rows, columns, self.scale)
        return sp.csr_array(sp.coo_array((found.data * factors, (rows, columns)), shape=found.shape))

    def _rows(self, _new: Tensor) -> sp.csr_array:
        expected, remedy = "known links of new bags", "pass links=(new bags, bags in fit)"
        raise InvalidGraphError("attach", expected=expected, got="embeddings alone", remedy=remedy)


@dataclass(frozen=True, eq=False)
class ReweightedWiring(AbstractWiring):
    r"""Known edges, each times ``exp(-d_ij / s)``: d_ij the distance of embeddings, s its median over the edges.

    No edge is added and none is removed, so what is known stays known; an edge between bags that look unlike counts
    less.  Every member has weights of its own.

    >>> known = BagGraph.from_edges([("a", "b"), ("b", "c")], ids=["a", "b", "c"])
    >>> graph = ReweightedWiring(known).graphs(np.array([[[0.0], [1.0], [4.0]]]), known.ids)[0]
    >>> graph.to_table()["weight"].round(3).tolist()
    [0.607, 0.223]
    """

    graph: BagGraph

    def wire(self, stack: Any, ids: Any) -> list[Wired]:
        """The known graph with weights of every member, and the rule that weakens links of new bags alike."""
        known = aligned(self.graph, ids)
        entries = known.adjacency.tocoo()
        rows, columns = entries.coords
        found = []
        for Z in stack:
            own = embeddings(Z, "cpu", "float64")
            apart = _distances(own, own, rows, columns)
            scale = float(np.median(apart)) if len(apart) else 1.0
            scale = scale if scale > 0 else 1.0
            data = known.adjacency.data * np.exp(-apart / scale)
            parts = (data, known.adjacency.indices, known.adjacency.indptr)
            adjacency = sp.csr_array(parts, shape=known.adjacency.shape)
            found.append(Wired(BagGraph._trusted(adjacency, known.ids), EdgeRule(own, scale)))
        return found

    def with_new(self, ids: Any) -> AbstractWiring:
        """The known graph leaves new bags alone."""
        return ReweightedWiring(self.graph.extend(ids, sp.csr_array((len(ids), len(self.graph)))))


def _factors(one: Tensor, other: Tensor, rows: Any, columns: Any, scale: float) -> NDArray[np.float64]:
    return np.exp(-_distances(one, other, rows, columns) / scale)


def _distances(one: Tensor, other: Tensor, rows: Any, columns: Any) -> NDArray[np.float64]:
    """Distances of pairs of rows, the same in both directions to the last bit."""
    first, second = one.numpy()[rows], other.numpy()[columns]
    return np.asarray(np.sqrt(((first - second) ** 2).sum(axis=1)))
