"""Gaussian processes over bags: on the means of their instances, or on where they lie."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel, Matern, WhiteKernel
from sklearn.utils.validation import check_is_fitted

from baggraph.baselines._input import Matrix, as_bags
from baggraph.baselines._regressor import BagRegressor
from baggraph.baselines.summary import summarise
from baggraph.data.bags import Bags
from baggraph.data.scaling import InstanceScaler
from baggraph.errors import InvalidBagsError


class _BagGP(BagRegressor):
    """A process with noise whose kernel maximises the marginal likelihood (Rasmussen & Williams 2006, chapter 5)."""

    @abstractmethod
    def _kernel(self, n_inputs: int) -> Kernel:
        """The kernel before it is fitted, of inputs that vary by about one."""

    @abstractmethod
    def _inputs(self, bags: Bags) -> Matrix:
        """One input (B, p) a bag, not scaled."""

    @abstractmethod
    def _scaling(self, inputs: Matrix) -> tuple[Matrix, Matrix]:
        """Centre and scale (p,) of inputs."""

    def predict_std(self, bags: Any) -> Any:
        """Standard deviation of a new observation, noise included, on the scale of the link; (B,) or (B, t)."""
        check_is_fitted(self, "process_")
        inputs = self._scaled(as_bags(bags, self._stage, self.n_features_in_))
        deviation = self.process_.predict(inputs, return_std=True)[1].reshape(len(inputs), -1)
        return deviation[:, 0] if self.one_target_ else deviation

    def _learn(self, bags: Bags, targets: Matrix) -> None:
        self.center_, self.scale_ = self._scaling(self._inputs(bags))
        inputs = self._scaled(bags)
        kernel = self._kernel(inputs.shape[1]) + WhiteKernel(0.1, (1e-6, 1e2))
        self.process_ = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
        with warnings.catch_warnings():
            # A parameter at its bound is an answer: this part of the kernel explains nothing, or everything.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.process_.fit(inputs, targets)
        self.kernel_ = self.process_.kernel_

    def _estimate(self, bags: Bags) -> Matrix:
        return self.process_.predict(self._scaled(bags)).reshape(len(bags), -1)

    def _scaled(self, bags: Bags) -> Matrix:
        return (self._inputs(bags) - self.center_) / self.scale_


class BagMeanGP(_BagGP):
    """Gaussian process on the mean of the instances of a bag, with kernel

    ``v exp(-|m - m'|^2 / (2 l^2)) + u m . m' + noise``

    on standardised means; v, l, u and the noise by marginal likelihood (Rasmussen & Williams 2006).

    Parameters
    ----------
    link
        The scale that targets are fitted on: ``"identity"``, ``"log"``, or ``"logit"`` for shares.

    Attributes
    ----------
    kernel_
        The kernel as fitted.

    Examples
    --------
    >>> bags = Bags(np.arange(10.0)[:, None], [0, 2, 4, 6, 8, 10], [0.5, 2.5, 4.5, 6.5, 8.5])
    >>> BagMeanGP().fit(bags).predict([[[2.0], [4.0]]]).round(1).tolist()
    [3.0]
    """

    def __init__(self, *, link: str = "identity") -> None:
        self.link = link

    def _kernel(self, n_inputs: int) -> Kernel:
        smooth = ConstantKernel(1.0, (1e-4, 1e4)) * RBF(np.sqrt(n_inputs), (1e-1, 1e4))
        return smooth + ConstantKernel(1.0 / n_inputs, (1e-6, 1e4)) * DotProduct(0.0, "fixed")

    def _inputs(self, bags: Bags) -> Matrix:
        return summarise(bags, ["mean"])

    def _scaling(self, inputs: Matrix) -> tuple[Matrix, Matrix]:
        scaler = InstanceScaler("standard").fit(Bags(inputs, np.arange(len(inputs) + 1)))
        return scaler.center_, scaler.scale_


class CoordinateGP(_BagGP):
    """Gaussian process on ``bags.coords``, with the Matérn kernel of order 3/2

    ``v (1 + sqrt(3) r / l) exp(-sqrt(3) r / l) + noise``  for bags a distance r apart;

    v, l and the noise by marginal likelihood (Rasmussen & Williams 2006).  It sees no instance: what it reaches is
    reached by position alone.  Coordinates share one scale; longitude and latitude are taken as a plane.

    Parameters
    ----------
    link
        The scale that targets are fitted on: ``"identity"``, ``"log"``, or ``"logit"`` for shares.

    Attributes
    ----------
    kernel_
        The kernel as fitted.

    Examples
    --------
    >>> places = np.linspace(0, 3, 12)[:, None] * [1.0, 1.0]
    >>> bags = Bags(np.zeros((12, 1)), np.arange(13), np.sin(places[:, 0]), coords=places)
    >>> round(float(CoordinateGP().fit(bags).predict(bags)[6]), 2), round(float(np.sin(places[6, 0])), 2)
    (1.0, 1.0)
    """

    def __init__(self, *, link: str = "identity") -> None:
        self.link = link

    def _kernel(self, n_inputs: int) -> Kernel:
        del n_inputs
        return ConstantKernel(1.0, (1e-4, 1e4)) * Matern(0.5, (1e-3, 1e3), nu=1.5)

    def _inputs(self, bags: Bags) -> Matrix:
        if bags.coords is None:
            remedy = "pass coords to Bags"
            raise InvalidBagsError(self._stage, expected="bags with coordinates", got="none", remedy=remedy)
        return np.asarray(bags.coords, dtype=np.float64)

    def _scaling(self, inputs: Matrix) -> tuple[Matrix, Matrix]:
        spread = float(np.sqrt(inputs.var(axis=0).mean())) or 1.0
        return inputs.mean(axis=0), np.full(inputs.shape[1], spread)
