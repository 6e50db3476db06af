"""Bags as single vectors: statistics of their instances, feature by feature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.errors import ParameterError, closest

Statistic = Callable[[NDArray[Any]], NDArray[Any]]
STATISTICS: dict[str, Statistic] = {
    "mean": lambda block: block.mean(axis=0, dtype=np.float64),
    "min": lambda block: block.min(axis=0),
    "max": lambda block: block.max(axis=0),
    "std": lambda block: block.std(axis=0, dtype=np.float64),
}


def summarise(bags: Bags, statistics: Sequence[str] = ("mean",)) -> NDArray[np.float64]:
    """Statistics of the instances of every bag side by side, shape (B, d * number of statistics).

    >>> bags = Bags(np.array([[1.0], [3.0], [5.0]]), [0, 2, 3])
    >>> summarise(bags, ["mean", "max"]).tolist()
    [[2.0, 3.0], [5.0, 5.0]]
    """
    if isinstance(statistics, str) or not len(statistics):
        got, remedy = repr(statistics), 'pass some, as in ["mean", "max"]'
        raise ParameterError("summarise", expected="a list of statistics", got=got, remedy=remedy)
    for name in statistics:
        if name not in STATISTICS:
            remedy = closest(name, STATISTICS)
            raise ParameterError("summarise", expected="a statistic", got=repr(name), remedy=remedy)
    chosen = [STATISTICS[name] for name in statistics]
    result = np.empty((len(bags), bags.n_features * len(chosen)))
    for position, bag in enumerate(bags):
        block = np.asarray(bag)
        result[position] = np.concatenate([statistic(block) for statistic in chosen])
    return result
