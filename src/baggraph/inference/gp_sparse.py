"""A Gaussian process over a million bags: the graph by its sparse precision, features by their columns.

The model is that of :mod:`baggraph.inference.gp` with a graph part (Matérn of order one) and linear parts,

``y = level + f + F w + e``,  ``f ~ N(0, (v / c) (I + L / kappa)^-1)``,  ``w ~ N(0, S)``,  ``e ~ N(0, noise)``,

solved in f and w together, whose posterior precision is sparse but for the few columns of w.  Everything is conjugate
gradients: the mean is one right-hand side, every joint draw of the posterior another (Papandreou & Yuille 2010,
Gaussian sampling by local perturbations, NeurIPS).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from baggraph.data.graph import BagGraph
from baggraph.data.posterior import Posterior
from baggraph.errors import InvalidBagsError
from baggraph.inference._conjugate import Precision
from baggraph.inference.gp_graph import laplacian
from baggraph.inference.gp_scale import Scale

__all__ = ["SparseProcess", "ball", "mean_variance"]

Array = NDArray[np.float64]
PROBES = 16


@dataclass(frozen=True, eq=False)
class SparseProcess:
    """Parameters of the process, and what it stands on.

    Parameters
    ----------
    graph
        Over all B bags.
    variance, kappa
        Of the graph part, as in :class:`~baggraph.inference.gp_kernels.Spectral`.
    features : (B, p)
        Columns whose products are the other parts: scaled summaries, random features; may have no column.
    scales : (p,)
        Prior variance of the coefficient of every column.
    level
        Prior variance of the common level.
    noise : (B,)
        Variance of the noise of every bag.

    """

    graph: BagGraph
    variance: float
    kappa: float
    features: Array
    scales: Array
    level: float
    noise: Array

    def posterior(
        self,
        targets: Any,
        visible: Any,
        scale: Scale,
        *,
        n_draws: int = 16,
        seed: int = 0,
        normaliser: float | None = None,
        device: str = "cpu",
    ) -> Posterior:
        """Of all bags, from targets (B,) of the visible ones, as the process sees them; draws are joint over bags.

        The mean of the draws is the posterior mean to the tolerance of the solver; their spread is that of
        ``n_draws`` samples.  ``normaliser`` is :func:`mean_variance`, where it is known already.  ``device`` is where
        systems are solved: a CPU, or a GPU by its name in torch.
        """
        if scale.link != "identity":
            got, remedy = repr(scale.link), "pass targets that are linked already, and Scale.of('identity', ...)"
            raise InvalidBagsError("sparse process", expected="no link", got=got, remedy=remedy)
        seen = np.flatnonzero(visible)
        system = self._system(seen, normaliser, device)
        random = np.random.default_rng(seed)
        right = [system.right_hand_side(np.asarray(targets, dtype=np.float64)[seen])]
        right += [system.perturbation(random) for _ in range(n_draws)]
        found = system.on(device).solve(np.stack(right, axis=1))
        values = found[: system.n] + system.columns @ found[system.n :]
        mean = values[:, 0]
        spread = values[:, 1:] if n_draws else np.zeros((system.n, 1))
        spread = spread - spread.mean(axis=1, keepdims=True)
        spread *= np.sqrt(n_draws / (n_draws - 1)) if n_draws > 1 else 0.0
        draws = (mean[:, None] + spread).T[:, :, None] * scale.spread + scale.center
        variance = np.broadcast_to((self.noise[None, :, None] * scale.spread**2), draws.shape)
        return Posterior(draws, self.graph.ids, None, variance)

    def _system(self, seen: Any, normaliser: float | None, device: str) -> System:
        if not len(seen):
            raise InvalidBagsError("sparse process", expected="labelled bags", got="none", remedy="label some")
        walk = laplacian(self.graph)
        mean = mean_variance(self.graph, self.kappa, device=device) if normaliser is None else normaliser
        prior = mean / self.variance
        precision = sp.csr_array(prior * (sp.eye_array(len(self.graph), format="csr") + walk / self.kappa))
        columns = np.hstack([np.ones((len(self.graph), 1)), self.features])
        weights = np.zeros(len(self.graph))
        weights[seen] = 1 / self.noise[seen]
        scales = np.concatenate([[self.level], self.scales])
        return System(precision, columns, scales, weights, seen, self.graph, prior, self.kappa)


@dataclass(frozen=True, eq=False)
class System:
    """The posterior precision of (f, w) in parts, and its right-hand sides."""

    precision: sp.csr_array
    columns: Array
    scales: Array
    weights: Array
    seen: Any
    graph: BagGraph
    prior: float
    kappa: float

    @property
    def n(self) -> int:
        """Number of bags."""
        return int(self.precision.shape[0])

    def on(self, device: str) -> Precision:
        """The precision of f and w on a device."""
        corner = (self.columns * self.weights[:, None]).T @ self.columns + np.diag(1 / self.scales)
        return Precision.of(self.precision, self.weights, self.columns, corner, device=device)

    def right_hand_side(self, targets: Array) -> Array:
        """Of the mean."""
        pulled = np.zeros(self.n)
        pulled[self.seen] = self.weights[self.seen] * targets
        return np.concatenate([pulled, self.columns[self.seen].T @ pulled[self.seen]])

    def perturbation(self, random: np.random.Generator) -> Array:
        """A normal vector whose covariance is the posterior precision: solved, it is a draw around the mean."""
        graph_part = np.sqrt(self.prior) * (
            random.normal(size=self.n) + rough_walk(self.graph, random) / np.sqrt(self.kappa)
        )
        data = random.normal(size=len(self.seen)) * np.sqrt(self.weights[self.seen])
        graph_part[self.seen] += data
        below = random.normal(size=len(self.scales)) / np.sqrt(self.scales) + self.columns[self.seen].T @ data
        return np.concatenate([graph_part, below])


def rough_walk(graph: BagGraph, random: np.random.Generator) -> Array:
    """A normal vector (B,) whose covariance is the Laplacian: one number an edge, handed to its ends with two signs."""
    upper = sp.coo_array(sp.triu(graph.adjacency, k=1))
    degree = graph.degree
    root = np.sqrt(np.where(degree > 0, degree, 1.0))
    flow = np.sqrt(upper.data) * random.normal(size=upper.nnz)
    row, column = upper.coords
    found = np.bincount(row, flow / root[row], len(graph)) - np.bincount(column, flow / root[column], len(graph))
    alone = degree == 0
    found[alone] = random.normal(size=int(alone.sum()))
    return np.asarray(found)


def mean_variance(graph: BagGraph, kappa: float, *, probes: int = PROBES, seed: int = 0, device: str = "cpu") -> float:
    """The mean of the diagonal of ``(I + L / kappa)^-1``, by random signs (Hutchinson 1990).

    >>> graph = BagGraph.from_edges([(i, i + 1) for i in range(99)], ids=range(100))
    >>> exact = np.diag(np.linalg.inv(np.eye(100) + laplacian(graph).toarray() / 0.5)).mean()
    >>> bool(abs(mean_variance(graph, 0.5) / exact - 1) < 0.05)
    True
    """
    count = max(probes, min(len(graph), 400_000 // max(len(graph), 1)))
    if count >= len(graph):
        return float(np.diag(np.linalg.inv(np.eye(len(graph)) + laplacian(graph).toarray() / kappa)).mean())
    signs = np.where(np.random.default_rng(seed).random((len(graph), count)) < 0.5, -1.0, 1.0).astype(np.float64)
    matrix = sp.csr_array(sp.eye_array(len(graph), format="csr") + laplacian(graph) / kappa)
    return float((signs * Precision.of(matrix, device=device).solve(signs)).sum() / signs.size)


def ball(graph: BagGraph, center: int, size: int) -> NDArray[np.int64]:
    """The bags nearest to one by steps along edges, as many as asked for: a piece small enough for an exact process.

    >>> ball(BagGraph.from_edges([(i, i + 1) for i in range(9)], ids=range(10)), 5, 3).tolist()
    [4, 5, 6]
    """
    order = breadth_first_order(graph.adjacency, center, directed=False, return_predecessors=False)
    return np.sort(order[:size]).astype(np.int64)
