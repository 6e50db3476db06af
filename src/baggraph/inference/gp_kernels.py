"""Covariances of bags for Gaussian processes: by position, by graph, by features.

A kernel knows no bag.  It is given rows that describe bags, one array a set of bags, and keeps apart what does not
depend on its parameters (``pairs``), so that an optimiser pays for it once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from baggraph.errors import ParameterError, closest

__all__ = ["AbstractKernel", "Constant", "Linear", "Parameter", "Spectral", "Stationary"]

Array = NDArray[np.float64]
TINY = 1e-300


@dataclass(frozen=True)
class Parameter:
    """A positive number with a log-normal prior: ``log value ~ N(log start, spread^2)``.  Spread 0 keeps it fixed."""

    name: str
    start: float
    spread: float = 1.5

    def __post_init__(self) -> None:
        if not (0 < self.start < np.inf and 0 <= self.spread < np.inf):
            got, remedy = f"start={self.start!r}, spread={self.spread!r}", "pass a start above 0 and a spread from 0"
            raise ParameterError("gaussian process", expected="a finite prior", got=got, remedy=remedy)


class AbstractKernel(ABC):
    """A covariance function of the rows that describe bags; its first parameter is the variance."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[Parameter, ...]:
        """With their priors, in the order of ``theta``."""

    @abstractmethod
    def pairs(self, left: Array, right: Array) -> Any:
        """What of the covariance (n, m) depends on no parameter."""

    @abstractmethod
    def value(self, pairs: Any, theta: Array) -> Array:
        """The covariance (n, m)."""

    @abstractmethod
    def slopes(self, pairs: Any, theta: Array, value: Array) -> list[Array]:
        """Derivatives (n, m) by the logarithm of every parameter, given the covariance."""

    @abstractmethod
    def diagonal(self, rows: Array, theta: Array) -> Array:
        """The variance (n,) of every bag."""


@dataclass(frozen=True)
class Constant(AbstractKernel):
    """``v``: one level for all bags."""

    variance: Parameter = Parameter("level", 1.0, 0.0)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its variance."""
        return (self.variance,)

    def pairs(self, left: Array, right: Array) -> Any:
        """Ones."""
        return np.ones((len(left), len(right)))

    def value(self, pairs: Any, theta: Array) -> Array:
        """The level."""
        return theta[0] * pairs

    def slopes(self, pairs: Any, theta: Array, value: Array) -> list[Array]:  # noqa: ARG002
        """By its variance."""
        return [value]

    def diagonal(self, rows: Array, theta: Array) -> Array:
        """The level."""
        return np.full(len(rows), theta[0])


@dataclass(frozen=True)
class Linear(AbstractKernel):
    """``v x x'``, the covariance of a linear function with independent normal coefficients.

    >>> Linear().value(np.array([[6.0]]), np.array([0.5])).tolist()
    [[3.0]]
    """

    variance: Parameter = Parameter("variance", 1.0)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its variance."""
        return (self.variance,)

    def pairs(self, left: Array, right: Array) -> Any:
        """Products of rows."""
        return left @ right.T

    def value(self, pairs: Any, theta: Array) -> Array:
        """Products, scaled."""
        return theta[0] * pairs

    def slopes(self, pairs: Any, theta: Array, value: Array) -> list[Array]:  # noqa: ARG002
        """By its variance."""
        return [value]

    def diagonal(self, rows: Array, theta: Array) -> Array:
        """Squared lengths of rows, scaled."""
        return theta[0] * np.einsum("ij,ij->i", rows, rows)


SHAPES = ("rbf", "matern12", "matern32", "matern52")


