"""Classical and trivial methods on the five benchmark sets: accuracy beside the printed one, and times.

python benchmarks/classical.py -o runs/classical                     every method, 10 x 10 stratified folds
python benchmarks/classical.py -o runs/classical --repeats 2 --methods mi-SVM MILES --sets fox

One process.  What is in the folder is not computed again, so a run that was stopped goes on where it was.

Hyper-parameters are chosen by accuracy in five inner folds of the training bags, anew in every fold; of equals, the
first of the grid.  Tables of pairs need no label: they are computed once a set, with scaling and widths from all its
bags, and sliced.  Codebooks and what is not a table are learned from the training bags of the fold alone.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

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
LARGE = 3000  # instances above which methods on tables of instances try a third of the grid
FIELDS = ("dataset", "method", "repeat", "fold", "correct", "tested", "inner_accuracy", "chosen", "seconds")


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
    grids = {
        "MI-Kernel": product(C=(1.0, 10.0, 100.0), gamma=(1.0, 0.25, 4.0), scaling=both),
        "mi-Graph": product(C=(10.0, 100.0, 1000.0), gamma=(1.0, 0.25, 4.0), scaling=both),
        "MI-VLAD": product(
            C=(1.0, 10.0), n_centers=(1, 2, 4), energy=(1.0, 0.85), scaling=("standard", "minmax", "none")
        ),
        "mi-FV": product(C=(1.0, 10.0), n_components=(1, 2, 4), energy=(0.95, 0.85), scaling=both),
        "EM-DD": product(scaling=both),
        "MILES": product(C=(1.0, 3.0), gamma=(1.0, 0.3), scaling=("minmax", "standard")),
        "summary SVM": product(C=(10.0, 1.0), gamma=(1.0, 0.25, 4.0), scaling=("standard",)),
    }
    margin = [
        *product(kernel=("rbf",), C=(10.0,), gamma=(1.0,), scaling=("standard",)),
        *product(kernel=("rbf",), C=(1.0,), gamma=(1.0, 3.0), scaling=("minmax",)),
        *product(kernel=("linear",), C=(0.1, 0.01), scaling=("standard",)),
        *product(kernel=("rbf",), C=(10.0,), gamma=(0.25,), scaling=both),
    ]
    if method in ("mi-SVM", "MI-SVM"):
        return margin[:3] if bags.n_instances > LARGE else margin
    if method == "MILES" and bags.n_instances > LARGE:
        return grids["MILES"][:2]
    return grids.get(method, [{}])


def without_price(settings: dict[str, Any]) -> tuple[Any, ...]:
    """What a table of pairs depends on."""
    return tuple((k, v) for k, v in settings.items() if k != "C")


def model_of(method: str, settings: dict[str, Any]) -> Any:
    return make(method, **settings) if method == "majority" else make(method, calibration_folds=None, **settings)


# ---------------------------------------------------------------------- one fold


class Runner:
    """All folds of one method on one set."""

    def __init__(self, method: str, bags: Bags) -> None:
        self.bags, self.y = bags, np.asarray(bags.y)
        self.settings = grid(method, bags)
        self.models = [model_of(method, settings) for settings in self.settings]
        self.sliced = isinstance(self.models[0], GramClassifier) and not isinstance(self.models[0], CodebookSVM)
        self.tables: dict[Any, Any] = {}
        if self.sliced:
            self.tables = self._tables(bags)

    def _tables(self, bags: Bags) -> dict[Any, Any]:
        keys = {without_price(s): model for s, model in zip(self.settings, self.models, strict=True)}
        return {key: model.gram(bags) for key, model in keys.items()}

    def fold(self, train: np.ndarray, test: np.ndarray, seed: int) -> dict[str, Any]:
        scores = self._inner_scores(train, seed) if len(self.models) > 1 else [np.nan]
        best = int(np.nanargmax(scores)) if len(self.models) > 1 else 0
        model = self.models[best]
        if self.sliced:
            table = self.tables[without_price(self.settings[best])]
            found = model.fit_gram(table.take(train, train), self.y[train]).predict_gram(table.take(test, train))
        else:
            found = model.fit(self.bags.take(train)).predict(self.bags.take(test))
        chosen = " ".join(
            f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in self.settings[best].items()
        )
        correct = int((found == self.y[test]).sum())
        return {"correct": correct, "tested": len(test), "inner_accuracy": scores[best], "chosen": chosen}

    def _inner_scores(self, train: np.ndarray, seed: int) -> np.ndarray:
        y = self.y[train]
        inner = list(pairs(stratified_folds(y, folds=5, repeats=1, random_state=seed)))
        if not isinstance(self.models[0], GramClassifier):
            part = self.bags.take(train)
            fitted = [
                [model.fit(part.take(a)).predict(part.take(b)) == y[b] for a, b in inner] for model in self.models
            ]
            return np.array([np.concatenate(hits).mean() for hits in fitted])
        hits: list[list[np.ndarray]] = [[] for _ in self.models]
        for key in dict.fromkeys(map(without_price, self.settings)):
            members = [i for i, settings in enumerate(self.settings) if without_price(settings) == key]
            if self.sliced:
                table, place = self.tables[key], train
            else:
                table, place = self.models[members[0]].gram(self.bags.take(train)), np.arange(len(train))
            for a, b in inner:
                known, asked = table.take(place[a], place[a]), table.take(place[b], place[a])
                for i in members:
                    hits[i].append(self.models[i].fit_gram(known, y[a]).predict_gram(asked) == y[b])
        return np.array([np.concatenate(hit).mean() for hit in hits])


# ---------------------------------------------------------------------- all of them


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
        for count, (task, rows) in enumerate(results(tasks, options.repeats), 1):
            writer.writerows(rows)
            file.flush()
            passed = time.perf_counter() - started
            left = passed / count * (len(tasks) - count)
            accuracy = 100 * sum(row["correct"] for row in rows) / sum(row["tested"] for row in rows)
            line = f"{count}/{len(tasks)}  {task[0]:<9}{task[1]:<13}repeat {task[2]}  {accuracy:5.1f}"
            print(f"{line}   {passed:6.0f} s passed, about {left:.0f} s left", file=sys.stderr, flush=True)
    return path


def results(
    tasks: list[tuple[str, str, int]], repeats: int
) -> Iterator[tuple[tuple[str, str, int], list[dict[str, Any]]]]:
    """Rows of every task; a set and its tables are made once."""
    for (name, method), group in itertools.groupby(tasks, key=lambda task: task[:2]):
        bags = datasets.load(name)
        folds = stratified_folds(bags.y, folds=10, repeats=repeats, random_state=0)
        started = time.perf_counter()
        runner = Runner(method, bags)
        preparing = time.perf_counter() - started
        for _, _, repeat in group:
            rows = []
            for fold, (train, test) in enumerate(pairs(folds[repeat])):
                started = time.perf_counter()
                row = runner.fold(train, test, seed=10 * repeat + fold)
                seconds = time.perf_counter() - started + preparing
                preparing = 0.0
                where = {"dataset": name, "method": method, "repeat": repeat, "fold": fold}
                rows.append({**where, **row, "seconds": round(seconds, 4)})
            yield (name, method, repeat), rows


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
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # machines of inner folds that did not settle lose the selection or win it
        path = run(options)
    text = table(path)
    path.with_suffix(".md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
