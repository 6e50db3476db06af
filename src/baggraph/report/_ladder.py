"""What is believed of every bag, in order, with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.data._columns import missing_mask
from baggraph.data.bags import Bags
from baggraph.data.posterior import Posterior

MOST = 240  # more cannot be told apart
LEVEL = 0.9


def ladder_of(posterior: Posterior, bags: Bags, truth: Any) -> dict[str, Any]:
    """Values, ends of intervals, and whether the hidden label was met; evenly drawn from the order of very many."""
    column, unit = _column(posterior)
    low, high = np.moveaxis(posterior.quantile([(1 - LEVEL) / 2, (1 + LEVEL) / 2]), -1, 0)
    rows = np.arange(len(posterior))
    mid, low, high = posterior.mean[rows, column], low[rows, column], high[rows, column]
    order = np.argsort(mid, kind="stable")
    order = order[np.unique(np.linspace(0, len(order) - 1, min(MOST, len(order))).round().astype(np.int64))]
    marks = _marks(posterior, bags, truth, low, high)
    ends = {
        name: [float(f"{v:.4g}") for v in values[order]]
        for name, values in (("low", low), ("mid", mid), ("high", high))
    }
    return {**ends, "marks": [marks[i] for i in order], "unit": unit, "of": len(posterior)}


def _column(posterior: Posterior) -> tuple[NDArray[np.int64], str]:
    """Of two classes the second, of more the most probable one, of targets the first."""
    count = len(posterior)
    if not posterior.is_classification:
        return np.zeros(count, dtype=np.int64), "expected value"
    if len(posterior.classes) == 2:
        return np.ones(count, dtype=np.int64), f"probability of {posterior.classes[1]}"
    return posterior.mean.argmax(axis=1), "probability of the most probable class"


def _marks(posterior: Posterior, bags: Bags, truth: Any, low: Any, high: Any) -> list[str]:
    """A value counts as right where its interval holds it."""
    labels = bags.y if truth is None else np.asarray(truth)
    if labels is None:
        return ["none"] * len(bags)
    known = ~missing_mask(labels).reshape(len(bags), -1).any(axis=1)
    hidden = known & ~bags.labelled
    right = np.zeros(len(bags), dtype=bool)
    if not hidden.any():
        pass
    elif posterior.is_classification:
        right[hidden] = posterior.take(hidden).codes(labels[hidden]) == posterior.mean[hidden].argmax(axis=1)
    else:
        values = np.asarray(labels, dtype=np.float64).reshape(len(bags), -1)[:, 0]
        right = (low <= values) & (values <= high)
    words = np.where(hidden, np.where(right, "right", "wrong"), np.where(bags.labelled, "seen", "none"))
    return [str(word) for word in words]
