"""What the graph adds: tasks x graphs x models, each beside the same model without a graph, on the same splits.

python benchmarks/graph_adds.py -o runs/graph                                everything; a GPU is used if there is one
python benchmarks/graph_adds.py -o runs/graph --tasks musk1 --splits 10
python benchmarks/graph_adds.py -o runs/graph --tasks rental --methods GCN network
python benchmarks/graph_adds.py -o runs/graph --table                        the table of what is in the folder

Tasks: rents (all listings, and 25 of every area, drawn anew for every 20 splits) and votes (ZIP areas, tracts; 24
regions train) on the published 100 splits; five benchmark sets on 10 x 10 stratified folds.  A split that is in the
folder is not computed again; splits are trained as stacks of ``--stack``.

Graphs: none; "shuffled", the known one (the learned one, where none is known) with its bags exchanged at random;
"known", that of the data; "k-NN" and "learned", of embeddings; "reweighted", the known one with weights times
exp(-distance / median distance) of embeddings.  Embeddings are those of the base model, which has no graph, and for
"GP" the standardised means of bags, which see no label.  No model is told coordinates, so that the graph is all that
is known of places.

Models, all fixed in advance and none by these scores.  Encoder, pooling, learning rate, decay, epochs and neighbours
are the paper's: Deep Sets on regions, rFF+pool on the benchmark sets.

- GCN: one hop, the paper's last layer.
- network: K = 10 steps with restart 0.1 (Gasteiger et al. 2019, who use these on all their sets) with a term of the
  bag's own, and labels of others as inputs, of which a coin shows half while training (Shi et al. 2021).
- GP: a process over the graph and linear means of instances, and without a graph over the means alone.
- GP head: a process over graph, linear means and the embedding of the base model.  The embedding was trained on the
  labels that the process is fitted to.

Networks answer by the weights as fitted, one network a split.  Intervals are those of the corrected paired t-test;
they are not corrected for the number of rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

import baggraph
from baggraph import BagGraph, BagProcessClassifier, BagProcessRegressor, Bags, Posterior, ResultTable, datasets
from baggraph.baselines import summarise
from baggraph.data._fingerprint import fingerprint
from baggraph.data.splits import pairs, stratified_folds
from baggraph.estimators._building import build_wiring
from baggraph.evaluation._division import places
from baggraph.evaluation._provenance import library_versions
from baggraph.evaluation.metrics import METRICS
from baggraph.evaluation.paired import corrected_t, ratio_of
from baggraph.graphs.shuffled import ShuffledWiring

NO_GRAPH = "no graph"
GRAPHS = (NO_GRAPH, "shuffled", "known", "k-NN", "learned", "reweighted")
MODELS: dict[str, dict[str, Any]] = {
    "GCN": {"head": "gcn"},
    "network": {"head": "restart", "steps": 10, "restart": 0.1, "label_inputs": True},
    "GP head": {"head": "gp"},
}
PROCESS = "GP"
BENCHMARK = ("musk1", "musk2", "fox", "tiger", "elephant")
REGIONS = {
    "rental": ("rental", None),
    "rental, 25 listings": ("rental", 25),
    "election/zcta": ("election/zcta", None),
    "election/tracts": ("election/tracts", None),
}
DRAWN_EVERY = 20  # splits share a draw of listings
NEIGHBORS = {"rental": 8, "election": 5}  # of learned and k-NN graphs over regions, with as many candidates
SHOWN = {"rental": "rmse", "election": "nd"}  # the score in the table; of classes, accuracy


@dataclass(frozen=True)
class Task:
    """Bags, and which are visible and tested in every split."""

    name: str
    bags: Bags
    listings: int | None
    splits: list[tuple[dict[str, int], np.ndarray, np.ndarray]]

    @property
    def family(self) -> str:
        return self.name.split("/")[0].split(",")[0]

    @property
    def classify(self) -> bool:
        return self.family in BENCHMARK

    @property
    def metric(self) -> str:
        return "accuracy" if self.classify else SHOWN[self.family]

    def bags_of(self, split: int) -> Bags:
        """Those of a split: other listings are drawn for every few of them."""
        return self.bags if self.listings is None else sampled(self.bags, self.listings, split // DRAWN_EVERY)

    def stacks(self, waiting: list[int], size: int) -> Iterator[list[int]]:
        """Splits that are trained together: as many as asked, on the same bags."""
        size = size if self.listings is None else min(size, DRAWN_EVERY)
        blocks: dict[int, list[int]] = {}
        for split in waiting:
            blocks.setdefault(split // size, []).append(split)
        return iter(blocks.values())


def task(name: str, count: int) -> Task:
    if name in BENCHMARK:
        bags, listings = datasets.load(name), None
        division = stratified_folds(bags.y, folds=10, repeats=10, random_state=0)
    else:
        source, listings = REGIONS[name]
        bags = datasets.load(source)
        bags, division = bags.replace(coords=None), bags.splits["published-100"]
    found = []
    for place, (visible, tested) in zip(places(division), pairs(division), strict=True):
        masks = np.zeros((2, len(bags)), dtype=bool)
        masks[0, visible], masks[1, tested] = True, True
        found.append((place, masks[0], masks[1]))
    return Task(name, bags, listings, found[:count])


def sampled(bags: Bags, listings: int, seed: int) -> Bags:
    """So many listings of every bag."""
    random = np.random.default_rng(seed)
    ends = zip(bags.offsets[:-1], bags.offsets[1:], strict=True)
    rows = np.concatenate([random.choice(np.arange(a, b), listings, replace=False) for a, b in ends])
    return Bags(bags.instances[rows], np.arange(len(bags) + 1) * listings, bags.y, ids=bags.ids, graph=bags.graph)


def process(one: Task, graph: str, bags: Bags) -> Any:
    """A process with a graph of means of bags."""
    kind = BagProcessClassifier if one.classify else BagProcessRegressor
    if graph == NO_GRAPH:
        return kind(parts="linear", graph=None)
    return kind(parts=("graph", "linear"), graph=graph_of_means(one, graph, bags))


def graph_of_means(one: Task, graph: str, bags: Bags) -> BagGraph:
    """A graph whose embeddings are standardised means of bags."""
    means = summarise(bags)
    spread = means.std(axis=0)
    stack = ((means - means.mean(axis=0)) / np.where(spread > 0, spread, 1.0))[None]
    return build_wiring(network(one, "GCN", graph, bags), bags).graphs(stack, bags.ids)[0]


def network(one: Task, model: str, graph: str, bags: Bags) -> Any:
    """The model with a graph, by the paper's settings of the data set."""
    kinds = {"known": "given", "k-NN": "knn", "learned": "learned", "reweighted": "reweighted"}
    if one.classify:
        known = "B-rFF+pool-GCN" if graph == "learned" or graph == "shuffled" else "rFF+pool-GCN"
        found = baggraph.make(known, dataset=one.name)
    else:
        found = baggraph.make("DS-GCN", dataset=one.family)
        found.set_params(n_neighbors=NEIGHBORS[one.family], candidate_ratio=1)
    found.set_params(graph=kinds.get(graph), n_draws=0, observed=None, **MODELS[model])
    if graph == "shuffled":
        own = clone(found).set_params(
            graph="learned" if bags.graph is None else "given", head="gcn", label_inputs=False
        )
        found.set_params(graph=ShuffledWiring(build_wiring(own, bags)))
    return found


