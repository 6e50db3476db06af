"""Our numbers beside the printed ones, and a sentence about each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from baggraph import datasets
from baggraph.data.results import ResultTable
from baggraph.evaluation.paired import corrected_t, signed_ranks
from baggraph.experiments._scores import SCORES
from baggraph.experiments.recipe import Claim, Recipe

__all__ = ["cells", "claims", "one_line", "stars"]

COLUMNS = [
    "method",
    "role",
    "dataset",
    "metric",
    "ours",
    "sd",
    "repeats",
    "of",
    "printed",
    "printed_sd",
    "difference",
    "tolerance",
    "device",
    "hours",
    "verdict",
]
LEVEL = 0.05
NO_GAIN = 1e-9  # means of equal folds differ by rounding
FEWEST_SETS = 5  # that a test over sets can tell anything from


def cells(recipe: Recipe, table: ResultTable) -> pd.DataFrame:
    """A row a method, set and metric: ours, printed, and a verdict; without a number, the reason."""
    means = _of_repeats(recipe, table)
    metrics = list(dict.fromkeys([*recipe.expected, *recipe.metrics]))
    rows = []
    for metric in metrics:
        for method in recipe.methods:
            if method.metrics is not None and metric not in method.metrics:
                continue
            for dataset in recipe.datasets:
                rows.append(_cell(recipe, method.name, method.role, dataset, metric, means))
    return pd.DataFrame(rows, columns=COLUMNS)


def _of_repeats(recipe: Recipe, table: ResultTable) -> pd.DataFrame:
    """The mean of every repeat over its folds, in printed units; NaN where a fold failed."""
    frame = table.frame()
    keys = ["method", "dataset", "metric", "repeat"]
    grouped = frame.groupby(keys, sort=False)
    found = grouped["value"].agg(lambda values: values.mean(skipna=False)).rename("value").reset_index()
    found["device"] = grouped["device"].first().to_numpy()
    found["seconds"] = grouped["wall_time"].sum().to_numpy()
    found["value"] *= found["metric"].map(lambda name: recipe.scales.get(name, 1.0)).to_numpy(dtype=np.float64)
    return found


def _cell(recipe: Recipe, method: str, role: str, dataset: str, metric: str, means: pd.DataFrame) -> dict[str, Any]:
    mine = means[(means["method"] == method) & (means["dataset"] == dataset) & (means["metric"] == metric)]
    values = mine["value"].to_numpy(dtype=np.float64)
    printed = recipe.expected.get(metric, {}).get(method, {}).get(dataset, ())
    row: dict[str, Any] = {"method": method, "role": role, "dataset": dataset, "metric": metric}
    row |= {"ours": values.mean() if len(values) else math.nan, "repeats": len(values), "of": recipe.repeats}
    row |= {"sd": values.std(ddof=1) if len(values) > 1 else math.nan}
    row |= {"printed": printed[0] if printed else math.nan, "printed_sd": printed[1] if printed[1:] else math.nan}
    share = recipe.tolerances.get(method, recipe.tolerance)
    row |= {"difference": row["ours"] - row["printed"], "tolerance": share * (row["printed"] if recipe.relative else 1)}
    row |= {"device": mine["device"].iloc[0] if len(mine) else "", "hours": mine["seconds"].sum() / 3600}
    return row | {"verdict": _sentence(recipe, row)}


def _sentence(recipe: Recipe, row: dict[str, Any]) -> str:
    explained = recipe.explained.get(row["method"], recipe.explained.get("*", ""))
    because = f"; printed claim explained: {explained}" if explained and not math.isnan(row["printed"]) else ""
    if not row["repeats"]:
        return _absence(row["dataset"]) + because
    if math.isnan(row["ours"]):
        return "not defined, or failed: see the notes and errors of the rows"
    if math.isnan(row["printed"]):
        return "not printed"
    if recipe.comparable:
        return f"cannot be compared: {recipe.comparable}{because}"
    if abs(row["difference"]) <= row["tolerance"]:
        return f"reproduced{because}"
    if row["repeats"] < row["of"] and abs(row["difference"]) <= 2 * row["tolerance"]:
        return f"undecided: {row['difference']:+.2f} after {row['repeats']} of {row['of']} repeats{because}"
    return f"not reproduced: {abs(row['difference']):.2f} {'above' if row['difference'] > 0 else 'below'}{because}"


def _absence(dataset: str) -> str:
    if datasets.state(datasets.card(dataset)) == "by hand":
        return "no number: the original file could not be had; supply it, and it is run"
    return "no number: not run in this folder, for want of computing time"


# ---------------------------------------------------------------------- sentences of the paper


def claims(recipe: Recipe, table: ResultTable) -> pd.DataFrame:
    """A row a claim and set: the paired difference, its tests, and whether the claim survives.

    Pairs are splits, or folds of all repeats.  ``p_wilcoxon`` is the paper's signed rank test, which takes overlapping
    splits for independent; ``p_corrected`` the t-test of Nadeau & Bengio (2003), which does not.
    """
    frame = table.frame()
    rows = []
    for claim in recipe.claims:
        common = {"claim": claim.says, "metric": claim.metric}
        found = {dataset: _paired(claim, dataset, frame) for dataset in claim.datasets or recipe.datasets}
        known = {dataset: pair for dataset, pair in found.items() if pair is not None}
        rows += [common | {"dataset": dataset} | pair for dataset, pair in known.items()]
        if len(known) >= FEWEST_SETS:
            rows.append(
                common | {"dataset": f"all {len(known)} sets"} | _over_sets([p["gain"] for p in known.values()])
            )
    columns = ["claim", "dataset", "metric", "gain", "pairs", "p_wilcoxon", "p_corrected", "verdict"]
    made = pd.DataFrame(rows, columns=columns)
    made["gain"] *= made["metric"].map(lambda name: recipe.scales.get(name, 1.0)).to_numpy(dtype=np.float64)
    return made


def _over_sets(gains: list[float]) -> dict[str, Any]:
    """Wilcoxon's test with a set as one pair, which is what it is meant for (Demsar 2006)."""
    p = {"p_wilcoxon": signed_ranks(gains), "p_corrected": math.nan}
    return {"gain": float(np.mean(gains)), "pairs": len(gains), **p, "verdict": _survives(float(np.mean(gains)), p)}


