"""Probabilities from scores, fitted on scores of bags that the scorer had not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit

Vector = NDArray[np.float64]


def fit_sigmoid(scores: Vector, sign: Vector) -> tuple[float, float]:
    """Slope a and offset b of ``P(+1 | f) = 1 / (1 + exp(-(a f + b)))``.

    Maximum likelihood with the targets ``(n+ + 1) / (n+ + 2)`` and ``1 / (n- + 2)`` in place of 1 and 0 (Platt 1999,
    Probabilistic outputs for support vector machines).  The slope is kept from being negative, so that probabilities
    order bags as scores do.

    >>> slope, offset = fit_sigmoid(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([-1.0, -1.0, 1.0, 1.0]))
    >>> bool(slope > 0.5), round(abs(offset), 6)
    (True, 0.0)
    """
    n_positive, n_negative = float((sign > 0).sum()), float((sign < 0).sum())
    target = np.where(sign > 0, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    center, spread = float(scores.mean()), float(scores.std()) or 1.0
    standard = (scores - center) / spread

    def loss(parameters: Vector) -> tuple[float, Vector]:
        logit = parameters[0] * standard + parameters[1]
        error = expit(logit) - target
        value = -np.sum(target * log_expit(logit) + (1 - target) * log_expit(-logit))
        return float(value), np.array([error @ standard, error.sum()])

    start = np.array([1.0, np.log((n_positive + 1) / (n_negative + 1))])
    best = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0, None), (None, None)]).x
    return float(best[0] / spread), float(best[1] - best[0] * center / spread)


def probabilities(scores: Vector, sigmoids: list[tuple[float, float]]) -> NDArray[np.float64]:
    """Class probabilities (B, C) of scores (B, 1) of the second of two classes, or (B, C) of each against the rest."""
    each = np.stack([expit(a * column + b) for column, (a, b) in zip(scores.T, sigmoids, strict=True)], axis=1)
    if each.shape[1] == 1:
        return np.hstack([1 - each, each])
    total = each.sum(axis=1, keepdims=True)
    return np.where(total > 0, each / np.where(total > 0, total, 1), 1 / each.shape[1])
