"""Do explanations find the instances that matter, in bags whose label the model never saw?

    python benchmarks/explain.py [digits-bags newsgroups-rebuilt/sci.med ...]

Five folds; the labels of a fold are hidden while the model is fitted, then its bags are explained where they stand in
the graph.  AUC: contributions against the labels of instances, over all hidden bags and within positive ones.  Moved:
change of the log odds when a tenth of the instances of a positive bag, at least one, is deleted: those that count most,
against the mean of ten random choices.  Nothing is chosen here: settings are the defaults, or the paper's for text.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from scipy.special import logit
from sklearn.metrics import roc_auc_score

import baggraph as bg
from baggraph.data.splits import pairs, stratified_folds

SETS = ["digits-bags", "newsgroups-rebuilt/sci.med"]
RANDOM = 10


Model = bg.BagGraphClassifier | bg.AutoBagClassifier


def methods(dataset: str) -> dict[str, Callable[[], Model]]:
    text = dataset.startswith("newsgroups")
    paper = "B-Res+pool-GCN" if text else "B-rFF+pool-GCN"
    return {
        paper: lambda: bg.make(paper, dataset=dataset, n_draws=0),
        "attention, learned graph": lambda: bg.BagGraphClassifier(encoder="attention", n_draws=0),
        "attention, no graph": lambda: bg.BagGraphClassifier(encoder="attention", graph=None, n_draws=0),
        "committee": bg.AutoBagClassifier,
    }


def without(bag: bg.Bag, order: np.ndarray) -> np.ndarray:
    """The bag without the first tenth of its instances in this order."""
    return np.delete(np.asarray(bag), order[: max(1, len(order) // 10)], axis=0)


def log_odds(model: Model, blocks: list[np.ndarray]) -> np.ndarray:
    """Of new bags; a committee's score of two classes is that of its probabilities."""
    if isinstance(model, bg.AutoBagClassifier):
        return logit(model.predict_proba(blocks)[:, 1])
    return np.array([one.score for one in model.explain(blocks)])


def study(dataset: str, only: str | None) -> None:
    bags = bg.datasets.load(dataset)
    if bags.is_sparse:
        bags = bags.replace(instances=bags.instances.toarray(), offsets=bags.offsets)
    print(f"\n{dataset}: {len(bags)} bags, {bags.n_instances} instances, {bags.instance_y.mean():.1%} of them positive")
    print(
        f"{'model':<28}{'method':<16}{'AUC all':>8}{'within':>8}{'moved: top':>12}{'random':>8}{'bag acc.':>9}{'s':>6}"
    )
    folds = stratified_folds(bags.y, folds=5, repeats=1)
    for name, make in methods(dataset).items():
        if only not in (None, name):
            continue
        started, right = time.perf_counter(), 0
        contributions = np.full(bags.n_instances, np.nan)
        within, top, random = [], [], []
        rng = np.random.default_rng(0)
        for _, test in pairs(folds):
            y = bags.y.astype(float)
            y[test] = np.nan
            model = make().fit(bags.replace(y=y))
            right += int((model.transduction_[test] == bags.y[test]).sum())
            for place, one in zip(test, model.explain(bags.take(test), seen=True), strict=True):
                bag, rows = bags[int(place)], slice(bags.offsets[place], bags.offsets[place + 1])
                own = one.instances["contribution"].to_numpy()
                contributions[rows] = own
                if bag.y != 1 or len(own) < 3:
                    continue
                if 0 < bag.instance_y.sum() < len(own):
                    within.append(roc_auc_score(bag.instance_y, own))
                orders = [np.argsort(-own), *(rng.permutation(len(own)) for _ in range(RANDOM))]
                base, best, *others = log_odds(model, [np.asarray(bag), *(without(bag, order) for order in orders)])
                top.append(best - base)
                random.append(np.mean(others) - base)
        auc, used = roc_auc_score(bags.instance_y, contributions), one.method
        took = time.perf_counter() - started
        figures = f"{auc:>8.3f}{np.mean(within):>8.3f}{np.mean(top):>12.3f}{np.mean(random):>8.3f}"
        print(f"{name:<28}{used:<16}{figures}{right / len(bags):>9.3f}{took:>6.0f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=SETS)
    parser.add_argument("--only", help="the one model to study; default: all")
    asked = parser.parse_args()
    for dataset in asked.datasets:
        study(dataset, asked.only)
