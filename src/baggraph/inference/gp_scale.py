"""Scales on which targets are fitted, chosen by marginal likelihood, and the way back to a posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from baggraph.data.posterior import Posterior
from baggraph.errors import InvalidBagsError, ParameterError, closest

__all__ = ["LINKS", "Scale", "fitting_links", "to_posterior"]

Array = NDArray[np.float64]
LINKS = ("identity", "log", "logit")
DRAWS = 32
CARRIED = 0.95  # share of the signal's variance that is told by the draws; the rest makes their density smooth
NODES, MASSES = np.polynomial.hermite_e.hermegauss(15)
LEAST = 1e-12  # of the squared spread of the targets: no variance is smaller


@dataclass(frozen=True)
class Scale:
    """``z = (T(y) - center) / spread``, column by column.

    >>> scale = Scale.of("log", np.array([[1.0], [np.e**2]]))
    >>> scale.forward(np.array([[np.e]])).tolist()
    [[0.0]]
    """

    link: str
    center: Array
    spread: Array

    @classmethod
    def of(cls, link: str, targets: Array) -> Scale:
        """From the targets (n, t) that are visible."""
        values = _linked(link, targets)
        spread = values.std(axis=0)
        return cls(link, values.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def forward(self, targets: Array) -> Array:
        """Targets as a process sees them."""
        return np.asarray((_linked(self.link, targets) - self.center) / self.spread)

    def log_jacobian(self, targets: Array) -> float:
        """``sum log |dz / dy|``: added to the log density of z, it gives that of y."""
        if self.link == "identity":
            each = np.zeros_like(targets)
        else:
            each = -np.log(targets) - (np.log1p(-targets) if self.link == "logit" else 0.0)
        return float((each - np.log(self.spread)).sum())


def _linked(link: str, targets: Array) -> Array:
    if link == "identity":
        return targets
    inside = targets > 0 if link == "log" else (targets > 0) & (targets < 1)
    if not inside.all():
        expected = "targets above 0" if link == "log" else "shares above 0 and below 1"
        got = f"{targets[~inside].flat[0]:g}"
        remedy = 'pass link="identity", or move targets off the border'
        raise InvalidBagsError("gaussian process", expected=expected, got=got, remedy=remedy)
    return np.log(targets) if link == "log" else logit(targets)


def fitting_links(asked: str, targets: Array) -> tuple[str, ...]:
    """The links to choose from: the one asked for, or with ``"auto"`` all that the targets allow.

    >>> fitting_links("auto", np.array([[0.2], [0.7]])), fitting_links("auto", np.array([[-1.0]]))
    (('identity', 'log', 'logit'), ('identity',))
    """
    if asked != "auto":
        if asked not in LINKS:
            remedy = closest(str(asked), (*LINKS, "auto"))
            raise ParameterError("gaussian process", expected="a link", got=repr(asked), remedy=remedy)
        return (asked,)
    above, below = bool((targets > 0).all()), bool((targets < 1).all())
    return ("identity", *(("log",) if above else ()), *(("logit",) if above and below else ()))


def to_posterior(mean: Array, signal: Array, noise: Array, scale: Scale, ids: Any) -> Posterior:
    """Signal mean (B, t), its variance (B,) and that of the noise (B,) as draws of the target with its noise.

    Draws are the conditional means of the signal in DRAWS ranges of equal probability, bag by bag: stratified, not
    joint over bags.  Without a link, the mean and the variance of the posterior are those of the process to
    rounding; through one, those of every draw are integrated by Gauss-Hermite quadrature, and its noise is then taken
    as normal, which it nearly is while the noise is below a third or so on the scale of the link.
    """
    center = mean * scale.spread + scale.center
    spread = np.sqrt(signal)[:, None] * scale.spread
    draws = center + np.sqrt(CARRIED) * spread * strata()[:, None, None]
    inner = (1 - CARRIED) * spread**2 + noise[:, None] * scale.spread**2
    variance = np.maximum(np.broadcast_to(inner, draws.shape), LEAST * scale.spread**2)
    if scale.link != "identity":
        back = np.exp if scale.link == "log" else expit
        first, second = np.zeros_like(draws), np.zeros_like(draws)
        for node, mass in zip(NODES, MASSES / MASSES.sum(), strict=True):
            value = back(draws + np.sqrt(variance) * node)
            first += mass * value
            second += mass * value**2
        draws, variance = first, np.maximum(second - first**2, LEAST * first**2)
    return Posterior(draws, ids, None, variance)


def strata() -> Array:
    """Means of the standard normal law in ranges of equal probability, brought to variance one.

    >>> round(float((strata() ** 2).mean()), 12), round(abs(float(strata().mean())), 12)
    (1.0, 0.0)
    """
    edges = ndtri(np.arange(1, DRAWS) / DRAWS)
    density = np.concatenate([[0.0], np.exp(-0.5 * edges**2) / np.sqrt(2 * np.pi), [0.0]])
    found = -np.diff(density) * DRAWS
    return np.asarray(found / np.sqrt((found**2).mean()))
