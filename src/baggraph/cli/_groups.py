"""Folds that keep together what belongs together: the slides of a patient, the molecules of a scaffold."""

from __future__ import annotations

from typing import Any

import numpy as np

from baggraph.data.bags import Bags
from baggraph.data.splits import grouped_folds
from baggraph.errors import InvalidBagsError


def whole_groups(bags: Bags, name: str, folds: int, repeats: int, random_state: int) -> Any:
    """Splits (R, B) of the labelled bags by a fact of theirs; what has no label is tested by no fold."""
    labelled = bags.labelled
    groups = np.asarray(bags.bag_info[name])[labelled]
    count = count_groups(bags, name)
    if count < folds:
        remedy = f"pass --folds {count}" if count > 1 else "name a column with more values, or leave out --groups"
        got = f"{count} in {name!r}"
        raise InvalidBagsError("groups", expected=f"at least {folds} groups for {folds} folds", got=got, remedy=remedy)
    splits = np.full((repeats, len(bags)), -1, dtype=np.int16)
    splits[:, labelled] = grouped_folds(groups, folds=folds, repeats=repeats, random_state=random_state)
    return splits


def count_groups(bags: Bags, name: str) -> int:
    """How many groups the labelled bags are in."""
    return len({str(value) for value in np.asarray(bags.bag_info[name])[bags.labelled].tolist()})
