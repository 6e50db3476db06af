"""Does the graph that came with the bags join what belongs together, and are its nodes in the order of the bags?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.evaluation._findings import Finding
from baggraph.evaluation._material import Array, Material
from baggraph.evaluation._renumbering import Numbering, look
from baggraph.evaluation._shuffles import Shuffles

LEVEL = 0.05
FEWEST_BAGS, MOST_BAGS = 10, 3000  # of more, distances between all pairs are not looked at


def findings(material: Material, graph: BagGraph | None, shuffles: Shuffles | None, seed: int) -> Iterator[Finding]:
    """What can be said of the edges, by labels and by places (or features, where there are no places)."""
    if graph is None or not graph.n_edges:
        return
    if shuffles is not None:
        yield from _no_better_than_shuffled(material, graph, shuffles)
    if FEWEST_BAGS <= len(graph) <= MOST_BAGS:
        yield from _renumbered(material, graph, seed)


# ---------------------------------------------------------------------- labels along edges


def _no_better_than_shuffled(material: Material, graph: BagGraph, shuffles: Shuffles) -> Iterator[Finding]:
    known = material.known
    weights = graph.adjacency[known][:, known]
    if not weights.nnz or not np.ptp(shuffles.indicator, axis=0).any():
        return
    observed, shuffled = agreement(weights, shuffles)
    p, expected = shuffles.p_of(observed, shuffled), float(shuffled.mean())
    if p <= LEVEL:
        return
    what = "share of the edge weight between bags of equal label" if shuffles.classify else "Moran's I of the label"
    measured = f"{what}: {observed:.3f}; with shuffled labels {expected:.3f} on average (p = {p:.2g})"
    why = "a method that passes messages along these edges mixes bags that have nothing to do with one another"
    advice = "try it without a graph, with a learned one, and check that nodes are matched to bags by id"
    numbers = {"observed": observed, "shuffled": expected, "p": p}
    yield Finding("BG501", "warning", measured, why, advice, numbers)


def agreement(weights: Array, shuffles: Shuffles) -> tuple[float, Array]:
    """Homophily of classes, or the mean Moran's I of targets: as it is, and with shuffled labels."""
    total = weights.sum()
    if shuffles.classify:
        values, scale = shuffles.indicator, np.full(shuffles.indicator.shape[1], 1 / total)
    else:
        values = shuffles.indicator - shuffles.indicator.mean(axis=0)
        below = (values**2).sum(axis=0)
        values, below = values[:, below > 0], below[below > 0]
        scale = len(values) / (total * below * len(below))
    observed = float((scale * (values * (weights @ values)).sum(axis=0)).sum())
    shuffled = np.zeros(len(shuffles.orders))
    for column, factor in zip(values.T, scale, strict=True):
        many = column[shuffles.orders]
        shuffled += factor * (many * (weights @ many.T).T).sum(axis=1)
    return observed, shuffled


# ---------------------------------------------------------------------- the order of the nodes


def _renumbered(material: Material, graph: BagGraph, seed: int) -> Iterator[Finding]:
    points, by = _places(material.bags, material)
    found = look(graph.adjacency, points, seed)
    if not found.suspicious:
        return
    measured = (
        f"by the {by} of the bags, edges reach {_percent(found.given)} of the way from randomly drawn pairs to the "
        f"nearest ones; with another numbering of its nodes, the same graph reaches {_percent(found.best)}, and "
        f"rewired graphs of equal degrees at most {_percent(found.rewired)}"
    )
    why = (
        f"the graph would fit these bags in another order, and then messages go to wrong bags; or it joins bags by "
        f"something that their {by} say nothing of"
    )
    advice = "match nodes to bags by id, as BagGraph.from_edges does, and compare the order of the two files"
    yield Finding("BG502", "warning", measured, why, advice, _numbers(found))


def _numbers(found: Numbering) -> dict[str, float]:
    return {"given": found.given, "best_numbering": found.best, "rewired": found.rewired}


def _places(bags: Bags, material: Material) -> tuple[NDArray[np.float64], str]:
    if bags.coords is not None:
        return np.asarray(bags.coords, dtype=np.float64), "places"
    spread = material.means.std(axis=0)
    return (material.means - material.means.mean(axis=0)) / np.where(spread > 0, spread, 1.0), "mean features"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
