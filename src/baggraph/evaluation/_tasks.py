"""Whether methods are to be scored as classifiers or as regressors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from baggraph.data.bags import Bags
from baggraph.data.splits import MOST_CLASSES
from baggraph.errors import ParameterError, closest

TASKS = ("classification", "regression")


def task_of(methods: Iterable[Any], bags: Bags, asked: str | None = None) -> str:
    """The task that was asked for, or that the methods tell, or else the labels.

    >>> from baggraph.baselines import MeanRegressor
    >>> task_of([MeanRegressor()], Bags([[0.0]], [0, 1], [1]))
    'regression'
    """
    if asked is not None:
        if asked not in TASKS:
            remedy = closest(str(asked), TASKS)
            raise ParameterError("cross_validate", expected="a task", got=repr(asked), remedy=remedy)
        return asked
    told = {_told(method) for method in methods} - {None}
    if len(told) > 1:
        got = "classifiers and regressors"
        raise ParameterError("cross_validate", expected="methods of one kind", got=got, remedy="score them apart")
    return str(told.pop()) if told else task_of_labels(bags)


def _told(method: Any) -> str | None:
    estimator = method.estimator if hasattr(method, "run_in") else method
    if not hasattr(estimator, "__sklearn_tags__"):
        return None
    return TASKS[0] if is_classifier(estimator) else TASKS[1] if is_regressor(estimator) else None


def task_of_labels(bags: Bags) -> str:
    """Text, booleans and integers are classes; so are floats that are whole numbers of at most 20 kinds.

    >>> task_of_labels(Bags([[0.0], [0.0]], [0, 1, 2], [0.5, None]))
    'regression'
    """
    labels = bags.y[bags.labelled]
    if labels.ndim == 2:
        return TASKS[1]
    real = labels.dtype.kind == "f" and ((labels % 1).any() or len(np.unique(labels)) > MOST_CLASSES)
    return TASKS[1] if real else TASKS[0]
