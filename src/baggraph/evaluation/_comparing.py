"""The tables of a comparison, and their text."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from baggraph.data.results import ResultTable
from baggraph.errors import BagWarning, InvalidBagsError, name_some
from baggraph.evaluation._holm import holm
from baggraph.evaluation.paired import corrected_t, ratio_of, signed_ranks
from baggraph.evaluation.ranks import FriedmanTest, critical_difference, friedman, nemenyi, ranks

if TYPE_CHECKING:
    from baggraph.evaluation.compare import Comparison

NAMES = ("dataset", "method", "other")
TIE = 1e-12  # means of rounded scores that differ by less are equal


@dataclass(frozen=True)
class Folds:
    """Scores of all methods on the folds of one data set, a column a method; ``ratio`` is n_test / n_train."""

    dataset: str
    values: pd.DataFrame
    ratio: float


def paired_folds(table: ResultTable, metric: str) -> list[Folds]:
    """Folds by data set, averaged over seeds, without those that some method has no score on: a warning names it."""
    frame = table.filter(metric=metric).frame()
    found = []
    for dataset, part in frame.groupby("dataset", sort=False):
        wide = part.groupby(["repeat", "fold", "method"], sort=False)["value"].agg(lambda v: v.mean(skipna=False))
        values = wide.unstack("method", sort=False)
        lacking = values.columns[values.isna().any()].tolist()
        if lacking:
            _warn(str(dataset), metric, lacking, int(values.isna().any(axis=1).sum()), len(values))
            lost = values.columns[values.isna().all()]  # scored on other data sets alone
            values = values.drop(columns=lost).dropna()
        ratio = ratio_of(part["n_test"], part["n_train"])
        if len(values) < 2 or not np.isfinite(ratio):
            got = f"{len(values)} on {dataset!r}" + ("" if np.isfinite(ratio) else " without counts of bags")
            remedy = "score all methods on the same folds with cross_validate"
            raise InvalidBagsError("compare", expected="at least 2 folds scored by all", got=got, remedy=remedy)
        found.append(Folds(str(dataset), values, ratio))
    return found


def _warn(dataset: str, metric: str, lacking: list[Any], n: int, of: int) -> None:
    got = f"none from {name_some(lacking)} on {n} of {of}"
    advice = "these folds, or methods without any, are left out"
    warnings.warn(f"compare: expected {metric} on all folds of {dataset!r}, got {got}; {advice}", BagWarning, 4)


# ---------------------------------------------------------------------- on every data set


def scores(folds: list[Folds], level: float) -> pd.DataFrame:
    """Means with corrected intervals."""
    rows = []
    for part in folds:
        for method in part.values:
            found = corrected_t(part.values[method], test_to_train=part.ratio, level=level)
            rows.append([part.dataset, method, found.mean, found.low, found.high, found.n])
    return pd.DataFrame(rows, columns=["dataset", "method", "mean", "low", "high", "n"])


def differences(folds: list[Folds], against: str | None, level: float) -> pd.DataFrame:
    """Paired differences with corrected tests."""
    rows = []
    for part in folds:
        for one, other in _couples(part.values.columns.tolist(), against):
            found = corrected_t(part.values[one] - part.values[other], test_to_train=part.ratio, level=level)
            rows.append([part.dataset, one, other, found.mean, found.low, found.high, found.p])
    columns = ["dataset", "method", "other", "difference", "low", "high", "p"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(p_holm=holm(table["p"].to_numpy(dtype=np.float64)))


def _couples(methods: list[str], against: str | None) -> Iterator[tuple[str, str]]:
    if against is None:
        return combinations(methods, 2)
    return ((one, against) for one in methods if one != against and against in methods)


# ---------------------------------------------------------------------- over data sets


@dataclass(frozen=True)
class OverSets:
    """Ranks, and tests of pairs over data sets."""

    ranks: pd.DataFrame
    pairs: pd.DataFrame
    friedman: FriedmanTest | None
    critical: float | None


def over_sets(means: pd.DataFrame, larger_is_better: bool, against: str | None, alpha: float) -> OverSets:
    """Rank methods by their means on the data sets that all of them were scored on."""
    wide = means.pivot_table(index="dataset", columns="method", values="mean", sort=False)
    wide = wide.round(12).dropna()
    if not len(wide):
        remedy = "compare fewer methods, or score the rest"
        raise InvalidBagsError("compare", expected="a data set scored by all methods", got="none", remedy=remedy)
    place = pd.DataFrame(ranks(wide, larger_is_better=larger_is_better), wide.index, wide.columns)
    table = pd.DataFrame({"mean_rank": place.mean(), "median_rank": place.median(), "mean": wide.mean()})
    table = table.sort_values("mean_rank", kind="stable")
    if len(wide) < 2:
        return OverSets(table, _no_pairs(), None, None)
    pairs = _pairs(wide if larger_is_better else -wide, place, against)
    return OverSets(table, pairs, friedman(wide), critical_difference(wide.shape[1], len(wide), alpha))


def _pairs(better: pd.DataFrame, place: pd.DataFrame, against: str | None) -> pd.DataFrame:
    """Wins, ties, losses and tests of every pair, of means of which more is better."""
    by_ranks = pd.DataFrame(nemenyi(place.mean(), len(place)), place.columns, place.columns)
    rows = []
    for one, other in _couples(better.columns.tolist(), against):
        gap = (better[one] - better[other]).to_numpy()
        counts = [int((gap > TIE).sum()), int((np.abs(gap) <= TIE).sum()), int((gap < -TIE).sum())]
        rows.append(
            [one, other, *counts, signed_ranks(np.where(np.abs(gap) <= TIE, 0.0, gap)), by_ranks.loc[one, other]]
        )
    table = pd.DataFrame(rows, columns=[*_no_pairs().columns.drop("p_holm")])
    return table.assign(p_holm=holm(table["p_wilcoxon"].to_numpy(dtype=np.float64)))


def _no_pairs() -> pd.DataFrame:
    names = ["method", "other", "wins", "ties", "losses", "p_wilcoxon", "p_nemenyi", "p_holm"]
    return pd.DataFrame([], columns=names)


# ---------------------------------------------------------------------- words


def text(found: Comparison) -> str:
    """All tables as people read them."""
    sets = found.scores["dataset"].nunique()
    direction = "larger" if found.larger_is_better else "smaller"
    cover = f"{100 * (1 - found.level):.0f} %"
    parts = [
        f"{found.metric} of {len(found.ranks)} methods on {sets} data set{'s' * (sets > 1)}; {direction} is better",
        f"Means and {cover} intervals, corrected for folds that share training bags\n" + _scores_text(found),
        f"Differences on the same folds: corrected t-test, Holm for {len(found.differences)} tests\n"
        + _lines(found.differences, ["dataset", "method", "other", "difference", "low", "high", "p", "p_holm"]),
    ]
    if found.friedman is not None:
        parts.append(_over_sets_text(found))
    return "\n\n".join(parts)


def _scores_text(found: Comparison) -> str:
    return _lines(found.scores, ["dataset", "method", "mean", "low", "high", "n"])


def _over_sets_text(found: Comparison) -> str:
    test = found.friedman
    assert test is not None  # noqa: S101  (the caller looked)
    lines = [
        "Over data sets (mean ranks, 1 is best)",
        _lines(found.ranks.reset_index(names="method"), ["method", "mean_rank", "median_rank", "mean"]),
        f"Friedman: chi2 = {test.statistic:.3f}, p = {_p(test.p)}",
        f"Iman-Davenport: F = {test.f:.3f}, p = {_p(test.p_f)}",
        f"Nemenyi: mean ranks differ at {100 * found.level:.0f} % if they are {found.critical_difference:.2f} apart",
        _lines(found.pairs, ["method", "other", "wins", "ties", "losses", "p_wilcoxon", "p_holm", "p_nemenyi"]),
    ]
    return "\n".join(lines)


def _lines(table: pd.DataFrame, columns: list[str]) -> str:
    """Columns side by side, names to the left and numbers to the right."""
    cells = [[name, *map(_shown(name), table[name])] for name in columns]
    widths = [max(map(len, column)) for column in cells]
    lines = []
    for line in zip(*cells, strict=True):
        aligned = zip(columns, line, widths, strict=True)
        lines.append("  ".join(cell.ljust(w) if name in NAMES else cell.rjust(w) for name, cell, w in aligned).rstrip())
    return "\n".join(lines)


def _shown(column: str) -> Callable[[Any], str]:
    return str if column in NAMES else _p if column.startswith("p") else _number


def _number(value: Any) -> str:
    return str(value) if isinstance(value, int | np.integer) else f"{value:.4g}"


def _p(value: float) -> str:
    return "<0.0001" if value < 1e-4 else f"{value:.4f}"


def as_json(found: Comparison) -> str:
    """All tables as JSON."""

    def rows(table: pd.DataFrame) -> list[dict[str, Any]]:
        return json.loads(table.to_json(orient="records"))

    return json.dumps(
        {
            "metric": found.metric,
            "larger_is_better": found.larger_is_better,
            "level": found.level,
            "scores": rows(found.scores),
            "differences": rows(found.differences),
            "ranks": rows(found.ranks.reset_index(names="method")),
            "pairs": rows(found.pairs),
            "friedman": None if found.friedman is None else asdict(found.friedman),
            "critical_difference": found.critical_difference,
        },
        indent=2,
        ensure_ascii=False,
    )
