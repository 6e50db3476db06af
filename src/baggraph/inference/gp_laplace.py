"""Classes of bags by Gaussian processes: Laplace's approximation for two, one against the rest for more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import expit, log_expit

from baggraph.data.posterior import Posterior
from baggraph.errors import InvalidBagsError
from baggraph.inference.gp import AbstractEvidence, Process, Rows
from baggraph.inference.gp_bags import Description
from baggraph.inference.gp_scale import strata

__all__ = ["FittedClasses", "FittedSide", "classify", "fit_side"]

Array = NDArray[np.float64]
MOST_STEPS = 100
TOLERANCE = 1e-10  # of the log posterior of the latent values


@dataclass(frozen=True)
class _Mode:
    """The mode of ``p(f | y)``, and what Newton's method left there."""

    latent: Array
    residual: Array  # the derivative of log p(y | f)
    root_weight: Array  # W^1/2
    factor: Array  # of I + W^1/2 K W^1/2
    dual: Array  # K^-1 f
    log_likelihood: float


def _mode(covariance: Array, sign: Array) -> _Mode:
    """Newton's method, halved where a step overshoots (Rasmussen & Williams 2006, algorithm 3.1)."""
    latent, dual = np.zeros(len(sign)), np.zeros(len(sign))
    value = float(log_expit(sign * latent).sum())
    for _ in range(MOST_STEPS):
        probability = expit(latent)
        weight = probability * (1 - probability)
        residual = (sign + 1) / 2 - probability
        root = np.sqrt(weight)
        factor = _factor(covariance, root)
        b = weight * latent + residual
        full = b - root * cho_solve((factor, True), root * (covariance @ b))
        before, step = value, full - dual
        for halving in 0.5 ** np.arange(12):
            trial = dual + halving * step
            found = float(log_expit(sign * (covariance @ trial)).sum() - 0.5 * trial @ covariance @ trial)
            if found >= value:
                dual, latent, value = trial, covariance @ trial, found
                break
        if value - before < TOLERANCE:
            break
    probability = expit(latent)
    root = np.sqrt(probability * (1 - probability))
    factor = _factor(covariance, root)
    likelihood = float(log_expit(sign * latent).sum() - 0.5 * dual @ latent - np.log(np.diag(factor)).sum())
    return _Mode(latent, (sign + 1) / 2 - probability, root, factor, dual, likelihood)


def _factor(covariance: Array, root: Array) -> Array:
    return np.asarray(cholesky(np.eye(len(root)) + root[:, None] * covariance * root, lower=True, check_finite=False))


class LaplaceEvidence(AbstractEvidence):
    """Of signs -1 and +1 (n,) under the logistic link, by Laplace's approximation."""

    def __init__(self, process: Process, rows: Rows, sign: Array) -> None:
        super().__init__(process, rows)
        self.sign = sign

    def log_likelihood(self, theta: Array) -> tuple[float, Array]:
        """Rasmussen & Williams (2006), algorithm 5.1."""
        parts = self.process.signal(self.pairs, theta)
        covariance = np.asarray(sum(parts.values()))
        mode = _mode(covariance, self.sign)
        root = mode.root_weight
        inverse = root[:, None] * cho_solve((mode.factor, True), np.diag(root))
        half = solve_triangular(mode.factor, root[:, None] * covariance, lower=True)
        probability = expit(mode.latent)
        third = -(root**2) * (1 - 2 * probability)
        by_mode = 0.5 * (np.diag(covariance) - np.einsum("ij,ij->j", half, half)) * third
        slopes = []
        for name, kernel in self.process.kernels.items():
            for slope in kernel.slopes(self.pairs[name], self.process.of_part(theta, name), parts[name]):
                direct = 0.5 * mode.dual @ slope @ mode.dual - 0.5 * float(np.vdot(inverse, slope))
                moved = slope @ mode.residual
                slopes.append(direct + by_mode @ (moved - covariance @ (inverse @ moved)))
        return mode.log_likelihood, np.array(slopes)


