"""Which bags are visible and which are tested, fold after fold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.data.splits import pairs, published, stratified_folds
from baggraph.errors import InvalidBagsError

Index = NDArray[np.int64]


def divide(bags: Bags, splits: Any, folds: int, repeats: int, random_state: int) -> NDArray[np.int16]:
    """The divisions (R, B) that were asked for: given, published by name, or made.

    >>> divide(Bags([[0.0]] * 4, range(5), [0, 0, 1, 1]), None, 2, 1, 0).tolist()
    [[1, 0, 1, 0]]
    """
    if bags.y is None or not bags.labelled.any():
        raise _wrong("bags with labels", "none", "pass y to Bags")
    if splits is None:
        return stratified_folds(bags.y, folds=folds, repeats=repeats, random_state=random_state)
    if isinstance(splits, str):
        return published(bags, splits)
    given = np.atleast_2d(np.asarray(splits))
    if given.dtype.kind not in "iu" or given.ndim != 2 or given.shape[1] != len(bags):
        remedy = "number the folds from 0, -1 is never tested"
        raise _wrong(f"splits of shape (repeats, {len(bags)})", f"{given.dtype} of shape {given.shape}", remedy)
    return given.astype(np.int16)


def visible_and_tested(bags: Bags, division: NDArray[np.int16]) -> list[tuple[Index, Index]]:
    """Positions of the bags whose labels are visible, and of those that are tested; all of them have labels."""
    known = bags.labelled
    found = [(train[known[train]], test[known[test]]) for train, test in pairs(division)]
    if not found:
        raise _wrong("at least one bag to test", "a division with none", "number the folds from 0")
    for number, (visible, tested) in enumerate(found):
        if not len(visible) or not len(tested):
            what = "tests" if len(visible) else "trains on"
            raise _wrong("labelled bags on both sides", f"fold {number} that {what} none", "make fewer folds")
    return found


def places(division: NDArray[np.int16]) -> list[dict[str, int]]:
    """Repeat and fold of every pair, in the order of :func:`~baggraph.data.splits.pairs`.

    >>> places(np.array([[0, 1], [-1, 1]]))
    [{'repeat': 0, 'fold': 0}, {'repeat': 0, 'fold': 1}, {'repeat': 1, 'fold': 1}]
    """
    return [
        {"repeat": repeat, "fold": int(fold)}
        for repeat, row in enumerate(division)
        for fold in np.unique(row[row >= 0])
    ]


def _wrong(expected: str, got: str, remedy: str) -> InvalidBagsError:
    return InvalidBagsError("cross_validate", expected=expected, got=got, remedy=remedy)
