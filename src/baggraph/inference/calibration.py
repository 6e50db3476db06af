"""Posteriors made honest on bags that were held out of training: temperature, noise, conformal sets and intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from baggraph.data.posterior import LEAST_PROBABILITY, Posterior
from baggraph.errors import InvalidBagsError, ParameterError

__all__ = ["Conformal", "fit_noise", "fit_temperature", "temper", "with_noise"]

Array = NDArray[np.float64]
HOTTEST = 20.0
LEAST_SHARE = 1e-6  # of the variance of the targets: noise is never thought smaller


# ---------------------------------------------------------------------- classes


def temper(posterior: Posterior, temperature: float) -> Posterior:
    """``p_c^(1/T) / sum_c' p_c'^(1/T)`` of every draw: above 1, T makes it less sure; the order of classes stays.

    >>> temper(Posterior([[[0.9, 0.1]]], classes=[0, 1]), 2.0).mean.round(2).tolist()
    [[0.75, 0.25]]
    """
    with np.errstate(divide="ignore"):
        logs = np.log(posterior.draws) / temperature
    powers = np.exp(logs - logs.max(axis=2, keepdims=True))
    return Posterior(powers / powers.sum(axis=2, keepdims=True), posterior.ids, posterior.classes)


def fit_temperature(posterior: Posterior, y: Any) -> float:
    """The temperature of the least negative log-likelihood of held-out labels (Guo et al. 2017, On calibration).

    Of n labels and C classes, one counts as probability ``(n + 1) / (n + C)`` of its class and ``1 / (n + C)`` of each
    other (Platt 1999): a few labels that are all right would otherwise make the model certain.

    >>> sure = Posterior([[[0.99, 0.01]] * 4], classes=[0, 1])
    >>> round(fit_temperature(sure, [0, 0, 0, 1]), 1)  # right three times of four
    6.6
    """
    codes = posterior.codes(y)
    known = np.flatnonzero(codes >= 0)
    if not len(known):
        raise _wrong("labelled bags", "none", "hold some out")
    held, n_classes = posterior.take(known), len(posterior.classes)
    shares = (np.eye(n_classes)[codes[known]] * len(known) + 1) / (len(known) + n_classes)

    def loss(log_temperature: float) -> float:
        probability = temper(held, np.exp(log_temperature)).mean
        return -float((shares * np.log(np.maximum(probability, LEAST_PROBABILITY))).sum(axis=1).mean())

    reach = float(np.log(HOTTEST))
    return float(np.exp(minimize_scalar(loss, bounds=(-reach, reach), method="bounded").x))


# ---------------------------------------------------------------------- real targets


def fit_noise(posterior: Posterior, y: Any) -> Array:
    """The noise variance (t,) of least negative log-likelihood, in closed form: the mean squared residual.

    Where the draws carry a variance of their own, the factor (t,) on it.
    """
    values = np.asarray(y, dtype=np.float64).reshape(len(posterior), -1)
    known = np.isfinite(values).all(axis=1)
    if not known.any():
        raise _wrong("labelled bags", "none", "hold some out")
    squares = (values - posterior.mean)[known] ** 2
    if posterior.has_noise:
        return (squares / posterior.aleatoric[known]).mean(axis=0)
    least = LEAST_SHARE * values[known].var(axis=0)
    return np.maximum(squares.mean(axis=0), np.maximum(least, np.finfo(np.float64).tiny))


def with_noise(posterior: Posterior, noise: Array) -> Posterior:
    """The posterior with what :func:`fit_noise` found."""
    base = posterior.variance if posterior.has_noise else np.ones_like(posterior.draws)
    return Posterior(posterior.draws, posterior.ids, None, base * noise)


# ---------------------------------------------------------------------- conformal


@dataclass(frozen=True, eq=False)
class Conformal:
    """Split-conformal prediction: sets and intervals that hold the label with a probability that is promised.

    With n held-out bags that are exchangeable with new ones, the ``ceil((n + 1) coverage)``-th smallest score bounds
    that of a new bag with at least that probability (Vovk et al. 2005; Angelopoulos & Bates 2023).  Scores are
    ``1 - p_y`` for classes, ``|y - m| / s`` for targets.

    Parameters
    ----------
    scores : (n,) or (n, t)
        Of the held-out bags.
    codes : (n,) or None
        Their classes.

    """

    scores: Array
    codes: Any = None

    @classmethod
    def of(cls, posterior: Posterior, y: Any) -> Conformal:
        """From the posterior of held-out bags and their labels."""
        if posterior.is_classification:
            codes = posterior.codes(y)
            known = codes >= 0
            probability = posterior.mean[np.flatnonzero(known), codes[known]]
            return cls(1 - probability, codes[known])
        values = np.asarray(y, dtype=np.float64).reshape(len(posterior), -1)
        finite = np.isfinite(values).all(axis=1)
        return cls((np.abs(values - posterior.mean) / _spread(posterior))[finite])

    def sets(self, posterior: Posterior, coverage: float, *, conditional: bool = False) -> NDArray[np.bool_]:
        """Which classes (B, C) may be the label; ``conditional`` promises the coverage within every class."""
        if not posterior.is_classification:
            raise _wrong("classes", "real targets", "use intervals")
        if not conditional:
            return np.asarray(1 - posterior.mean <= self._threshold(self.scores, coverage))
        bounds = [self._threshold(self.scores[self.codes == c], coverage) for c in range(len(posterior.classes))]
        return np.asarray(1 - posterior.mean <= np.array(bounds))

    def intervals(self, posterior: Posterior, coverage: float) -> Array:
        """Lower and upper ends (B, t, 2)."""
        if posterior.is_classification:
            raise _wrong("real targets", "classes", "use sets")
        reach = np.array([self._threshold(column, coverage) for column in self.scores.T]) * _spread(posterior)
        return np.stack([posterior.mean - reach, posterior.mean + reach], axis=-1)

    @staticmethod
    def _threshold(scores: Array, coverage: float) -> float:
        if not 0 < coverage < 1:
            got = f"coverage={coverage!r}"
            raise ParameterError("conformal", expected="a coverage between 0 and 1", got=got, remedy="pass 0.9")
        rank = int(np.ceil((len(scores) + 1) * coverage - 1e-9))
        return np.inf if rank > len(scores) else float(np.sort(scores)[rank - 1])


def _spread(posterior: Posterior) -> Array:
    return posterior.std if posterior.has_noise else np.ones_like(posterior.mean)


def _wrong(expected: str, got: str, remedy: str) -> InvalidBagsError:
    return InvalidBagsError("calibration", expected=expected, got=got, remedy=remedy)
