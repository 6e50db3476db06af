"""Cross-validation into a folder: what is there is not computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.baselines._gram import GramClassifier
from baggraph.data._fingerprint import fingerprint
from baggraph.data.bags import Bags
from baggraph.data.results import ResultTable
from baggraph.evaluation._division import divide, places
from baggraph.evaluation._provenance import provenance
from baggraph.evaluation._tasks import task_of
from baggraph.evaluation.cross_validate import cross_validate
from baggraph.evaluation.metrics import Metric, metrics_for

__all__ = ["cross_validate_into"]

Progress = Callable[[int, int, str], None]
Division = NDArray[np.int16]


def cross_validate_into(
    folder: str | Path,
    methods: Mapping[str, Any],
    bags: Bags,
    *,
    folds: int = 10,
    repeats: int = 10,
    splits: Any = None,
    setting: str = "transductive",
    random_state: int = 0,
    progress: Progress | None = None,
    **more: Any,
) -> ResultTable:
    """Like :func:`~baggraph.cross_validate`, repeat by repeat into a folder; stopped runs go on where they were.

    A block of work is one method on one repeat, or on all where a table of kernel values is shared.  Rows of a block
    count as done if method, parameters, splits, setting and data are the same; failed ones are tried again.

    Parameters
    ----------
    folder
        Of a :class:`~baggraph.data.results.ResultTable`, which only grows.
    progress
        Called with blocks done, blocks in all, and the name of the method.
    **more
        As for :func:`~baggraph.cross_validate`, whose parameters the others are as well.

    Returns
    -------
    ResultTable
        Of these methods on these bags, whatever else the folder holds.

    Examples
    --------
    >>> import tempfile
    >>> from baggraph import datasets
    >>> from baggraph.baselines import MajorityClassifier
    >>> bags, calls = datasets.load("digits-bags"), []
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for _ in range(2):
    ...         table = cross_validate_into(folder, {"majority": MajorityClassifier()}, bags, folds=5, repeats=2,
    ...                                     progress=lambda done, total, name: calls.append(done))
    >>> calls  # the second time, everything was there
    [0, 1, 2, 2]

    """
    division = divide(bags, splits, folds, repeats, random_state)
    blocks = list(_blocks(methods, division))
    hashes = [str(provenance(name, methods[name], part, setting)["recipe_sha256"]) for name, part in blocks]
    scores = metrics_for(task_of(methods.values(), bags, more.get("task")), more.get("metrics"))
    data = fingerprint(bags)
    there = _there(Path(folder), data)
    keyed = zip(blocks, hashes, strict=True)
    waiting = [(name, part) for (name, part), recipe in keyed if not _has(there, recipe, part, scores)]
    for done, (name, part) in enumerate(waiting, start=len(blocks) - len(waiting)):
        if progress is not None:
            progress(done, len(blocks), name)
        cross_validate({name: methods[name]}, bags, splits=part, setting=setting, **more).append(folder)
    if progress is not None:
        progress(len(blocks), len(blocks), "")
    return ResultTable.read(folder).filter(recipe_sha256=hashes, data_sha256=data, metric=[m.name for m in scores])


def _blocks(methods: Mapping[str, Any], division: Division) -> Iterator[tuple[str, Division]]:
    """Methods, each with the repeats of one block; the others are -1, tested by no fold."""
    for name, method in methods.items():
        if isinstance(method, GramClassifier):
            yield name, division
            continue
        for repeat in range(len(division)):
            part = np.full_like(division, -1)
            part[repeat] = division[repeat]
            yield name, part


def _there(folder: Path, data: str) -> set[tuple[Any, ...]]:
    """Recipe, repeat, fold and metric of the rows on these bags that did not fail."""
    if not folder.is_dir():
        return set()
    rows = ResultTable.read(folder).filter(data_sha256=data).rows.to_pydict()
    keys = zip(*(rows[column] for column in ("recipe_sha256", "repeat", "fold", "metric")), strict=True)
    return {key for key, error in zip(keys, rows["error"], strict=True) if error is None}


def _has(there: set[tuple[Any, ...]], recipe: str, part: Division, scores: list[Metric]) -> bool:
    """Whether every row of a block is there; another run may have written over some of them."""
    wanted = {(recipe, place["repeat"], place["fold"], one.name) for place in places(part) for one in scores}
    return wanted <= there
