"""Cross-validation: many methods, the same folds, one table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from baggraph.data._fingerprint import fingerprint
from baggraph.data.bags import Bags
from baggraph.data.results import ResultTable
from baggraph.data.stacked import AbstractStacked
from baggraph.errors import BagWarning, ParameterError, closest, name_some
from baggraph.evaluation._division import divide, places, visible_and_tested
from baggraph.evaluation._provenance import provenance, rows_of
from baggraph.evaluation._running import Outcome, Pair, Trial
from baggraph.evaluation._tasks import task_of
from baggraph.evaluation.metrics import metrics_for

__all__ = ["cross_validate"]

SETTINGS = ("transductive", "inductive")
Progress = Callable[[int, int, str], None]


def cross_validate(
    methods: Mapping[str, Any],
    bags: Bags,
    *,
    folds: int = 10,
    repeats: int = 10,
    splits: Any = None,
    metrics: Iterable[str] | None = None,
    setting: str = "transductive",
    task: str | None = None,
    dataset: str | None = None,
    n_jobs: int | None = 1,
    random_state: int = 0,
    progress: Progress | None = None,
) -> ResultTable:
    """Score methods on the same folds; every row of the table is one score of one method on one fold.

    Parameters
    ----------
    methods : mapping of name to estimator or Grid
        One with :meth:`~baggraph.data.stacked.AbstractStacked.posteriors` is trained on all folds at once, one of
        kernels slices a table that is computed once, every other one is fitted fold by fold.
    bags
        With labels; bags without one are tested by no fold.
    folds, repeats
        Stratified folds, where ``splits`` are not given.
    splits : (R, B) integers or a name, optional
        As in ``bags.splits``; a name is that of published ones.
    metrics
        Names of ``baggraph.evaluation.metrics.METRICS``; default, all of the task.
    setting
        ``"transductive"``: instances of tested bags may be seen in training, as by kernels, scalers and graphs; their
        labels never.  ``"inductive"``: nothing of tested bags is.
    task
        ``"classification"`` or ``"regression"``, where the methods do not tell.
    dataset
        Name of the data set; default, that of the bags.
    n_jobs
        Processes for methods that are not trained as a stack; -1 for one a core.  The scores do not depend on it.
    random_state
        Seed of the folds.
    progress
        Called with folds done, folds in all, and the name of the method.

    Returns
    -------
    ResultTable
        A task that fails leaves NaN and its traceback in the table, and a warning.

    Examples
    --------
    >>> from baggraph import datasets
    >>> from baggraph.baselines import MajorityClassifier, OneNumberClassifier
    >>> methods = {"majority": MajorityClassifier(), "bag size": OneNumberClassifier(number="size")}
    >>> table = cross_validate(methods, datasets.load("digits-bags"), folds=5, repeats=1, metrics=["accuracy"])
    >>> table.summary("accuracy")["mean"].round(2).to_dict()
    {('digits-bags', 'majority'): 0.5, ('digits-bags', 'bag size'): 0.55}
    """
    if setting not in SETTINGS:
        remedy = closest(str(setting), SETTINGS)
        raise ParameterError("cross_validate", expected="a setting", got=repr(setting), remedy=remedy)
    if not isinstance(methods, Mapping) or not methods:
        got, remedy = f"a {type(methods).__name__}", 'pass {"mine": estimator}'
        raise ParameterError("cross_validate", expected="methods by name", got=got, remedy=remedy)
    task = task_of(methods.values(), bags, task)
    scores = metrics_for(task, metrics)
    division = divide(bags, splits, folds, repeats, random_state)
    believe = any(metric.needs in ("probabilities", "noise") for metric in scores)
    trial = Trial(bags, setting == "transductive", task == "classification", believe)
    plan = _Plan(trial, dict(methods), visible_and_tested(bags, division))
    known = {"task": task, "dataset": dataset or str(bags.metadata.get("name", "bags")), "setting": setting}
    known["data_sha256"] = fingerprint(bags)
    where = places(division)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in methods}
    for name, numbers, outcomes in plan.run(n_jobs, progress):
        origin = known | provenance(name, methods[name], division, setting)
        for number, outcome in zip(numbers, outcomes, strict=True):
            visible, tested = plan.pairs[number]
            counts = {"n_train": len(visible), "n_test": len(tested)}
            rows[name] += rows_of(origin | where[number] | counts, outcome, scores, bags.y[tested])
    table = ResultTable.from_rows(row for part in rows.values() for row in part)
    _warn_of_failures(table)
    return table


def _warn_of_failures(table: ResultTable) -> None:
    if len(table.failed):
        last = str(table.failed.rows["error"][0]).strip().splitlines()[-1]
        got = f"failures of {name_some(table.failed.names('method'))}, the first of them {last!r}"
        remedy = "their rows are NaN; table.failed has the tracebacks"
        warnings.warn(f"cross_validate: expected a score from every fold, got {got}; {remedy}", BagWarning, 3)


@dataclass(frozen=True)
class _Plan:
    """All methods on all pairs, and the order of work."""

    trial: Trial
    methods: dict[str, Any]
    pairs: list[Pair]

    def run(self, n_jobs: int | None, progress: Progress | None) -> Iterator[tuple[str, list[int], list[Outcome]]]:
        """What became of parts of the work, as they end."""
        done, total = 0, len(self.methods) * len(self.pairs)
        for name, where, outcomes in self._parts(n_jobs):
            done += len(where)
            if progress is not None:
                progress(done, total, name)
            yield name, where, outcomes

    def _parts(self, n_jobs: int | None) -> Iterator[tuple[str, list[int], list[Outcome]]]:
        everywhere = list(range(len(self.pairs)))
        stacks = [name for name, method in self.methods.items() if self.trial.transductive and is_stack(method)]
        for name in stacks:  # here, where the accelerator is
            yield name, everywhere, self.trial.run(self.methods[name], self.pairs)
        workers = joblib.effective_n_jobs(n_jobs)
        chunks = [part.tolist() for part in np.array_split(everywhere, min(workers, len(everywhere)))]
        jobs = [(name, part) for name in self.methods if name not in stacks for part in chunks]
        if workers == 1:
            yield from ((name, part, self._one(name, part)) for name, part in jobs)
            return
        found = joblib.Parallel(n_jobs=workers, return_as="generator")(joblib.delayed(self._one)(*job) for job in jobs)
        yield from ((name, part, outcomes) for (name, part), outcomes in zip(jobs, found, strict=True))

    def _one(self, name: str, part: list[int]) -> list[Outcome]:
        return self.trial.run(self.methods[name], [self.pairs[number] for number in part])


def is_stack(method: Any) -> bool:
    """Whether a method, or that of a grid, is trained on all folds at once."""
    return isinstance(getattr(method, "estimator", None) if hasattr(method, "run_in") else method, AbstractStacked)
