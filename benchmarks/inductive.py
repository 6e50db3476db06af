"""Bags that are there in training against bags that come later, and how fast new ones join a large graph.

python benchmarks/inductive.py                          musk1, elephant and rental, 30 % of the bags held out
python benchmarks/inductive.py --sets musk1 --splits 3
python benchmarks/inductive.py --attach                 10,000 new bags to a graph of 100,000

Transductive: held-out bags are in the graph without their labels, and are answered by ``posterior_``.  Inductive: they
are not there in ``fit``, and join the fitted graph one by one; "jointly", all at once in a graph made anew.  The
models are the paper's with its settings; splits are 30 % of the bags at random, of rental the published ones.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import baggraph as bg
from baggraph.data.splits import label_mask, pairs
from baggraph.evaluation.metrics import METRICS
from baggraph.inference._sharing import sharing_base_models

METHODS = {
    "musk1": ("rFF+pool", "rFF+pool-GCN", "B-rFF+pool-GCN"),
    "elephant": ("rFF+pool", "rFF+pool-GCN", "B-rFF+pool-GCN"),
    "rental": ("Deep Sets", "DS-GCN", "B-DS-GCN"),
}
HELD_OUT = 0.3


def masks_of(bags: Any, name: str, splits: int) -> np.ndarray:
    """Bags (splits, B) whose labels are seen."""
    if name == "rental":
        folds = bags.splits["published-100"][:splits]
        return np.stack([np.isin(np.arange(len(bags)), next(pairs(row))[0]) for row in folds])
    return np.stack([label_mask(bags.y, labelled=1 - HELD_OUT, random_state=s) for s in range(splits)])


def answers(method: str, name: str, bags: Any, masks: np.ndarray, **more: Any) -> Iterator[tuple[str, int, Any]]:
    """Ways to answer the held-out bags, with the split and the posterior."""
    model = bg.make(method, dataset=name, **more)
    for split, posterior in enumerate(model.posteriors(bags, masks)):
        yield "transductive", split, posterior.take(~masks[split])
    for split, mask in enumerate(masks):
        asked, links = bags[~mask].replace(y=None), None
        model = bg.make(method, dataset=name, **more).fit(bags[mask])
        if model.graph == "given":
            links = bags.graph.adjacency[np.flatnonzero(~mask)][:, np.flatnonzero(mask)]
        yield "inductive", split, model.predict_posterior(asked, links=links)
        if model.graph not in (None, "given"):
            yield "jointly", split, model.predict_posterior(asked, joint=True)


def compare(name: str, splits: int, **more: Any) -> None:
    bags = bg.datasets.load(name)
    masks = masks_of(bags, name, splits)
    metric = METRICS["rmse" if name == "rental" else "accuracy"]
    for method in METHODS[name]:
        begun, scores = time.perf_counter(), {}
        for way, split, posterior in answers(method, name, bags, masks, **more):
            scores.setdefault(way, []).append(metric(bags.y[~masks[split]], posterior))
        told = "  ".join(f"{way}={np.mean(row):.3f}±{np.std(row, ddof=1):.3f}" for way, row in scores.items())
        print(f"set={name}  metric={metric.name}  splits={splits}  method={method}  {told}", end="  ")
        print(f"seconds={time.perf_counter() - begun:.0f}", flush=True)


def attach(n_fit: int, n_new: int, **more: Any) -> None:
    """Time to answer new bags, of which most is the search of their neighbours."""
    rng = np.random.default_rng(0)

    def made(count: int) -> Any:
        sizes = rng.integers(1, 6, size=count)
        y = rng.integers(0, 2, size=count)
        instances = rng.normal(size=(int(sizes.sum()), 16)) + np.repeat(y, sizes)[:, None]
        return bg.Bags(instances.astype(np.float32), np.concatenate([[0], np.cumsum(sizes)]), y)

    begun = time.perf_counter()
    model = bg.BagGraphClassifier(epochs=1, n_draws=20, **more).fit(made(n_fit))
    fitted = time.perf_counter()
    print(f"fit={n_fit:,} bags  graph={model.graph_}  width={model.embedding_.shape[1]}  {fitted - begun:.0f} s")
    asked = made(n_new)
    begun = time.perf_counter()
    (links,) = model._fitted.links(model.scaler_.transform(asked))
    joined = time.perf_counter()
    posterior = model.predict_posterior(asked)
    ended = time.perf_counter()
    print(f"new={n_new:,} bags  links={links.nnz:,}  joining={joined - begun:.1f} s", end="  ")
    print(f"joining and answering={ended - joined:.1f} s  draws={len(posterior.draws)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--epochs", type=int, help="fewer than the supplement's, for a look")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--attach", action="store_true")
    parser.add_argument("--bags", type=int, default=100_000)
    parser.add_argument("--new", type=int, default=10_000)
    parser.add_argument("--embedding", default="all", choices=("all", "last"))
    options = parser.parse_args()
    if options.attach:
        attach(options.bags, options.new, device=options.device, embedding=options.embedding)
        return
    more = {"device": options.device} | ({} if options.epochs is None else {"epochs": options.epochs})
    for name in options.sets:
        with sharing_base_models():
            compare(name, options.splits, **more)


if __name__ == "__main__":
    main()
