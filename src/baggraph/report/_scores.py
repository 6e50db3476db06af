"""Scores of a result table as a page shows them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from html import escape
from typing import Any

import pandas as pd

from baggraph.data.results import ResultTable
from baggraph.errors import BagError, BagWarning
from baggraph.evaluation.compare import Comparison, compare
from baggraph.evaluation.metrics import METRICS
from baggraph.report import _charts as charts
from baggraph.report._pieces import html_table

MOST_DECIMALS = 5
LEADING = ("accuracy", "rmse")


def leading_metric(table: ResultTable) -> str:
    """The metric that a page speaks of first: accuracy or RMSE, or else the first of which more or less is better."""
    present = table.names("metric")
    ordered = [name for name in present if name in METRICS and METRICS[name].larger_is_better is not None]
    return str(next((name for name in (*LEADING, *ordered) if name in present), present[0]))


def leading_sentence(table: ResultTable) -> str:
    """Who leads, and whether the lead is more than chance would give.

    >>> rows = [{"method": m, "dataset": "d", "metric": "accuracy", "fold": f, "value": v + f / 100, "n_train": 90,
    ...          "n_test": 10} for m, v in (("a", 0.5), ("b", 0.9)) for f in range(5)]
    >>> leading_sentence(ResultTable.from_rows(rows))
    'On d, b leads by accuracy with 92.0 %; the next is a with 52.0 %, and the difference is more than chance.'
    """
    metric = leading_metric(table)
    found = _compared(table, metric)
    told = []
    for dataset in table.names("dataset"):
        means = _ordered(table, dataset, metric)["mean"]
        if means.empty:
            continue
        text = f"On {dataset}, {means.index[0]} leads by {metric} with {_worded(means.iloc[0], metric)}"
        if len(means) > 1:
            text += f"; the next is {means.index[1]} with {_worded(means.iloc[1], metric)}"
            text += _verdict(found, dataset, str(means.index[0]), str(means.index[1]))
        told.append(text + ".")
    return " ".join(told)


def _compared(table: ResultTable, metric: str) -> Comparison | None:
    """Tests in pairs; None where there are no pairs of folds: one method, one fold, a metric without a better."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BagWarning)  # of folds that some method lacks: the page counts splits
        try:
            return compare(table, metric)
        except BagError:
            return None


def _verdict(found: Comparison | None, dataset: str, best: str, second: str) -> str:
    row = None if found is None else _difference(found, dataset, best, second)
    if row is None or pd.isna(p := row["p_holm"]):
        return ""
    return ", and the difference is more than chance" if p < 0.05 else ", and chance may explain the difference"


def _difference(found: Comparison, dataset: str, one: str, other: str) -> dict[Any, Any] | None:
    """The row of a pair, with the sign of ``one`` less ``other``."""
    for row in found.differences.reset_index().to_dict("records"):
        if row["dataset"] != dataset or {row["method"], row["other"]} != {one, other}:
            continue
        if row["method"] == one:
            return row
        return {**row, "difference": -row["difference"], "low": -row["high"], "high": -row["low"]}
    return None


def _ordered(table: ResultTable, dataset: str, metric: str) -> pd.DataFrame:
    """Methods of one data set from best to worst."""
    chosen = table.filter(dataset=dataset)
    if metric not in chosen.names("metric"):
        return pd.DataFrame({"mean": []})
    found = pd.DataFrame(chosen.summary(metric).loc[dataset])
    ascending = metric in METRICS and not METRICS[metric].larger_is_better
    return found.dropna(subset=["mean"]).sort_values("mean", ascending=ascending, kind="stable")


def _worded(value: float, metric: str) -> str:
    return f"{100 * value:.1f} %" if metric.endswith("accuracy") else f"{value:.3g}"


def graph_sentences(table: ResultTable) -> list[str]:
    """What each graph is good for, where the table has the controls that answer it: a sentence a verdict, or none."""
    from baggraph.evaluation.graph_help import GRAPHS, NO_GRAPH, SHUFFLED, GraphHelp

    present = table.names("method")
    if len(table.names("dataset")) != 1 or not {NO_GRAPH, SHUFFLED} <= set(present) or not set(GRAPHS) & set(present):
        return []
    found = _compared(table, leading_metric(table))
    if found is None:
        return []
    answers: dict[str, list[str]] = {}
    for name, verdict in GraphHelp(table, found).verdicts.items():
        answers.setdefault(verdict, []).append(name)
    return [f"The {' and the '.join(names)}: {verdict}." for verdict, names in answers.items()]


