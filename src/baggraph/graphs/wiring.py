"""How embeddings of bags become graphs: one small interface for every choice of graph."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from baggraph.data.graph import BagGraph
from baggraph.errors import InvalidGraphError, name_some
from baggraph.graphs._attach import AbstractRule, NearestRule
from baggraph.graphs._problem import embeddings
from baggraph.graphs.knn import knn_graph
from baggraph.graphs.learned import LearnedGraph

__all__ = ["AbstractWiring", "GivenWiring", "LearnedWiring", "NearestWiring", "Wired"]


@dataclass(frozen=True, eq=False)
class Wired:
    """A graph over bags, and the rule that joins new bags to it; None where embeddings do not say."""

    graph: BagGraph
    rule: AbstractRule | None = None


class AbstractWiring(ABC):
    """From embeddings of M members over the same bags to M graphs."""

    needs_embeddings = True

    @abstractmethod
    def wire(self, stack: Any, ids: Any) -> list[Wired]:
        """Graphs of embeddings (M, n, d) over bags with these ids."""

    def graphs(self, stack: Any, ids: Any) -> list[BagGraph]:
        """The graphs alone, where no new bag will be attached."""
        return [wired.graph for wired in self.wire(stack, ids)]

    def with_new(self, _ids: Any) -> AbstractWiring:
        """The same for more bags, of which nothing but embeddings is known."""
        return self


@dataclass(frozen=True, eq=False)
class GivenWiring(AbstractWiring):
    """The same known graph for every member, cut down to the bags at hand.

    >>> known = BagGraph.from_edges([("a", "b"), ("b", "c")], ids=["a", "b", "c"])
    >>> GivenWiring(known).wire(np.zeros((1, 2, 1)), ["b", "a"])[0].graph.to_table()
      source target  weight
    0      b      a     1.0
    """

    graph: BagGraph
    needs_embeddings = False

    def wire(self, stack: Any, ids: Any) -> list[Wired]:
        """The known graph, M times."""
        return [Wired(aligned(self.graph, ids))] * len(stack)


@dataclass(frozen=True)
class NearestWiring(AbstractWiring):
    """Nearest neighbours, see :func:`~baggraph.graphs.knn.knn_graph`."""

    n_neighbors: int
    device: str = "cpu"

    def wire(self, stack: Any, ids: Any) -> list[Wired]:
        """A graph of nearest neighbours a member."""
        found = []
        for Z in stack:
            graph = knn_graph(Z, self.n_neighbors, ids=ids, device=self.device)
            found.append(Wired(graph, NearestRule(embeddings(Z, self.device, "float64"), self.n_neighbors)))
        return found


@dataclass(frozen=True, eq=False)
class LearnedWiring(AbstractWiring):
    """A learned graph a member, with the settings of a :class:`~baggraph.LearnedGraph` that is not fitted itself."""

    settings: LearnedGraph

    def wire(self, stack: Any, ids: Any) -> list[Wired]:
        """A learned graph a member, and the one-node rule."""
        found = []
        for Z in stack:
            learned = self._own(ids).fit(Z, ids=ids)
            found.append(Wired(learned.graph_, learned.rule))
        return found

    def graphs(self, stack: Any, ids: Any) -> list[BagGraph]:
        """All graphs in one call where the settings allow it."""
        one_by_one = self.settings.observed is not None or self.settings.degree_match != "rule"
        if len(stack) == 1 or one_by_one or self.settings.certify or self.settings.knn != "auto":
            return super().graphs(stack, ids)
        many = self.settings.fit_many(stack)
        return [BagGraph._trusted(many[m].adjacency, ids) for m in range(len(many))]

    def with_new(self, ids: Any) -> AbstractWiring:
        """The observed graph leaves new bags alone."""
        if self.settings.observed is None:
            return self
        own = copy.copy(self.settings)
        own.observed = self.settings.observed.extend(ids, sp.csr_array((len(ids), len(self.settings.observed))))
        return LearnedWiring(own)

    def _own(self, ids: Any) -> LearnedGraph:
        """A copy whose observed graph is that of the bags at hand."""
        own = copy.copy(self.settings)
        if own.observed is not None:
            own.observed = aligned(own.observed, ids)
        return own


def aligned(graph: BagGraph, ids: Sequence[Any]) -> BagGraph:
    """The graph over bags in the order of these ids, or an error that names those it lacks."""
    names = np.asarray(ids)
    if np.array_equal(graph.ids, names):
        return graph
    known = set(graph.ids.tolist())
    absent = [name for name in names.tolist() if name not in known]
    if absent:
        got = f"none for {name_some(absent)}"
        raise InvalidGraphError("graph", expected="a node for every bag", got=got, remedy="use the ids of the bags")
    return graph.take(names)
