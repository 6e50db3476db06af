"""The control for "does the graph help?": a graph whose bags are exchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from baggraph.data.graph import BagGraph
from baggraph.graphs.wiring import AbstractWiring, Wired

__all__ = ["ShuffledWiring"]


@dataclass(frozen=True)
class ShuffledWiring(AbstractWiring):
    """A control: the graphs of another wiring with their bags exchanged at random, so that degrees alone are left.

    >>> from baggraph.graphs.wiring import GivenWiring
    >>> chain = BagGraph.from_edges([("a", "b"), ("b", "c")], ids=["a", "b", "c"])
    >>> graph = ShuffledWiring(GivenWiring(chain)).graphs(np.zeros((1, 3, 1)), chain.ids)[0]
    >>> graph.n_edges, sorted(graph.adjacency.sum(axis=1).tolist())
    (2, [1.0, 1.0, 2.0])
    """

    inner: AbstractWiring
    random_state: int = 0

    @property
    def needs_embeddings(self) -> bool:  # type: ignore[override]
        """As of the other wiring."""
        return self.inner.needs_embeddings

    def wire(self, stack: Any, ids: Any) -> list[Wired]:
        """Shuffled graphs; there is no rule for new bags."""
        return [Wired(graph) for graph in self.graphs(stack, ids)]

    def graphs(self, stack: Any, ids: Any) -> list[BagGraph]:
        """Shuffled graphs, every member's by an order of its own."""
        generator = np.random.default_rng(self.random_state)
        found = []
        for graph in self.inner.graphs(stack, ids):
            order = generator.permutation(len(graph))
            found.append(BagGraph._trusted(graph.adjacency[order][:, order], graph.ids))
        return found
