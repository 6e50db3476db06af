"""Methods ranked over many data sets: Friedman's test and Nemenyi's critical difference (Demšar 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from baggraph.errors import InvalidBagsError

__all__ = ["FriedmanTest", "critical_difference", "friedman", "nemenyi", "ranks"]

Array = NDArray[np.float64]


def ranks(scores: Any, *, larger_is_better: bool = True) -> Array:
    """Ranks (N, k) of k methods on each of N data sets; the best has rank 1, ties share the mean of their ranks.

    >>> ranks([[0.9, 0.8, 0.8], [0.5, 0.7, 0.6]]).tolist()
    [[1.0, 2.5, 2.5], [3.0, 1.0, 2.0]]
    """
    values = _checked(scores, least_sets=1)
    return np.asarray(stats.rankdata(-values if larger_is_better else values, axis=1))


@dataclass(frozen=True)
class FriedmanTest:
    """Friedman's test of equal methods, and the less conservative F of Iman & Davenport (1980).

    Parameters
    ----------
    statistic, p
        ``12 N / (k (k + 1)) (sum_j R_j^2 - k (k + 1)^2 / 4)``, divided by the correction for ties; its p from the
        chi-squared law with k - 1 degrees of freedom.
    f, p_f
        ``(N - 1) statistic / (N (k - 1) - statistic)``, and its p from the F law with k - 1 and (k - 1)(N - 1).

    """

    statistic: float
    p: float
    f: float
    p_f: float


def friedman(scores: Any) -> FriedmanTest:
    """Do k methods differ over N data sets, of which ``scores`` (N, k) are given?

    >>> found = friedman([[1, 2, 3], [1, 2, 3], [1, 3, 2], [1, 2, 3]])
    >>> round(found.statistic, 2), round(found.p, 3), round(found.f, 1), round(found.p_f, 4)
    (6.5, 0.039, 13.0, 0.0066)
    """
    values = _checked(scores, least_sets=2)
    n, k = values.shape
    place = ranks(values)
    spread = (place - (k + 1) / 2) ** 2
    below = spread.sum() / (n * (k - 1))  # k (k + 1) / 12 where there are no ties
    if not below:  # all methods tie everywhere
        return FriedmanTest(0.0, 1.0, 0.0, 1.0)
    statistic = float(n * ((place.mean(axis=0) - (k + 1) / 2) ** 2).sum() / below)
    rest = n * (k - 1) - statistic
    f = (n - 1) * statistic / rest if rest > 1e-9 * n else np.inf  # all data sets agree
    degrees = (k - 1, (k - 1) * (n - 1))
    return FriedmanTest(statistic, float(stats.chi2.sf(statistic, k - 1)), float(f), float(stats.f.sf(f, *degrees)))


def critical_difference(n_methods: int, n_sets: int, alpha: float = 0.05) -> float:
    """Mean ranks that differ by less are not told apart (Nemenyi 1963): ``q sqrt(k (k + 1) / (6 N))``.

    ``q`` is the quantile of the studentised range of k means, divided by the root of 2.

    >>> round(critical_difference(4, 14), 2), round(critical_difference(4, 14, 0.10), 2)
    (1.25, 1.12)
    """
    quantile = float(stats.studentized_range.ppf(1 - alpha, n_methods, np.inf)) / np.sqrt(2)
    return float(quantile * _rank_error(n_methods, n_sets))


def nemenyi(mean_ranks: Any, n_sets: int) -> Array:
    """P (k, k) that two mean ranks differ so much by chance, corrected for all pairs.

    >>> nemenyi([1.0, 2.0, 3.0], 12).round(4).tolist()
    [[1.0, 0.038, 0.0], [0.038, 1.0, 0.038], [0.0, 0.038, 1.0]]
    """
    means = np.asarray(mean_ranks, dtype=np.float64)
    distance = np.abs(means[:, None] - means[None]) / _rank_error(len(means), n_sets)
    return np.asarray(stats.studentized_range.sf(distance * np.sqrt(2), len(means), np.inf))


def _rank_error(n_methods: int, n_sets: int) -> float:
    return float(np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def _checked(scores: Any, least_sets: int) -> Array:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] < least_sets or values.shape[1] < 2 or np.isnan(values).any():
        expected = f"scores of at least 2 methods on at least {least_sets} data set(s), none missing"
        got = f"shape {values.shape}" + (" with NaN" if np.isnan(values).any() else "")
        raise InvalidBagsError("ranks", expected=expected, got=got, remedy="pass a row a data set, a column a method")
    return values
