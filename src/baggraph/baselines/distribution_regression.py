"""Distribution regression: ridge regression on mean embeddings by random Fourier features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from baggraph.baselines._input import Matrix, check_count, dense_rows
from baggraph.baselines._kernels import bag_blocks, check_kernel, width
from baggraph.baselines._regressor import BagRegressor
from baggraph.baselines._ridge import ALPHAS, check_alphas, fit_ridge
from baggraph.data._split_checks import bit_stream
from baggraph.data.bags import Bags
from baggraph.data.scaling import InstanceScaler

BLOCK = 8192  # instances that are embedded at a time


class DistributionRegression(BagRegressor):
    """Ridge regression on the mean embedding of a bag

    ``m(A) = (1/|A|) sum_{a in A} sqrt(2 / D) cos(W a + u)``,  W normal with variance 2 gamma, u uniform in [0, 2 pi),

    whose products approximate the mean of ``exp(-gamma |a - b|^2)`` over pairs (Flaxman, Wang & Smola 2015, Who
    supported Obama in 2012?, KDD; the features: Rahimi & Recht 2007).  Alpha by leave-one-out.

    Parameters
    ----------
    n_components
        Number D of random features.
    gamma
        A number, or ``"scale"``, one over the sum of the variances of the features.
    alphas
        Penalties to choose from.
    link
        The scale that targets are fitted on: ``"identity"``, ``"log"``, or ``"logit"`` for shares.
    scaling
        Kind of :class:`~baggraph.data.scaling.InstanceScaler`, fitted on the training bags.
    random_state
        Seed of the random features.

    Attributes
    ----------
    alpha_ : float
        The penalty chosen.

    Examples
    --------
    >>> bags = Bags(np.linspace(0, 3, 40)[:, None], np.arange(0, 41, 4), np.linspace(0.1, 2.9, 10))
    >>> DistributionRegression(n_components=200).fit(bags).predict([[[1.4], [1.6]]]).round(1).tolist()
    [1.5]
    """

    def __init__(
        self,
        *,
        n_components: int = 500,
        gamma: float | str = "scale",
        alphas: Sequence[float] = (1e-6, 1e-5, 1e-4, *ALPHAS),
        link: str = "identity",
        scaling: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.alphas = alphas
        self.link = link
        self.scaling = scaling
        self.random_state = random_state

    @property
    def alpha_(self) -> float:
        """The penalty chosen."""
        return float(self.ridge_.alpha_)

    def _check_parameters(self) -> None:
        check_count(self._stage, n_components=self.n_components)
        check_kernel(self._stage, "rbf", self.gamma)
        check_alphas(self._stage, self.alphas)
        bit_stream(self._stage, self.random_state)

    def _learn(self, bags: Bags, targets: Matrix) -> None:
        self.scaler_ = InstanceScaler(self.scaling).fit(bags)
        gamma = width(dense_rows(self.scaler_.transform(bags)), self.gamma)
        random = np.random.RandomState(self.random_state)  # whose numbers NumPy has frozen
        self.directions_ = np.sqrt(2 * gamma) * random.standard_normal((bags.n_features, self.n_components))
        self.phases_ = random.uniform(0, 2 * np.pi, self.n_components)
        self.ridge_ = fit_ridge(self._embedding(bags), targets, self.alphas)

    def _estimate(self, bags: Bags) -> Matrix:
        return self.ridge_.predict(self._embedding(bags)).reshape(len(bags), -1)

    def _embedding(self, bags: Bags) -> Matrix:
        """Mean embeddings (B, D), block by block of bags."""
        means = np.empty((len(bags), self.n_components))
        for some in bag_blocks(bags.offsets, BLOCK):
            part = bags[some]
            features = np.cos(dense_rows(self.scaler_.transform(part)) @ self.directions_ + self.phases_)
            means[some] = np.add.reduceat(features, part.offsets[:-1], axis=0) / part.sizes[:, None]
        return np.sqrt(2 / self.n_components) * means
