"""What mi-FV and MI-VLAD share: vectors of bags in the terms of a codebook, and a linear machine on them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from baggraph.baselines._gram import Gram, KernelSVM
from baggraph.baselines._input import Matrix, Vector, as_bags, check_count, check_positive, dense_rows
from baggraph.baselines._kernels import Index
from baggraph.data.bags import Bags
from baggraph.data.scaling import InstanceScaler
from baggraph.errors import InvalidBagsError, ParameterError

ROUNDING = 1e-12


@dataclass(frozen=True)
class Components:
    """Principal components (d, p) of rows, and the centre (d,) that they are seen from."""

    center: Vector
    axes: Matrix

    @classmethod
    def of(cls, rows: Matrix, energy: float) -> Components:
        """The fewest that hold this share of the variance; one at least, and none without variance beside it.

        >>> Components.of(np.array([[1.0, 0.0], [-1.0, 0.0]]), 1.0).axes.tolist()
        [[1.0], [0.0]]
        """
        center = rows.mean(axis=0)
        if rows.shape[0] < rows.shape[1]:
            _, deviations, transposed = np.linalg.svd(rows - center, full_matrices=False)
            variances, axes = deviations**2, transposed.T
        else:
            variances, axes = np.linalg.eigh((rows - center).T @ (rows - center))
            variances, axes = np.maximum(variances[::-1], 0.0), axes[:, ::-1]
        held = np.cumsum(variances)
        count = int(np.searchsorted(held, energy * held[-1] * (1 - ROUNDING))) + 1
        return cls(center, axes[:, :count])

    def __call__(self, rows: Matrix) -> Matrix:
        return (rows - self.center) @ self.axes


@dataclass(frozen=True)
class _Anchor:
    scaler: InstanceScaler
    parts: Components
    book: Any
    vectors: Matrix


class CodebookSVM(KernelSVM):
    """Scaling, principal components, a codebook of instances, vectors of bags in its terms, a linear machine."""

    energy: float
    scaling: str

    @abstractmethod
    def _learn_book(self, rows: Matrix) -> Any:
        """A codebook of instances (N, p), learned without labels."""

    @abstractmethod
    def _encode(self, book: Any, rows: Matrix, offsets: Index) -> Matrix:
        """Vectors (B, q) of bags."""

    def vectors(self, bags: Any) -> Matrix:
        """Normalised vectors (B, q) of bags, in the codebook of the training bags."""
        check_is_fitted(self, "anchor_")
        return self._vectors(self.anchor_, as_bags(bags, self._stage, self.n_features_in_))

    def _check_codebook(self, **size: int) -> None:
        check_count(self._stage, **size)
        check_positive(self._stage, C=self.C, energy=self.energy)
        if self.energy > 1:
            got, remedy = f"energy={self.energy!r}", "pass 1.0 to keep all components"
            raise ParameterError(self._stage, expected="a share of the variance up to 1", got=got, remedy=remedy)

    def _anchor(self, bags: Bags) -> _Anchor:
        scaler = InstanceScaler(self.scaling).fit(bags)
        rows = dense_rows(scaler.transform(bags))
        parts = Components.of(rows, self.energy)
        rows = parts(rows)
        book = self._learn_book(rows)
        return _Anchor(scaler, parts, book, power_normalised(self._encode(book, rows, bags.offsets)))

    def _vectors(self, anchor: _Anchor, bags: Bags) -> Matrix:
        rows = anchor.parts(dense_rows(anchor.scaler.transform(bags)))
        return power_normalised(self._encode(anchor.book, rows, bags.offsets))

    def _evidence(self, anchor: _Anchor, bags: Bags) -> Gram:
        return Gram.of(self._vectors(anchor, bags) @ anchor.vectors.T)

    def _refuse_few(self, size: int, rows: Matrix) -> None:
        if size > len(rows):
            got, remedy = f"{len(rows)} instances for a codebook of {size}", "make the codebook smaller"
            raise InvalidBagsError(self._stage, expected="an instance an entry at least", got=got, remedy=remedy)


def bag_sums(values: Matrix, offsets: Index) -> Matrix:
    """Sums of the rows of every bag, (B, columns)."""
    return np.add.reduceat(values, offsets[:-1], axis=0)


def power_normalised(vectors: Matrix) -> Matrix:
    """``sign(v) sqrt(|v|)``, then of length one; a zero vector stays zero.

    >>> power_normalised(np.array([[4.0, -4.0], [0.0, 0.0]])).round(4).tolist()
    [[0.7071, -0.7071], [0.0, 0.0]]
    """
    rooted = np.sign(vectors) * np.sqrt(np.abs(vectors))
    length = np.linalg.norm(rooted, axis=1, keepdims=True)
    return rooted / np.where(length > 0, length, 1.0)
