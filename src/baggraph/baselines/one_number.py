"""One number a bag, and nothing else: its size, or the largest norm of its instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from baggraph.baselines._classifier import BagClassifier, Index
from baggraph.baselines._input import Vector, check_choice, dense_rows
from baggraph.baselines._regressor import BagRegressor
from baggraph.baselines._stump import best_threshold
from baggraph.data.bags import Bags

NUMBERS = ("largest norm", "size")


@dataclass(frozen=True)
class _Stump:
    direction: float
    threshold: float


class OneNumberClassifier(BagClassifier):
    """One threshold on the size of a bag, or on the largest Euclidean norm of its instances, as they are.

    The threshold and its direction err least on the training bags.  A method that does no better has learned nothing
    of the instances.

    Parameters
    ----------
    number
        ``"size"`` or ``"largest norm"``.
    calibration_folds
        Inner folds that probabilities are fitted on; None does without.
    random_state
        Seed of the inner folds.

    Examples
    --------
    >>> model = OneNumberClassifier(number="size").fit(Bags(np.zeros((8, 1)), [0, 1, 2, 5, 8], [0, 0, 1, 1]))
    >>> model.predict([np.zeros((1, 1)), np.zeros((9, 1))]).tolist()
    [0, 1]
    """

    def __init__(self, *, number: str = "size", calibration_folds: int | None = 5, random_state: int = 0) -> None:
        self.number = number
        self.calibration_folds = calibration_folds
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_choice(self._stage, "number", self.number, NUMBERS)

    def _anchor(self, bags: Bags) -> str:
        del bags  # nothing but labels decides
        return self.number

    def _evidence(self, anchor: str, bags: Bags) -> Vector:
        return number_of(anchor, bags)

    def _part(self, evidence: Vector, rows: Index, columns: Index) -> Vector:
        del columns
        return evidence[rows]

    def _train(self, evidence: Vector, sign: Vector) -> _Stump:
        both = [(best_threshold(direction * evidence, sign), direction) for direction in (1.0, -1.0)]
        (threshold, _), direction = min(both, key=lambda found: found[0][1])
        return _Stump(direction, threshold)

    def _score(self, model: _Stump, evidence: Vector) -> Vector:
        return model.direction * evidence - model.threshold


class OneNumberRegressor(BagRegressor):
    """Least squares on the logarithm of one more than the size of a bag, or of the largest norm of its instances.

    Parameters
    ----------
    number
        ``"size"`` or ``"largest norm"``.
    link
        The scale that targets are fitted on: ``"identity"``, ``"log"``, or ``"logit"`` for shares.

    Examples
    --------
    >>> model = OneNumberRegressor(number="size").fit(Bags(np.zeros((4, 1)), [0, 1, 4], [1.0, 2.0]))
    >>> model.predict([np.zeros((7, 1))]).round(6).tolist()
    [3.0]
    """

    def __init__(self, *, number: str = "size", link: str = "identity") -> None:
        self.number = number
        self.link = link

    def _check_parameters(self) -> None:
        check_choice(self._stage, "number", self.number, NUMBERS)

    def _learn(self, bags: Bags, targets: Any) -> None:
        self.coef_ = np.linalg.lstsq(self._design(bags), targets, rcond=None)[0]

    def _estimate(self, bags: Bags) -> Any:
        return self._design(bags) @ self.coef_

    def _design(self, bags: Bags) -> Any:
        return np.column_stack([np.ones(len(bags)), np.log1p(number_of(self.number, bags))])


def number_of(number: str, bags: Bags) -> Vector:
    """Size or largest norm of every bag, (B,).

    >>> number_of("largest norm", Bags(np.array([[3.0, 4.0], [1.0, 0.0]]), [0, 2])).tolist()
    [5.0]
    """
    if number == "size":
        return bags.sizes.astype(np.float64)
    return np.maximum.reduceat(np.linalg.norm(dense_rows(bags), axis=1), bags.offsets[:-1])
