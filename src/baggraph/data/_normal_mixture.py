"""Normal laws, and equal mixtures of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]


def mixture_quantile(draws: Array, variance: Array, q: float) -> Array:
    """Quantile (B, t), by bisection, of an equal mixture over draws (S, B, t) of normal laws."""
    if q in (0.0, 1.0):
        return np.full(draws.shape[1:], -np.inf if q == 0 else np.inf)
    spread = np.sqrt(variance)
    reach = 1 + abs(float(np.log(min(q, 1 - q))))  # beyond so many deviations no component has mass q
    low = (draws - 2 * reach * spread).min(axis=0)
    high = (draws + 2 * reach * spread).max(axis=0)
    for _ in range(80):
        middle = (low + high) / 2
        below = _share_below(draws, variance, middle) < q
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def _share_below(draws: Array, variance: Array, value: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (value - draws) / np.sqrt(variance)
    return ndtr(np.where(np.isnan(z), np.inf, z)).mean(axis=0)


def normal_entropy(variance: Array) -> Array:
    """Entropy in nats, summed over independent targets."""
    with np.errstate(divide="ignore"):
        return 0.5 * np.log(2 * np.pi * np.e * variance).sum(axis=-1)
