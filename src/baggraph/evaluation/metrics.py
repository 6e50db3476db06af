"""Scores of posteriors against the truth; bags without a label are skipped.

Every function takes labels ``y`` (B,) or (B, t) and a :class:`~baggraph.data.posterior.Posterior` over the same bags,
and returns a float: NaN where the score is not defined, as the AUC of bags of one class.  ``METRICS`` lists them by
name, with the direction that is better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from baggraph.data.posterior import Posterior
from baggraph.errors import ParameterError, closest
from baggraph.evaluation._classification import (
    accuracy,
    auc,
    balanced_accuracy,
    brier,
    expected_calibration_error,
    f1,
    reliability,
)
from baggraph.evaluation._regression import (
    coverage,
    mean_absolute_error,
    mean_absolute_percentage_error,
    normalised_deviation,
    normalised_deviation_as_published,
    r2,
    root_mean_squared_error,
    width,
)
from baggraph.evaluation._truth import negative_log_likelihood

__all__ = [
    "METRICS",
    "Metric",
    "accuracy",
    "auc",
    "balanced_accuracy",
    "brier",
    "coverage",
    "expected_calibration_error",
    "f1",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "metrics_for",
    "negative_log_likelihood",
    "normalised_deviation",
    "normalised_deviation_as_published",
    "r2",
    "reliability",
    "root_mean_squared_error",
    "width",
]


@dataclass(frozen=True)
class Metric:
    """A score by name.

    Parameters
    ----------
    name
        As it stands in tables.
    function
        Takes labels and a posterior, returns a float.
    task
        ``"classification"``, ``"regression"`` or ``"both"``.
    larger_is_better
        False for errors; None where there is no better, as of the width of intervals.
    needs
        What a method must give: ``"decisions"``, ``"probabilities"``, ``"targets"`` or ``"noise"``.
    undefined
        Why the score of a method that gives all that may still be NaN.
    """

    name: str
    function: Callable[[Any, Posterior], float]
    task: str
    larger_is_better: bool | None
    needs: str
    undefined: str = "no tested bag has a label"

    def __call__(self, y: Any, posterior: Posterior) -> float:
        """The score of a posterior over bags with labels ``y``."""
        return self.function(y, posterior)


_CLASSES, _TARGETS = "classification", "regression"
_LIST = (
    Metric("accuracy", accuracy, _CLASSES, True, "decisions"),
    Metric("balanced accuracy", balanced_accuracy, _CLASSES, True, "decisions"),
    Metric("f1", f1, _CLASSES, True, "decisions", "the class is neither among the tested bags nor predicted"),
    Metric("auc", auc, _CLASSES, True, "probabilities", "a class is missing among the tested bags"),
    Metric("nll", negative_log_likelihood, "both", False, "probabilities"),
    Metric("brier", brier, _CLASSES, False, "probabilities"),
    Metric("ece", expected_calibration_error, _CLASSES, False, "probabilities"),
    Metric("rmse", root_mean_squared_error, _TARGETS, False, "targets"),
    Metric("mae", mean_absolute_error, _TARGETS, False, "targets"),
    Metric("mape", mean_absolute_percentage_error, _TARGETS, False, "targets", "a label is 0"),
    Metric("nd", normalised_deviation, _TARGETS, False, "targets", "all labels are 0"),
    Metric("nd as published", normalised_deviation_as_published, _TARGETS, False, "targets", "all predictions are 0"),
    Metric("r2", r2, _TARGETS, True, "targets", "the tested bags have equal labels, or are fewer than two"),
    Metric("coverage", coverage, _TARGETS, None, "noise"),
    Metric("width", width, _TARGETS, None, "noise"),
)
METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _LIST})


def metrics_for(task: str, names: Iterable[str] | None = None) -> list[Metric]:
    """The metrics of a task (``"classification"`` or ``"regression"``), or those of these names.

    >>> [metric.name for metric in metrics_for("regression")]
    ['nll', 'rmse', 'mae', 'mape', 'nd', 'r2', 'coverage', 'width']
    """
    fitting = {name: metric for name, metric in METRICS.items() if metric.task in (task, "both")}
    if names is None:
        return [metric for name, metric in fitting.items() if name != "nd as published"]
    asked = [names] if isinstance(names, str) else list(names)
    for name in asked:
        if name not in fitting:
            remedy = closest(str(name), fitting)
            raise ParameterError("metrics", expected=f"a metric of {task}", got=repr(name), remedy=remedy)
    return [fitting[name] for name in dict.fromkeys(asked)]
