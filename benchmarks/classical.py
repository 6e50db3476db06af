"""Classical and trivial methods on the five benchmark sets: accuracy beside the printed one, and times.

python benchmarks/classical.py -o runs/classical                     every method, 10 x 10 stratified folds
python benchmarks/classical.py -o runs/classical --repeats 2 --methods mi-SVM MILES --sets fox --jobs 2

What is in the folder is not computed again, so a run that was stopped goes on where it was.

Hyper-parameters of a fold are those that answer most bags of the other folds rightly; of equals, the first of the grid.
A model without folds 3 and 7 is asked about 7 when those of fold 3 are chosen, and about 3 when those of fold 7 are, so
that 45 models a setting serve ten folds (20 of methods that look at instances: a fold looks at the four next to it).
Tables of pairs need no label: they are computed once a set, with scaling and widths
from all its bags, and sliced.  Codebooks and what is not a table are learned from the training bags of the fold alone.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
import time
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import sklearn

from baggraph import Bags, datasets
from baggraph.baselines import make
from baggraph.baselines._codebook import CodebookSVM
from baggraph.baselines._gram import GramClassifier
from baggraph.baselines._kernels import Rows
from baggraph.data.splits import pairs, stratified_folds

SETS = ("musk1", "musk2", "fox", "tiger", "elephant")
PRINTED = {  # of the Bag Graph paper, in the order of SETS
    "mi-SVM": (87.4, 83.6, 58.2, 78.4, 82.2),
    "MI-SVM": (77.9, 84.3, 57.8, 84.2, 84.3),
    "MI-Kernel": (88.0, 89.3, 60.3, 84.2, 84.3),
    "EM-DD": (84.9, 86.9, 60.9, 73.0, 77.1),
    "mi-Graph": (88.9, 90.3, 62.0, 86.0, 86.9),
    "MI-VLAD": (87.1, 87.2, 62.0, 81.1, 85.0),
    "mi-FV": (90.9, 88.4, 62.1, 81.3, 85.2),
}
TRIVIAL = ("majority", "bag size", "largest norm", "summary SVM")
METHODS = (*PRINTED, "MILES", *TRIVIAL)
LARGE = 3000  # instances above which fewer settings are tried
FIELDS = ("dataset", "method", "repeat", "fold", "correct", "tested", "chosen", "seconds")


# ---------------------------------------------------------------------- grids


def grid(method: str, bags: Bags) -> list[dict[str, Any]]:
    """Settings to choose from, the plainest first; widths are multiples of one over the summed variance."""
    scale = {s: Rows.of(bags, s, "rbf", "scale").kernel.gamma for s in ("standard", "minmax")}

    def product(**values: Any) -> list[dict[str, Any]]:
        found = [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]
        for one in found:
            if "gamma" in one:
                one["gamma"] *= scale[one["scaling"]]
        return found

    both = ("standard", "minmax")
    large = bags.n_instances > LARGE
    margin = [
        *product(kernel=("rbf",), C=(10.0,), gamma=(1.0,), scaling=("standard",)),
        *product(kernel=("rbf",), C=(1.0,), gamma=(3.0,), scaling=("minmax",)),
        *product(kernel=("linear",), C=() if large else (0.1,), scaling=("standard",)),
    ]
    grids = {
        "mi-SVM": margin,
        "MI-SVM": margin,
        "MI-Kernel": product(C=(1.0, 10.0, 100.0), gamma=(1.0, 0.25, 4.0), scaling=both),
        "mi-Graph": product(C=(10.0, 100.0, 1000.0), gamma=(1.0, 0.25, 4.0), scaling=both),
        "MI-VLAD": product(C=(1.0, 10.0), n_centers=(1, 2), energy=(1.0, 0.85), scaling=both),
        "mi-FV": product(C=(1.0, 10.0), n_components=(1, 2), energy=(0.95, 0.85), scaling=both),
        "EM-DD": product(scaling=both),
        "MILES": product(C=(1.0, 3.0), gamma=(1.0,), scaling=("minmax",)),
        "summary SVM": product(C=(10.0, 1.0), gamma=(1.0, 0.25, 4.0), scaling=("standard",)),
    }
    return grids.get(method, [{}])


def without_price(settings: dict[str, Any]) -> tuple[Any, ...]:
    """What a table of pairs depends on."""
    return tuple((k, v) for k, v in settings.items() if k != "C")


def model_of(method: str, settings: dict[str, Any]) -> Any:
    return make(method, **settings) if method == "majority" else make(method, calibration_folds=None, **settings)


# ---------------------------------------------------------------------- one repeat


class Runner:
    """All folds of one method on one set."""

    def __init__(self, method: str, bags: Bags) -> None:
        self.bags, self.y = bags, np.asarray(bags.y)
        self.settings = grid(method, bags)
        self.models = [model_of(method, settings) for settings in self.settings]
        self.keys = [without_price(settings) for settings in self.settings]
        self.learns = isinstance(self.models[0], CodebookSVM)
        self.tables = {}
        if isinstance(self.models[0], GramClassifier) and not self.learns:
            self.tables = {
                key: model.gram(bags) for key, model in dict(zip(self.keys, self.models, strict=True)).items()
            }

    def repeat(self, folds: np.ndarray) -> list[dict[str, Any]]:
        """A row a fold, with the setting that served the other folds best."""
        count = int(folds.max()) + 1
        hits = np.zeros((count, len(self.models)))
        if len(self.models) > 1:
            hits = self._codebook_hits(folds, count) if self.learns else self._paired_hits(folds, count)
        rows = []
        for fold, best in enumerate(hits.argmax(axis=1)):
            train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            correct = int((self._answers(best, train, test) == self.y[test]).sum())
            shown = [f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in self.settings[best].items()]
            rows.append({"fold": fold, "correct": correct, "tested": len(test), "chosen": " ".join(shown)})
        return rows

    def _answers(self, i: int, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        model = self.models[i]
        if not self.tables:
            return model.fit(self.bags.take(train)).predict(self.bags.take(test))
        table = self.tables[self.keys[i]]
        return model.fit_gram(table.take(train, train), self.y[train]).predict_gram(table.take(test, train))

    def _paired_hits(self, folds: np.ndarray, count: int) -> np.ndarray:
        """Bags (folds, settings) that are right without a fold: a model without two folds serves the choice of both."""
        cheap = all(table.table.shape[1] == len(self.y) for table in self.tables.values()) and self.tables
        far = count if cheap else 2
        hits = np.zeros((count, len(self.models)))
        for one, other in itertools.combinations(range(count), 2):
            if min(other - one, one + count - other) > far:
                continue
            train = np.flatnonzero((folds != one) & (folds != other))
            ask = [np.flatnonzero(folds == fold) for fold in (one, other)]
            for i in range(len(self.models)):
                right = self._answers(i, train, np.concatenate(ask)) == self.y[np.concatenate(ask)]
                hits[other, i] += right[: len(ask[0])].sum()
                hits[one, i] += right[len(ask[0]) :].sum()
        return hits

    def _codebook_hits(self, folds: np.ndarray, count: int) -> np.ndarray:
        """The same with codebooks, which see no label, learned once a fold from all bags outside it."""
        hits = np.zeros((count, len(self.models)))
        for out in range(count):
            left = np.flatnonzero(folds != out)
            bags, y, inner = self.bags.take(left), self.y[left], folds[left]
            tables = {key: model.gram(bags) for key, model in dict(zip(self.keys, self.models, strict=True)).items()}
            for (train, test), i in itertools.product(pairs(inner), range(len(self.models))):
                table = tables[self.keys[i]]
                fitted = self.models[i].fit_gram(table.take(train, train), y[train])
                hits[out, i] += (fitted.predict_gram(table.take(test, train)) == y[test]).sum()
        return hits


# ---------------------------------------------------------------------- all of them


@lru_cache(maxsize=1)
def runner_of(name: str, method: str) -> Runner:
    return Runner(method, datasets.load(name))


def work(name: str, method: str, repeat: int) -> list[dict[str, Any]]:
    """Rows of one method, set and repeat; seconds, of making the tables too, are spread over its folds."""
    warnings.simplefilter("ignore")  # machines that did not settle lose the choice, or win it
    sklearn.set_config(assume_finite=True, skip_parameter_validation=True)
    started = time.perf_counter()
    runner = runner_of(name, method)
    folds = stratified_folds(runner.y, folds=10, repeats=repeat + 1, random_state=0)[repeat]
    rows = runner.repeat(folds)
    seconds = round((time.perf_counter() - started) / len(rows), 4)
    return [{"dataset": name, "method": method, "repeat": repeat, **row, "seconds": seconds} for row in rows]


def run(options: argparse.Namespace) -> Path:
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "classical.csv"
    done = {(row["dataset"], row["method"], int(row["repeat"])) for row in rows_of(path)}
    tasks = [(s, m, r) for s in options.sets for m in options.methods for r in range(options.repeats)]
    tasks = [task for task in tasks if task not in done]
    started = time.perf_counter()
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        parallel = joblib.Parallel(options.jobs, batch_size=1, return_as="generator")
        found = parallel(joblib.delayed(work)(*task) for task in tasks)
        for count, (task, rows) in enumerate(zip(tasks, found, strict=True), 1):
            writer.writerows(rows)
            file.flush()
            passed = time.perf_counter() - started
            left = passed / count * (len(tasks) - count)
            accuracy = 100 * sum(row["correct"] for row in rows) / sum(row["tested"] for row in rows)
            line = f"{count}/{len(tasks)}  {task[0]:<9}{task[1]:<13}repeat {task[2]}  {accuracy:5.1f}"
            print(f"{line}   {passed:6.0f} s passed, about {left:.0f} s left", file=sys.stderr, flush=True)
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def table(path: Path) -> str:
    """Markdown: mean over repeats ± their standard deviation, the printed mean, the difference."""
    rows = rows_of(path)
    lines = ["| method | " + " | ".join(SETS) + " | seconds |", "|---" * (len(SETS) + 2) + "|"]
    for method in METHODS:
        cells, seconds = [], 0.0
        for position, name in enumerate(SETS):
            mine = [row for row in rows if row["method"] == method and row["dataset"] == name]
            seconds += sum(float(row["seconds"]) for row in mine)
            cells.append(cell(mine, PRINTED[method][position] if method in PRINTED else None))
        if any(cells):
            lines.append(f"| {method} | " + " | ".join(cells) + f" | {seconds:.0f} |")
    return "\n".join(lines)


def cell(rows: list[dict[str, str]], printed: float | None) -> str:
    if not rows:
        return ""
    repeats = sorted({row["repeat"] for row in rows})
    means = []
    for repeat in repeats:
        mine = [row for row in rows if row["repeat"] == repeat]
        means.append(100 * sum(int(row["correct"]) for row in mine) / sum(int(row["tested"]) for row in mine))
    spread = f" ± {np.std(means, ddof=1):.1f}" if len(means) > 1 else ""
    fewer = "" if len(means) >= 10 else f" ({len(means)}×10)"
    beside = "" if printed is None else f" / {printed:.1f}: {np.mean(means) - printed:+.1f}"
    return f"{np.mean(means):.1f}{spread}{fewer}{beside}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of classical.csv and classical.md")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    path = run(options)
    text = table(path)
    path.with_suffix(".md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
