"""Scores of the paper that are of no use elsewhere, beside those of the library."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from baggraph.data.posterior import Posterior
from baggraph.evaluation._truth import targets_of
from baggraph.evaluation.metrics import METRICS, Metric

__all__ = ["SCORES", "pairwise_percentage_error", "winner"]


def winner(y: Any, posterior: Posterior) -> float:
    """Share of bags for which label and prediction are on the same side of one half.

    >>> winner([0.6, 0.4], Posterior([[[0.7], [0.7]]]))
    0.5
    """
    values, part = targets_of(y, posterior)
    return float(((values > 0.5) == (part.mean > 0.5)).mean())


def pairwise_percentage_error(y: Any, posterior: Posterior) -> float:
    """``mean_ij |y_i - m_j| / |y_i|`` over all pairs of bags, which is what the published code calls MAPE.

    >>> pairwise_percentage_error([1.0, 2.0], Posterior([[[1.0], [2.0]]]))
    0.375
    """
    values, part = targets_of(y, posterior)
    return float((np.abs(values - part.mean.T) / np.abs(values)).mean())


SCORES: Mapping[str, Metric] = MappingProxyType(
    {
        **METRICS,
        "winner": Metric("winner", winner, "regression", True, "targets"),
        "mape as published": Metric("mape as published", pairwise_percentage_error, "regression", False, "targets"),
    }
)
