"""What saving and loading ask of committees: tables, scorers and processes, all plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from baggraph.estimators._auto_members import Expansion, SpreadScorer
from baggraph.estimators._forest import Forest
from baggraph.estimators._saved_processes import more_facts, restore

__all__ = ["DERIVED", "complete", "more_facts", "restore"]

DERIVED = ("transduction_",)


def complete(model: Any) -> list[tuple[str, bool]]:
    """Set what follows from the rest, and say what must hold, and whether it does."""
    model.transduction_ = model._shaped(model.posterior_)
    maker = model._maker
    ids, count = maker.ids, len(maker.ids)
    graph, view = maker.graph, maker.anchor.view
    scaler = view.rows.scaler
    parts = model._parts()
    return [
        ("the same bags in posterior and fit", np.array_equal(model.posterior_.ids, ids)),
        ("the same bags in graph and fit", graph is None or np.array_equal(graph.ids, ids)),
        ("instances of every bag", len(view.offsets) == count + 1 and view.offsets[-1] == len(view.rows.values)),
        ("a place a bag", len(model.embedding_) == count),
        (f"a scaler of {model.n_features_in_} features", _scales(scaler.center_, model.n_features_in_)),
        ("classes as in the posterior", _same_classes(model)),
        ("a decision a class or target", len(parts) == max(_columns(model), 1)),
        ("labelled bags among those in fit", _within(getattr(model, "_visible", np.zeros(0)), count)),
        ("members that know these bags", all(_fits(one, count) for part in parts for one in _learned(part))),
    ]


def _within(places: Any, count: int) -> bool:
    return bool((places >= 0).all() and (places < count).all())


def _scales(center: Any, n_features: int) -> bool:
    return center is None or len(center) == n_features


def _same_classes(model: Any) -> bool:
    return np.array_equal(getattr(model, "classes_", None), model.posterior_.classes)  # type: ignore[arg-type]


def _columns(model: Any) -> int:
    columns = model.posterior_.mean.shape[1]
    return 1 if columns == 2 and model.posterior_.is_classification else int(columns)


def _learned(part: Any) -> list[Any]:
    if hasattr(part, "seats"):
        return [getattr(seat.scorer, "forest", seat.scorer) for seat in part.seats]
    return [voice.model for voice in part.voices]


def _fits(learned: Any, count: int) -> bool:
    """Positions of bags and of nodes lie where there are some: what is damaged must not be asked."""
    if isinstance(learned, Expansion):
        return _within(learned.columns, count)
    if isinstance(learned, SpreadScorer):
        return len(learned.found) == count
    if isinstance(learned, Forest):
        own = np.arange(len(learned.value))  # children come after their parents, so that every walk ends
        children = all(bool((some >= own).all() and (some < len(own)).all()) for some in (learned.left, learned.right))
        return children and bool((learned.feature >= 0).all() and np.isin(learned.roots, own).all())
    return True
