"""Ridge regression on statistics of the instances of every bag."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from baggraph.baselines._input import Matrix
from baggraph.baselines._regressor import BagRegressor
from baggraph.baselines._ridge import ALPHAS, check_alphas, fit_ridge
from baggraph.baselines.summary import summarise
from baggraph.data.bags import Bags
from baggraph.data.scaling import InstanceScaler


class SummaryRidge(BagRegressor):
    """Ridge regression on standardised ``[mean, min, max, std]`` of every feature over the instances of a bag.

    ``min_w  sum_A |y_A - w . s(A) - b|^2 + alpha |w|^2`` (Hoerl & Kennard 1970), alpha by leave-one-out.

    Parameters
    ----------
    statistics
        Names that :func:`~baggraph.baselines.summary.summarise` knows.
    alphas
        Penalties to choose from.
    link
        The scale that targets are fitted on: ``"identity"``, ``"log"``, or ``"logit"`` for shares.

    Attributes
    ----------
    alpha_ : float
        The penalty chosen.

    Examples
    --------
    >>> bags = Bags(np.arange(10.0)[:, None], [0, 2, 4, 6, 8, 10], [0.5, 2.5, 4.5, 6.5, 8.5])
    >>> SummaryRidge(statistics=("mean",)).fit(bags).predict([[[2.0], [4.0]]]).round(1).tolist()
    [3.0]
    """

    def __init__(
        self,
        *,
        statistics: Sequence[str] = ("mean", "min", "max", "std"),
        alphas: Sequence[float] = ALPHAS,
        link: str = "identity",
    ) -> None:
        self.statistics = statistics
        self.alphas = alphas
        self.link = link

    @property
    def alpha_(self) -> float:
        """The penalty chosen."""
        return float(self.ridge_.alpha_)

    def _check_parameters(self) -> None:
        check_alphas(self._stage, self.alphas)

    def _learn(self, bags: Bags, targets: Matrix) -> None:
        summaries = self._summaries(bags)
        self.scaler_ = InstanceScaler("standard").fit(summaries)
        self.ridge_ = fit_ridge(self.scaler_.transform(summaries).instances, targets, self.alphas)

    def _estimate(self, bags: Bags) -> Matrix:
        vectors = self.scaler_.transform(self._summaries(bags)).instances
        return self.ridge_.predict(vectors).reshape(len(bags), -1)

    def _summaries(self, bags: Bags) -> Bags:
        """Bags of one instance, the summary."""
        return Bags(summarise(bags, self.statistics), np.arange(len(bags) + 1))
