"""A table of results to a verdict: which methods differ, and by how much, on each data set and over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from baggraph.data.results import ResultTable
from baggraph.errors import InvalidBagsError, ParameterError, closest
from baggraph.evaluation import _comparing
from baggraph.evaluation.metrics import METRICS
from baggraph.evaluation.ranks import FriedmanTest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """What :func:`compare` found; ``str`` of it is the text.

    Parameters
    ----------
    metric, larger_is_better, level
        What was compared, which direction is better, and the level of tests and intervals.
    scores
        A row a data set and method: ``mean``, its interval from ``low`` to ``high``, ``n`` folds.
    ranks
        A row a method: ``mean_rank`` and ``median_rank`` over the data sets that all methods were scored on.
    differences
        A row a data set and pair: mean ``difference`` of ``method`` and ``other``, interval, ``p`` of the corrected
        t-test, ``p_holm`` corrected for all rows.
    pairs
        A row a pair over the data sets: ``wins``, ``ties``, ``losses`` by mean, ``p_wilcoxon``, ``p_holm``,
        ``p_nemenyi``; empty of a single data set.
    friedman, critical_difference
        None of a single data set; the difference also where ``against`` is given, as it is one of all pairs.

    """

    metric: str
    larger_is_better: bool
    level: float
    scores: pd.DataFrame
    ranks: pd.DataFrame
    differences: pd.DataFrame
    pairs: pd.DataFrame
    friedman: FriedmanTest | None
    critical_difference: float | None

    def __str__(self) -> str:
        return _comparing.text(self)

    def to_json(self) -> str:
        """All tables, for machines."""
        return _comparing.as_json(self)


def compare(table: Any, metric: str | None = None, *, against: str | None = None, alpha: float = 0.05) -> Comparison:
    """Compare the methods of a table in one metric.

    On a data set, folds are paired, and a t-test corrected for shared training bags says whether two methods differ.
    Over data sets, methods are ranked: Friedman's test asks whether any differ, Nemenyi's and Wilcoxon's tests which.

    Parameters
    ----------
    table : ResultTable
        As :func:`~baggraph.cross_validate` returns it, or several of them with :meth:`ResultTable.concat`.
    metric
        Default: the only one of the table, or else its first one of which more or less is better.
    against
        Compare the others with this method alone: fewer tests, so less correction.
    alpha
        Level of tests; intervals cover 1 - alpha.

    Examples
    --------
    >>> from baggraph import cross_validate, datasets
    >>> from baggraph.baselines import MajorityClassifier, SummarySVM
    >>> methods = {"majority": MajorityClassifier(), "summary": SummarySVM()}
    >>> table = cross_validate(methods, datasets.load("digits-bags"), folds=5, repeats=2, metrics=["accuracy"])
    >>> found = compare(table)
    >>> found.differences[["method", "other", "difference", "p"]].round(3).values.tolist()
    [['majority', 'summary', -0.197, 0.002]]

    """
    if not isinstance(table, ResultTable):
        got, remedy = f"a {type(table).__name__}", "pass what cross_validate returned"
        raise InvalidBagsError("compare", expected="a ResultTable", got=got, remedy=remedy)
    name = _metric(table, metric)
    methods = table.filter(metric=name).names("method")
    if len(methods) < 2:
        remedy = "score several on the same folds"
        raise InvalidBagsError("compare", expected="at least 2 methods", got=str(len(methods)), remedy=remedy)
    if against is not None and against not in methods:
        remedy = closest(against, methods)
        raise ParameterError("compare", expected="a method of the table", got=repr(against), remedy=remedy)
    if not 0 < alpha < 1:
        raise ParameterError("compare", expected="alpha between 0 and 1", got=repr(alpha), remedy="pass 0.05")
    better = bool(METRICS[name].larger_is_better)
    folds = _comparing.paired_folds(table, name)
    scores = _comparing.scores(folds, 1 - alpha)
    over = _comparing.over_sets(scores, better, against, alpha)
    differences = _comparing.differences(folds, against, 1 - alpha)
    return Comparison(name, better, alpha, scores, over.ranks, differences, over.pairs, over.friedman, over.critical)


def _metric(table: ResultTable, asked: str | None) -> str:
    """The metric that was asked for, or the first that has a better direction."""
    present = [name for name in table.names("metric") if name in METRICS]
    usable = [name for name in present if METRICS[name].larger_is_better is not None]
    if asked is None and usable:
        return str(usable[0])
    if asked not in usable:
        got, remedy = repr(asked), closest(str(asked), usable) if usable else "score one with cross_validate"
        expected = "a metric of the table of which more or less is better"
        raise ParameterError("compare", expected=expected, got=got, remedy=remedy)
    return str(asked)