def methods(one: Task) -> dict[str, tuple[str, str]]:
    """Models with graphs by name; without a known graph, there is none to reweigh."""
    there = [graph for graph in GRAPHS if one.bags.graph is not None or graph not in ("known", "reweighted")]
    return {f"{model}, {graph}": (model, graph) for model in (*MODELS, PROCESS) for graph in there}


def scores(one: Task, posterior: Posterior, y: Any, tested: np.ndarray) -> dict[str, float]:
    part, labels = posterior.take(tested), y[tested]
    names = ("accuracy", "nll", "ece") if one.classify else ("rmse", "mape", "nd", "nll", "coverage")
    found = {name: float(METRICS[name](labels, part)) for name in names}
    if one.family == "election":
        found["accuracy"] = float(((part.mean[:, 0] > 0.5) == (labels > 0.5)).mean())
    return found


def done(folder: Path, one: Task, name: str) -> set[tuple[int, int]]:
    if not folder.exists():
        return set()
    rows = ResultTable.read(folder).filter(dataset=one.name, method=name, metric=one.metric).rows.to_pydict()
    return set(zip(rows["repeat"], rows["fold"], strict=True))


def run_method(folder: Path, one: Task, name: str, make: Callable[[Bags], Any], stack: int) -> None:
    there = done(folder, one, name)
    waiting = [i for i, (place, *_) in enumerate(one.splits) if (place["repeat"], place["fold"]) not in there]
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    known = {"task": "classification" if one.classify else "regression", "dataset": one.name, "method": name}
    known |= {"setting": "transductive", "code_version": baggraph.__version__, "libraries": library_versions()}
    known |= {"device": device}
    for number, some in enumerate(one.stacks(waiting, stack)):
        bags = one.bags_of(some[0])
        started = time.perf_counter()
        found = make(bags).posteriors(bags, np.stack([one.splits[i][1] for i in some]))
        seconds = time.perf_counter() - started
        rows = []
        for i, posterior in zip(some, found, strict=True):
            place, visible, tested = one.splits[i]
            row = known | place | {"n_train": int(visible.sum()), "n_test": int(tested.sum())}
            row |= {"data_sha256": fingerprint(bags), "wall_time": seconds / len(some)}
            rows += [row | {"metric": m, "value": v} for m, v in scores(one, posterior, bags.y, tested).items()]
        ResultTable.from_rows(rows).append(folder)
        left = len(waiting) - sum(len(part) for part in list(one.stacks(waiting, stack))[: number + 1])
        print(f"{one.name} | {name} | {len(some)} splits in {seconds:.1f} s, {left} to go", flush=True)


