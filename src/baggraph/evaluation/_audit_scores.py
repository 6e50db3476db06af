"""Printed scores beside what a constant gets on the same bags."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from baggraph.baselines import MajorityClassifier, MeanRegressor
from baggraph.data.bags import Bags
from baggraph.data.results import ResultTable
from baggraph.errors import DataFileError, InvalidBagsError, name_some
from baggraph.evaluation._audit_rules import division_of, scores_of
from baggraph.evaluation._findings import Finding
from baggraph.evaluation._tasks import task_of_labels
from baggraph.evaluation.metrics import METRICS

if TYPE_CHECKING:
    import pandas as pd

COMPARED = ("accuracy", "nd", "rmse", "mae")
SHARES = ("accuracy", "nd")  # printed in percent as often as not


def findings(bags: Bags, scores: Any, random_state: int) -> Iterator[Finding]:
    """Scores that are no better than a constant, metric by metric."""
    table = rows_for(bags, scores)
    for metric in dict.fromkeys(table["metric"]):
        if metric not in COMPARED:
            continue
        rows = table[(table["metric"] == metric) & table["mean"].notna()]
        constant = _constant(bags, str(metric), random_state)
        if len(rows) and constant is not None:
            yield from _compare(rows, str(metric), constant, int(bags.labelled.sum()))


def _compare(rows: pd.DataFrame, metric: str, constant: np.ndarray, n_bags: int) -> Iterator[Finding]:
    percent = metric in SHARES and float(rows["mean"].max()) > 1.5
    level, noise = float(constant.mean()), float(constant.std(ddof=1)) if len(constant) > 1 else 0.0
    if metric == "accuracy":  # however many folds: bags are finite
        noise = max(noise, float(np.sqrt(level * (1 - level) / n_bags)))
    level, noise = (number * (100 if percent else 1) for number in (level, noise))
    sign = 1 if METRICS[metric].larger_is_better else -1
    gain = sign * (rows["mean"].to_numpy(float) - level)
    spread = rows["spread"].fillna(noise).to_numpy(float)
    poor = gain <= spread
    if not poor.any():
        return
    best = rows.iloc[int(np.argmax(gain))]
    names = name_some(rows["method"][poor])
    measured = (
        f"{int(poor.sum())} of {len(rows)} scores in {metric} are no better than a constant ({level:.2f}) by more than "
        f"their spread over splits: {names}; {int((gain <= 0).sum())} are no better at all; the best is "
        f"{best['mean']:.2f} ({best['method']})"
    )
    why = "the methods may have learned nothing, whatever their names and their order in the table"
    advice = "put the constant into the table, and look for bags paired with the labels of others"
    severity = "serious" if poor.all() else "warning" if (gain <= 0).any() else "note"
    numbers = {"metric": metric, "constant": level, "best": float(best["mean"]), "poor": int(poor.sum())}
    yield Finding("BG602", severity, measured, why, advice, numbers | {"of": len(rows)})


def _constant(bags: Bags, metric: str, random_state: int) -> np.ndarray | None:
    """Scores of a constant, split by split; shares are scored in accuracy by the side of one half they are on."""
    if not bags.labelled.any() or bags.y.ndim > 1:
        return None
    bags = bags.take(bags.labelled).replace(graph=None)
    classify = METRICS[metric].task == "classification"
    if classify and task_of_labels(bags) == "regression":
        if bags.y.min() < 0 or bags.y.max() > 1:
            return None
        bags = bags.replace(y=(bags.y > 0.5).astype(np.int64))
    elif not classify and bags.y.dtype.kind == "O":
        return None
    division, _ = division_of(bags, classify, random_state)
    if division is None:
        return None
    return scores_of(MajorityClassifier() if classify else MeanRegressor(), bags, division, METRICS[metric])


# ---------------------------------------------------------------------- the table


def rows_for(bags: Bags, scores: Any) -> pd.DataFrame:
    """Columns method, metric, mean and spread, of the scores that concern these bags.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"dataset": ["a", "b"], "method": "mine", "metric": "accuracy", "mean": [0.5, 0.6]})
    >>> rows_for(Bags([[0.0]], [0, 1], metadata={"name": "b"}), table)["mean"].tolist()
    [0.6]
    """
    table = _frame(scores).rename(columns={"algorithm": "method", "std_error": "spread", "sd_splits": "spread"})
    absent = [name for name in ("metric", "mean") if name not in table]
    if absent:
        got = ", ".join(map(str, table.columns))
        remedy = "rename yours"
        raise InvalidBagsError("audit", expected=f"scores with a column {absent[0]!r}", got=got, remedy=remedy)
    defaults: dict[str, Any] = {"method": "?", "spread": np.nan}
    for name, value in defaults.items():
        if name not in table:
            table[name] = value
    return table[_concerned(bags, table)]


def _concerned(bags: Bags, table: pd.DataFrame) -> Any:
    """Rows whose data set or experiment is a part of the name of the bags; all, of a table on one data set."""
    columns = [name for name in ("dataset", "experiment") if name in table]
    sets = sorted({str(value) for name in columns[:1] for value in table[name]})
    if len(sets) <= 1:
        return np.ones(len(table), dtype=bool)
    parts = str(bags.metadata.get("name", "")).split("/")
    for column in columns:
        rows = table[column].astype(str).isin([bags.metadata.get("name", ""), *parts])
        if rows.any():
            return rows
    got, remedy = name_some(sets), "filter the table first"
    raise InvalidBagsError("audit", expected=f"scores on {'/'.join(parts) or 'these bags'!r}", got=got, remedy=remedy)


def _frame(scores: Any) -> pd.DataFrame:
    import pandas as pd

    if isinstance(scores, ResultTable):
        found = [scores.summary(metric).reset_index().assign(metric=metric) for metric in scores.names("metric")]
        return pd.concat(found, ignore_index=True)
    if isinstance(scores, str | Path):
        try:
            return pd.read_csv(scores)
        except (OSError, ValueError) as error:
            remedy = "write a header and a row a score"
            raise DataFileError("audit", expected=f"a table in {scores}", got=str(error), remedy=remedy) from error
    if not isinstance(scores, pd.DataFrame):
        got, remedy = f"a {type(scores).__name__}", "pass a path or a DataFrame"
        raise InvalidBagsError("audit", expected="a table of scores", got=got, remedy=remedy)
    return scores
