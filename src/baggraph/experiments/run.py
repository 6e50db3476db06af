"""Run recipes: plan, skip what is there, perform the rest, append."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from baggraph.data.results import ResultTable
from baggraph.errors import ParameterError, closest
from baggraph.experiments._adopt import take_over
from baggraph.experiments._ledger import Ledger
from baggraph.experiments._tasks import Task, bundled, keys, perform, plan
from baggraph.experiments.executors import Executor, Serial
from baggraph.experiments.recipe import TIERS, Recipe

__all__ = ["Progress", "results", "results_folder", "run"]


@dataclass
class Progress:
    """How far a run is, in repeats; the time left is that of repeats of the same kind, or of all, on average."""

    total: int
    done: int = 0
    last: Task | None = None
    begun: float = field(default_factory=time.monotonic)
    _seconds: dict[tuple[object, ...], list[float]] = field(default_factory=dict)
    _started: dict[Task, float] = field(default_factory=dict)
    _left: list[Task] = field(default_factory=list)
    _spent: float = 0.0

    def note(self, task: Task) -> None:
        """A task has ended."""
        self.done, self.last = self.done + len(task.repeats), task
        seconds = time.monotonic() - self._started.get(task, self.begun)
        self._seconds.setdefault(task.kind, []).append(seconds / len(task.repeats))
        self._spent += seconds
        if task in self._left:
            self._left.remove(task)

    def narrowed(self, task: Task, repeats: tuple[int, ...]) -> Task:
        """What is left of a task when others have done the rest."""
        smaller = replace(task, repeats=repeats)
        self.done += len(task.repeats) - len(repeats)
        self._left[self._left.index(task)] = smaller
        return smaller

    @property
    def seconds_left(self) -> float:
        """Of work that is left, over as many tasks as ran at once."""
        each = [seconds for part in self._seconds.values() for seconds in part]
        if not each:
            return float("nan")
        typical = float(np.mean(each))
        work = sum(len(t.repeats) * float(np.mean(self._seconds.get(t.kind, [typical]))) for t in self._left)
        at_once = max(1.0, self._spent / max(time.monotonic() - self.begun, 1e-9))
        return work / at_once


def results_folder(folder: Path, tier: str, recipe: Recipe) -> Path:
    """Where the rows of a recipe lie."""
    return Path(folder) / tier / recipe.name


def results(folder: Path, tier: str, recipe: Recipe) -> ResultTable:
    """The rows of a recipe as it now is; what an earlier version of it said stays in the folder, unread."""
    table = ResultTable.read(results_folder(folder, tier, recipe))
    return table.filter(recipe_sha256={key[3] for task in plan(recipe, tier, repeats=1) for key in keys(task)})


def run(
    recipes: Sequence[Recipe],
    folder: str | Path,
    *,
    tier: str = "short",
    only: Collection[str] = (),
    sets: Collection[str] = (),
    repeats: int | None = None,
    rows_from: str | Path | None = None,
    executor: Executor | None = None,
    progress: Callable[[Progress], None] | None = None,
    finished: Callable[[Recipe, ResultTable], None] | None = None,
) -> dict[str, ResultTable]:
    """Fill the tables of recipes, and return them by name.

    What is in the folder is not computed again.  A run that is stopped, or killed, loses the tasks in hand and goes on
    when it is started again; several runs may share the folder.

    Parameters
    ----------
    recipes
        See :func:`~baggraph.experiments.recipe.recipes`.
    folder
        Of all results; rows of a recipe lie in ``folder/tier/name``.
    tier
        ``"smoke"``, ``"short"`` or ``"full"``.
    only
        Names of methods; default, all.  Methods of their group run with them.
    sets
        Names of data sets; default, all.
    repeats
        At most so many repeats or splits; default, those of the tier.
    rows_from
        Another folder of results, whose rows of the same methods on the same folds are taken over first.
    executor
        Where tasks are performed; default :class:`~baggraph.experiments.executors.Serial`.
    progress
        Called after every task.
    finished
        Called with a recipe and its table when all its tasks are done.
    """
    if tier not in TIERS:
        raise ParameterError("reproduce", expected="a tier", got=repr(tier), remedy=closest(tier, TIERS))
    _check_names(recipes, only, sets)
    ledgers = {recipe.name: Ledger(results_folder(Path(folder), tier, recipe)) for recipe in recipes}
    if rows_from is not None:
        other = ResultTable.read(rows_from)
        for recipe in recipes:
            take_over(recipe, tier, ledgers[recipe.name], other)
    planned = [task for recipe in recipes for task in plan(recipe, tier, only, sets, repeats)]
    waiting = bundled([task for task in planned if not ledgers[task.recipe].has(keys(task))])
    state = Progress(sum(len(task.repeats) for task in waiting), _left=list(waiting))
    open_tasks = {recipe.name: sum(task.recipe == recipe.name for task in waiting) for recipe in recipes}
    by_name = {recipe.name: recipe for recipe in recipes}

    def ended(task: Task) -> None:
        state.note(task)
        open_tasks[task.recipe] -= 1
        if progress is not None:
            progress(state)
        if finished is not None and not open_tasks[task.recipe]:
            finished(by_name[task.recipe], results(Path(folder), tier, by_name[task.recipe]))

    for task, done in (executor or Serial()).run(perform, _claimed(waiting, ledgers, state, ended)):
        ledgers[task.recipe].enter(task, done)
        ended(task)
    return {recipe.name: results(Path(folder), tier, recipe) for recipe in recipes}


def _check_names(recipes: Sequence[Recipe], only: Collection[str], sets: Collection[str]) -> None:
    methods = {method.name for recipe in recipes for method in recipe.methods}
    known = {"a method of these tables": methods, "a set of these tables": {d for r in recipes for d in r.datasets}}
    for (expected, names), asked in zip(known.items(), (only, sets), strict=True):
        for name in set(asked) - names:
            raise ParameterError("reproduce", expected=expected, got=repr(name), remedy=closest(name, names))


def _claimed(
    waiting: list[Task], ledgers: dict[str, Ledger], state: Progress, ended: Callable[[Task], None]
) -> Iterator[Task | None]:
    """Tasks that nobody else has done or is doing; None while others are at work on all that is left."""
    while waiting:
        yielded = False
        for task in list(waiting):
            ledger = ledgers[task.recipe]
            if not ledger.claim(task):
                continue
            waiting.remove(task)
            left = tuple(r for r in task.repeats if not ledger.has(keys(replace(task, repeats=(r,)))))
            if left != task.repeats:  # others were quicker
                ledger.release(task)
                if left:
                    waiting.append(state.narrowed(task, left))
                else:
                    ended(task)
                continue
            yielded = True
            state._started[task] = time.monotonic()
            yield task
        if waiting and not yielded:
            yield None
