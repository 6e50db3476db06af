"""MI-VLAD: residuals to the centres of k-means as the vector of a bag, and a linear machine."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from baggraph.baselines._codebook import CodebookSVM, bag_sums
from baggraph.baselines._input import Matrix
from baggraph.baselines._kernels import Index, squared_distances


class VladSVM(CodebookSVM):
    """Linear support vector machine on vectors of locally aggregated descriptors

    ``v(A)_k = sum_{a in A, nearest centre of a is c_k} (a - c_k)``,

    side by side for all k, then ``sign(v) sqrt(|v|)`` and length one (Wei, Wu & Zhou 2017, Scalable algorithms for
    multi-instance learning, IEEE TNNLS; the vectors: Jégou et al. 2010).  The codebook is learned from the instances of
    the training bags, without labels.

    Parameters
    ----------
    n_centers
        Size of the codebook; the paper keeps to 1 and 2.
    energy
        Share of the variance that the principal components before k-means hold.
    C
        Price of errors.
    scaling
        Kind of :class:`~baggraph.data.scaling.InstanceScaler`, fitted on the training bags.
    calibration_folds
        Inner folds that probabilities are fitted on; None does without.
    random_state
        Seed of k-means and of the inner folds.

    Examples
    --------
    >>> from baggraph import Bags
    >>> bags = Bags(np.array([[0.0], [0.2], [3.0], [0.1], [3.1]]), [0, 1, 2, 3, 4, 5], ["a", "a", "b", "a", "b"])
    >>> VladSVM(n_centers=1).fit(bags).predict([[[0.3]], [[2.8]]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        n_centers: int = 2,
        energy: float = 1.0,
        C: float = 1.0,
        scaling: str = "auto",
        calibration_folds: int | None = 5,
        random_state: int = 0,
    ) -> None:
        self.n_centers = n_centers
        self.energy = energy
        self.C = C
        self.scaling = scaling
        self.calibration_folds = calibration_folds
        self.random_state = random_state

    def _check_parameters(self) -> None:
        self._check_codebook(n_centers=self.n_centers)

    def _learn_book(self, rows: Matrix) -> Matrix:
        self._refuse_few(self.n_centers, rows)
        return KMeans(self.n_centers, n_init=10, random_state=self.random_state).fit(rows).cluster_centers_

    def _encode(self, book: Matrix, rows: Matrix, offsets: Index) -> Matrix:
        return residuals(rows, offsets, book)


def residuals(rows: Matrix, offsets: Index, centers: Matrix) -> Matrix:
    """Sums of instances less their nearest centre, (B, n_centers * d).

    >>> residuals(np.array([[0.0], [1.0], [9.0]]), np.array([0, 2, 3]), np.array([[0.0], [10.0]])).tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """
    nearest = squared_distances(rows, centers).argmin(axis=1)
    parts = [bag_sums(np.where((nearest == k)[:, None], rows - c, 0.0), offsets) for k, c in enumerate(centers)]
    return np.hstack(parts)
