"""Families of kernels between bags, all that the literature offers: what an average of kernels is taken over."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from baggraph.baselines import _kernels as kernels
from baggraph.baselines._codebook import Components, power_normalised
from baggraph.baselines._input import Matrix, Vector
from baggraph.baselines.mi_fv import FisherVectorSVM, fisher_vectors
from baggraph.baselines.mi_graph import clique_weights
from baggraph.baselines.mi_vlad import residuals
from baggraph.data.bags import Bags

WIDTHS = (0.0625, 0.25, 1.0, 4.0, 16.0, 64.0)  # times one over the summed variance of the features
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
CENTERS = (2, 5)
ENERGY = 0.95  # share of the variance that codebooks are learned in
SMALLEST = 1e-12

Piece = tuple[str, Matrix, Matrix]


@dataclass(frozen=True, eq=False)
class View:
    """Bags as kernels see them: scaled instances, and what follows from them alone."""

    rows: kernels.Rows

    @property
    def offsets(self) -> Any:
        """Boundaries of the bags."""
        return self.rows.offsets

    def widths(self) -> list[kernels.InstanceKernel]:
        """The six instance kernels."""
        return [kernels.InstanceKernel("rbf", factor * self.rows.kernel.gamma) for factor in WIDTHS]

    @cached_property
    def cliques(self) -> Vector:
        """Weights of instances in mi-Graph."""
        return clique_weights(self.rows, 1.0)

    @cached_property
    def own_sums(self) -> list[Vector]:
        """Sums of the instance kernels of every bag with itself, a width each."""
        return [kernels.self_sums(self.rows, kernel) for kernel in self.widths()]

    @cached_property
    def sums(self) -> list[Matrix]:
        """Sums of the instance kernels between all bags (B, B), a width each."""
        return [kernels.segment_sums(self.rows, self.rows, kernel) for kernel in self.widths()]

    @cached_property
    def clique_sums(self) -> list[Matrix]:
        """The same, weighted as mi-Graph does, at three widths."""
        given = (self.rows, self.rows)
        return [kernels.segment_sums(*given, kernel, self.cliques, self.cliques) for kernel in self.widths()[1:4]]

    @cached_property
    def summaries(self) -> dict[str, Matrix]:
        """Statistics of bags, (B, .)."""
        values, offsets = self.rows.values, self.offsets
        blocks = [values[a:b] for a, b in pairwise(offsets)]
        return {
            "mean": np.stack([block.mean(axis=0) for block in blocks]),
            "min and max": np.stack([np.concatenate([block.min(axis=0), block.max(axis=0)]) for block in blocks]),
            "std": np.stack([block.std(axis=0) for block in blocks]),
            "quantiles": np.stack([np.quantile(block, QUANTILES, axis=0).ravel() for block in blocks]),
        }


@dataclass(frozen=True, eq=False)
class Anchor:
    """The bags that all others are compared with, and what was learned from them without labels."""

    view: View
    parts: Components
    books: list[Any]
    mixtures: list[Any]
    far: dict[str, Matrix]
    near: Matrix

    @classmethod
    def of(cls, bags: Bags, scaling: str, seed: int) -> Anchor:
        """Codebooks of the instances, distances between the bags."""
        view = View(kernels.Rows.of(bags, scaling, "rbf", "scale"))
        parts = Components.of(view.rows.values, ENERGY)
        rows = parts(view.rows.values)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of instances that are all alike, a center is enough
            fitted = [KMeans(k, n_init=3, random_state=seed).fit(rows) for k in CENTERS if k <= len(rows)]
        books = [one.cluster_centers_ for one in fitted]
        sizes = [size for size in (1, 2) if size <= len(rows)]
        mixtures = [FisherVectorSVM(n_components=size, random_state=seed)._learn_book(rows) for size in sizes]
        far, near = distances(view, view)
        return cls(view, parts, books, mixtures, far, near)


def distances(left: View, right: View) -> tuple[dict[str, Matrix], Matrix]:
    """Distances of Hausdorff's kind (m, B), and squared ones from bags to the other's instances (m, N).

    Of a bag to another, ``d(a, B)`` is that of an instance to the nearest of the other bag: their mean, their largest,
    and their smallest, the larger of both directions or, for means, their mean.
    """
    near = kernels.nearest_in_bag(left.rows, right.rows)
    back = near if left is right else kernels.nearest_in_bag(right.rows, left.rows)
    to_left, to_right = np.sqrt(near), np.sqrt(back)
    found = {}
    for name, reduce in (("mean", np.add), ("max", np.maximum), ("min", np.minimum)):
        one = reduce.reduceat(to_left, right.offsets[:-1], axis=1)
        other = reduce.reduceat(to_right, left.offsets[:-1], axis=1).T
        if name == "mean":
            found[name] = (one / np.diff(right.offsets) + other / np.diff(left.offsets)[:, None]) / 2
        else:
            found[name] = np.maximum(one, other) if name == "max" else one
    return found, near


def families(anchor: Anchor, view: View) -> Iterator[Piece]:
    """(family, kernel (m, B) with the anchor, kernel (B, B) of the anchor), one after the other."""
    same = view is anchor.view
    far, near = (anchor.far, anchor.near) if same else distances(view, anchor.view)
    for name, left in view.summaries.items():
        yield from _of_vectors("summaries", left, anchor.view.summaries[name])
    yield from _set_kernels(anchor, view)
    yield from _cliques(anchor, view)
    for name, table in far.items():
        yield "distances", *_of_distances(table, anchor.far[name])
    for name, table in far.items():
        yield from _of_vectors("distance rows", table, anchor.far[name])
    gamma = anchor.view.rows.kernel.gamma
    for factor in (1.0, 4.0):
        yield from _of_vectors("similarities", np.exp(-gamma * factor * near), np.exp(-gamma * factor * anchor.near))
    rows, own = anchor.parts(view.rows.values), anchor.parts(anchor.view.rows.values)
    for book in anchor.books:
        left, right = (residuals(r, v.offsets, book) for r, v in ((rows, view), (own, anchor.view)))
        yield from _of_vectors("residuals", power_normalised(left), power_normalised(right), scaled=False)
    for mixture in anchor.mixtures:
        left, right = (fisher_vectors(r, v.offsets, mixture) for r, v in ((rows, view), (own, anchor.view)))
        yield from _of_vectors("Fisher vectors", power_normalised(left), power_normalised(right), scaled=False)


def _set_kernels(anchor: Anchor, view: View) -> Iterator[Piece]:
    """Normalised set kernels, and those of the distance between mean embeddings (MMD)."""
    right = anchor.view
    for i, kernel in enumerate(right.widths()):
        sums = right.sums[i]
        cross = sums if view is right else kernels.segment_sums(view.rows, right.rows, kernel)
        own = right.own_sums[i]
        left_own = own if view is right else kernels.self_sums(view.rows, kernel)
        yield "set kernels", cross / np.sqrt(np.outer(left_own, own)), sums / np.sqrt(np.outer(own, own))
        sizes, left_sizes = np.diff(right.offsets), np.diff(view.offsets)
        mine = own / sizes**2
        square = mine[:, None] + mine - 2 * sums / np.outer(sizes, sizes)
        cross_square = (left_own / left_sizes**2)[:, None] + mine - 2 * cross / np.outer(left_sizes, sizes)
        yield "mean embeddings", *_of_distances(np.sqrt(np.maximum(cross_square, 0)), np.sqrt(np.maximum(square, 0)))


def _cliques(anchor: Anchor, view: View) -> Iterator[Piece]:
    """mi-Graph, at three widths."""
    right = anchor.view
    for kernel, own in zip(right.widths()[1:4], right.clique_sums, strict=True):
        cross = (
            own if view is right else kernels.segment_sums(view.rows, right.rows, kernel, view.cliques, right.cliques)
        )
        yield "cliques", cross, own


def _of_vectors(
    family: str, left: Matrix, right: Matrix, *, scaled: bool = True
) -> Iterator[tuple[str, Matrix, Matrix]]:
    """The linear and the Gaussian kernel of vectors of bags."""
    if scaled:
        center, spread = right.mean(axis=0), right.std(axis=0)
        keep = spread > SMALLEST * max(float(spread.max()), SMALLEST)
        left, right = ((values - center)[:, keep] / spread[keep] for values in (left, right))
    yield family, left @ right.T, right @ right.T
    yield (
        family,
        *_of_distances(
            np.sqrt(kernels.squared_distances(left, right)), np.sqrt(kernels.squared_distances(right, right))
        ),
    )


def _of_distances(left: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
    """``exp(-d^2 / m)`` with m the median of the squared distances between different bags of the anchor."""
    squares = right[np.triu_indices(len(right), 1)] ** 2
    typical = float(np.median(squares[squares > 0])) if (squares > 0).any() else 1.0
    return np.exp(-(left**2) / typical), np.exp(-(right**2) / typical)
