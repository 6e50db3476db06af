"""How far probabilities and scores can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from baggraph.report._figure import INK, SOFT, Figure
from baggraph.report._figure import canvas as blank


def reliability_diagram(predictions: Mapping[str, tuple[Any, Any]], *, n_bins: int = 10, title: str = "") -> Figure:
    """How often bags that get a probability are positive: (probabilities, zeros and ones) by name of the method.

    >>> found = reliability_diagram({"m": ([0.1, 0.9, 0.9, 0.95], [0, 1, 0, 1])}, n_bins=2)
    >>> found.frame()[["bags", "observed"]].round(2).values.tolist()
    [[1.0, 0.0], [3.0, 0.67]]
    """
    rows = []
    for method, (probability, label) in predictions.items():
        p, t = np.asarray(probability, dtype=np.float64), np.asarray(label, dtype=np.float64)
        bins = np.minimum((p * n_bins).astype(np.int64), n_bins - 1)
        for number in np.unique(bins):
            inside = bins == number
            row: dict[str, Any] = {"method": method, "bags": int(inside.sum())}
            rows.append(row | {"predicted": p[inside].mean(), "observed": t[inside].mean()})
    table = pd.DataFrame(rows)
    canvas, axes = blank(4.6, 4.2)
    axes.plot([0, 1], [0, 1], color=SOFT, linewidth=1, linestyle="--")
    for name, part in table.groupby("method", sort=False):
        axes.plot(part["predicted"], part["observed"], marker="o", markersize=4, linewidth=1.4, label=str(name))
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel("predicted probability", color=INK)
    axes.set_ylabel("share of positive bags", color=INK)
    axes.legend(frameon=False, fontsize=8)
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    return Figure(canvas, table)


def label_curve(scores: pd.DataFrame, *, metric: str, title: str = "") -> Figure:
    """A score against the share of bags with a label: columns method, labelled, value, a row a trial.

    >>> rows = pd.DataFrame({"method": ["a", "a"], "labelled": [0.1, 0.1], "value": [0.5, 0.7]})
    >>> label_curve(rows, metric="accuracy").frame().round(2).to_dict("records")
    [{'method': 'a', 'labelled': 0.1, 'mean': 0.6, 'sd': 0.14, 'trials': 2}]
    """
    grouped = scores.groupby(["method", "labelled"], sort=False)["value"]
    table = grouped.agg(mean="mean", sd="std", trials="size").reset_index()
    canvas, axes = blank(5.4, 3.8)
    for method, part in table.groupby("method", sort=False):
        line = part.sort_values("labelled")
        (drawn,) = axes.plot(line["labelled"], line["mean"], marker="o", markersize=4, label=str(method))
        half = line["sd"].fillna(0.0)
        axes.fill_between(
            line["labelled"], line["mean"] - half, line["mean"] + half, color=drawn.get_color(), alpha=0.12
        )
    axes.set_xscale("log")
    ticks = sorted(table["labelled"].unique())
    axes.set_xticks(ticks, [f"{100 * tick:.2g} %" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("bags with a label", color=INK)
    axes.set_ylabel(metric, color=INK)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    return Figure(canvas, table)
