"""The figures of the Bag Graph paper, from scores and predictions on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from baggraph.data.bags import Bags
from baggraph.graphs.learned import LearnedGraph
from baggraph.report.figures import (
    Figure,
    critical_difference,
    graph_drawing,
    rank_box,
    region_map,
    reliability_diagram,
)

__all__ = ["calibration", "means_of", "prediction_map", "rank_figures", "summary_graph"]


def means_of(cells: pd.DataFrame, column: str = "ours") -> pd.DataFrame:
    """Methods (columns) on sets (rows) without gaps: a method that lacks a set is left out.

    Sets on which fewer than half of the methods have a number are left out first.
    """
    wide = cells.pivot_table(index="dataset", columns="method", values=column, sort=False, dropna=False)
    order = [name for name in dict.fromkeys(cells["method"]) if name in wide]
    wide = wide[order].dropna(axis=1, how="all").dropna(axis=0, how="all")
    kept = wide[wide.notna().mean(axis=1) >= 0.5]
    return kept.dropna(axis=1)


def rank_figures(cells: pd.DataFrame, column: str, what: str) -> dict[str, Figure]:
    """Box plot and critical differences of ranks, where at least three methods have numbers on three sets."""
    scores = means_of(cells, column)
    if min(scores.shape, default=0) < 3:
        return {}
    return {
        f"Ranks, {what}: line the median, triangle the mean, whiskers to the extremes": rank_box(scores),
        f"Mean ranks, {what}: bars join methods that the Nemenyi test at 5 % cannot tell apart": critical_difference(
            scores
        ),
    }


def prediction_map(
    bags: Bags,
    predictions: pd.DataFrame,
    methods: Sequence[str],
    *,
    label: str,
    center: float | None = None,
    polygons: Any = None,
    inside: Any = None,
) -> Figure | None:
    """Truth and predictions of tested bags side by side; bags whose label was seen are grey.

    ``inside`` (B,) says which bags are on the map; default, all.
    """
    shown = np.flatnonzero(np.ones(len(bags), dtype=bool) if inside is None else inside)
    ids = bags.ids[shown]
    panels, spread = {"truth": np.asarray(bags.y, dtype=np.float64)[shown]}, {}
    for method in methods:
        part = predictions[predictions["method"] == method].drop_duplicates("bag").set_index("bag")
        if len(part):
            panels[method] = part["prediction"].reindex(ids).to_numpy(dtype=np.float64)
            spread[method] = part["std"].reindex(ids).to_numpy(dtype=np.float64)
    if len(panels) == 1:
        return None
    return region_map(
        np.asarray(bags.coords)[shown],
        panels,
        uncertainty=spread,
        polygons=None if polygons is None else [polygons[b] for b in shown],
        center=center,
        label=label,
        ids=ids,
    )


def calibration(predictions: pd.DataFrame, methods: Sequence[str], title: str) -> Figure | None:
    """Reliability of probabilities of class 1 on tested bags."""
    known = {}
    for method in methods:
        part = predictions[predictions["method"] == method]
        if len(part) and "p_1" in part:
            known[method] = (part["p_1"], part["label"])
    return reliability_diagram(known, title=title) if known else None


def summary_graph(bags: Bags, n_neighbors: int, label: str) -> Figure:
    """The learned graph of bag means, drawn where the bags are."""
    from baggraph.baselines.summary import summarise

    means = summarise(bags)
    spread = means.std(axis=0)
    graph = LearnedGraph(n_neighbors).fit(
        (means - means.mean(axis=0)) / np.where(spread > 0, spread, 1.0), ids=bags.ids
    )
    return graph_drawing(graph.graph_, bags.coords, np.asarray(bags.y, dtype=np.float64), label=label)
