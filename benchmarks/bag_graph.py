"""Accuracy of the paper's three networks on its benchmark sets, 10 x 10 folds, beside the printed one.

python benchmarks/bag_graph.py                      all five sets; minutes on a GPU, hours on two cores
python benchmarks/bag_graph.py --sets musk1 --repeats 1

Settings are the supplement's, nothing is tuned.  The control averages the base model over as many dropout samples as
the Bayesian row.  Spread is the standard deviation over repeats.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

import baggraph as bg
from baggraph.data.splits import pairs, stratified_folds

SETS = ("musk1", "musk2", "fox", "tiger", "elephant")
PRINTED = {
    "rFF+pool": (88.7, 87.1, 61.1, 82.8, 87.5),
    "rFF+pool-GCN": (89.9, 86.0, 62.9, 82.9, 87.5),
    "B-rFF+pool-GCN": (89.9, 87.2, 63.9, 83.0, 84.2),
}
CONTROL = "rFF+pool, 50 draws"


def one(name: str, bags: Any, dataset: str, folds: np.ndarray, options: argparse.Namespace) -> dict[str, Any]:
    """All folds of one method as one stack."""
    split = list(pairs(folds))
    masks = np.zeros((len(split), len(bags)), dtype=bool)
    for mask, (train, _) in zip(masks, split, strict=True):
        mask[train] = True
    given = {"n_draws": 50} if name == CONTROL else {}
    base = "rFF+pool" if name == CONTROL else name
    model = bg.make(base, dataset=dataset, device=options.device, precision=options.precision, **given)
    if options.epochs:
        model.set_params(epochs=options.epochs)
    begun = time.perf_counter()
    found = model.posteriors(bags, masks)
    seconds = time.perf_counter() - begun
    right = [posterior.prediction[test] == bags.y[test] for posterior, (_, test) in zip(found, split, strict=True)]
    nll = [-posterior.log_density(bags.y)[test] for posterior, (_, test) in zip(found, split, strict=True)]
    n_folds = len(split) // len(folds)
    repeats = [100 * np.concatenate(right[r * n_folds : (r + 1) * n_folds]).mean() for r in range(len(folds))]
    row = {"set": dataset, "method": name, "accuracy": round(float(np.mean(repeats)), 2)}
    row |= {"sd": round(float(np.std(repeats, ddof=1)), 2) if len(repeats) > 1 else None}
    row |= {"nll": round(float(np.concatenate(nll).mean()), 3), "seconds": round(seconds, 2)}
    printed = PRINTED.get(name)
    return row | ({} if printed is None else {"printed": printed[SETS.index(dataset)]})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--epochs", type=int, help="fewer than the supplement's 200, for a look")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for dataset in options.sets:
        bags = bg.datasets.load(dataset)
        folds = stratified_folds(bags.y, folds=10, repeats=options.repeats, random_state=0)
        for name in ("rFF+pool", CONTROL, "rFF+pool-GCN", "B-rFF+pool-GCN"):
            row = one(name, bags, dataset, folds, options)
            print(json.dumps(row) if options.json else "  ".join(f"{k}={v}" for k, v in row.items()), flush=True)


if __name__ == "__main__":
    main()
