"""MI-Kernel: a support vector machine on a kernel of sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baggraph.baselines import _kernels as kernels
from baggraph.baselines._gram import Gram, KernelSVM
from baggraph.baselines._input import Matrix, Vector, check_positive
from baggraph.data.bags import Bags
from baggraph.errors import ParameterError


@dataclass(frozen=True)
class _Anchor:
    rows: kernels.Rows
    norms: Vector


class MIKernel(KernelSVM):
    """Support vector machine on the normalised set kernel

    ``k(A, B) / sqrt(k(A, A) k(B, B))``  with  ``k(A, B) = sum_{a in A} sum_{b in B} k(a, b)^p``

    (Gärtner, Flach, Kowalczyk & Smola 2002, Multi-instance kernels, ICML).

    Parameters
    ----------
    kernel, gamma
        k(a, b): ``"rbf"``, ``exp(-gamma |a - b|^2)``, or ``"linear"``.  Gamma is a number, or ``"scale"``, one over the
        sum of the variances of the features.
    power
        p; a whole number for the linear kernel.
    C
        Price of errors.
    scaling
        Kind of :class:`~baggraph.data.scaling.InstanceScaler`, fitted on the training bags.
    calibration_folds
        Inner folds that probabilities are fitted on; None does without.
    random_state
        Seed of the inner folds.

    Examples
    --------
    >>> bags = Bags(np.array([[0.0], [0.2], [3.0], [0.1], [3.1]]), [0, 1, 2, 3, 4, 5], ["a", "a", "b", "a", "b"])
    >>> MIKernel().fit(bags).predict([[[0.3]], [[2.8]]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        power: float = 1.0,
        C: float = 1.0,
        scaling: str = "auto",
        calibration_folds: int | None = 5,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.power = power
        self.C = C
        self.scaling = scaling
        self.calibration_folds = calibration_folds
        self.random_state = random_state

    def _check_parameters(self) -> None:
        kernels.check_kernel(self._stage, self.kernel, self.gamma)
        check_positive(self._stage, C=self.C, power=self.power)
        if self.kernel == "linear" and self.power % 1:
            got, remedy = f"power={self.power!r}", "a product may be negative and has no such power; pass 1 or 2"
            raise ParameterError(self._stage, expected="a whole power of the linear kernel", got=got, remedy=remedy)

    def _powered(self, kernel: kernels.InstanceKernel) -> kernels.Kernel:
        if self.power == 1:
            return kernel
        if kernel.kind == "rbf":
            return kernels.InstanceKernel("rbf", kernel.gamma * self.power)
        return lambda left, right: kernel(left, right) ** self.power

    def _anchor(self, bags: Bags) -> _Anchor:
        rows = kernels.Rows.of(bags, self.scaling, self.kernel, self.gamma)
        return _Anchor(rows, _norms(rows, self._powered(rows.kernel)))

    def _evidence(self, anchor: _Anchor, bags: Bags) -> Gram:
        rows, kernel = anchor.rows.others(bags), self._powered(anchor.rows.kernel)
        return Gram.of(_over(kernels.segment_sums(rows, anchor.rows, kernel), _norms(rows, kernel), anchor.norms))


def _norms(rows: kernels.Rows, kernel: kernels.Kernel) -> Vector:
    """``sqrt(k(A, A))``, (B,); rounding may leave a sum of products that is nothing below zero."""
    return np.sqrt(np.maximum(kernels.self_sums(rows, kernel), 0.0))


def _over(sums: Matrix, rows: Vector, columns: Vector) -> Matrix:
    """Divided by both norms; a bag whose vectors add up to nothing resembles no bag."""
    norms = np.outer(rows, columns)
    return np.divide(sums, norms, out=np.zeros_like(sums), where=norms > 0)