# ---------------------------------------------------------------------- the table


def table(folder: Path) -> str:
    """A line a task, model and graph: score, and what the graph adds with its interval."""
    results = ResultTable.read(folder)
    lines = [
        "| task | model | graph | splits | score | less no graph | 95 % interval | p |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in [*REGIONS, *BENCHMARK]:
        metric = "accuracy" if name in BENCHMARK else SHOWN[name.split("/")[0].split(",")[0]]
        unit = 1 if metric == "rmse" else 100
        frame = results.filter(dataset=name, metric=metric).frame()
        for model in (*MODELS, PROCESS):
            own = {g: frame[frame["method"] == f"{model}, {g}"].set_index(["repeat", "fold"]) for g in GRAPHS}
            for graph, rows in own.items():
                if len(rows):
                    cells = [f"{name} ({metric})", model, graph, str(len(rows)), f"{unit * rows['value'].mean():.1f}"]
                    lines.append("| " + " | ".join(cells + added(rows, own[NO_GRAPH], unit)) + " |")
    return "\n".join(lines)


def added(rows: Any, base: Any, unit: float) -> list[str]:
    """Mean difference from no graph on the splits that both have, its interval, and p."""
    both = rows.index.intersection(base.index)
    if len(both) < 2 or rows["method"].iloc[0].endswith(NO_GRAPH):
        return ["", "", ""]
    own = rows.loc[both]
    ratio = ratio_of(own["n_test"], own["n_train"])
    found = corrected_t(own["value"] - base.loc[both, "value"], test_to_train=ratio)
    return [f"{unit * found.mean:+.1f}", f"{unit * found.low:+.1f} to {unit * found.high:+.1f}", f"{found.p:.3g}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the result table")
    parser.add_argument("--tasks", nargs="+", default=[*REGIONS, *BENCHMARK], help="first words of names of tasks")
    parser.add_argument(
        "--methods", nargs="+", default=["GCN", "network", "GP,"], help="beginnings of names; 'GP head' takes long"
    )
    parser.add_argument("--splits", type=int, default=100, help="how many, from the first")
    parser.add_argument("--stack", type=int, default=100, help="splits that are trained in one call")
    parser.add_argument("--table", action="store_true", help="only print the table of what is there")
    options = parser.parse_args()
    if not options.table:
        for name in (name for name in [*REGIONS, *BENCHMARK] if name.startswith(tuple(options.tasks))):
            one = task(name, options.splits)
            for label, (model, graph) in methods(one).items():
                if label.startswith(tuple(options.methods)):
                    make = partial(process, one, graph) if model == PROCESS else partial(network, one, model, graph)
                    run_method(options.output, one, label, make, options.stack)
    print(table(options.output))


if __name__ == "__main__":
    main()
