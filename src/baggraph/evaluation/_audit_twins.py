"""Bags and instances that occur more than once: within a set, across its classes and splits, and in other sets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.errors import name_some
from baggraph.evaluation._findings import Finding
from baggraph.evaluation._material import Material, gather

Index = NDArray[np.int64]


def findings(material: Material, beside: Mapping[str, Bags]) -> Iterator[Finding]:
    """Twins among the bags, twins among their instances, and bags that other sets hold as well."""
    contents = _contents(material)
    yield from _equal_bags(material, contents)
    yield from _equal_instances(material)
    for name, other in beside.items():
        yield from _shared_bags(material, contents, name, other)


def _contents(material: Material) -> Index:
    """A hash of every bag that does not depend on the order of its instances, (B,)."""
    bounds = zip(material.bags.offsets[:-1], material.bags.offsets[1:], strict=True)
    return np.array([hash(np.sort(material.row_hash[start:stop]).tobytes()) for start, stop in bounds], dtype=np.int64)


# ---------------------------------------------------------------------- within a set


def _equal_bags(material: Material, contents: Index) -> Iterator[Finding]:
    bags = material.bags
    _, group, counts = np.unique(contents, return_inverse=True, return_counts=True)
    twins = np.flatnonzero(counts[group] > 1)
    if not len(twins):
        return
    mixed = _groups_of_several_labels(bags, group)
    n_mixed = int(np.isin(group[twins], mixed).sum())
    measured = f"{len(twins)} of {len(bags)} bags hold the same instances as another one: {name_some(bags.ids[twins])}"
    measured += f"; {n_mixed} of them have a twin with another label" if n_mixed else ""
    across = {name: _parted_by(division, group, twins) for name, division in bags.splits.items()}
    measured += "".join(f"; the splits {name!r} part {100 * share:.0f} % of them" for name, share in across.items())
    why = "a bag whose twin was in training is looked up, not recognised"
    why += ", and no method can be right about twins with different labels" if n_mixed else ""
    advice = "keep one of each, or keep twins on one side of every split: grouped_folds"
    numbers = {"bags": len(twins), "with_another_label": n_mixed, "parted": across}
    yield Finding("BG301", "warning", measured, why, advice, numbers)


def _equal_instances(material: Material) -> Iterator[Finding]:
    bags = material.bags
    bag_of = np.repeat(np.arange(len(bags)), bags.sizes)
    rows = np.flatnonzero(~material.empty_row)  # that nothing equals nothing says nothing
    kind = np.unique(material.row_hash[rows], return_inverse=True)[1]
    homes = np.unique(np.stack([kind, bag_of[rows]], axis=1), axis=0)  # a row per kind and bag that has it
    widespread = np.bincount(homes[:, 0], minlength=1)[kind] > 1 if len(rows) else np.zeros(0, dtype=bool)
    share = float(widespread.sum()) / max(bags.n_instances, 1)
    if not widespread.any():
        return
    mixed = _kinds_of_several_labels(bags, homes)
    n_mixed = int(np.isin(kind, mixed).sum())
    count = int(widespread.sum())
    measured = f"{count:,} of {bags.n_instances:,} instances ({100 * share:.1f} %) are in another bag too"
    measured += f", {n_mixed:,} of them in a bag with another label" if material.classify else ""
    across = {name: _torn_by(division, homes, kind[widespread]) for name, division in bags.splits.items()}
    measured += "".join(f"; the splits {name!r} part {100 * torn:.0f} % of them" for name, torn in across.items())
    why = "what occurs on both sides of a split makes tested bags easier than new ones will be"
    advice = "find out whether they are copies (of patches, posts, listings) or coincidences of coarse features"
    numbers = {"instances": count, "share": share, "with_another_label": n_mixed, "parted": across}
    yield Finding("BG302", "note", measured, why, advice, numbers)


def _groups_of_several_labels(bags: Bags, group: Index) -> Index:
    return _kinds_of_several_labels(bags, np.stack([group, np.arange(len(bags))], axis=1))


def _kinds_of_several_labels(bags: Bags, homes: Index) -> Index:
    """Kinds (first column) that occur in labelled bags (second column) of different labels."""
    known = bags.labelled
    if not known.any():
        return np.zeros(0, dtype=np.int64)
    label = np.zeros(len(bags), dtype=np.int64)
    values = bags.y[known]
    label[known] = np.unique(values.astype(str) if values.dtype.kind == "O" else values, axis=0, return_inverse=True)[
        1
    ].ravel()
    homes = homes[known[homes[:, 1]]]
    pairs = np.unique(np.stack([homes[:, 0], label[homes[:, 1]]], axis=1), axis=0)
    kinds, counts = np.unique(pairs[:, 0], return_counts=True)
    return np.asarray(kinds[counts > 1])


def _parted_by(division: NDArray[Any], group: Index, twins: Index) -> float:
    """Share of the twins, over repeats, that are tested while a twin of theirs is in training."""
    parted = [
        fold[b] >= 0 and bool((fold[twins[group[twins] == group[b]]] != fold[b]).any())
        for fold in division
        for b in twins
    ]
    return float(np.mean(parted))


def _torn_by(division: NDArray[Any], homes: Index, kinds: Index) -> float:
    """Share of instances of these kinds, over repeats, of whose copies some bags test and others train or test apart.

    >>> homes = np.array([[0, 0], [0, 1], [1, 1], [1, 2]])  # kind 0 in bags 0 and 1, kind 1 in bags 1 and 2
    >>> _torn_by(np.array([[0, 0, 1]]), homes, np.array([0, 0, 1, 1]))
    0.5
    """
    torn = []
    for fold in division:
        least, most = (np.full(homes[:, 0].max() + 1, start) for start in (np.iinfo(np.int16).max, -1))
        np.minimum.at(least, homes[:, 0], fold[homes[:, 1]])
        np.maximum.at(most, homes[:, 0], fold[homes[:, 1]])
        torn.append((least != most)[kinds].mean())
    return float(np.mean(torn))


# ---------------------------------------------------------------------- in other sets


def _shared_bags(material: Material, contents: Index, name: str, other: Bags) -> Iterator[Finding]:
    bags = material.bags
    shared = np.zeros(len(bags), dtype=bool)
    by_name = not _are_counters(bags.ids) and not _are_counters(other.ids)
    if by_name:
        shared |= np.isin(bags.ids.astype(str), other.ids.astype(str))
    equal = np.zeros(len(bags), dtype=bool)
    if other.n_features == bags.n_features:
        equal = np.isin(contents, _contents(gather(other)))
    shared |= equal
    n = int(shared.sum())
    if not n:
        return
    measured = f"{n} of {len(bags)} bags are also among the {len(other)} of {name!r}"
    measured += " by their ids" if by_name else ""
    measured += f", {int(equal.sum())} of them with the same instances: {name_some(bags.ids[shared])}"
    why = "results on the two sets are not independent, and what is tuned on one has seen bags of the other"
    advice = "do not train on one set and test on the other, and do not count them as two pieces of evidence"
    numbers = {"set": name, "bags": n, "same_instances": int(equal.sum()), "ids": bags.ids[shared].tolist()}
    yield Finding("BG303", "note", measured, why, advice, numbers)


def _are_counters(ids: NDArray[Any]) -> bool:
    """Whether ids only count bags, as bag-0, bag-1, bag-2 do.

    >>> _are_counters(np.array(["bag-0", "bag-2", "bag-1"])), _are_counters(np.array(["MUSK-188", "MUSK-190"]))
    (True, False)
    """
    numbers = [re.findall(r"\d+", str(name)) for name in ids]
    if not all(numbers):
        return False
    last = np.sort(np.array([float(found[-1]) for found in numbers]))
    return bool((np.diff(last) == 1).all())
