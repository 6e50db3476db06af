"""A graph whose nodes are in another order than the bags: it would fit, if it were renumbered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import quadratic_assignment
from scipy.spatial.distance import pdist, squareform

Array = NDArray[np.float64]
MOST_NODES = 300  # of a larger graph, the surroundings of one node are renumbered
N_REWIRED, N_STARTS, SWAPS_PER_EDGE = 5, 3, 10
GOOD_SHARE = 0.5  # of what the best numbering reaches
CLEAR_MARGIN = 0.1  # above what rewired graphs reach


@dataclass(frozen=True)
class Numbering:
    """How short edges are: 0 as randomly drawn pairs, 1 as the nearest pairs there are."""

    given: float
    best: float = np.nan
    rewired: float = np.nan

    @property
    def suspicious(self) -> bool:
        """Whether another numbering fits far better, and better than any numbering of a graph without structure."""
        return self.given < GOOD_SHARE * self.best and self.best > self.rewired + CLEAR_MARGIN


def look(adjacency: sp.csr_array, points: Array, seed: int) -> Numbering:
    """How well the edges of a graph fit the distances of points: as numbered, as numbered best, and by chance.

    The best numbering is that of a quadratic assignment (Vogelstein et al. 2015), found approximately; chance is the
    best numbering of graphs whose edges were swapped at equal degrees (Maslov & Sneppen 2002).

    >>> places = np.argwhere(np.ones((6, 6)))
    >>> grid = sp.csr_array(squareform(pdist(places)) == 1)
    >>> order = np.random.default_rng(0).permutation(36)
    >>> look(grid, places, 0).suspicious, look(grid[order][:, order], places, 0).suspicious
    (False, True)
    """
    whole = _Fit.of(adjacency, points)
    given = whole.share(whole.edges, np.arange(len(points)))
    if not given < GOOD_SHARE:  # no numbering is so much better; NaN where all places are equal
        return Numbering(given)
    rng = np.random.default_rng(seed)
    kept = _surroundings(adjacency, MOST_NODES)
    part = _Fit.of(adjacency[kept][:, kept], points[kept])
    given = part.share(part.edges, np.arange(len(kept)))
    rewired = max(part.best(rewire(part.edges, rng), rng) for _ in range(N_REWIRED))
    return Numbering(given, part.best(part.edges, rng), rewired)


@dataclass(frozen=True)
class _Fit:
    """Edges (both ways, 0 or 1), distances of all pairs, their mean, and the mean of the nearest as many pairs."""

    edges: Array
    distance: Array
    random: float
    nearest: float

    @classmethod
    def of(cls, adjacency: sp.csr_array, points: Array) -> _Fit:
        edges = (adjacency.toarray() > 0).astype(np.float64)
        pairs = pdist(points)
        n_edges = max(int(edges.sum()) // 2, 1)
        nearest = np.partition(pairs, n_edges - 1)[:n_edges].mean()
        return cls(edges, squareform(pairs), float(pairs.mean()), float(nearest))

    def share(self, edges: Array, order: NDArray[np.int64]) -> float:
        """Of a graph whose node i is bag ``order[i]``; NaN of a graph without edges or places without distance."""
        if not edges.any() or self.random <= self.nearest:
            return np.nan
        mean = (edges * self.distance[np.ix_(order, order)]).sum() / edges.sum()
        return float((self.random - mean) / (self.random - self.nearest))

    def best(self, edges: Array, rng: np.random.Generator) -> float:
        """The share of the best numbering that was found."""
        found = []
        for start in range(N_STARTS):
            options: dict[str, Any] = {"P0": "randomized" if start else "barycenter", "rng": rng}
            found.append(quadratic_assignment(edges, self.distance, options=options).col_ind)
        return max(self.share(edges, order) for order in found)


def rewire(edges: Array, rng: np.random.Generator) -> Array:
    """Swap the ends of random pairs of edges: a random graph of the same degrees.

    >>> ring = np.eye(6, k=1) + np.eye(6, k=5)
    >>> ring = ring + ring.T
    >>> rewire(ring, np.random.default_rng(0)).sum(axis=0).tolist() == ring.sum(axis=0).tolist()
    True
    """
    joined = edges > 0
    ends = np.argwhere(np.triu(joined, 1))
    if len(ends) < 2:
        return edges
    draws = rng.integers(len(ends), size=(SWAPS_PER_EDGE * len(ends), 2))
    flips = rng.random(len(draws)) < 0.5
    for (first, second), flip in zip(draws, flips, strict=True):
        a, b = ends[first]
        c, d = ends[second][::-1] if flip else ends[second]
        if len({a, b, c, d}) < 4 or joined[a, d] or joined[c, b]:
            continue
        joined[[a, b, c, d], [b, a, d, c]] = False
        joined[[a, d, c, b], [d, a, b, c]] = True
        ends[first], ends[second] = (a, d), (c, b)
    return joined.astype(np.float64)


def _surroundings(adjacency: sp.csr_array, count: int) -> NDArray[np.int64]:
    """The first nodes that are reached from the one with most neighbours."""
    if adjacency.shape[0] <= count:
        return np.arange(adjacency.shape[0])
    start = int(np.argmax(np.diff(adjacency.indptr)))
    return np.sort(sp.csgraph.breadth_first_order(adjacency, start, directed=False)[0][:count])