def comparison(table: ResultTable) -> str:
    """A picture and two tables a data set; ranks over several."""
    metric = leading_metric(table)
    found = _compared(table, metric)
    parts = [part for dataset in table.names("dataset") for part in _of_one_set(table, str(dataset), metric, found)]
    if found is not None and found.friedman is not None:
        parts.append("<h3>Over all data sets</h3>")
        rows = [
            [str(name), f"{row['mean_rank']:.2f}", f"{row['median_rank']:.1f}"] for name, row in found.ranks.iterrows()
        ]
        parts.append(html_table(["method", "mean rank", "median rank"], rows, "Ranks, 1 the best", right=1))
        parts.append(f"<p>Friedman's test: p = {found.friedman.p:.2g}.</p>")
    if verdicts := graph_sentences(table):
        parts.append("<h3>Does the graph help?</h3>")
        told = "One model with no graph, its graph shuffled, and every graph, averaged over equally many draws."
        parts.append(f"<p>{told}</p><ul>{''.join(f'<li>{escape(text)}</li>' for text in verdicts)}</ul>")
    return "\n".join(parts)


def _of_one_set(table: ResultTable, dataset: str, metric: str, found: Comparison | None) -> list[str]:
    ordered = _ordered(table, dataset, metric)
    if ordered.empty:
        return []
    bounds = _bounds(found, dataset)
    scale, unit = (100.0, f"{metric}, %") if metric.endswith("accuracy") else (1.0, metric)
    ends = [bounds.get(str(n), (float(m), float(m))) for n, m in ordered["mean"].items()]
    chart = [
        (str(n), scale * float(m), scale * low, scale * high)
        for (n, m), (low, high) in zip(ordered["mean"].items(), ends, strict=True)
    ]
    best = str(ordered.index[0])
    more = [name for name in table.filter(dataset=dataset).names("metric") if name != metric]
    means = {name: table.filter(dataset=dataset).summary(name).loc[dataset]["mean"] for name in more}
    show = _alike([value for row in chart for value in row[1:]])
    rows = [
        [str(name), show(row[1]), f"{show(row[2])} to {show(row[3])}" if str(name) in bounds else ""]
        + [show(scale * spread), f"{n:.0f}", *_behind(found, dataset, best, str(name), show, scale)]
        + [_alike(means[m])(means[m].get(name)) for m in more]
        for (name, spread, n), row in zip(ordered[["sd_splits", "n"]].itertuples(), chart, strict=True)
    ]
    head = ["method", unit, "95 % interval", "sd over splits", "splits", "behind the best", "p (Holm)", *more]
    picture = charts.intervals(chart, f"{metric} of methods on {dataset}", f"{unit}, with its 95 % interval")
    why = "Intervals and t-tests are corrected for the training bags that folds share, p-values also for all pairs."
    why = "" if found is None else f'<p class="quiet">{why}</p>'
    return [
        f"<h3>{escape(dataset)}</h3>",
        f'<figure tabindex="0" aria-label="{escape(unit)} of the methods">{picture}</figure>',
        html_table(head, rows, f"Means over splits, {dataset}", right=1),
        why,
    ]


def _bounds(found: Comparison | None, dataset: str) -> dict[str, tuple[float, float]]:
    if found is None:
        return {}
    rows = found.scores.reset_index().to_dict("records")
    return {str(row["method"]): (row["low"], row["high"]) for row in rows if row["dataset"] == dataset}


def _behind(found: Comparison | None, dataset: str, best: str, name: str, show: Any, scale: float) -> list[str]:
    row = None if found is None or name == best else _difference(found, dataset, best, name)
    if row is None:
        return ["", ""]
    p = row["p_holm"]
    return [show(scale * abs(row["difference"])), "" if pd.isna(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"]


def _alike(values: Any) -> Callable[[Any], str]:
    """Writes numbers of a column with equally many decimals.

    >>> show = _alike([93.75, 50.0])
    >>> show(93.75), show(None), _alike([0.5, 0.25])(0.5), _alike([1200.0])(1234.5)
    ('93.8', '', '0.500', '1,234')
    >>> _alike([0.0009, 0.2])(0.0009)
    '0.00090'
    """
    sizes = [abs(v) for v in values if pd.notna(v) and v]
    decimals = 3 if max(sizes, default=0.0) < 10 else 1 if max(sizes) < 1000 else 0
    if decimals == 3:  # very small ones have more
        decimals = min(max(3, 1 - math.floor(math.log10(min(sizes, default=1.0)))), MOST_DECIMALS)
    # Adding zero makes a plain one of a negative one.
    return lambda value: "" if value is None or pd.isna(value) else f"{round(value, decimals) + 0.0:,.{decimals}f}"
