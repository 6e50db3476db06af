"""The committee, fixed in advance, on the reported sets: run once, beside the average kernel and trivial rows.

python benchmarks/auto.py -o runs/auto                        the five benchmark sets, 10 x 10 stratified folds
python benchmarks/auto.py -o runs/auto --sets text            the rebuilt text sets and comp.graphics
python benchmarks/auto.py -o runs/auto --sets musk1 --repeats 2

A set that is in the folder is not computed again.  Tables see no label, and are made once a set from all its bags;
whatever is fitted, calibrated or weighted is so on the training bags of the fold alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from baggraph import AutoBagClassifier, ResultTable, cross_validate, datasets
from baggraph.baselines import AverageKernelSVM, MajorityClassifier, OneNumberClassifier, SummarySVM

BENCHMARK = ("musk1", "musk2", "fox", "tiger", "elephant")
BEST_PRINTED = {"musk1": 90.9, "musk2": 90.3, "fox": 63.9, "tiger": 86.0, "elephant": 87.5}
METRICS = ["accuracy", "nll", "ece", "auc"]
METHODS = {
    "auto": AutoBagClassifier(),
    "average kernel": AverageKernelSVM(),
    "summary SVM": SummarySVM(),
    "largest norm": OneNumberClassifier(number="largest norm"),
    "majority": MajorityClassifier(),
}


def text_sets() -> list[str]:
    rebuilt = [name for name in datasets.names() if name.startswith("newsgroups-rebuilt/")]
    return ["newsgroups/comp.graphics", *rebuilt]  # the one original that could be had, and all that were made anew


def run(folder: Path, names: list[str], repeats: int) -> None:
    for name in names:
        there = ResultTable.read(folder).names("dataset") if folder.exists() else []
        if name not in there:
            bags = datasets.load(name)
            cross_validate(METHODS, bags, repeats=repeats, metrics=METRICS, dataset=name).append(folder)
        print(line(ResultTable.read(folder), name), flush=True)


def line(table: ResultTable, name: str) -> str:
    """Accuracy ± standard deviation over repeats; log-loss and calibration error of the committee."""
    cells = []
    for method in METHODS:
        mine = table.filter(dataset=name, method=method, metric="accuracy").frame()
        means = 100 * np.array(
            [np.average(part["value"], weights=part["n_test"]) for _, part in mine.groupby("repeat")]
        )
        cells.append(f"{method} {means.mean():.1f} ± {means.std(ddof=1) if len(means) > 1 else 0:.1f}")
    own = table.filter(dataset=name, method="auto")
    cells += [f"{m} {own.filter(metric=m).frame()['value'].mean():.3f}" for m in ("nll", "ece")]
    seconds = own.filter(metric="accuracy").frame()["wall_time"].sum()
    printed = f" (best printed {BEST_PRINTED[name]})" if name in BEST_PRINTED else ""
    return f"{name}{printed} | " + " | ".join(cells) + f" | {seconds:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the result table")
    parser.add_argument("--sets", nargs="+", default=["benchmark"], help="names, 'benchmark' or 'text'")
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    groups = {"benchmark": list(BENCHMARK), "text": text_sets()}
    run(options.output, [name for asked in options.sets for name in groups.get(asked, [asked])], options.repeats)


if __name__ == "__main__":
    main()
