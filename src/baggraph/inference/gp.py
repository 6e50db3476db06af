"""Gaussian processes over bags: a sum of kernels and noises, fitted jointly by marginal likelihood with weak priors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from baggraph.errors import InvalidBagsError, ParameterError
from baggraph.inference.gp_kernels import AbstractKernel, Parameter

__all__ = ["FittedProcess", "Process", "fit_process"]

Array = NDArray[np.float64]
Rows = Mapping[str, Array]
JITTER = 1e-10  # of the mean variance, so that rows that are alike do not stop the factorisation
REACH = 6.0  # spreads of the prior that the search does not leave
HOPELESS = 1e15
WORTH_THREADS = 600  # bags; the factors of fewer wait for threads longer than they compute


@dataclass(frozen=True)
class Process:
    """``y = sum_p f_p + sum_q e_q``: kernels by name, and noises whose variances are known up to a factor each.

    A row of every kernel describes a bag; a noise has a number a bag, the weight ``w_b`` of its variance ``s^2 w_b``.
    """

    kernels: Mapping[str, AbstractKernel]
    noises: Mapping[str, Parameter]

    def __post_init__(self) -> None:
        if not self.kernels or set(self.kernels) & set(self.noises):
            got = "none" if not self.kernels else f"{sorted(set(self.kernels) & set(self.noises))} twice"
            raise ParameterError("gaussian process", expected="kernels of their own names", got=got, remedy="pass some")

    @cached_property
    def parameters(self) -> tuple[tuple[str, Parameter], ...]:
        """(part, parameter) of all kernels, then of all noises."""
        of_kernels = [(name, one) for name, kernel in self.kernels.items() for one in kernel.parameters]
        return (*of_kernels, *self.noises.items())

    @cached_property
    def _slices(self) -> dict[str, slice]:
        ends = np.cumsum([len(kernel.parameters) for kernel in self.kernels.values()])
        starts = np.concatenate([[0], ends[:-1]])
        found = {name: slice(int(a), int(b)) for name, a, b in zip(self.kernels, starts, ends, strict=True)}
        return found | {name: slice(int(ends[-1]) + i, int(ends[-1]) + i + 1) for i, name in enumerate(self.noises)}

    def of_part(self, theta: Array, name: str) -> Array:
        """The parameters of one part."""
        return theta[self._slices[name]]

    def pairs(self, left: Rows, right: Rows) -> dict[str, Any]:
        """What depends on no parameter, by kernel."""
        return {name: kernel.pairs(left[name], right[name]) for name, kernel in self.kernels.items()}

    def signal(self, pairs: Mapping[str, Any], theta: Array) -> dict[str, Array]:
        """Covariances of the parts."""
        return {name: kernel.value(pairs[name], self.of_part(theta, name)) for name, kernel in self.kernels.items()}

    def noise(self, rows: Rows, theta: Array) -> Array:
        """Variance (n,) of the noise of every bag."""
        count = len(next(iter(rows.values())))
        return np.asarray(sum((self.of_part(theta, name)[0] * rows[name] for name in self.noises), np.zeros(count)))

    def variance(self, rows: Rows, theta: Array) -> Array:
        """Variance (n,) of the signal of every bag, before any label is seen."""
        parts = (kernel.diagonal(rows[name], self.of_part(theta, name)) for name, kernel in self.kernels.items())
        return np.asarray(sum(parts))


class AbstractEvidence(ABC):
    """The log marginal likelihood of labels and the prior of the parameters, as one function of the latter."""

    def __init__(self, process: Process, rows: Rows) -> None:
        self.process, self.rows = process, rows
        self.pairs = process.pairs(rows, rows)
        self.center = np.log([one.start for _, one in process.parameters])
        self.spread = np.array([one.spread for _, one in process.parameters])
        self.free = self.spread > 0

    @abstractmethod
    def log_likelihood(self, theta: Array) -> tuple[float, Array]:
        """``log p(y | theta)``, and its derivatives by the logarithms of all parameters."""

    def theta(self, free: Array) -> Array:
        """All parameters, from the logarithms of those that are free."""
        log_theta = self.center.copy()
        log_theta[self.free] = free
        return np.exp(log_theta)

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        """Of the free parameters, without its constant."""
        z = np.zeros(len(theta))
        z[self.free] = (np.log(theta) - self.center)[self.free] / self.spread[self.free]
        slope = np.zeros(len(theta))
        slope[self.free] = -z[self.free] / self.spread[self.free]
        return -0.5 * float(z @ z), slope

    def loss(self, free: Array) -> tuple[float, Array]:
        """What the search makes small."""
        theta = self.theta(free)
        try:
            value, slope = self.log_likelihood(theta)
        except np.linalg.LinAlgError:
            return HOPELESS, np.zeros(len(free))
        prior, prior_slope = self.log_prior(theta)
        return -(value + prior), -(slope + prior_slope)[self.free]

    def search(self, shifts: Sequence[Array]) -> Array:
        """Parameters (P,) of the best of several searches, each begun beside the centre of the prior."""
        if not self.free.any():
            return np.exp(self.center)
        center, spread = self.center[self.free], self.spread[self.free]
        bounds = list(zip(center - REACH * spread, center + REACH * spread, strict=True))
        starts = [center + shift[self.free] for shift in shifts]
        few = len(next(iter(self.rows.values()))) < WORTH_THREADS
        with threadpool_limits(1 if few else None):
            found = [minimize(self.loss, start, jac=True, method="L-BFGS-B", bounds=bounds) for start in starts]
        return self.theta(np.asarray(min(found, key=lambda one: one.fun).x))


class Evidence(AbstractEvidence):
    """Of targets (n, t) that share their parameters, with normal noise."""

    def __init__(self, process: Process, rows: Rows, targets: Array) -> None:
        super().__init__(process, rows)
        self.targets = targets

    def log_likelihood(self, theta: Array) -> tuple[float, Array]:
        """In closed form."""
        process = self.process
        parts = process.signal(self.pairs, theta)
        root = factor(np.asarray(sum(parts.values())), process.noise(self.rows, theta))
        weights = cho_solve(root, self.targets)
        n, t = self.targets.shape
        value = -0.5 * float((self.targets * weights).sum()) - t * float(np.log(np.diag(root[0])).sum())
        value -= 0.5 * n * t * np.log(2 * np.pi)
        pull = weights @ weights.T - t * cho_solve(root, np.eye(n))
        slopes = []
        for name, kernel in process.kernels.items():
            found = kernel.slopes(self.pairs[name], process.of_part(theta, name), parts[name])
            slopes += [0.5 * float(np.vdot(pull, slope)) for slope in found]
        own = np.diag(pull)
        slopes += [0.5 * process.of_part(theta, name)[0] * float(own @ self.rows[name]) for name in process.noises]
        return value, np.array(slopes)


def factor(signal: Array, noise: Array) -> Any:
    """The Cholesky factor of signal and noise."""
    total = signal.copy()
    total[np.diag_indices(len(total))] += noise + JITTER * max(float(np.trace(total)) / len(total), 1e-30)
    return cho_factor(total, lower=True, check_finite=False)


@dataclass(frozen=True, eq=False)
class FittedProcess:
    """A process with parameters, and the labelled bags that it rests on.

    Parameters
    ----------
    process, theta
        What was fitted, and the parameters (P,) that were found.
    rows
        Of the labelled bags.
    targets : (n, t)
        As the process sees them.
    log_likelihood, log_posterior
        Of these parameters; the second with their prior.

    """

    process: Process
    theta: Array
    rows: Rows
    targets: Array
    log_likelihood: float
    log_posterior: float

    @cached_property
    def _root(self) -> Any:
        pairs = self.process.pairs(self.rows, self.rows)
        parts = self.process.signal(pairs, self.theta)
        return factor(np.asarray(sum(parts.values())), self.process.noise(self.rows, self.theta))

    @cached_property
    def _weights(self) -> Array:
        return np.asarray(cho_solve(self._root, self.targets))

    def predict(self, rows: Rows) -> tuple[Array, Array, Array]:
        """Mean (m, t) of the signal of other bags, its variance (m,), and that of their noise (m,)."""
        cross = sum(self.process.signal(self.process.pairs(rows, self.rows), self.theta).values())
        seen = np.einsum("ij,ji->i", cross, cho_solve(self._root, np.asarray(cross).T))
        left = np.maximum(self.process.variance(rows, self.theta) - seen, 0.0)
        return np.asarray(cross @ self._weights), left, self.process.noise(rows, self.theta)

    def shares(self, rows: Rows) -> Array:
        """What a unit of every target adds to the mean of other bags (m, n): means are these times the targets."""
        cross = sum(self.process.signal(self.process.pairs(rows, self.rows), self.theta).values())
        return np.asarray(cho_solve(self._root, np.asarray(cross).T).T)

    def parts(self, rows: Rows) -> dict[str, Array]:
        """The mean (m, t) of every part of the signal of other bags."""
        cross = self.process.signal(self.process.pairs(rows, self.rows), self.theta)
        return {name: value @ self._weights for name, value in cross.items()}

    def leave_one_out(self) -> tuple[Array, Array]:
        """Means (n, t) and variances (n,), noise included, of labelled bags had each been without its label.

        ``y_i - [K^-1 y]_i / [K^-1]_ii`` and ``1 / [K^-1]_ii`` (Rasmussen & Williams 2006, 5.10), at these parameters.
        """
        own = np.diag(cho_solve(self._root, np.eye(len(self.targets))))
        return np.asarray(self.targets - self._weights / own[:, None]), np.asarray(1 / own)

    @property
    def parameters(self) -> dict[str, float]:
        """By ``"part name"``."""
        names = (f"{part} {one.name}" for part, one in self.process.parameters)
        return dict(zip(names, self.theta.tolist(), strict=True))


def fit_process(process: Process, rows: Rows, targets: Any, *, starts: int = 3) -> FittedProcess:
    """Parameters of the largest marginal likelihood times prior (Rasmussen & Williams 2006, chapter 5).

    ``log p(y | theta) = -1/2 y' K^-1 y - 1/2 log|K| - n/2 log 2 pi``  with  ``K = sum_p K_p + diag(noise)``.

    ``rows`` and ``targets`` (n, t) are of labelled bags only; targets should vary by about one around zero.  The search
    begins at the priors' centres, and at others where noise is a tenth or ten times as much.

    >>> from baggraph.inference.gp_kernels import Stationary
    >>> x = np.linspace(0, 3, 12)[:, None]
    >>> wave = Process({"place": Stationary("rbf")}, {"noise": Parameter("noise", 0.1)})
    >>> fit = fit_process(wave, {"place": x, "noise": np.ones(12)}, np.sin(2 * x))
    >>> mean, *_ = fit.predict({"place": np.array([[1.0]]), "noise": np.ones(1)})
    >>> round(float(mean[0, 0]), 2), round(float(np.sin(2)), 2)
    (0.91, 0.91)
    """
    values = np.asarray(targets, dtype=np.float64)
    if values.ndim != 2 or not len(values) or not np.isfinite(values).all():
        got = f"shape {values.shape}" if values.ndim != 2 else "none" if not len(values) else "NaN or infinity"
        raise InvalidBagsError("gaussian process", expected="finite targets (n, t)", got=got, remedy="drop the others")
    evidence = Evidence(process, rows, values)
    is_noise = np.array([float(part in process.noises) for part, _ in process.parameters])
    theta = evidence.search([np.log(10.0) * step * is_noise for step in (0, -1, 1)[:starts]])
    likelihood = evidence.log_likelihood(theta)[0]
    return FittedProcess(process, theta, rows, values, likelihood, likelihood + evidence.log_prior(theta)[0])
