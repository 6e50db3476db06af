"""Where the bags of a graph are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data.graph import BagGraph

__all__ = ["layout"]

Array = NDArray[np.float64]
SMOOTHING = 20  # steps of averaging over neighbours that turn random signals into a first sketch
REPELLERS = 24  # bags that every bag is pushed away from in a round, drawn anew each time


def layout(graph: BagGraph, *, embedding: Any = None, rounds: int | None = None, random_state: int = 0) -> Array:
    """Positions (B, 2) within the unit square: neighbours near each other, everything else apart.

    Springs along edges and repulsion between sampled pairs (Fruchterman & Reingold 1991; sampling as in Tang et al.
    2016), from the two main directions of the ``embedding`` or, without one, of random signals smoothed over the
    graph.  The same graph and seed give the same picture.

    >>> graph = BagGraph.from_edges([(0, 1), (1, 2), (3, 4)], ids=range(5))
    >>> places = layout(graph)
    >>> near, far = places[0] - places[1], places[0] - places[4]
    >>> places.shape, bool(np.linalg.norm(near) < np.linalg.norm(far))
    ((5, 2), True)
    """
    n = len(graph)
    if n < 2:
        return np.full((n, 2), 0.5)
    random = np.random.default_rng(random_state)
    rounds = rounds or (300 if n <= 3_000 else 150)
    edges = sp.coo_array(sp.triu(graph.adjacency, k=1))
    pull = np.sqrt(edges.data / edges.data.max(initial=1e-300))
    places = _sketch(graph, embedding, random) * np.sqrt(n)  # then the mean distance of neighbours is about one
    if not graph.n_edges:
        return _into_unit_square(places)  # nothing pulls, so the sketch is all that is known
    count = min(REPELLERS, n - 1)
    for step in range(rounds):
        force = _springs(places, edges.row, edges.col, pull) + _repulsion(places, count, random)
        force -= 0.05 * places  # keeps components that nothing holds from drifting off
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        places += force / length * np.minimum(length, _reach(step, rounds, n))
    return _into_unit_square(places)


def _reach(step: int, rounds: int, n: int) -> float:
    """How far a bag may move in this round."""
    return 0.02 + 0.1 * float(np.sqrt(n)) * (1 - step / rounds) ** 2


def _sketch(graph: BagGraph, embedding: Any, random: np.random.Generator) -> Array:
    signals = random.normal(size=(len(graph), 16)) if embedding is None else np.asarray(embedding, dtype=np.float64)
    if embedding is None:
        averaging = graph.normalised(kind="row")
        for _ in range(SMOOTHING):
            signals = averaging @ signals
    centred = signals - signals.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    main = centred @ vectors[:, np.argsort(values)[::-1][:2]]
    main = np.pad(main, ((0, 0), (0, 2 - main.shape[1])))
    main /= np.maximum(main.std(axis=0), 1e-12)
    return np.clip(main, -3, 3) / 3 + random.normal(scale=1e-2, size=main.shape)  # equal bags must come apart


def _springs(places: Array, source: Any, target: Any, pull: Array) -> Array:
    difference = places[target] - places[source]
    pulled = difference * (np.linalg.norm(difference, axis=1) * pull)[:, None]
    n = len(places)
    along = [np.bincount(source, pulled[:, a], n) - np.bincount(target, pulled[:, a], n) for a in (0, 1)]
    return np.stack(along, axis=1)


def _repulsion(places: Array, count: int, random: np.random.Generator) -> Array:
    """Of all other bags, estimated from ``count`` of them."""
    n = len(places)
    other = (np.arange(n)[:, None] + random.integers(1, n, size=(n, count))) % n
    difference = places[:, None] - places[other]
    near = np.maximum((difference**2).sum(axis=2, keepdims=True), 1e-2)
    return np.asarray((difference / near).mean(axis=1) * min(n - 1, 200) * 0.2)


def _into_unit_square(places: Array) -> Array:
    low, high = places.min(axis=0), places.max(axis=0)
    return np.asarray((places - (low + high) / 2) / max(float((high - low).max()), 1e-12) + 0.5)
