"""Classical and trivial methods on the five benchmark sets: accuracy beside the printed one, and times.

python benchmarks/classical.py -o runs/classical                     every method, 10 x 10 stratified folds
python benchmarks/classical.py -o runs/classical --repeats 2 --methods mi-SVM MILES --sets fox --jobs 2
python benchmarks/classical.py -o runs/classical --repeats 0         what is there already, and nothing new

The folder becomes a result table (baggraph.data.results.ResultTable.read).  What is in it, by the same
method with the same settings to choose from, is not computed again, so a run that was stopped goes on where it was.
Settings of a fold are chosen by inner folds of its training bags.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from functools import lru_cache
from pathlib import Path

import joblib
import pandas as pd
import sklearn

from baggraph import datasets
from baggraph.data._fingerprint import fingerprint
from baggraph.data.results import ResultTable
from baggraph.data.splits import pairs, stratified_folds
from baggraph.evaluation._provenance import provenance, rows_of
from baggraph.evaluation._running import Trial
from baggraph.evaluation.metrics import metrics_for
from baggraph.experiments.classical import CLASSICAL, TRIVIAL, methods

SETS = ("musk1", "musk2", "fox", "tiger", "elephant")
PRINTED = {  # in the Bag Graph paper, in the order of SETS
    "mi-SVM": (87.4, 83.6, 58.2, 78.4, 82.2),
    "MI-SVM": (77.9, 84.3, 57.8, 84.2, 84.3),
    "MI-Kernel": (88.0, 89.3, 60.3, 84.2, 84.3),
    "EM-DD": (84.9, 86.9, 60.9, 73.0, 77.1),
    "mi-Graph": (88.9, 90.3, 62.0, 86.0, 86.9),
    "MI-VLAD": (87.1, 87.2, 62.0, 81.1, 85.0),
    "mi-FV": (90.9, 88.4, 62.1, 81.3, 85.2),
}
METHODS = (*CLASSICAL, *TRIVIAL)


class Repeats:
    """One method on one data set, repeat after repeat; tables of pairs are computed once for all of them."""

    def __init__(self, dataset: str, method: str) -> None:
        bags = datasets.load(dataset)
        self.method = methods(bags)[method]
        self.division = stratified_folds(bags.y, folds=10, repeats=10, random_state=0)
        self.trial = Trial(bags, transductive=True, classify=True, believe=False)
        known = {"task": "benchmark", "dataset": dataset, "data_sha256": fingerprint(bags)}
        self.origin = known | provenance(method, self.method, self.division, "transductive")

    @property
    def recipe(self) -> str:
        return str(self.origin["recipe_sha256"])

    def run(self, repeat: int) -> ResultTable:
        """Accuracy of every fold of one repeat."""
        folds, scores = list(pairs(self.division[repeat])), metrics_for("classification", ["accuracy"])
        rows = []
        for fold, (pair, outcome) in enumerate(zip(folds, self.trial.run(self.method, folds), strict=True)):
            place = {"setting": "transductive", "repeat": repeat, "fold": fold}
            counts = {"n_train": len(pair[0]), "n_test": len(pair[1])}
            rows += rows_of(self.origin | place | counts, outcome, scores, self.trial.bags.y[pair[1]])
        return ResultTable.from_rows(rows)


repeats_of = lru_cache(maxsize=1)(Repeats)


def work(dataset: str, method: str, repeat: int) -> ResultTable:
    warnings.simplefilter("ignore")  # machines that did not settle lose the choice, or win it
    sklearn.set_config(assume_finite=True, skip_parameter_validation=True)
    return repeats_of(dataset, method).run(repeat)


def run(options: argparse.Namespace) -> ResultTable:
    """Compute what is not in the folder yet, a file a repeat, and read all of it."""
    found = ResultTable.read(options.output) if options.output.is_dir() else ResultTable.from_rows([])
    names = ("dataset", "method", "repeat", "recipe_sha256")
    done = set(zip(*(found.rows[name].to_pylist() for name in names), strict=True))
    recipes = {(s, m): Repeats(s, m).recipe for s in options.sets for m in options.methods}
    tasks = [(*key, r) for key in recipes for r in range(options.repeats) if (*key, r, recipes[key]) not in done]
    started = time.perf_counter()
    parallel = joblib.Parallel(options.jobs, batch_size=1, return_as="generator")
    tables = parallel(joblib.delayed(work)(*task) for task in tasks)
    for count, (task, table) in enumerate(zip(tasks, tables, strict=True), 1):
        table.append(options.output)
        passed = time.perf_counter() - started
        left = passed / count * (len(tasks) - count)
        line = f"{count}/{len(tasks)}  {task[0]:<9}{task[1]:<13}repeat {task[2]}  {100 * accuracy(table.frame()):5.1f}"
        print(f"{line}   {passed:6.0f} s passed, about {left:.0f} s left", file=sys.stderr, flush=True)
    found = ResultTable.read(options.output)
    return found.filter(recipe_sha256=set(recipes.values()))  # others chose among other settings


def accuracy(rows: pd.DataFrame) -> float:
    """The share of all tested bags that are answered rightly."""
    return float((rows["value"] * rows["n_test"]).sum() / rows["n_test"].sum())


def table(rows: pd.DataFrame) -> str:
    """Markdown: mean over repeats ± their standard deviation, the printed mean, the difference."""
    lines = ["| method | " + " | ".join(SETS) + " | seconds |", "|---" * (len(SETS) + 2) + "|"]
    for method in METHODS:
        mine = rows[rows["method"] == method]
        printed = PRINTED.get(method, (None,) * len(SETS))
        cells = [cell(mine[mine["dataset"] == name], value) for name, value in zip(SETS, printed, strict=True)]
        if len(mine):
            lines.append(f"| {method} | " + " | ".join(cells) + f" | {mine['wall_time'].sum():.0f} |")
    return "\n".join(lines)


def cell(rows: pd.DataFrame, printed: float | None) -> str:
    if rows.empty:
        return ""
    means = pd.Series([100 * accuracy(part) for _, part in rows.groupby("repeat")])
    spread = f" ± {means.std():.1f}" if len(means) > 1 else ""
    fewer = "" if len(means) >= 10 else f" ({len(means)}×10)"
    beside = "" if printed is None else f" / {printed:.1f}: {means.mean() - printed:+.1f}"
    return f"{means.mean():.1f}{spread}{fewer}{beside}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the result table")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    text = table(run(parser.parse_args()).frame())
    print(text)


if __name__ == "__main__":
    main()
