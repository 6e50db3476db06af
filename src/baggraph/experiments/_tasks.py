"""The unit of work: some methods on one set in some repeats, done whole or not at all."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from baggraph import datasets
from baggraph.data._fingerprint import digest
from baggraph.data.results import ResultTable
from baggraph.data.stacked import AbstractSeededStack
from baggraph.evaluation._division import places, visible_and_tested
from baggraph.evaluation._provenance import provenance, rows_of
from baggraph.evaluation._running import Outcome, Trial
from baggraph.evaluation._tasks import task_of
from baggraph.experiments._material import Material, load
from baggraph.experiments._rows import estimator, is_network, metrics_of
from baggraph.experiments.recipe import Method, Recipe, read_recipe
from baggraph.inference._device import chosen_device
from baggraph.inference._sharing import sharing_base_models

__all__ = ["Done", "Task", "perform", "plan"]

SETTING = "transductive"
TOGETHER = 10  # repeats of methods that make tables of all bags
Key = tuple[str, str, int, str]


@dataclass(frozen=True)
class Task:
    """Some methods of a recipe on one set, in some repeats."""

    path: str
    recipe: str
    tier: str
    dataset: str
    methods: tuple[str, ...]
    repeats: tuple[int, ...]

    @property
    def kind(self) -> tuple[Any, ...]:
        """Tasks of a kind take about the same time, repeat for repeat."""
        return self.path, self.tier, self.dataset, self.methods

    def __str__(self) -> str:
        first, last = self.repeats[0], self.repeats[-1]
        shown = f"repeat {first}" if first == last else f"repeats {first} to {last}"
        return f"{self.recipe}, {self.dataset}, {', '.join(self.methods)}, {shown}"


@dataclass(frozen=True, eq=False)
class Done:
    """What became of a task: its rows, and predictions of tested bags in the first repeat."""

    rows: ResultTable
    predictions: pd.DataFrame | None


def plan(
    recipe: Recipe, tier: str, only: Collection[str] = (), sets: Collection[str] = (), repeats: int | None = None
) -> list[Task]:
    """All tasks of a tier, repeat after repeat, so that what is stopped early has every method on every set.

    With ``only``, those that run one of these methods; with ``sets``, on these sets; with ``repeats``, at most so many.
    Sets whose files can only be supplied by hand, and are not, are left out.

    >>> from baggraph.experiments.recipe import recipes
    >>> [str(task) for task in plan(recipes()["benchmark"], "smoke", ["majority"])]
    ['benchmark, musk1, majority, repeat 0']
    """
    amount = recipe.tiers[tier]
    most = min(number for number in (amount.repeats, recipe.repeats, repeats) if number is not None)
    found = []
    for dataset in amount.datasets or recipe.datasets:
        if (sets and dataset not in sets) or datasets.state(datasets.card(dataset)) == "by hand":
            continue
        for names in _groups(recipe, amount.methods):
            if not only or set(only) & set(names):
                found += [Task(recipe.path, recipe.name, tier, dataset, names, (r,)) for r in range(most)]
    return sorted(found, key=lambda task: task.repeats[0])


def bundled(tasks: Collection[Task]) -> list[Task]:
    """Tasks that differ in their repeats alone as few larger ones, where that saves time; rows stay the same.

    Networks on a GPU are trained as one stack of all repeats.  Methods that are no networks make what they need of the
    bags once for ten repeats.  Networks on a CPU, committees, and bags that are drawn anew every time, gain nothing.
    """
    kinds: dict[tuple[Any, ...], list[Task]] = {}
    for task in tasks:
        kinds.setdefault(task.kind, []).append(task)
    found = []
    for alike in kinds.values():
        repeats, size = sorted(task.repeats[0] for task in alike), _together(alike[0])
        found += [replace(alike[0], repeats=tuple(repeats[i : i + size])) for i in range(0, len(repeats), size)]
    return sorted(found, key=lambda task: task.repeats[0])


def _together(task: Task) -> int:
    recipe = read_recipe(Path(task.path))
    if recipe.sample or any(recipe.method(name).engine == "auto" for name in task.methods):
        return 1
    if not any(is_network(recipe.method(name)) for name in task.methods):
        return TOGETHER
    return recipe.repeats if chosen_device("auto").type == "cuda" else 1


def _groups(recipe: Recipe, wanted: tuple[str, ...] | None) -> list[tuple[str, ...]]:
    groups: dict[str, list[str]] = {}
    for method in recipe.methods:
        if wanted is None or method.name in wanted:
            groups.setdefault(method.group or method.name, []).append(method.name)
    return [tuple(names) for names in groups.values()]


def keys(task: Task) -> set[Key]:
    """What the table must have for the task to be done: method, set, repeat and hash of the recipe."""
    recipe = read_recipe(Path(task.path))
    hashes = {name: _hash(recipe, recipe.method(name), task) for name in task.methods}
    return {(name, task.dataset, repeat, origin) for name, origin in hashes.items() for repeat in task.repeats}


def _hash(recipe: Recipe, method: Method, task: Task) -> str:
    """Of everything that the recipe says about a row; how many repeats are run does not matter."""
    silent = ("role", "group")
    row = {key: value for key, value in asdict(method).items() if key not in silent and value}
    where = (recipe.experiment, recipe.protocol, task.dataset, recipe.metrics)
    divided = [recipe.splits, recipe.folds, recipe.sample, *recipe.labelled]
    return digest([row, where, divided, recipe.tiers[task.tier].networks])


def perform(task: Task) -> Done:
    """Train and score the methods of a task."""
    recipe = read_recipe(Path(task.path))
    material = _material(task.path, task.dataset)
    rows: list[dict[str, Any]] = []
    predictions: list[pd.DataFrame] = []
    with sharing_base_models(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # machines that did not settle; what fails is kept in the table
        for name in task.methods:
            for repeats in [(r,) for r in task.repeats] if material.sample else [task.repeats]:
                _one(recipe, name, material, task, repeats, rows, predictions)
    return Done(ResultTable.from_rows(rows), pd.concat(predictions) if predictions else None)


def _one(
    recipe: Recipe,
    name: str,
    material: Material,
    task: Task,
    repeats: tuple[int, ...],
    rows: list[dict[str, Any]],
    predictions: list[pd.DataFrame],
) -> None:
    """All folds of some repeats of one method, added to ``rows`` and ``predictions``."""
    bags, division = material.of_repeat(repeats[0]), material.division[list(repeats)]
    method = recipe.method(name)
    made = estimator(method, task.dataset, material, recipe.tiers[task.tier], seed=repeats[0] if material.sample else 0)
    kind = task_of([made], bags)
    scores = metrics_of(recipe, method, made)
    believe = any(metric.needs in ("probabilities", "noise") for metric in scores)
    pairs = visible_and_tested(bags, division)
    where_tested = [place | {"repeat": repeats[place["repeat"]]} for place in places(division)]
    seeded = isinstance(made, AbstractSeededStack)
    seeds = [place["repeat"] for place in where_tested] if seeded else None
    outcomes = _trial(task, material, bags, kind, believe).run(made, pairs, seeds)
    known: dict[str, Any] = {"task": recipe.experiment, "dataset": task.dataset, "setting": SETTING}
    known |= {"data_sha256": material.data_sha256} | provenance(name, made, material.division, SETTING)
    known |= {"recipe_sha256": _hash(recipe, method, task), "device": _device(made)}
    for pair, where, outcome in zip(pairs, where_tested, outcomes, strict=True):
        if seeded:
            known["seed"] = where["repeat"]
        counts = {"n_train": len(pair[0]), "n_test": len(pair[1])}
        rows += rows_of(known | where | counts, outcome, scores, bags.y[pair[1]])
        if where["repeat"] == 0:
            predictions += _predicted(name, task.dataset, where["fold"], outcome, bags.y[pair[1]])


def _trial(task: Task, material: Material, bags: Any, kind: str, believe: bool) -> Trial:
    if material.sample:
        return Trial(bags, True, kind == "classification", believe)
    return _lasting_trial(task.path, task.dataset, kind, believe)


@lru_cache(maxsize=2)
def _lasting_trial(path: str, dataset: str, kind: str, believe: bool) -> Trial:
    """Tables of pairs that it holds serve all repeats."""
    return Trial(_material(path, dataset).bags, True, kind == "classification", believe)


def material_of(task: Task) -> Material:
    """What the methods of a task are given."""
    return _material(task.path, task.dataset)


@lru_cache(maxsize=64)
def _material(path: str, dataset: str) -> Material:
    return load(read_recipe(Path(path)), dataset)


def _device(made: Any) -> str:
    """Where it was computed, in words."""
    if isinstance(made, AbstractSeededStack) and chosen_device(getattr(made, "device", "auto")).type == "cuda":
        import torch

        return str(torch.cuda.get_device_name())
    return f"CPU ({platform.machine()})"


def _predicted(name: str, dataset: str, fold: int, outcome: Outcome, labels: Any) -> list[pd.DataFrame]:
    """What was predicted of tested bags, beside the truth."""
    if outcome.answer is None:
        return []
    posterior = outcome.answer.believed or outcome.answer.decided
    frame = posterior.frame() if not posterior.is_classification or outcome.answer.believed else None
    if frame is None:
        return []
    return [frame.reset_index().assign(method=name, dataset=dataset, fold=fold, label=labels)]
