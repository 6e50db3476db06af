"""What is known of bags beside their instances: a graph, its links to new bags, and which labels may be seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from baggraph.data._columns import missing_mask
from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.errors import ParameterError
from baggraph.graphs.wiring import aligned


def read_graph(stage: str, graph: Any, bags: Bags) -> BagGraph | None:
    """The graph over these bags: ``"given"`` is their own, if they have one."""
    if isinstance(graph, BagGraph):
        return aligned(graph, bags.ids)
    if graph not in ("given", None):
        got, remedy = repr(graph), "pass one of these"
        raise ParameterError(stage, expected="graph 'given', None or a BagGraph", got=got, remedy=remedy)
    return bags.graph if graph == "given" else None


def known_links(graph: Any, new_ids: Any, old_ids: Any) -> sp.csr_array | None:
    """Weights (m, B) from new bags to those in fit, where a graph was passed that holds them all.

    >>> known_links(BagGraph.from_edges([("a", "b")], ids=["a", "b"]), np.array(["b"]), np.array(["a"])).toarray()
    array([[1.]])
    """
    if not isinstance(graph, BagGraph) or not set(graph.ids.tolist()).issuperset(new_ids.tolist()):
        return None
    place = {bag: i for i, bag in enumerate(graph.ids.tolist())}
    new, old = ([place[bag] for bag in ids.tolist()] for ids in (new_ids, old_ids))
    return sp.csr_array(graph.adjacency[new][:, old])


def only_visible(y: Any, visible: Any) -> Any:
    """Labels of which the others are missing.

    >>> only_visible(np.array([1, 2]), np.array([True, False])).tolist()
    [1.0, nan]
    """
    text = y.dtype.kind == "O"
    found = np.array(y, dtype=object if text else np.float64)
    found[~visible | missing_mask(y)] = None if text else np.nan
    return found
