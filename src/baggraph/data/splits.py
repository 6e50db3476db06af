"""Which bag tests which fold: splits by index alone, the same on every machine.

A set of splits is an int16 array (repeats, B), as in ``Bags.splits``: fold ``k`` of repeat ``r`` tests the
bags whose entry is ``k``; -1 is never tested and always on the training side.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.data._columns import canonical_column, missing_mask
from baggraph.data._spatial import spatial_folds
from baggraph.data._split_checks import bad_data, bad_parameter, bag_at, bit_stream, check_counts, is_count
from baggraph.data.bags import Bags
from baggraph.errors import BagWarning, closest, name_some

__all__ = [
    "grouped_folds",
    "hide_labels",
    "label_mask",
    "pairs",
    "published",
    "spatial_folds",
    "stratified_folds",
]

Folds = NDArray[np.int16]
Index = NDArray[np.int64]
MOST_CLASSES = 20


# ---------------------------------------------------------------------- folds


def stratified_folds(y: Any, *, folds: int = 10, repeats: int = 10, random_state: int = 0) -> Folds:
    """Folds (repeats, B) of equal size, to within one, with every class dealt out evenly, to within one.

    Booleans, integers and text are classes; so are floats, if they are whole numbers of at most 20 kinds.
    Other targets are sorted by value (of the first column), and every ``folds`` neighbours in that order go to
    as many folds at random.  Bags without a label get -1.

    >>> stratified_folds(["a", "a", "b", "b", None], folds=2, repeats=2).tolist()
    [[1, 0, 1, 0, -1], [0, 1, 0, 1, -1]]
    """
    stage = "stratified folds"
    labels, where = _labelled(stage, y)
    check_counts(stage, folds, repeats, len(where), "labelled bags")
    bits = bit_stream(stage, random_state)
    present = labels[where]
    classes = None if _is_real(present) else _class_codes(stage, present, folds)
    result = np.full((repeats, len(labels)), -1, dtype=np.int16)
    for row in result:
        strata = _ranks(present, bits) // folds if classes is None else classes
        order = np.lexsort((bits.random_raw(len(where)), strata))
        row[where[order]] = np.arange(len(where)) % folds
    return result


def _class_codes(stage: str, labels: NDArray[Any], folds: int) -> Index:
    classes, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if sizes.min() < folds:
        rarest = name_some(classes[[np.argmin(sizes)]])
        got = f"{sizes.min()} of {rarest}"
        advice = "some folds will test none of it: lower folds or merge classes"
        warnings.warn(f"{stage}: expected {folds} labelled bags of every class, got {got}; {advice}", BagWarning, 3)
    return codes


def grouped_folds(groups: Any, *, folds: int = 10, repeats: int = 1, random_state: int = 0) -> Folds:
    """Folds (repeats, B) that keep every group (a patient, a site) whole.

    Groups go, the largest first and equal ones in random order, to the fold with the fewest bags so far;
    fold sizes differ by at most the largest group.  Repeats differ only as far as groups are equal in size.

    >>> grouped_folds(["p", "p", "q", "r", "q"], folds=2).tolist()
    [[1, 1, 0, 0, 0]]
    """
    stage = "grouped folds"
    if isinstance(groups, Bags) or not hasattr(groups, "__len__"):
        raise bad_data(stage, "one group a bag", f"a {type(groups).__name__}", "pass a flat sequence")
    column = canonical_column(groups, "group", len(groups), bag_at)
    if column.ndim != 1:
        raise bad_data(stage, "one group a bag", f"shape {column.shape}", "pass a flat sequence")
    if len(column) and missing_mask(column).any():
        got = f"none for {bag_at(int(np.argmax(missing_mask(column))))}"
        raise bad_data(stage, "a group for every bag", got, "give it a group of its own")
    _, members, sizes = np.unique(column, return_inverse=True, return_counts=True)
    check_counts(stage, folds, repeats, len(sizes), "groups")
    bits = bit_stream(stage, random_state)
    result = np.empty((repeats, len(column)), dtype=np.int16)
    for row in result:
        fold_of = np.empty(len(sizes), dtype=np.int16)
        filled = np.zeros(folds, dtype=np.int64)
        for group in np.lexsort((bits.random_raw(len(sizes)), -sizes)):
            fold_of[group] = np.argmin(filled)
            filled[fold_of[group]] += sizes[group]
        row[:] = fold_of[members]
    return result


# ---------------------------------------------------------------------- labels


def label_mask(y: Any, *, labelled: float, random_state: int = 0) -> NDArray[np.bool_]:
    """Which of the labelled bags (B,) keep their label in a transductive experiment.

    ``labelled`` is the share of the labelled bags, between 0 and 1, or their number.  Classes keep their shares by
    Webster's apportionment, and one bag each where the number allows it; with the same seed, a larger mask
    contains the smaller ones.  Real targets (see :func:`stratified_folds`) are sorted and cut into as many runs
    as labels are kept, and each run keeps one.

    >>> label_mask([0, 0, 0, 0, 1, 1], labelled=0.5).tolist()
    [False, False, True, True, True, False]
    """
    stage = "label mask"
    labels, where = _labelled(stage, y)
    count = _count(stage, labelled, len(where))
    choose = _spread_over_ranks if _is_real(labels[where]) else _spread_over_classes
    mask = np.zeros(len(labels), dtype=bool)
    mask[where[choose(labels[where], count, bit_stream(stage, random_state))]] = True
    return mask


def _spread_over_classes(labels: NDArray[Any], count: int, bits: np.random.PCG64) -> Index:
    _, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    keys = bits.random_raw(len(codes))
    turn = np.empty(len(codes), dtype=np.int64)
    turn[np.lexsort((keys, codes))] = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    share = np.where(turn == 0, 0.0, (turn + 0.5) / sizes[codes])
    return np.lexsort((keys, share))[:count]


def _spread_over_ranks(labels: NDArray[Any], count: int, bits: np.random.PCG64) -> Index:
    run = _ranks(labels, bits) * count // len(labels)
    order = np.lexsort((bits.random_raw(len(labels)), run))
    return order[np.searchsorted(run[order], np.arange(count))]


def hide_labels(bags: Bags, keep: Any) -> Bags:
    """Bags whose labels are missing where ``keep`` (B,) is False; booleans and integers become float64 there.

    >>> hide_labels(Bags([[1.0], [2.0]], [0, 1, 2], [3, 4]), [True, False]).y.tolist()
    [3.0, nan]
    """
    mask = np.asarray(keep)
    if mask.dtype != bool or mask.shape != (len(bags),):
        got = f"{mask.dtype} of shape {mask.shape}"
        raise bad_data("hide labels", f"a mask of {len(bags)} booleans", got, "make it with label_mask")
    if bags.y is None:
        raise bad_data("hide labels", "bags with labels", "none", "pass y to Bags")
    if mask.all():
        return bags
    text = bags.y.dtype.kind == "O"
    y = np.array(bags.y, dtype=object if text else np.float64)
    y[~mask] = None if text else np.nan
    return bags.replace(y=y)


# ---------------------------------------------------------------------- using splits


def pairs(folds: Any) -> Iterator[tuple[Index, Index]]:
    """Positions of the bags that train and that test, fold after fold of every repeat.

    >>> [(train.tolist(), test.tolist()) for train, test in pairs([0, 1, -1])]
    [([1, 2], [0]), ([0, 2], [1])]
    """
    array = np.asarray(folds)
    if array.ndim not in (1, 2) or array.dtype.kind not in "iu" or not array.size:
        got = f"{array.dtype} of shape {array.shape}"
        raise bad_data("pairs", "fold numbers of shape (B,) or (repeats, B)", got, "number the folds from 0")
    rows = np.atleast_2d(array)
    return ((np.flatnonzero(row != k), np.flatnonzero(row == k)) for row in rows for k in np.unique(row[row >= 0]))


def published(bags: Bags, name: str | None = None) -> Folds:
    """The splits (repeats, B) that came with the bags, by name or, if there is one set of them, without.

    >>> published(Bags([[1.0], [2.0]], [0, 1, 2], splits={"paper": [[0, 1]]})).tolist()
    [[0, 1]]
    """
    if not bags.splits:
        raise bad_data("published", "bags with splits", "none", "make some with stratified_folds")
    if name is None and len(bags.splits) == 1:
        return next(iter(bags.splits.values()))
    if name is None or name not in bags.splits:
        known = closest(name or "", bags.splits)
        raise bad_parameter("published", "the name of one set of splits", f"name={name!r}", known)
    return bags.splits[name]


# ---------------------------------------------------------------------- checks


def _labelled(stage: str, y: Any) -> tuple[NDArray[Any], Index]:
    """Labels in canonical form, and where they are present."""
    given = [] if y is None else y
    if isinstance(y, Bags) or not hasattr(given, "__len__"):
        raise bad_data(stage, "one label a bag", f"a {type(y).__name__}", "pass the labels, as in bags.y")
    labels = canonical_column(given, "label", len(given), bag_at, finite=True)
    where = np.flatnonzero(~missing_mask(labels)) if len(labels) else np.zeros(0, dtype=np.int64)
    if not len(where):
        raise bad_data(stage, "at least one labelled bag", "none", "pass the labels, as in bags.y")
    return labels, where


def _is_real(labels: NDArray[Any]) -> bool:
    if labels.ndim == 2:
        return True
    return labels.dtype.kind == "f" and bool((labels % 1).any() or len(np.unique(labels)) > MOST_CLASSES)


def _ranks(labels: NDArray[Any], bits: np.random.PCG64) -> Index:
    """Ranks from 0 by value (of the first column), equal values in random order."""
    ranks = np.empty(len(labels), dtype=np.int64)
    ranks[np.lexsort((bits.random_raw(len(labels)), labels.reshape(len(labels), -1)[:, 0]))] = np.arange(len(labels))
    return ranks


def _count(stage: str, labelled: float, available: int) -> int:
    if isinstance(labelled, float | np.floating) and 0 < labelled < 1:
        return max(1, round(float(labelled) * available))
    if is_count(labelled) and 1 <= labelled <= available:
        return int(labelled)
    expected = f"a share between 0 and 1 or a number of bags from 1 to {available}"
    raise bad_parameter(stage, expected, f"labelled={labelled!r}", "pass 0.1 for a tenth")
