"""How far simple things get: a constant, one number a bag, and a real but plain method beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from baggraph.baselines import (
    DistributionRegression,
    MajorityClassifier,
    MeanRegressor,
    OneNumberClassifier,
    OneNumberRegressor,
    SummaryRidge,
    SummarySVM,
)
from baggraph.data.bags import Bags
from baggraph.data.splits import pairs, stratified_folds
from baggraph.evaluation._division import visible_and_tested
from baggraph.evaluation._running import Trial
from baggraph.evaluation.metrics import METRICS, Metric
from baggraph.evaluation.paired import corrected_t, ratio_of

FOLDS, REPEATS, MOST_REPEATS = 10, 2, 10
FEWEST_BAGS = 20
POWER = 0.8
N_COMPONENTS = 100  # random features: the audit is to take seconds


@dataclass(frozen=True)
class Rules:
    """Losses, fold by fold, of simple methods on the same folds: the share of errors, or the RMSE.

    ``strong`` and ``other`` are two plain methods on bag summaries, the better one first.
    """

    bags: Bags
    division: NDArray[np.int16]
    classify: bool
    test_to_train: float
    constant: NDArray[np.float64]
    strong: NDArray[np.float64]
    other: NDArray[np.float64]
    splits: str

    @classmethod
    def of(cls, bags: Bags, classify: bool, random_state: int) -> Rules | None:
        """Rules of labelled bags, on published splits where there are some; None where bags are too few."""
        bags = bags.replace(graph=None)
        if len(bags) < FEWEST_BAGS or (not classify and bags.y.ndim > 1):
            return None
        division, name = division_of(bags, classify, random_state)
        if division is None:
            return None
        sides = visible_and_tested(bags, division)
        ratio = ratio_of([len(tested) for _, tested in sides], [len(visible) for visible, _ in sides])
        methods: list[Any] = [MeanRegressor(), SummaryRidge(), DistributionRegression(n_components=N_COMPONENTS)]
        if classify:
            methods = [MajorityClassifier(), SummarySVM(), SummarySVM(kernel="linear", C=1.0)]
        constant, strong, other = (_losses(method, bags, division, classify) for method in methods)
        if constant is None or strong is None or other is None:
            return None
        if other.mean() < strong.mean():  # so that no rule looks good beside a method that failed
            strong, other = other, strong
        return cls(bags, division, classify, ratio, constant, strong, other, name)

    def of_number(self, x: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Losses of a rule on one number a bag, not negative: a threshold, or a line in its logarithm."""
        single = self.bags.replace(instances=x[:, None], offsets=np.arange(len(x) + 1), **_BARE)
        rule: Any = OneNumberRegressor(number="largest norm")
        if self.classify:
            rule = OneNumberClassifier(number="largest norm", calibration_folds=None)
        return _losses(rule, single, self.division, self.classify)

    def interval(self, worse: Any, better: Any, level: float = 0.95) -> tuple[float, float]:
        """Corrected interval of the mean difference of two losses over resampled folds (Nadeau & Bengio 2003)."""
        found = corrected_t(worse - better, test_to_train=self.test_to_train, level=level)
        return found.low, found.high

    def _error(self, difference: NDArray[np.float64]) -> float:
        return float(np.sqrt((1 / len(difference) + self.test_to_train) * difference.var(ddof=1)))

    @property
    def detectable(self) -> float:
        """Smallest true difference of two losses that a corrected test at 5 % would find four times in five.

        Of the plain method from the other one or from the constant, whichever goes along with it better.
        """
        degrees = len(self.strong) - 1
        error = min(self._error(self.strong - weaker) for weaker in (self.other, self.constant))
        return float(student.ppf(0.975, degrees) + student.ppf(POWER, degrees)) * error

    def say(self, loss: Any) -> str:
        """A loss in words.

        >>> Rules(None, None, True, 0.1, None, None, None, "").say(np.array([0.2]))
        '80.0 % right'
        """
        mean = float(np.mean(loss))
        return f"{100 * (1 - mean):.1f} % right" if self.classify else f"RMSE {mean:.4g}"

    def gain(self, difference: float) -> str:
        """A difference of two losses in words.

        >>> Rules(None, None, True, 0.1, None, None, None, "").gain(0.081)
        '8.1 points'
        """
        return f"{100 * difference:.1f} points" if self.classify else f"{difference:.4g} (RMSE)"


_BARE: dict[str, Any] = {
    "feature_names": None,
    "instance_names": None,
    "instance_y": None,
    "instance_info": {},
    "bag_info": {},
    "coords": None,
}


def division_of(bags: Bags, classify: bool, random_state: int) -> tuple[NDArray[np.int16] | None, str]:
    """Published splits that methods can be trained on, or stratified folds; None where a class is too small."""
    for name, division in bags.splits.items():
        if _trains(bags, division[:MOST_REPEATS], classify):
            return division[:MOST_REPEATS], f"the splits {name!r}"
    folds = FOLDS
    if classify:
        folds = min(FOLDS, int(np.unique(bags.y, return_counts=True)[1].min()))
        if folds < 3:  # a class of two bags cannot be trained on and tested and calibrated
            return None, ""
    made = stratified_folds(bags.y, folds=folds, repeats=REPEATS, random_state=random_state)
    return made, f"{REPEATS} × {folds} folds"


def _trains(bags: Bags, division: NDArray[np.int16], classify: bool) -> bool:
    """Whether there are folds to compare, and every one leaves two bags, and bags of two classes, to train on."""
    sides = list(pairs(division))
    few = 2 if classify else 1
    return len(sides) > 1 and all(len(train) > 1 and len(np.unique(bags.y[train])) >= few for train, _ in sides)


def scores_of(method: Any, bags: Bags, division: Any, metric: Metric) -> NDArray[np.float64] | None:
    """Score of every fold; None where one fails."""
    trial = Trial(bags, transductive=True, classify=metric.task == "classification", believe=False)
    sides = visible_and_tested(bags, division)
    answers = [outcome.answer for outcome in trial.run(method, sides)]
    found = [a.score(metric, bags.y[tested])[0] for a, (_, tested) in zip(answers, sides, strict=True) if a is not None]
    return np.array(found) if len(found) == len(sides) else None


def _losses(method: Any, bags: Bags, division: Any, classify: bool) -> NDArray[np.float64] | None:
    found = scores_of(method, bags, division, METRICS["accuracy" if classify else "rmse"])
    return 1 - found if classify and found is not None else found
