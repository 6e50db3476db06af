"""Labels shuffled among bags: what chance alone does, with the error of a whole audit under control."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from baggraph.data._split_checks import bit_stream
from baggraph.evaluation._findings import Finding
from baggraph.evaluation._holm import holm

Array = NDArray[np.float64]
N_SHUFFLES, MOST_NUMBERS = 4999, 5_000_000  # with more bags, fewer shuffles
LEVEL = 0.01  # chance of any false alarm among all tests of one audit


@dataclass(frozen=True)
class Suspicion:
    """A p-value, and the finding that it becomes if it survives the correction for all tests of the audit."""

    p: float
    finding: Callable[[float], Finding | None]


def convicted(suspicions: Sequence[Suspicion]) -> list[Finding]:
    """Findings whose p-values are at most ``LEVEL`` after Holm's correction."""
    adjusted = holm([suspicion.p for suspicion in suspicions])
    found = [s.finding(float(p)) for s, p in zip(suspicions, adjusted, strict=True) if p <= LEVEL]
    return [finding for finding in found if finding is not None]


@dataclass(frozen=True)
class Shuffles:
    """Labels of labelled bags, and many random orders of these bags.

    ``indicator`` (n, t) are targets, or one column of zeros and ones a class.
    """

    indicator: Array
    classify: bool
    orders: NDArray[np.int64]

    @classmethod
    def of(cls, labels: NDArray[Any], classify: bool, random_state: int, n_shuffles: int | None = None) -> Shuffles:
        """Shuffles of these labels, the same on every machine."""
        n_shuffles = n_shuffles or min(N_SHUFFLES, MOST_NUMBERS // len(labels))
        if classify:
            classes, codes = np.unique(labels, return_inverse=True)
            indicator = np.eye(len(classes))[codes]
        else:
            indicator = np.asarray(labels, dtype=np.float64).reshape(len(labels), -1)
        bits = bit_stream("audit", random_state)
        keys = bits.random_raw(n_shuffles * len(labels)).reshape(n_shuffles, len(labels))
        return cls(indicator, classify, np.argsort(keys, axis=1, kind="stable"))

    def p_of(self, observed: float, shuffled: Any) -> float:
        """Chance of at least so much, the observed order counted among the shuffled ones."""
        values = np.asarray(shuffled)
        return float((1 + (values >= observed * (1 - 1e-12)).sum()) / (1 + len(values)))

    def of_number(self, x: Array) -> float:
        """P of the association between one number a bag and the labels, both by rank.

        The statistic is the variance of ranks between classes (Kruskal & Wallis 1952), or Spearman's correlation.

        >>> x = np.arange(12.0)
        >>> [round(Shuffles.of(y, True, 0, 199).of_number(x), 3) for y in (x > 5, x % 2)]
        [0.005, 0.66]
        """
        ranks = rankdata(x)
        ranks = ranks - ranks.mean()
        if not ranks.any():
            return 1.0
        weights = self.indicator if self.classify else rankdata(self.indicator, axis=0)
        weights = weights / np.sqrt((weights**2).sum(axis=0)) if self.classify else weights - weights.mean(axis=0)
        size = np.square if self.classify else np.abs

        def statistic(values: Array) -> Array:
            found = size(values @ weights)
            return np.asarray(found.sum(axis=-1) if self.classify else found.max(axis=-1))

        return self.p_of(float(statistic(ranks)), statistic(ranks[self.orders]))

    def of_groups(self, groups: NDArray[np.int64]) -> float:
        """P of the association between groups of bags and the labels: squares between groups.

        >>> y = np.arange(12) > 5
        >>> Shuffles.of(y, True, 0, 199).of_groups(y.astype(int)) < 0.02
        True
        """
        member = np.eye(groups.max() + 1)[groups]
        member = member / np.sqrt(np.maximum(member.sum(axis=0), 1))
        values = self.indicator if self.classify else rankdata(self.indicator, axis=0)
        values = values - values.mean(axis=0)
        shuffled = np.zeros(len(self.orders))
        for column in values.T:
            shuffled += ((column[self.orders] @ member) ** 2).sum(axis=1)
        return self.p_of(float(((member.T @ values) ** 2).sum()), shuffled)
