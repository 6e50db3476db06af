"""Scores of class probabilities."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from baggraph.data.posterior import Posterior
from baggraph.errors import ParameterError
from baggraph.evaluation._truth import classes_of, mean

if TYPE_CHECKING:
    import pandas as pd


def accuracy(y: Any, posterior: Posterior) -> float:
    """Share of the bags whose most probable class is theirs.

    >>> accuracy(["a", "a", None], Posterior([[[0.9, 0.1], [0.2, 0.8], [1, 0]]], classes=["a", "b"]))
    0.5
    """
    codes, part = classes_of(y, posterior)
    return mean(part.mean.argmax(axis=1) == codes)


def balanced_accuracy(y: Any, posterior: Posterior) -> float:
    """Mean over the classes that occur of the share of their bags that is recognised.

    >>> balanced_accuracy([0, 0, 1], Posterior([[[1, 0], [0, 1], [0, 1]]], classes=[0, 1]))
    0.75
    """
    codes, part = classes_of(y, posterior)
    right = part.mean.argmax(axis=1) == codes
    return mean([right[codes == code].mean() for code in np.unique(codes)])


def f1(y: Any, posterior: Posterior) -> float:
    """``2 TP / (2 TP + FP + FN)`` of the second of two classes; of more, the mean over all that occur or are predicted.

    NaN where the class of two neither occurs nor is predicted.

    >>> round(f1([0, 0, 1], Posterior([[[1, 0], [0, 1], [0, 1]]], classes=[0, 1])), 3)
    0.667
    """
    codes, part = classes_of(y, posterior)
    guess = part.mean.argmax(axis=1)
    asked = [1] if part.mean.shape[1] == 2 else np.union1d(codes, guess)
    scores = [_f1(codes == code, guess == code) for code in asked]
    return mean(scores)


def _f1(true: NDArray[np.bool_], guess: NDArray[np.bool_]) -> float:
    total = int(true.sum() + guess.sum())
    return 2 * int((true & guess).sum()) / total if total else math.nan


def auc(y: Any, posterior: Posterior) -> float:
    """Chance that a bag of the second class is given a larger probability of it than a bag of the first; ties, a half.

    Of more than two classes, the mean over them of each against the rest.  NaN where a class does not occur.

    >>> auc([0, 0, 1], Posterior([[[0.8, 0.2], [0.4, 0.6], [0.5, 0.5]]], classes=[0, 1]))
    0.5
    """
    codes, part = classes_of(y, posterior)
    asked = [1] if part.mean.shape[1] == 2 else range(part.mean.shape[1])
    return mean([ranked_above(codes == code, part.mean[:, code]) for code in asked])


def ranked_above(positive: NDArray[np.bool_], score: NDArray[Any]) -> float:
    """Chance that a positive scores above a negative (Mann & Whitney 1947); NaN where there is none of either.

    >>> ranked_above(np.array([True, False, False]), np.array([2.0, 1.0, 2.0]))
    0.75
    """
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    if not n_positive or not n_negative:
        return math.nan
    above = rankdata(score)[positive].sum() - n_positive * (n_positive + 1) / 2
    return float(above / (n_positive * n_negative))


def brier(y: Any, posterior: Posterior) -> float:
    """Mean of ``sum_c (p_c - [y = c])^2`` over bags, from 0 to 2 (Brier 1950); of two classes, twice the one-sided one.

    >>> brier([1], Posterior([[[0.5, 0.5]]], classes=[0, 1]))
    0.5
    """
    codes, part = classes_of(y, posterior)
    return mean(((part.mean - np.eye(part.mean.shape[1])[codes]) ** 2).sum(axis=1))


def expected_calibration_error(y: Any, posterior: Posterior, *, bins: int = 10) -> float:
    """``sum_k n_k / n |accuracy_k - confidence_k|`` over equal bins of the largest probability (Guo et al. 2017).

    >>> round(expected_calibration_error([1, 1], Posterior([[[0.2, 0.8], [0.2, 0.8]]], classes=[0, 1])), 3)
    0.2
    """
    table = reliability(y, posterior, bins=bins)
    if not len(table):
        return math.nan
    gap = (table["accuracy"] - table["confidence"]).abs()
    return float((gap * table["bags"]).sum() / table["bags"].sum())


def reliability(y: Any, posterior: Posterior, *, bins: int = 10) -> pd.DataFrame:
    """Accuracy and mean confidence of the bags in every bin of the largest probability that is not empty.

    >>> reliability([1, 0], Posterior([[[0.2, 0.8], [0.2, 0.8]]], classes=[0, 1]))
       above  up to  bags  confidence  accuracy
    0    0.7    0.8     2         0.8       0.5
    """
    import pandas as pd

    if not isinstance(bins, int | np.integer) or isinstance(bins, bool) or bins < 1:
        raise ParameterError("reliability", expected="bins of 1 or more", got=f"bins={bins!r}", remedy="pass 10")
    codes, part = classes_of(y, posterior)
    confidence = part.mean.max(axis=1)
    right = part.mean.argmax(axis=1) == codes
    edges = np.arange(bins + 1) / bins
    place = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, bins - 1)
    count = np.bincount(place, minlength=bins)
    full = np.flatnonzero(count)
    columns = {
        "above": edges[full],
        "up to": edges[full + 1],
        "bags": count[full],
        "confidence": np.bincount(place, confidence, bins)[full] / count[full],
        "accuracy": np.bincount(place, right, bins)[full] / count[full],
    }
    return pd.DataFrame(columns)