def _paired(claim: Claim, dataset: str, frame: pd.DataFrame) -> dict[str, Any] | None:
    """Gain of the better over the other, where both were scored on the same tested bags."""
    mine = frame[(frame["dataset"] == dataset) & (frame["metric"] == claim.metric)]
    where = ["repeat", "fold"]
    better, than = (mine[mine["method"] == name].set_index(where)["value"] for name in (claim.better, claim.than))
    sizes = mine.drop_duplicates(where).set_index(where)
    gains = (better - than).dropna()
    if len(gains) < 2:
        return None
    if not SCORES[claim.metric].larger_is_better:
        gains = -gains
    shares = (sizes["n_test"] / sizes["n_train"]).reindex(gains.index).to_numpy(dtype=np.float64)
    corrected = corrected_t(gains, test_to_train=float(shares.mean()))
    p = {"p_wilcoxon": signed_ranks(gains), "p_corrected": corrected.p}
    return {"gain": gains.mean(), "pairs": len(gains), **p, "verdict": _survives(float(gains.mean()), p)}


def _survives(gain: float, p: dict[str, float]) -> str:
    decisive = p["p_wilcoxon"] if math.isnan(p["p_corrected"]) else p["p_corrected"]
    if gain <= NO_GAIN:
        return "does not hold: significantly worse" if decisive <= LEVEL else "does not hold: no gain"
    if decisive <= LEVEL:
        return "holds"
    return "holds by the paper's test alone" if p["p_wilcoxon"] <= LEVEL else "a gain that may be chance"


def one_line(recipe: Recipe, found: pd.DataFrame) -> str:
    """The table in a line.

    >>> from baggraph.experiments.recipe import recipes
    >>> recipe = recipes()["rental-25"]
    >>> one_line(recipe, pd.DataFrame([], columns=COLUMNS))
    'rental-25 (Table 4, sound): ours beside 0 printed numbers'
    """
    printed = found[~found["printed"].isna() & found["ours"].notna()]
    words = ("reproduced", "undecided", "not reproduced", "cannot be compared")
    counts: Sequence[str] = [
        f"{n} {word}" for word in words if (n := int(printed["verdict"].str.startswith(word).sum()))
    ]
    told = f": {', '.join(counts)}" if counts else ""
    absent = int((found["ours"].isna() & found["printed"].notna()).sum())
    lacking = f"; {absent} printed numbers have none beside them" if absent else ""
    where = f"{recipe.name} ({recipe.source}, {recipe.protocol})"
    return f"{where}: ours beside {len(printed)} printed numbers{told}{lacking}"


# ---------------------------------------------------------------------- stars


def stars(recipe: Recipe, table: ResultTable) -> pd.DataFrame:
    """Stars as the paper gives them: one where a row is better than its base model, two where than its rival as well.

    The rival of a -GCN is its Bayesian row, and the other way round.  ``wilcoxon`` counts by the paper's test,
    ``corrected`` by the corrected t-test, both at 5 %.
    """
    frame = table.frame()
    rows = []
    directed = [name for name in recipe.expected or recipe.metrics if SCORES[name].larger_is_better is not None]
    for metric, dataset in itertools.product(directed, recipe.datasets):
        for base, *rivals in recipe.families:
            for name, rival in zip(rivals, reversed(rivals), strict=True):
                pairs = [
                    _paired(Claim(says="", better=name, than=than, metric=metric), dataset, frame)
                    for than in (base, rival)
                ]
                known = [pair for pair in pairs if pair is not None]
                if len(known) < 2:
                    continue
                printed = recipe.expected.get(metric, {}).get(name, {}).get(dataset, ())
                row = {"method": name, "dataset": dataset, "metric": metric}
                row |= {key: _count(known, f"p_{key}") for key in ("wilcoxon", "corrected")}
                rows.append(row | {"printed": "*" * int(printed[2]) if printed[2:] else ""})
    return pd.DataFrame(rows, columns=["method", "dataset", "metric", "wilcoxon", "corrected", "printed"])


def _count(pairs: Sequence[dict[str, Any]], test: str) -> str:
    """Stars of one row, from its pairs with the base model and with the rival."""
    than_base, than_rival = (pair["gain"] > NO_GAIN and pair[test] <= LEVEL for pair in pairs)
    return "**" if than_base and than_rival else "*" if than_base else ""
