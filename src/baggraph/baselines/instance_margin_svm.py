"""mi-SVM: a support vector machine on instances whose labels it guesses as it goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baggraph.baselines import _kernels as kernels
from baggraph.baselines._gram import Gram
from baggraph.baselines._input import Vector
from baggraph.baselines._instance_machine import InstanceMachine
from baggraph.baselines._svc import Expansion, fit_svc


@dataclass(frozen=True)
class _Machine:
    """A machine on instances, the signs it was trained with, the objective at every step, and whether it settled."""

    expansion: Expansion
    signs: Vector
    objectives: list[float]
    converged: bool


class InstanceMarginSVM(InstanceMachine):
    """mi-SVM, the maximum pattern margin formulation:

    ``min_y min_{w, b, xi}  |w|^2 / 2 + C sum_i xi_i``  with  ``y_i (w . x_i + b) >= 1 - xi_i``,

    where instances of negative bags have y = -1 and a positive bag has an instance with y = 1.  The machine is trained,
    instances of positive bags take the sign of their score (the highest one of a bag at least is positive), and so on
    until no sign changes (Andrews, Tsochantaridis & Hofmann 2002, Support vector machines for multiple-instance
    learning, NIPS).  No step raises the objective.  The score of a bag is the largest of its instances.

    ``gram(bags)`` is the kernel of all instances, (N, N): 8 N^2 bytes.

    Parameters
    ----------
    kernel, gamma
        ``"rbf"``, ``exp(-gamma |x - x'|^2)``, or ``"linear"``.  Gamma is a number, or ``"scale"``, one over the sum of
        the variances of the features.
    C
        Price of errors.
    max_iter
        Most rounds; where signs still change, a :class:`~baggraph.errors.BagWarning` says so.
    scaling
        Kind of :class:`~baggraph.data.scaling.InstanceScaler`, fitted on the training bags.
    calibration_folds
        Inner folds that probabilities are fitted on; None does without.
    random_state
        Seed of the inner folds.

    Attributes
    ----------
    instance_signs_ : list of (N,) arrays
        Signs of the training instances; one array, or for more than two classes one a class.
    objectives_ : list of lists
        The objective after every round.
    converged_ : bool
        Whether no sign changed in the last round.

    Examples
    --------
    >>> from baggraph import Bags
    >>> bags = Bags.from_list([[[0.1], [3.0]], [[0.2], [2.9]], [[0.0], [0.3]], [[0.1], [0.2]]], y=[1, 1, 0, 0])
    >>> model = InstanceMarginSVM(kernel="linear", C=10.0).fit(bags)
    >>> model.instance_signs_[0].tolist(), model.predict(bags).tolist()
    ([-1.0, 1.0, -1.0, 1.0, -1.0, -1.0, -1.0, -1.0], [1, 1, 0, 0])
    """

    _guess = "labels of instances"

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        C: float = 1.0,
        max_iter: int = 50,
        scaling: str = "auto",
        calibration_folds: int | None = 5,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.C = C
        self.max_iter = max_iter
        self.scaling = scaling
        self.calibration_folds = calibration_folds
        self.random_state = random_state

    @property
    def instance_signs_(self) -> list[Vector]:
        """Signs of the training instances, one array a machine."""
        return [model.signs for model in self.models_]

    @property
    def objectives_(self) -> list[list[float]]:
        """The objective after every round, one list a machine."""
        return [model.objectives for model in self.models_]

    def _train(self, evidence: Gram, sign: Vector) -> _Machine:
        offsets = evidence.row_offsets
        of_bag = np.repeat(sign, np.diff(offsets))
        signs, objectives, start = of_bag, list[float](), None
        for _ in range(self.max_iter):
            expansion = fit_svc(evidence, signs, self.C, start=start)
            scores = evidence.apply(expansion)
            objectives.append(objective(expansion, scores, signs, self.C))
            new = _relabelled(scores, of_bag, offsets)
            if np.array_equal(new, signs):
                return _Machine(expansion, signs, objectives, converged=True)
            start = np.flatnonzero((expansion.coef != 0) | (new != signs))
            signs = new
        self._warn()
        return _Machine(expansion, signs, objectives, converged=False)


def _relabelled(scores: Vector, of_bag: Vector, offsets: kernels.Index) -> Vector:
    """Signs of scores in positive bags, +1 for the highest of a bag at least, and -1 in negative bags."""
    positive = scores > 0
    positive[kernels.first_highest(scores, offsets)] = True
    return np.where(positive & (of_bag > 0), 1.0, -1.0)


def objective(expansion: Expansion, scores: Vector, signs: Vector, C: float) -> float:
    """``|w|^2 / 2 + C sum max(0, 1 - y f)`` of scores ``f = K coef + b``."""
    norm = expansion.coef @ (scores - expansion.intercept)
    return float(norm / 2 + C * np.maximum(0.0, 1.0 - signs * scores).sum())
