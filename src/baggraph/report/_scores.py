"""Scores of a result table as a page shows them."""

from __future__ import annotations

from html import escape

import numpy as np
import pandas as pd

from baggraph.data.results import ResultTable
from baggraph.evaluation.metrics import METRICS
from baggraph.report import _charts as charts
from baggraph.report._pieces import html_table

LEADING = ("accuracy", "rmse")
OTHERS = ("auc", "balanced_accuracy", "nll", "ece", "mae", "mape", "nd", "r2", "coverage")


def leading_metric(table: ResultTable) -> str:
    """The metric that a page speaks of first."""
    present = table.names("metric")
    return next((name for name in (*LEADING, *OTHERS) if name in present), present[0])


def leading_sentence(table: ResultTable) -> str:
    """Who leads, and whether the lead is more than the spread.

    >>> rows = [{"method": m, "dataset": "d", "metric": "accuracy", "repeat": r, "value": v + r / 100}
    ...         for m, v in (("a", 0.5), ("b", 0.9)) for r in range(3)]
    >>> leading_sentence(ResultTable.from_rows(rows))
    'Best of 2 methods by accuracy on d: b, 91.0 % (a, the next, 51.0 %).'
    """
    metric = leading_metric(table)
    summary = table.summary(metric)
    told = []
    for dataset in table.names("dataset"):
        found = _ordered(summary.loc[dataset], metric)
        if found.empty:
            continue
        best = f"{found.index[0]}, {_worded(found['mean'].iloc[0], metric)}"
        if len(found) > 1:
            best += f" ({found.index[1]}, the next, {_worded(found['mean'].iloc[1], metric)})"
        told.append(f"Best of {len(found)} methods by {metric} on {dataset}: {best}.")
    return " ".join(told)


def _ordered(found: pd.DataFrame, metric: str) -> pd.DataFrame:
    known = found[found["mean"].notna()]
    ascending = metric in METRICS and not METRICS[metric].larger_is_better
    return known.sort_values("mean", ascending=ascending, kind="stable")


def _worded(value: float, metric: str) -> str:
    return f"{100 * value:.1f} %" if metric.endswith("accuracy") else f"{value:.4g}"


def comparison(table: ResultTable) -> str:
    """A table and a picture a data set, methods from best to worst."""
    metric = leading_metric(table)
    more = [name for name in OTHERS if name in table.names("metric") and name != metric]
    parts = []
    for dataset in table.names("dataset"):
        found = _ordered(table.filter(dataset=dataset).summary(metric).loc[dataset], metric)
        spread = found["sd_splits"].fillna(0.0)
        chart = [(str(n), m, m - s, m + s) for n, m, s in zip(found.index, found["mean"], spread, strict=True)]
        extra = {name: table.filter(dataset=dataset).summary(name).loc[dataset]["mean"] for name in more}
        rows = [
            [str(name), f"{row['mean']:.4g}", f"{row['sd_splits']:.2g}", f"{row['sd_repeats']:.2g}", f"{row['n']:.0f}"]
            + [f"{extra[m].get(name, np.nan):.4g}" for m in more]
            for name, row in found.iterrows()
        ]
        parts.append(f"<h3>{escape(str(dataset))}</h3>")
        parts.append(
            charts.intervals(
                chart, f"{metric} of methods on {dataset}", f"{metric}, with its standard deviation over splits"
            )
        )
        head = ["method", metric, "sd over splits", "sd over repeats", "splits", *more]
        parts.append(html_table(head, rows, f"Means over splits, {dataset}", right=1))
    return "\n".join(parts)
