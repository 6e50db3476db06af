"""What mi-FV and MI-VLAD share: vectors of bags in the terms of a codebook, and a linear machine on them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from baggraph.baselines._gram import Gram, KernelSVM
from baggraph.baselines._input import Matrix, as_bags, check_positive, dense_rows
from baggraph.baselines._kernels import Index
from baggraph.data.bags import Bags
from baggraph.data.scaling import InstanceScaler
from baggraph.errors import InvalidBagsError, ParameterError


@dataclass(frozen=True)
class _Anchor:
    scaler: InstanceScaler
    parts: PCA
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

    def transform(self, bags: Any) -> Matrix:
        """Normalised vectors (B, q) of bags, in the codebook of the training bags."""
        check_is_fitted(self, "anchor_")
        return self._vectors(self.anchor_, as_bags(bags, self._stage, self.n_features_in_))

    def _check_codebook(self, size: int) -> None:
        check_positive(self._stage, C=self.C, energy=self.energy)
        if self.energy > 1:
            got, remedy = f"energy={self.energy!r}", "pass 1.0 to keep all components"
            raise ParameterError(self._stage, expected="a share of the variance up to 1", got=got, remedy=remedy)
        if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 1:
            raise ParameterError(self._stage, expected="a codebook of 1 or more", got=repr(size), remedy="pass 2")

    def _anchor(self, bags: Bags) -> _Anchor:
        scaler = InstanceScaler(self.scaling).fit(bags)
        rows = dense_rows(scaler.transform(bags))
        parts = PCA(n_components=None if self.energy == 1 else self.energy, svd_solver="full").fit(rows)
        rows = parts.transform(rows)
        book = self._learn_book(rows)
        return _Anchor(scaler, parts, book, power_normalised(self._encode(book, rows, bags.offsets)))

    def _vectors(self, anchor: _Anchor, bags: Bags) -> Matrix:
        rows = anchor.parts.transform(dense_rows(anchor.scaler.transform(bags)))
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