@dataclass(frozen=True)
class Stationary(AbstractKernel):
    """``v s(|x - x'| / l)``: RBF ``exp(-r^2 / 2)``, or Matérn of order 1/2, 3/2, 5/2 (Rasmussen & Williams 2006, 4.2).

    >>> kernel = Stationary("matern32", length=Parameter("length", 2.0))
    >>> kernel.value(kernel.pairs(np.zeros((1, 1)), np.ones((1, 1))), np.array([1.0, 2.0])).round(3).tolist()
    [[0.785]]
    """

    shape: str = "matern32"
    variance: Parameter = Parameter("variance", 1.0)
    length: Parameter = Parameter("length", 1.0)

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise ParameterError(
                "gaussian process", expected="a shape", got=repr(self.shape), remedy=closest(str(self.shape), SHAPES)
            )

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Variance and length."""
        return self.variance, self.length

    def pairs(self, left: Array, right: Array) -> Any:
        """Distances."""
        return cdist(left, right)

    def value(self, pairs: Any, theta: Array) -> Array:
        """The shape at distances over the length."""
        r = pairs / theta[1]
        if self.shape == "rbf":
            return theta[0] * np.exp(-0.5 * r**2)
        if self.shape == "matern12":
            return theta[0] * np.exp(-r)
        if self.shape == "matern32":
            a = np.sqrt(3.0) * r
            return theta[0] * (1 + a) * np.exp(-a)
        a = np.sqrt(5.0) * r
        return theta[0] * (1 + a + a**2 / 3) * np.exp(-a)

    def slopes(self, pairs: Any, theta: Array, value: Array) -> list[Array]:
        """By variance and length."""
        r = pairs / theta[1]
        if self.shape == "rbf":
            return [value, value * r**2]
        if self.shape == "matern12":
            return [value, value * r]
        if self.shape == "matern32":
            a = np.sqrt(3.0) * r
            return [value, theta[0] * a**2 * np.exp(-a)]
        a = np.sqrt(5.0) * r
        return [value, theta[0] * a**2 * (1 + a) / 3 * np.exp(-a)]

    def diagonal(self, rows: Array, theta: Array) -> Array:
        """The variance, alike for all."""
        return np.full(len(rows), theta[0])


SPECTRA = ("matern", "diffusion")


@dataclass(frozen=True)
class Spectral(AbstractKernel):
    """A function of a graph's Laplacian: ``v U g(lambda) U' / c`` with c such that the mean variance of a bag is v.

    Matérn: ``g = (1 + lambda / kappa)^-order``; diffusion: ``g = exp(-lambda / kappa)`` (Borovitskiy et al. 2021,
    Matérn Gaussian processes on graphs, AISTATS; Kondor & Lafferty 2002).  ``kappa`` sets how far bags are heard: the
    smaller, the farther.  Rows that describe bags are those of the eigenvectors U; see
    :func:`~baggraph.inference.gp_graph.spectrum`.
    """

    eigenvalues: Any
    kind: str = "matern"
    order: float = 1.0
    variance: Parameter = Parameter("variance", 1.0)
    kappa: Parameter = Parameter("kappa", 0.3)

    def __post_init__(self) -> None:
        if self.kind not in SPECTRA:
            raise ParameterError(
                "gaussian process", expected="a kind", got=repr(self.kind), remedy=closest(str(self.kind), SPECTRA)
            )

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Variance and kappa."""
        return self.variance, self.kappa

    def _weights(self, theta: Array) -> tuple[Array, Array]:
        """Weights of the eigenvectors, and their derivatives by the logarithm of kappa."""
        ratio = np.maximum(self.eigenvalues, 0.0) / theta[1]
        if self.kind == "matern":
            g = (1 + ratio) ** -self.order
            slope = self.order * ratio * g / (1 + ratio)
        else:
            g = np.exp(-ratio)
            slope = ratio * g
        # Eigenvectors have length one, so the variances of all bags add up to the sum of the weights.
        mean = max(float(g.mean()), TINY)
        return theta[0] * g / mean, theta[0] * (slope / mean - g * slope.mean() / mean**2)

    def pairs(self, left: Array, right: Array) -> Any:
        """The rows themselves."""
        return left, right

    def value(self, pairs: Any, theta: Array) -> Array:
        """Products of rows, weighted by eigenvalue."""
        left, right = pairs
        return (left * self._weights(theta)[0]) @ right.T

    def slopes(self, pairs: Any, theta: Array, value: Array) -> list[Array]:
        """By variance and kappa."""
        left, right = pairs
        return [value, (left * self._weights(theta)[1]) @ right.T]

    def diagonal(self, rows: Array, theta: Array) -> Array:
        """The variance of every bag, larger where it has few neighbours.

        Rows of bags in the graph have length one; what those of new bags lack is unknown, and varies as the mean bag.
        """
        squares = rows**2
        return squares @ self._weights(theta)[0] + theta[0] * np.maximum(1 - squares.sum(axis=1), 0.0)
