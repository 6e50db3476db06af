"""The committee, fixed in advance, on the reported sets: run once, beside the average kernel and trivial rows.

python benchmarks/auto.py -o runs/auto --jobs 16                      everything below, then the tables
python benchmarks/auto.py -o runs/auto --jobs 16 --sets benchmark     the five benchmark sets, 10 x 10 stratified folds
python benchmarks/auto.py -o runs/auto --jobs 16 --sets text          the rebuilt text sets and comp.graphics
python benchmarks/auto.py -o runs/auto --jobs 16 --sets rental votes  the published splits
python benchmarks/auto.py -o runs/auto --sets musk1 --repeats 2
python benchmarks/auto.py -o runs/auto --report --others runs/full/text-rebuilt runs/full/text-original

Prints accuracy beside the other methods; NLL, ECE, Brier score and the coverage of 90 % sets or intervals of the
committee on all tasks; and ranks over the text sets, against all methods in the folders named by --others as well.
A repeat (or five splits) of a method that is in the folder is not computed again.  Tables see no label, and are made
from all bags of a set; whatever is fitted, calibrated or weighted is so on the training bags of the fold alone.  Give
every process one thread: OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from itertools import starmap
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from baggraph import AutoBagClassifier, AutoBagRegressor, Posterior, ResultTable, datasets
from baggraph.baselines import AverageKernelSVM, MajorityClassifier, MeanRegressor, OneNumberClassifier, SummarySVM
from baggraph.data._fingerprint import fingerprint
from baggraph.data.splits import pairs, stratified_folds
from baggraph.evaluation._answers import from_posterior
from baggraph.evaluation._provenance import provenance, rows_of
from baggraph.evaluation._running import Outcome, Trial
from baggraph.evaluation.metrics import METRICS, metrics_for
from gp import sampled

BENCHMARK = ("musk1", "musk2", "fox", "tiger", "elephant")
BEST_PRINTED = {"musk1": 90.9, "musk2": 90.3, "fox": 63.9, "tiger": 86.0, "elephant": 87.5}
REGIONS = {
    "rental": ("rental", None),
    "rental, 25 listings": ("rental", 25),
    "votes, ZIP areas": ("election/zcta", None),
    "votes, tracts": ("election/tracts", None),
}
SAME = ("auto", "committee", "average kernel")  # names of what this file computes, in folders of other runs
AT_ONCE = 5  # splits of regions
FOLDS = 10
COVERAGE = 0.9
CLASSES = {
    "auto": AutoBagClassifier(),
    "average kernel": AverageKernelSVM(),
    "summary SVM": SummarySVM(),
    "largest norm": OneNumberClassifier(number="largest norm"),
    "majority": MajorityClassifier(),
}
TOLD = ["accuracy", "nll", "brier", "ece", "auc"]
MEASURED = ["rmse", "mape", "nd", "nll", "coverage", "width"]


# ---------------------------------------------------------------------- work


def work(name: str, method: str, number: int, last: int) -> ResultTable:
    """All rows of one method on one repeat, or on splits from ``number`` up to ``last``."""
    warnings.simplefilter("ignore")
    return regions(name, method, range(number, last)) if name in REGIONS else repeat_of(name, method, number)


def repeat_of(name: str, method: str, repeat: int) -> ResultTable:
    bags, model = datasets.load(name), CLASSES[method]
    division = stratified_folds(bags.y, folds=FOLDS, repeats=10, random_state=0)
    folds = list(pairs(division[repeat]))
    task = "benchmark" if name in BENCHMARK else "text"
    origin = {"task": task, "dataset": name, "data_sha256": fingerprint(bags), "setting": "transductive"}
    origin |= provenance(method, model, division, "transductive")
    covered: list[dict[str, float]] = [{} for _ in folds]
    if method == "auto":
        outcomes, covered = committee_of_classes(model, bags, folds)
    else:
        outcomes = Trial(bags, transductive=True, classify=True, believe=True).run(model, folds)
    rows = []
    for fold, ((train, test), outcome, more) in enumerate(zip(folds, outcomes, covered, strict=True)):
        known = origin | {"repeat": repeat, "fold": fold, "n_train": len(train), "n_test": len(test)}
        rows += rows_of(known, outcome, metrics_for("classification", TOLD), bags.y[test])
        rows += [known | {"metric": metric, "value": value} for metric, value in more.items()]
    if method == "auto":
        whole = origin | {"repeat": repeat, "fold": 0, "n_test": len(bags)}
        rows.append(whole | {"metric": "pooled ece", "value": pooled_ece(outcomes, bags, folds)})
    return ResultTable.from_rows(rows)


def pooled_ece(outcomes: list[Outcome], bags: Any, folds: list[Any]) -> float:
    """Of all bags of a repeat, each as its fold was told: of the few bags of one fold, any ECE is far above zero."""
    parts = [outcome.answer.believed for outcome in outcomes]
    told = Posterior(np.concatenate([part.mean for part in parts])[None], classes=parts[0].classes)
    return METRICS["ece"](bags.y[np.concatenate([test for _, test in folds])], told)


def committee_of_classes(model: Any, bags: Any, folds: list[Any]) -> tuple[list[Outcome], list[dict[str, float]]]:
    masks = np.zeros((len(folds), len(bags)), dtype=bool)
    for mask, (train, _) in zip(masks, folds, strict=True):
        mask[train] = True
    started, outcomes, covered = time.perf_counter(), [], []
    for (posterior, conformal), (_, test) in zip(model._each(bags, masks), folds, strict=True):
        part = posterior.take(test)
        sets = conformal.sets(part, COVERAGE)
        inside = sets[np.arange(len(test)), part.codes(bags.y[test])]
        covered.append({"set coverage": float(inside.mean()), "set size": float(sets.sum(axis=1).mean())})
        outcomes.append(Outcome(from_posterior(part), None, time.perf_counter() - started))
        started = time.perf_counter()
    return outcomes, covered


def regions(name: str, method: str, splits: range) -> ResultTable:
    """Five splits of rents or votes; what is sampled of a bag is sampled anew in every split."""
    dataset, listings = REGIONS[name]
    bags, votes = datasets.load(dataset), name.startswith("votes")
    masks = bags.splits["published-100"] < 0
    model = models_of_regions(votes)[method]
    origin = {"task": "rental" if not votes else "election", "dataset": name, "data_sha256": fingerprint(bags)}
    origin |= provenance(method, model, bags.splits["published-100"], "transductive") | {"setting": "transductive"}
    blocks = [[split] for split in splits] if listings else [list(splits)]
    rows = []
    for some in blocks:
        own = sampled(bags, listings, some[0]) if listings else bags
        started = time.perf_counter()
        found = list(answers_of_regions(model, own, masks[some]))
        each = (time.perf_counter() - started) / len(some)
        for split, (posterior, conformal) in zip(some, found, strict=True):
            tested = ~masks[split]
            part, y = posterior.take(tested), np.asarray(bags.y[tested], dtype=np.float64)
            values = {
                metric: METRICS[metric](y, part) for metric in MEASURED if part.has_noise or metric in MEASURED[:3]
            }
            if not votes and "nll" in values:
                values["nll"] -= float(np.log(y).mean())  # of the logarithm of rents
            if votes:
                values["accuracy"] = float(((part.mean[:, 0] > 0.5) == (y > 0.5)).mean())
            if conformal is not None:
                low, high = conformal.intervals(part, COVERAGE)[:, 0].T
                values |= {
                    "set coverage": float(((low <= y) & (y <= high)).mean()),
                    "set size": float((high - low).mean()),
                }
            known = origin | {"repeat": split, "fold": 0, "wall_time": each}
            known |= {"n_train": int(masks[split].sum()), "n_test": int(tested.sum())}
            rows += [known | {"metric": metric, "value": value} for metric, value in values.items()]
    return ResultTable.from_rows(rows)


def models_of_regions(votes: bool) -> dict[str, Any]:
    return {
        "auto": AutoBagRegressor(geographic=True, weights="population" if votes else None),
        "mean": MeanRegressor(),
    }


def answers_of_regions(model: Any, bags: Any, masks: Any) -> Any:
    if isinstance(model, AutoBagRegressor):
        yield from model._each(bags, masks)
        return
    for mask in masks:
        answer = model.fit(bags.take(mask)).predict(bags)
        yield Posterior(np.asarray(answer)[None, :, None], bags.ids), None


def run(folder: Path, names: list[str], repeats: int, splits: int, jobs: int) -> None:
    """What is missing, block by block, each written as it ends."""
    there = ResultTable.read(folder) if folder.is_dir() else ResultTable.from_rows([])
    done = set(zip(*(there.rows[c].to_pylist() for c in ("dataset", "method", "repeat")), strict=True))
    tasks: list[tuple[str, str, int, int]] = []
    for name in names:
        if name in REGIONS:
            blocks = [(i, min(i + AT_ONCE, splits)) for i in range(0, splits, AT_ONCE)]
            methods: Any = models_of_regions(votes=False)
        else:
            blocks, methods = [(i, i + 1) for i in range(repeats)], CLASSES
        tasks += [
            (name, method, first, last)
            for method in methods
            for first, last in blocks
            if not {(name, method, i) for i in range(first, last)} <= done
        ]
    started = time.perf_counter()
    parallel = joblib.Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
    for count, table in enumerate(parallel(starmap(joblib.delayed(work), tasks)), 1):
        table.append(folder)
        passed = time.perf_counter() - started
        left = passed / count * (len(tasks) - count)
        where = f"{table.names('dataset')[0]}, {table.names('method')[0]}"
        text = f"{count}/{len(tasks)}  {where}   {passed:6.0f} s passed, about {left:.0f} s left"
        print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------------- tables


def over_repeats(rows: pd.DataFrame) -> pd.Series:
    """A mean a repeat, over all tested bags."""
    return pd.Series([np.average(part["value"], weights=part["n_test"]) for _, part in rows.groupby("repeat")])


def accuracies(rows: pd.DataFrame, names: list[str]) -> None:
    """Accuracy ± standard deviation over repeats."""
    print("\n| accuracy in % | " + " | ".join(CLASSES) + " | best printed | repeats | seconds of auto |")
    totals: dict[str, list[float]] = {method: [] for method in CLASSES}
    for name in names:
        mine = rows[(rows["dataset"] == name) & (rows["metric"] == "accuracy")]
        cells = []
        for method in CLASSES:
            found = 100 * over_repeats(mine[mine["method"] == method])
            totals[method].append(found.mean())
            cells.append(f"{found.mean():.1f} ± {found.std():.1f}")
        own = mine[mine["method"] == "auto"]
        printed = BEST_PRINTED.get(name, "")
        print(
            f"| {name} | "
            + " | ".join(cells)
            + f" | {printed} | {own['repeat'].nunique()} | {own['wall_time'].sum():.0f} |"
        )
    means = [f"{np.mean(values):.1f}" for values in totals.values()]
    best = f"{np.mean([BEST_PRINTED[n] for n in names]):.1f}" if set(names) <= set(BEST_PRINTED) else ""
    print("| mean | " + " | ".join(means) + f" | {best} | | |")


def calibration(rows: pd.DataFrame, names: list[str]) -> None:
    """How far the committee can be believed, on every task."""
    mine = rows[rows["method"] == "auto"]
    columns = ("accuracy", "rmse", "nll", "brier", "ece", "pooled ece", "coverage", "set coverage", "set size")
    print("\n| auto | " + " | ".join(columns) + " |")
    for name in names:
        own = mine[mine["dataset"] == name].dropna(subset=["value"])
        cells = []
        for metric in columns:
            part = own[own["metric"] == metric]
            cells.append("" if part.empty else f"{np.average(part['value'], weights=part['n_test']):.4g}")
        print(f"| {name} | " + " | ".join(cells) + " |")
    print("coverage: of 90 % intervals of the posterior; set coverage, set size: of conformal 90 % sets or intervals.")
    print("nll of rents: that of their logarithm.")
    print("ece: of every fold, averaged, and so far above zero of few bags; pooled ece: of all bags of a repeat.")


def ranks(rows: pd.DataFrame, others: list[Path]) -> None:
    """Ranks of mean accuracies over the text sets; the mean of a method counts on sets where it has all repeats."""
    elsewhere = [ResultTable.read(folder).frame() for folder in others]
    tables = [rows, *(table[~table["method"].isin(SAME)] for table in elsewhere)]
    together = pd.concat([table[table["metric"] == "accuracy"] for table in tables])
    together = together[together["dataset"].isin(text_sets())].dropna(subset=["value"])
    if together.empty:
        return
    weighted = together.assign(total=together["value"] * together["n_test"])
    sums = weighted.groupby(["dataset", "method"])[["total", "n_test"]].sum()
    means = (sums["total"] / sums["n_test"]).unstack("method")
    full = means.dropna(axis=1, thresh=1)
    placed = full.rank(axis=1, ascending=False)
    print(f"\n| method | mean rank among {placed.shape[1]} | rank 1 on | sets | mean accuracy in % |")
    for method in placed.mean().sort_values().index:
        own = placed[method].dropna()
        print(f"| {method} | {own.mean():.2f} | {(own == 1).sum()} | {len(own)} | {100 * full[method].mean():.1f} |")


def text_sets() -> list[str]:
    rebuilt = [name for name in datasets.names() if name.startswith("newsgroups-rebuilt/")]
    return ["newsgroups/comp.graphics", *rebuilt]  # the one original that could be had, and all that were made anew


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the result table")
    parser.add_argument("--sets", nargs="+", default=["benchmark", "text", "rental", "votes"], help="names or groups")
    parser.add_argument("--repeats", type=int, default=10, help="of ten folds")
    parser.add_argument("--splits", type=int, default=100, help="of rents and votes")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--report", action="store_true", help="compute nothing, print what is there")
    parser.add_argument("--others", nargs="+", type=Path, default=[], help="folders of results to rank among, for text")
    options = parser.parse_args()
    groups = {"benchmark": list(BENCHMARK), "text": text_sets()}
    groups |= {kind: [name for name in REGIONS if name.startswith(kind)] for kind in ("rental", "votes")}
    names = [name for asked in options.sets for name in groups.get(asked, [asked])]
    if not options.report:
        run(options.output, names, options.repeats, options.splits, options.jobs)
    rows = ResultTable.read(options.output).frame()
    there = [name for name in names if name in set(rows["dataset"])]
    for group in ("benchmark", "text"):
        if some := [name for name in there if name in groups[group]]:
            accuracies(rows, some)
    calibration(rows, there)
    ranks(rows, options.others)


if __name__ == "__main__":
    main()
