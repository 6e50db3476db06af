"""mi-FV: the Fisher vector of a Gaussian mixture as the vector of a bag, and a linear machine."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from baggraph.baselines._codebook import CodebookSVM, bag_sums
from baggraph.baselines._input import Matrix, Vector
from baggraph.baselines._kernels import Index

SMALLEST_VARIANCE = 1e-3  # of the mean variance: columns that hardly vary would drown all others
MOST_ROUNDS = 100


@dataclass(frozen=True, eq=False)
class Mixture:
    """Gaussians with diagonal covariances: weights (K,), means and variances (K, d)."""

    weights: Vector
    means: Matrix
    variances: Matrix

    @classmethod
    def of(cls, fitted: Any) -> Mixture:
        """The numbers of a GaussianMixture of scikit-learn."""
        return cls(fitted.weights_, fitted.means_, fitted.covariances_)

    def shares(self, rows: Matrix) -> Matrix:
        """Probabilities (N, K) of the Gaussians, given rows."""
        logs = [
            np.log(weight) - 0.5 * (((rows - mean) ** 2 / variance).sum(axis=1) + np.log(variance).sum())
            for weight, mean, variance in zip(self.weights, self.means, self.variances, strict=True)
        ]
        return np.asarray(softmax(np.stack(logs, axis=1), axis=1))


class FisherVectorSVM(CodebookSVM):
    """Linear support vector machine on Fisher vectors: for each Gaussian k of a mixture with diagonal covariances

    ``(1/n) sum_a (g_ak - w_k) / sqrt(w_k)``,  ``(1/n) sum_a g_ak (a - m_k) / s_k / sqrt(w_k)``  and
    ``(1/n) sum_a g_ak ((a - m_k)^2 / s_k^2 - 1) / sqrt(2 w_k)``,

    where g_ak is the probability of k given a; then ``sign(v) sqrt(|v|)`` and length one (Wei, Wu & Zhou 2017,
    Scalable algorithms for multi-instance learning, IEEE TNNLS; the vectors: Sánchez et al. 2013).  The mixture is
    learned from the instances of the training bags, without labels.

    Parameters
    ----------
    n_components
        Gaussians of the mixture.
    energy
        Share of the variance that the principal components before the mixture hold.
    C
        Price of errors.
    scaling
        Kind of :class:`~baggraph.data.scaling.InstanceScaler`, fitted on the training bags.
    calibration_folds
        Inner folds that probabilities are fitted on; None does without.
    random_state
        Seed of the mixture and of the inner folds.

    Examples
    --------
    >>> from baggraph import Bags
    >>> bags = Bags(np.array([[0.0], [0.2], [3.0], [0.1], [3.1]]), [0, 1, 2, 3, 4, 5], ["a", "a", "b", "a", "b"])
    >>> FisherVectorSVM(n_components=1).fit(bags).predict([[[0.3]], [[2.8]]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        n_components: int = 2,
        energy: float = 1.0,
        C: float = 1.0,
        scaling: str = "standard",
        calibration_folds: int | None = 5,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.energy = energy
        self.C = C
        self.scaling = scaling
        self.calibration_folds = calibration_folds
        self.random_state = random_state

    def _check_parameters(self) -> None:
        self._check_codebook(n_components=self.n_components)

    def _learn_book(self, rows: Matrix) -> Mixture:
        self._refuse_few(self.n_components, rows)
        mixture = GaussianMixture(
            self.n_components,
            covariance_type="diag",
            reg_covar=SMALLEST_VARIANCE * max(float(rows.var(axis=0).mean()), 1e-12),
            max_iter=MOST_ROUNDS,
            random_state=self.random_state,
        )
        with warnings.catch_warnings():
            # A codebook need not be a maximum of the likelihood, and seldom is after a hundred rounds.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return Mixture.of(mixture.fit(rows))

    def _encode(self, book: Mixture, rows: Matrix, offsets: Index) -> Matrix:
        return fisher_vectors(rows, offsets, book)


def fisher_vectors(rows: Matrix, offsets: Index, mixture: Mixture) -> Matrix:
    """Fisher vectors (B, K (2 d + 1)), not normalised: first weights, then means, then deviations.

    One Gaussian at a time, so that no array is larger than the instances.
    """
    sizes = np.diff(offsets)[:, None]
    shares = mixture.shares(rows)
    blocks: tuple[list[Matrix], list[Matrix], list[Matrix]] = ([], [], [])
    for share, weight, mean, variance in zip(shares.T, mixture.weights, mixture.means, mixture.variances, strict=True):
        standard = (rows - mean) / np.sqrt(variance)
        total = bag_sums(share[:, None], offsets) / sizes
        first = bag_sums(share[:, None] * standard, offsets) / sizes
        second = bag_sums(share[:, None] * standard**2, offsets) / sizes
        blocks[0].append((total - weight) / np.sqrt(weight))
        blocks[1].append(first / np.sqrt(weight))
        blocks[2].append((second - total) / np.sqrt(2 * weight))
    return np.hstack([part for block in blocks for part in block])
