"""Rows that were computed elsewhere, by the same method on the same folds."""

from __future__ import annotations

import pandas as pd

from baggraph.data.results import ResultTable
from baggraph.evaluation._provenance import provenance
from baggraph.experiments._ledger import Ledger
from baggraph.experiments._rows import estimator, is_network, metrics_of
from baggraph.experiments._tasks import SETTING, Task, keys, material_of, plan
from baggraph.experiments.recipe import Recipe


def take_over(recipe: Recipe, tier: str, ledger: Ledger, other: ResultTable) -> int:
    """Append the rows of another table that a recipe would compute, and say how many tasks they spare.

    A row is taken where its hash is that of the same estimator, the same folds and the same setting, as
    :func:`~baggraph.cross_validate` writes it, on the same data.
    """
    frame = other.frame()
    frame = frame[frame["error"].isna()]
    spared = 0
    for task in plan(recipe, tier):
        if len(task.methods) == 1 and len(task.repeats) == 1 and not ledger.has(keys(task)):
            rows = _rows_of(recipe, task, frame)
            if rows is not None:
                ResultTable.from_frame(rows).append(ledger.folder)
                spared += 1
    return spared


def _rows_of(recipe: Recipe, task: Task, frame: pd.DataFrame) -> pd.DataFrame | None:
    """All rows of a task, or None where one is missing."""
    (name,), (repeat,) = task.methods, task.repeats
    mine = frame[(frame["method"] == name) & (frame["dataset"] == task.dataset) & (frame["repeat"] == repeat)]
    if not len(mine):
        return None
    material = material_of(task)
    seed = repeat if material.sample or is_network(recipe.method(name)) else 0
    made = estimator(recipe.method(name), task.dataset, material, recipe.tiers[task.tier], seed)
    known = provenance(name, made, material.division, SETTING)
    mine = mine[(mine["recipe_sha256"] == known["recipe_sha256"]) & (mine["data_sha256"] == material.data_sha256)]
    metrics = [metric.name for metric in metrics_of(recipe, recipe.method(name), made)]
    mine = mine[mine["metric"].isin(metrics)].drop_duplicates(["fold", "metric"])
    if len(mine) != recipe.folds * len(metrics):
        return None
    (origin,) = {key[3] for key in keys(task)}
    return mine.assign(task=recipe.experiment, recipe_sha256=origin)
