"""Two methods on the same folds, or on the same data sets: is the difference more than noise?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from baggraph.errors import InvalidBagsError, ParameterError
from baggraph.evaluation._holm import holm

__all__ = ["Difference", "corrected_t", "holm", "ratio_of", "signed_ranks"]


@dataclass(frozen=True)
class Difference:
    """A mean difference with its confidence interval, and the p-value of no difference."""

    mean: float
    low: float
    high: float
    p: float
    n: int


def corrected_t(differences: Any, *, test_to_train: float, level: float = 0.95) -> Difference:
    """t-test of differences on resampled folds, which share training bags (Nadeau & Bengio 2003).

    ``t = mean / sqrt((1 / J + n_test / n_train) var)`` with J - 1 degrees of freedom; ``test_to_train`` is n_test /
    n_train, 1/9 for ten folds (Bouckaert & Frank 2004).  With 0 it is Student's paired test, which rejects far too
    often on such folds.  The same with the scores of one method gives the interval of their mean.

    >>> found = corrected_t([0.02, 0.04, 0.00, 0.05, 0.04], test_to_train=1 / 4)
    >>> round(found.mean, 3), round(found.low, 3), round(found.high, 3), round(found.p, 3)
    (0.03, -0.007, 0.067, 0.089)
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        got = f"{values.size} values of shape {values.shape}"
        remedy = "leave out failed folds, or add folds"
        raise InvalidBagsError("corrected t", expected="at least 2 finite differences", got=got, remedy=remedy)
    if not test_to_train >= 0:
        got = f"test_to_train={test_to_train!r}"
        raise ParameterError("corrected t", expected="a ratio from 0", got=got, remedy="pass n_test / n_train")
    mean, n = float(values.mean()), len(values)
    error = float(np.sqrt((1 / n + test_to_train) * values.var(ddof=1)))
    if error <= 1e-12 * abs(mean) or error == 0:  # the same difference everywhere
        return Difference(mean, mean, mean, 1.0 if mean == 0 else 0.0, n)
    reach = float(stats.t.ppf((1 + level) / 2, n - 1)) * error
    p = 2 * float(stats.t.sf(abs(mean) / error, n - 1))
    return Difference(mean, mean - reach, mean + reach, p, n)


def ratio_of(n_test: Any, n_train: Any) -> float:
    """Mean n_test / n_train over folds, each at most 1.

    The correction was made for folds that train on most bags.  Splits that test most of them hardly share training
    bags, and the plain ratio, 40 where 2.5 % of the bags train, would call every difference noise.

    >>> ratio_of([10, 10], [90, 90]), ratio_of([955], [24])
    (0.1111111111111111, 1.0)
    """
    tested, trained = (np.asarray(counts, dtype=np.float64) for counts in (n_test, n_train))
    return float(np.mean(np.minimum(tested / trained, 1.0)))


def signed_ranks(differences: Any) -> float:
    """P of Wilcoxon's signed-rank test over data sets; differences of zero are split between the signs (Demšar 2006).

    Exact below 51 data sets without ties, else by the normal law.  Folds of one data set are not independent: they
    belong into :func:`corrected_t`.

    >>> signed_ranks([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    0.03125
    """
    values: NDArray[np.float64] = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        got = f"shape {values.shape}"
        raise InvalidBagsError("signed ranks", expected="finite differences", got=got, remedy="a number a data set")
    if not values.any():
        return 1.0
    exact = len(values) <= 50 and len(np.unique(np.abs(values))) == len(values) and (values != 0).all()
    return float(stats.wilcoxon(values, zero_method="zsplit", method="exact" if exact else "approx").pvalue)