@dataclass(frozen=True, eq=False)
class FittedSide:
    """The latent function that is positive where bags are of one class, resting on labelled bags."""

    process: Process
    theta: Array
    rows: Rows
    sign: Array
    log_likelihood: float
    log_posterior: float

    @cached_property
    def _mode(self) -> _Mode:
        parts = self.process.signal(self.process.pairs(self.rows, self.rows), self.theta)
        return _mode(np.asarray(sum(parts.values())), self.sign)

    def predict(self, rows: Rows) -> tuple[Array, Array]:
        """Mean and variance (m,) of the latent function of other bags."""
        cross = sum(self.process.signal(self.process.pairs(rows, self.rows), self.theta).values())
        mode = self._mode
        half = solve_triangular(mode.factor, mode.root_weight[:, None] * np.asarray(cross).T, lower=True)
        left = self.process.variance(rows, self.theta) - np.einsum("ij,ij->j", half, half)
        return np.asarray(cross @ mode.residual), np.maximum(left, 0.0)

    def parts(self, rows: Rows) -> dict[str, Array]:
        """The mean (m,) of every part of the latent function."""
        cross = self.process.signal(self.process.pairs(rows, self.rows), self.theta)
        return {name: value @ self._mode.residual for name, value in cross.items()}


def fit_side(process: Process, rows: Rows, sign: Array) -> FittedSide:
    """Parameters of the largest approximate marginal likelihood times prior, for signs -1 and +1 (n,).

    >>> from baggraph.inference.gp_kernels import Stationary
    >>> x = np.linspace(-2, 2, 20)[:, None]
    >>> side = fit_side(Process({"x": Stationary("rbf")}, {}), {"x": x}, np.sign(x[:, 0]))
    >>> mean, variance = side.predict({"x": np.array([[-1.5], [1.5]])})
    >>> bool(mean[0] < -1), bool(mean[1] > 1)
    (True, True)
    """
    evidence = LaplaceEvidence(process, rows, sign)
    theta = evidence.search([np.zeros(len(evidence.center))])
    likelihood = evidence.log_likelihood(theta)[0]
    return FittedSide(process, theta, rows, sign, likelihood, likelihood + evidence.log_prior(theta)[0])


@dataclass(frozen=True, eq=False)
class FittedClasses:
    """A latent function a class, or one for two classes, over described bags."""

    description: Description
    sides: list[FittedSide]
    classes: Any

    def posterior(self, rows: Any, ids: Any) -> Posterior:
        """Of the bags that these rows describe; draws are stratified, bag by bag, not joint over bags."""
        positive = []
        for side in self.sides:
            mean, variance = side.predict(rows)
            positive.append(expit(mean + np.sqrt(variance) * strata()[:, None]))
        if len(positive) == 1:
            draws = np.stack([1 - positive[0], positive[0]], axis=2)
        else:
            draws = np.stack(positive, axis=2)
            draws = draws.mean(axis=0, keepdims=True)  # strata of different classes do not belong together
            draws = draws / draws.sum(axis=2, keepdims=True)
        return Posterior(draws, ids, self.classes)

    def shares(self) -> dict[str, float]:
        """How much of the variance of the latent functions between bags every part carries; they sum to one."""
        rows, found = self.description.rows, dict.fromkeys(self.description.parts, 0.0)
        count = len(rows["level"])
        for side in self.sides:
            signal = side.process.signal(side.process.pairs(rows, rows), side.theta)
            for name in found:
                found[name] += float(np.trace(signal[name]) - signal[name].sum() / count)
        total = sum(found.values())
        return {name: value / total for name, value in found.items()}


def classify(
    descriptions: Description | Sequence[Description], codes: Any, visible: Any, classes: Any
) -> FittedClasses:
    """Fit class codes (B,) where ``visible`` (B,); of several descriptions, that of the largest evidence.

    Codes of other bags are not looked at.  Of more than two classes, each is told from the rest with parameters of its
    own.
    """
    which = np.flatnonzero(visible)
    seen = np.asarray(codes)[which].astype(np.int64)
    absent = sorted(set(range(len(classes))) - set(seen.tolist()))
    if absent:
        got = f"none of {classes[absent[0]]!r}"
        raise InvalidBagsError("gaussian process", expected="labelled bags of every class", got=got, remedy="add some")
    sides = range(1, 2) if len(classes) == 2 else range(len(classes))
    found = []
    for description in [descriptions] if isinstance(descriptions, Description) else descriptions:
        process = Process(description.process.kernels, {})  # a class has no noise beside that of the link
        rows = description.take(which)
        fitted = [fit_side(process, rows, np.where(seen == side, 1.0, -1.0)) for side in sides]
        found.append(FittedClasses(description, fitted, classes))
    return max(found, key=lambda one: sum(side.log_posterior for side in one.sides))
