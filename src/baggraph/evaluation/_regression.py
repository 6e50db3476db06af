"""Scores of real targets; of several targets a bag, all count alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from baggraph.data.posterior import Posterior
from baggraph.errors import ParameterError
from baggraph.evaluation._truth import Array, mean, targets_of


def root_mean_squared_error(y: Any, posterior: Posterior) -> float:
    """``sqrt(mean (y - m)^2)`` with m the mean of the posterior.

    >>> root_mean_squared_error([3.0, 3.0], Posterior([[[0.0], [0.0]]]))
    3.0
    """
    values, part = targets_of(y, posterior)
    return math.sqrt(mean((values - part.mean) ** 2)) if len(values) else math.nan


def mean_absolute_error(y: Any, posterior: Posterior) -> float:
    """``mean |y - m|``.

    >>> mean_absolute_error([3.0, 4.0], Posterior([[[0.0], [0.0]]]))
    3.5
    """
    values, part = targets_of(y, posterior)
    return mean(np.abs(values - part.mean))


def mean_absolute_percentage_error(y: Any, posterior: Posterior) -> float:
    """``mean |y - m| / |y|``, a ratio, bag by bag; NaN where a label is 0.

    >>> mean_absolute_percentage_error([2.0, 4.0], Posterior([[[1.0], [4.0]]]))
    0.25
    """
    values, part = targets_of(y, posterior)
    return mean(np.abs(values - part.mean) / np.abs(values)) if (values != 0).all() else math.nan


def normalised_deviation(y: Any, posterior: Posterior) -> float:
    """``sum |y - m| / sum |y|``: the mean absolute error over the mean *label*.

    >>> normalised_deviation([2.0, 4.0], Posterior([[[1.0], [3.0]]]))
    0.333...
    """
    values, part = targets_of(y, posterior)
    return _ratio(np.abs(values - part.mean), np.abs(values))


def normalised_deviation_as_published(y: Any, posterior: Posterior) -> float:
    """``sum |y - m| / sum |m|``: over the mean *prediction*, as the code of the paper divides.

    A method that predicts too much is rewarded for it; this is here to be laid beside printed numbers.

    >>> normalised_deviation_as_published([2.0, 4.0], Posterior([[[1.0], [3.0]]]))
    0.5
    """
    values, part = targets_of(y, posterior)
    return _ratio(np.abs(values - part.mean), np.abs(part.mean))


def r2(y: Any, posterior: Posterior) -> float:
    """``1 - sum (y - m)^2 / sum (y - mean y)^2``, the mean over targets; NaN where all labels are equal.

    >>> r2([1.0, 3.0], Posterior([[[1.0], [2.0]]]))
    0.5
    """
    values, part = targets_of(y, posterior)
    if len(values) < 2 or (np.ptp(values, axis=0) == 0).any():
        return math.nan
    return mean(1 - ((values - part.mean) ** 2).sum(axis=0) / ((values - values.mean(axis=0)) ** 2).sum(axis=0))


def coverage(y: Any, posterior: Posterior, *, level: float = 0.9) -> float:
    """Share of labels inside the central interval of that level; NaN without a noise variance.

    >>> coverage([0.0, 9.0], Posterior([[[0.0], [0.0]]], variance=[[[1.0], [1.0]]]))
    0.5
    """
    values, low, high = _interval(y, posterior, level)
    return mean((values >= low) & (values <= high))


def width(y: Any, posterior: Posterior, *, level: float = 0.9) -> float:
    """Mean width of the central interval of that level; NaN without a noise variance.

    >>> round(width([0.0], Posterior([[[0.0]]], variance=[[[1.0]]])), 3)
    3.29
    """
    _, low, high = _interval(y, posterior, level)
    return mean(high - low)


def _interval(y: Any, posterior: Posterior, level: float) -> tuple[Array, Array, Array]:
    if not 0 < level < 1:
        raise ParameterError("metrics", expected="a level between 0 and 1", got=f"{level!r}", remedy="pass 0.9")
    values, part = targets_of(y, posterior)
    if not part.has_noise or not len(values):
        nothing = np.zeros((0, 1))
        return nothing, nothing, nothing
    low, high = np.moveaxis(part.quantile([(1 - level) / 2, (1 + level) / 2]), -1, 0)
    return values, low, high


def _ratio(above: Array, below: Array) -> float:
    total = float(below.sum())
    return float(above.sum()) / total if total else math.nan
