"""Grid: parameters chosen inside the training bags, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone

from baggraph.data.splits import pairs as pairs_of
from baggraph.data.splits import stratified_folds
from baggraph.errors import ParameterError, closest
from baggraph.evaluation._running import Outcome, Pair, Trial
from baggraph.evaluation.metrics import METRICS, Metric, metrics_for

__all__ = ["Grid"]


@dataclass(frozen=True)
class Grid:
    """A method whose parameters are chosen by inner folds of the training bags of every outer fold.

    Every combination is scored on the same inner folds, which see visible labels alone; the best mean wins, of equals
    the first.  It is then fitted on all training bags.  The table says what was chosen (column ``chosen``).

    Parameters
    ----------
    estimator
        Any method that :func:`~baggraph.cross_validate` takes.
    parameters
        Values to try, by name of the parameter; or a sequence of such mappings, one after the other, where values of
        one parameter belong to some values of another.
    folds
        Number of inner folds.
    metric
        Name of the score to choose by; default accuracy, or rmse for real targets.
    random_state
        Seed of the inner folds.

    Examples
    --------
    >>> from baggraph.baselines import SummarySVM
    >>> grid = Grid(SummarySVM(), {"C": [1.0, 10.0], "kernel": ["rbf", "linear"]})
    >>> len(grid.candidates), grid.candidates[1]
    (4, {'C': 1.0, 'kernel': 'linear'})
    >>> widths = [{"scaling": ["standard"], "gamma": [0.1, 0.4]}, {"scaling": ["minmax"], "gamma": [2.0]}]
    >>> Grid(SummarySVM(), widths).candidates[2]
    {'scaling': 'minmax', 'gamma': 2.0}

    """

    estimator: Any
    parameters: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]
    folds: int = 5
    metric: str | None = None
    random_state: int = 0
    candidates: list[dict[str, Any]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = self.estimator.get_params()
        parts = [self.parameters] if isinstance(self.parameters, Mapping) else list(self.parameters)
        if not parts:
            raise ParameterError("grid", expected="values to try", got="none", remedy='pass {"C": [1.0, 10.0]}')
        for name, values in [item for part in parts for item in part.items()]:
            if name not in known:
                got, remedy = repr(name), closest(name, known)
                raise ParameterError("grid", expected="a parameter of the method", got=got, remedy=remedy)
            if isinstance(values, str) or not len(values):
                got, remedy = f"{name}={values!r}", "pass a list, as in [1.0, 10.0]"
                raise ParameterError("grid", expected="values to try", got=got, remedy=remedy)
        if self.metric is not None:
            self._check_metric()
        found = [dict(zip(part, values, strict=True)) for part in parts for values in product(*part.values())]
        object.__setattr__(self, "candidates", found)

    def _check_metric(self) -> None:
        metric = METRICS.get(str(self.metric))
        if metric is None or metric.larger_is_better is None:
            directed = [name for name, known in METRICS.items() if known.larger_is_better is not None]
            got, remedy = repr(self.metric), closest(str(self.metric), directed)
            raise ParameterError("grid", expected="a score of which more, or less, is better", got=got, remedy=remedy)

    def run_in(self, trial: Trial, pairs: Sequence[Pair]) -> list[Outcome]:
        """Choose for every pair, then train and ask what was chosen."""
        scores, seconds = self._scores(trial, pairs)
        outcomes: dict[int, Outcome] = {}
        best = scores.argmax(axis=0)
        for number, settings in enumerate(self.candidates):
            here = [p for p in range(len(pairs)) if best[p] == number and scores[number, p] > -np.inf]
            for p, outcome in zip(here, trial.run(self._with(settings), [pairs[p] for p in here]), strict=True):
                outcomes[p] = replace(outcome, chosen=settings, seconds=outcome.seconds + seconds[p])
        nothing = "grid: expected a score of some candidate on inner folds, got none; try one of them without a grid"
        return [outcomes.get(p, Outcome(None, nothing, seconds[p])) for p in range(len(pairs))]

    def _with(self, settings: Mapping[str, Any]) -> Any:
        return clone(self.estimator).set_params(**settings)

    def _scores(self, trial: Trial, pairs: Sequence[Pair]) -> tuple[Any, list[float]]:
        """Mean score on inner folds (candidates, pairs), larger is better, -inf for none; and seconds it took."""
        metric = self._metric_of(trial)
        inner = [self._inner(trial, visible) for visible, _ in pairs]
        flat = [pair for part in inner for pair in part]
        owner = np.repeat(np.arange(len(pairs)), [len(part) for part in inner])
        chooser = replace(trial, believe=metric.needs == "probabilities")
        scores, seconds = np.empty((len(self.candidates), len(pairs))), np.zeros(len(pairs))
        for row, settings in zip(scores, self.candidates, strict=True):
            outcomes = chooser.run(self._with(settings), flat)
            values = [self._value(trial, metric, outcome, pair) for outcome, pair in zip(outcomes, flat, strict=True)]
            row[:] = np.bincount(owner, values, len(pairs)) / np.bincount(owner, minlength=len(pairs))
            seconds += np.bincount(owner, [outcome.seconds for outcome in outcomes], len(pairs))
        sign = 1.0 if metric.larger_is_better else -1.0
        return np.where(np.isnan(scores), -np.inf, sign * scores), seconds.tolist()

    def _metric_of(self, trial: Trial) -> Metric:
        name = self.metric or ("accuracy" if trial.classify else "rmse")
        return metrics_for("classification" if trial.classify else "regression", [name])[0]

    def _inner(self, trial: Trial, visible: Any) -> list[Pair]:
        folds = stratified_folds(trial.bags.y[visible], folds=self.folds, repeats=1, random_state=self.random_state)
        return [(visible[train], visible[test]) for train, test in pairs_of(folds)]

    @staticmethod
    def _value(trial: Trial, metric: Metric, outcome: Outcome, pair: Pair) -> float:
        return np.nan if outcome.answer is None else outcome.answer.score(metric, trial.bags.y[pair[1]])[0]
