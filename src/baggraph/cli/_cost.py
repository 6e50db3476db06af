"""What a comparison will cost: a fold of every method, timed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from baggraph.data.bags import Bags


def cost_of_folds(methods: Mapping[str, Any], bags: Bags, division: Any, random_state: int) -> dict[str, float]:
    """Seconds that every method takes for all folds of a division (R, B), from one fold.

    Methods that train folds together, or share a table of kernel values, take less than this.
    """
    from baggraph.evaluation.cross_validate import cross_validate

    one = np.where(division[:1] == division[0][division[0] >= 0][0], 0, -1).astype(np.int16)
    count = sum(len(np.unique(row[row >= 0])) for row in division)
    found = {}
    for name, method in methods.items():
        started = time.perf_counter()
        cross_validate({name: method}, bags, splits=one, random_state=random_state)
        found[name] = (time.perf_counter() - started) * count
    return found
