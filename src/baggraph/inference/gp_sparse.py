"""A Gaussian process over a million bags: the graph by its sparse precision, features by their columns.

The model is that of :mod:`baggraph.inference.gp` with a graph part (Matérn of order one) and linear parts,

``y = level + f + F w + e``,  ``f ~ N(0, (v / c) (I + L / kappa)^-1)``,  ``w ~ N(0, S)``,  ``e ~ N(0, noise)``,

solved in f and w together, whose posterior precision is sparse but for the few columns of w.  Everything is conjugate
gradients: the mean is one right-hand side, every joint draw of the posterior another (Papandreou & Yuille 2010,
Gaussian sampling by local perturbations, NeurIPS).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.csgraph import breadth_first_order

from baggraph.data.graph import BagGraph
from baggraph.data.posterior import Posterior
from baggraph.errors import BagError, InvalidBagsError
from baggraph.inference.gp_graph import laplacian
from baggraph.inference.gp_scale import Scale

__all__ = ["SparseProcess", "ball", "mean_variance", "solve"]

Array = NDArray[np.float64]
TOLERANCE = 1e-6
MOST_STEPS = 2000
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
    ) -> Posterior:
        """Of all bags, from targets (B,) of the visible ones, as the process sees them; draws are joint over bags.

        The mean of the draws is the posterior mean to the tolerance of the solver; their spread is that of
        ``n_draws`` samples.  ``normaliser`` is :func:`mean_variance`, where it is known already.
        """
        if scale.link != "identity":
            got, remedy = repr(scale.link), "pass targets that are linked already, and Scale.of('identity', ...)"
            raise InvalidBagsError("sparse process", expected="no link", got=got, remedy=remedy)
        seen = np.flatnonzero(visible)
        system = self._system(seen, normaliser)
        random = np.random.default_rng(seed)
        right = [system.right_hand_side(np.asarray(targets, dtype=np.float64)[seen])]
        right += [system.perturbation(random) for _ in range(n_draws)]
        found = solve(system, np.stack(right, axis=1))
        values = found[: system.n] + system.columns @ found[system.n :]
        mean = values[:, 0]
        spread = values[:, 1:] if n_draws else np.zeros((system.n, 1))
        spread = spread - spread.mean(axis=1, keepdims=True)
        spread *= np.sqrt(n_draws / (n_draws - 1)) if n_draws > 1 else 0.0
        draws = (mean[:, None] + spread).T[:, :, None] * scale.spread + scale.center
        variance = np.broadcast_to((self.noise[None, :, None] * scale.spread**2), draws.shape)
        return Posterior(draws, self.graph.ids, None, variance)

    def _system(self, seen: Any, normaliser: float | None) -> System:
        if not len(seen):
            raise InvalidBagsError("sparse process", expected="labelled bags", got="none", remedy="label some")
        walk = laplacian(self.graph)
        mean = mean_variance(self.graph, self.kappa) if normaliser is None else normaliser
        prior = mean / self.variance
        precision = sp.csr_array(prior * (sp.eye_array(len(self.graph), format="csr") + walk / self.kappa))
        columns = np.hstack([np.ones((len(self.graph), 1)), self.features])
        weights = np.zeros(len(self.graph))
        weights[seen] = 1 / self.noise[seen]
        scales = np.concatenate([[self.level], self.scales])
        return System(precision, columns, scales, weights, seen, self.graph, prior, self.kappa)


@dataclass(frozen=True, eq=False)
class System:
    """The posterior precision of (f, w), as products."""

    precision: sp.csr_array
    columns: Array
    scales: Array
    weights: Array
    seen: Any
    graph: BagGraph
    prior: float
    kappa: float

    @cached_property
    def weighted(self) -> Array:
        """Columns, weighted by what the labels say (B, p)."""
        return self.columns * self.weights[:, None]

    @cached_property
    def corner(self) -> Array:
        """The precision of w given f (p, p)."""
        return self.weighted.T @ self.columns + np.diag(1 / self.scales)

    @cached_property
    def _corner_factor(self) -> Any:
        return cho_factor(self.corner)

    @cached_property
    def _diagonal(self) -> Array:
        return (self.precision.diagonal() + self.weights)[:, None]

    @property
    def n(self) -> int:
        """Number of bags."""
        return int(self.precision.shape[0])

    def product(self, values: Array) -> Array:
        """With (n + p, r) values."""
        top, bottom = values[: self.n], values[self.n :]
        upper = self.precision @ top
        upper += self.weights[:, None] * top
        upper += self.weighted @ bottom
        return np.concatenate([upper, self.weighted.T @ top + self.corner @ bottom])

    def precondition(self, values: Array) -> Array:
        """Divided by the diagonal of the graph's part, solved in that of the columns."""
        below = cho_solve(self._corner_factor, values[self.n :])
        return np.concatenate([values[: self.n] / self._diagonal, below])

    def right_hand_side(self, targets: Array) -> Array:
        """Of the mean."""
        pulled = np.zeros(self.n)
        pulled[self.seen] = self.weights[self.seen] * targets
        return np.concatenate([pulled, self.weighted[self.seen].T @ targets])

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


def mean_variance(graph: BagGraph, kappa: float, *, probes: int = PROBES, seed: int = 0) -> float:
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
    system = Plain(matrix)
    return float((signs * solve(system, signs)).sum() / signs.size)


@dataclass(frozen=True, eq=False)
class Plain:
    """A sparse matrix as a system."""

    matrix: sp.csr_array

    def product(self, values: Array) -> Array:
        """With (n, r) values."""
        return np.asarray(self.matrix @ values)

    def precondition(self, values: Array) -> Array:
        """Divided by the diagonal."""
        return np.asarray(values / self.matrix.diagonal()[:, None])


def ball(graph: BagGraph, center: int, size: int) -> NDArray[np.int64]:
    """The bags nearest to one by steps along edges, as many as asked for: a piece small enough for an exact process.

    >>> ball(BagGraph.from_edges([(i, i + 1) for i in range(9)], ids=range(10)), 5, 3).tolist()
    [4, 5, 6]
    """
    order = breadth_first_order(graph.adjacency, center, directed=False, return_predecessors=False)
    return np.sort(order[:size]).astype(np.int64)


def solve(system: Any, right: Array, *, tolerance: float = TOLERANCE) -> Array:
    """Preconditioned conjugate gradients, all right-hand sides (n, r) side by side, each with steps of its own."""
    found = np.zeros_like(right)
    residual = right.copy()
    goal = tolerance * np.maximum(np.linalg.norm(right, axis=0), 1e-300)
    direction = system.precondition(residual)
    energy = (residual * direction).sum(axis=0)
    for _ in range(MOST_STEPS):
        if (np.linalg.norm(residual, axis=0) <= goal).all():
            return found
        image = system.product(direction)
        step = energy / np.maximum((direction * image).sum(axis=0), 1e-300)
        found += step * direction
        residual -= step * image
        fresh = system.precondition(residual)
        before, energy = energy, (residual * fresh).sum(axis=0)
        direction *= energy / np.maximum(before, 1e-300)
        direction += fresh
    left = float((np.linalg.norm(residual, axis=0) / goal).max()) * tolerance
    got = f"a residual of {left:.1e} after {MOST_STEPS} steps"
    raise BagError("sparse process", expected="a solution", got=got, remedy="raise kappa or the noise")
