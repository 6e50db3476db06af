"""A support vector machine on statistics of the instances of every bag."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from baggraph.baselines import _kernels as kernels
from baggraph.baselines._gram import Gram, KernelSVM
from baggraph.baselines._input import check_positive
from baggraph.baselines.summary import summarise
from baggraph.data.bags import Bags


class SummarySVM(KernelSVM):
    """Support vector machine on ``[mean, min, max]`` of every feature over the instances of a bag.

    Minimum and maximum together are the "minimax" kernel of Gärtner, Flach, Kowalczyk & Smola (2002), Multi-instance
    kernels, ICML.

    Parameters
    ----------
    statistics
        Names that :func:`~baggraph.baselines.summary.summarise` knows.
    kernel, gamma
        ``"rbf"`` or ``"linear"``, of standardised summaries.  Gamma is a number, or ``"scale"``, one over the sum of
        the variances of the columns.
    C
        Price of errors.
    scaling
        Kind of :class:`~baggraph.data.scaling.InstanceScaler` for the columns of the summaries.
    calibration_folds
        Inner folds that probabilities are fitted on; None does without.
    random_state
        Seed of the inner folds.

    Examples
    --------
    >>> bags = Bags(np.array([[0.0], [0.2], [3.0], [0.1], [3.1]]), [0, 1, 2, 3, 4, 5], ["a", "a", "b", "a", "b"])
    >>> SummarySVM().fit(bags).predict([[[0.3]], [[2.8]]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        statistics: Sequence[str] = ("mean", "min", "max"),
        kernel: str = "rbf",
        gamma: float | str = "scale",
        C: float = 10.0,
        scaling: str = "auto",
        calibration_folds: int | None = 5,
        random_state: int = 0,
    ) -> None:
        self.statistics = statistics
        self.kernel = kernel
        self.gamma = gamma
        self.C = C
        self.scaling = scaling
        self.calibration_folds = calibration_folds
        self.random_state = random_state

    def _check_parameters(self) -> None:
        kernels.check_kernel(self._stage, self.kernel, self.gamma)
        check_positive(self._stage, C=self.C)

    def _anchor(self, bags: Bags) -> kernels.Rows:
        return kernels.Rows.of(self._summaries(bags), self.scaling, self.kernel, self.gamma)

    def _evidence(self, anchor: kernels.Rows, bags: Bags) -> Gram:
        return Gram.of(kernels.all_pairs(anchor.others(self._summaries(bags)), anchor))

    def _summaries(self, bags: Bags) -> Bags:
        """Bags of one instance, the summary."""
        return Bags(summarise(bags, self.statistics), np.arange(len(bags) + 1))
