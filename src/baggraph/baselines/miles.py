"""MILES: bags as similarities to all training instances, and a sparse linear machine."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog

from baggraph.baselines import _kernels as kernels
from baggraph.baselines._gram import Gram, GramClassifier
from baggraph.baselines._input import Matrix, Vector, check_positive
from baggraph.baselines._svc import Expansion
from baggraph.data.bags import Bags
from baggraph.errors import BagError

FEASIBLE = 1e-6
CHUNK = 60  # constraints that join at a time


class MILES(GramClassifier):
    """Multiple-instance learning via embedded instance selection: a bag becomes the vector

    ``s(A)_k = max_{a in A} exp(-gamma |a - x_k|^2)``  over all training instances x_k,

    and a linear machine with the 1-norm as its price picks the few instances that matter:

    ``min_{w, b, xi >= 0}  sum_k |w_k| + C sum_A xi_A``  with  ``y_A (w . s(A) + b) >= 1 - xi_A``,

    a linear program, solved exactly (Chen, Bi & Wang 2006, MILES, IEEE TPAMI; its sigma^2 is 1 / gamma, and its
    lambda 1 / C with both classes priced alike).

    ``gram(bags)`` are the vectors, (B, N).

    Parameters
    ----------
    gamma
        A number, or ``"scale"``, one over the sum of the variances of the features.
    C
        Price of errors.
    scaling
        Kind of :class:`~baggraph.data.scaling.InstanceScaler`, fitted on the training bags.
    calibration_folds
        Inner folds that probabilities are fitted on; None does without.
    random_state
        Seed of the inner folds.

    Attributes
    ----------
    selected_ : list of arrays
        Positions of the training instances with a weight; one array, or for more than two classes one a class.

    Examples
    --------
    >>> bags = Bags.from_list([[[0.1], [3.0]], [[0.2], [2.9]], [[0.0], [0.3]], [[0.1], [0.2]]], y=[1, 1, 0, 0])
    >>> MILES(C=10.0).fit(bags).predict([[[0.3]], [[2.8], [0.1]]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        *,
        gamma: float | str = "scale",
        C: float = 1.0,
        scaling: str = "auto",
        calibration_folds: int | None = 5,
        random_state: int = 0,
    ) -> None:
        self.gamma = gamma
        self.C = C
        self.scaling = scaling
        self.calibration_folds = calibration_folds
        self.random_state = random_state

    @property
    def selected_(self) -> list[kernels.Index]:
        """Training instances with a weight, one array a machine."""
        return [np.flatnonzero(model.coef) for model in self.models_]

    def _check_parameters(self) -> None:
        kernels.check_kernel(self._stage, "rbf", self.gamma)
        check_positive(self._stage, C=self.C)

    def _anchor(self, bags: Bags) -> kernels.Rows:
        return kernels.Rows.of(bags, self.scaling, "rbf", self.gamma)

    def _evidence(self, anchor: kernels.Rows, bags: Bags) -> Gram:
        distances = kernels.nearest_in_bag(anchor.others(bags), anchor)
        return Gram(np.exp(-anchor.kernel.gamma * distances), np.arange(len(bags) + 1), anchor.offsets)

    def _train(self, evidence: Gram, sign: Vector) -> Expansion:
        return sparse_machine(evidence.values, sign, self.C)

    def _score(self, model: Expansion, evidence: Gram) -> Vector:
        return evidence.apply(model)


def sparse_machine(vectors: Matrix, sign: Vector, C: float) -> Expansion:
    """The linear machine (n, d) of least ``sum |w| + C sum xi``, from the dual linear program

    ``max_a sum a``  with  ``|sum_i a_i y_i v_ik| <= 1``,  ``sum_i a_i y_i = 0``,  ``0 <= a <= C``,

    which has a variable a bag; weights are the prices of its constraints.  Few constraints bind: the program is solved
    with some, those that its solution breaks join them, and so on until it breaks none.

    >>> sparse_machine(np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([-1.0, 1.0]), 10.0).coef.tolist()
    [2.0, 0.0]
    """
    signed = vectors.T * sign
    broken = np.abs(signed.sum(axis=1))
    chosen = np.zeros(len(signed), dtype=bool)
    while (broken > FEASIBLE).any():
        worst = np.argsort(-broken, kind="stable")[:CHUNK]
        chosen[worst[broken[worst] > FEASIBLE]] = True
        found = _solved(signed[chosen], sign, C)
        broken = np.where(chosen, 0.0, np.abs(signed @ found.x) - 1)
    coef = np.zeros(len(signed))
    if not chosen.any():  # all vectors are zero
        return Expansion(coef, float(np.sign(sign.sum())))
    prices = -found.ineqlin.marginals
    coef[chosen] = prices[: chosen.sum()] - prices[chosen.sum() :]
    return Expansion(coef, float(-found.eqlin.marginals[0]))


def _solved(signed: Matrix, sign: Vector, C: float) -> Any:
    found = linprog(
        -np.ones(len(sign)),
        A_ub=np.vstack([signed, -signed]),
        b_ub=np.ones(2 * len(signed)),
        A_eq=sign[None],
        b_eq=[0.0],
        bounds=(0.0, C),
        method="highs-ds",
        options={"presolve": False},  # which takes longer than the rest
    )
    if found.status != 0:
        remedy = "lower C, or scale the features"
        raise BagError("MILES", expected="a solved linear program", got=found.message, remedy=remedy)
    return found
