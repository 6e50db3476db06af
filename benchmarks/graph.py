"""Learned graphs: time by phase, degree, gap, recall; against the published iteration; many at once.

python benchmarks/graph.py --n 10000 100000 1000000    end to end, and how time grows
python benchmarks/graph.py --against-published         n = 1,000 and 2,000
python benchmarks/graph.py --many                      100 graphs of 200 nodes in one call
python benchmarks/graph.py --hard                      heavy tails and far outliers, n = 10,000
python benchmarks/graph.py --certificate               from few candidates to the graph of all pairs, n = 2,000
python benchmarks/graph.py --degree musk1 fox          degree asked and reached, also on data sets by name
python benchmarks/graph.py --devices                   the same graph from CPU and GPU, n = 100,000

Times are medians of --repeats runs.  CPU-seconds mean something with --threads 1 only: threads that wait for one
another on a machine with other work burn more of them than the work itself.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from baggraph import datasets
from baggraph.baselines.summary import summarise
from baggraph.graphs.learned import LearnedGraph
from published_graph import solve as published


def mixture(n: int, d: int = 64, seed: int = 0) -> np.ndarray:
    """A Gaussian mixture with about 1,000 points a centre."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(max(10, n // 1000), d)).astype(np.float32) * 1.5
    return centres[rng.integers(len(centres), size=n)] + rng.standard_normal(size=(n, d), dtype=np.float32)


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Result, CPU-seconds and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = call()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def medians(call: Callable[[], Any], times: int) -> tuple[Any, float, float]:
    runs = [timed(call) for _ in range(times)]
    return runs[-1][0], float(np.median([r[1] for r in runs])), float(np.median([r[2] for r in runs]))


def facts(learned: LearnedGraph, cpu: float, wall: float) -> dict[str, Any]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {
        "n": len(learned.dual_),
        "cpu_s": round(cpu, 3),
        "wall_s": round(wall, 3),
        "phases": {k: round(v, 3) for k, v in learned.timings_.items()},
        "relative_gap": learned.relative_gap_,
        "converged": learned.converged_,
        "iterations": learned.n_iter_,
        "degree": round(learned.degree_, 3),
        "recall": round(learned.recall_, 4),
        "peak_gb": round(peak, 2),
    }


def sizes(options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for n in options.n:
        Z = mixture(n)
        maker = LearnedGraph(10, 3, device=options.device, knn=options.knn)
        maker.fit(Z[:1000])  # what is loaded on first use
        rows.append(facts(*medians(lambda Z=Z, maker=maker: maker.fit(Z), options.repeats)))
    if len(rows) > 1:
        n, cpu, wall = (np.log([row[key] for row in rows]) for key in ("n", "cpu_s", "wall_s"))
        powers = {"cpu_s": cpu, "wall_s": wall}
        rows.append(
            {f"{k}_grows_as_n_to_the_power": round(float(np.polyfit(n, v, 1)[0]), 3) for k, v in powers.items()}
        )
    return rows


def devices(_: argparse.Namespace) -> list[dict[str, Any]]:
    Z = mixture(100_000)
    cpu, gpu = (LearnedGraph(10, 3, device=device, knn="exact").fit(Z) for device in ("cpu", "cuda"))
    far = abs(cpu.graph_.adjacency - gpu.graph_.adjacency).max()
    edges = {"edges_cpu": cpu.graph_.n_edges, "edges_gpu": gpu.graph_.n_edges}
    return [{"n": len(Z), "largest_difference_of_a_weight": float(far)} | edges]


def against_published(options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    LearnedGraph().fit(mixture(100))  # what is loaded on first use is not the solver's cost
    for n in (1000, 2000):
        Z = mixture(n)
        learned, cpu, wall = medians(lambda Z=Z: LearnedGraph(10, 3, device="cpu").fit(Z), options.repeats)
        row = facts(learned, cpu, wall)
        for name, tuned in (("published", False), ("tuned", True)):
            problem = (Z.astype(np.float64), 10, 3, learned.theta_, 1e-4)
            runs = [published(*problem, tuned=tuned) for _ in range(options.repeats)]
            theirs = float(np.median([run.cpu_seconds for run in runs]))
            row |= {f"{name}_cpu_s": round(theirs, 2), f"{name}_iterations": runs[0].iterations}
            row[f"times_fewer_cpu_s_than_{name}"] = round(theirs / cpu, 1)
        rows.append(row)
    return rows


def hard(options: argparse.Namespace) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    n = 10_000
    t3 = rng.normal(size=(n, 64)) / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3)
    outliers = mixture(n)
    outliers[:50] *= 30
    sets = {"t3": t3, "50 outliers": outliers}
    if datasets.state(datasets.card("fox")) == "here":
        sets["fox"] = summarise(datasets.load("fox"))
    rows = []
    for name, Z in sets.items():
        for scaling in (False, True):
            maker = LearnedGraph(10, 3, local_scaling=scaling, device=options.device)
            learned, cpu, wall = medians(lambda Z=Z, maker=maker: maker.fit(Z), options.repeats)
            rows.append({"set": name, "local_scaling": scaling} | facts(learned, cpu, wall))
    return rows


def certificate(_: argparse.Namespace) -> list[dict[str, Any]]:
    Z = mixture(2000)
    tight = {"precision": "float64", "tol": 1e-12}
    whole = objective(LearnedGraph(10, 200, **tight).fit(Z), Z)
    rows = []
    for ratio in (1, 2, 3, 5):
        plain = LearnedGraph(10, ratio, certify="check", **tight).fit(Z)
        exact = LearnedGraph(10, ratio, certify="exact", **tight).fit(Z)
        first, last = ((objective(g, Z) - whole) / abs(whole) for g in (plain, exact))
        certified = round(plain.certified_fraction_, 3)
        rows.append({"ratio": ratio, "certified": certified, "above_optimum": first, "rounds": exact.n_rounds_})
        rows[-1] |= {"above_optimum_after": last, "certified_after": exact.certified_fraction_}
    return rows


def objective(learned: LearnedGraph, Z: np.ndarray) -> float:
    """The primal objective of the graph, from its edges alone."""
    edges = sp.triu(learned.graph_.adjacency).tocoo()
    z = ((Z[edges.coords[0]].astype(float) - Z[edges.coords[1]]) ** 2).sum(axis=1)
    degrees = learned.graph_.adjacency.sum(axis=1)
    return float(2 * learned.theta_ * z @ edges.data - np.log(degrees).sum() + edges.data @ edges.data)


def degree(options: argparse.Namespace) -> list[dict[str, Any]]:
    sets = {"mixture": mixture(1000)}
    for name in options.degree:
        means = summarise(datasets.load(name))
        sets[name] = (means - means.mean(axis=0)) / np.maximum(means.std(axis=0), 1e-9)
    rows = []
    for name, Z in sets.items():
        for k in (2, 3, 4, 7, 10):
            reached = [LearnedGraph(k, 5, degree_match=match).fit(Z).degree_ for match in ("rule", "exact")]
            rows.append({"set": name, "asked": k, "by_rule": round(reached[0], 2), "exact": round(reached[1], 2)})
    return rows


def many(options: argparse.Namespace) -> list[dict[str, Any]]:
    stack = np.stack([mixture(200, seed=s) for s in range(100)])
    maker = LearnedGraph(4, 5, device=options.device)
    maker.fit(stack[0])
    graphs, cpu, wall = medians(lambda: maker.fit_many(stack), options.repeats)
    loop = [LearnedGraph(4, 5, device=options.device) for _ in stack]
    alone, loop_cpu, loop_wall = medians(
        lambda: [one.fit(Z) for one, Z in zip(loop, stack, strict=True)], options.repeats
    )
    far = max(abs(graphs[m].adjacency - one.graph_.adjacency).max() for m, one in enumerate(alone))
    ratio = {"times_faster_cpu": loop_cpu / cpu, "times_faster_wall": loop_wall / wall}
    return [{"graphs": 100, "n": 200, "cpu_s": cpu, "wall_s": wall, "largest_difference": float(far)} | ratio]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[10_000])
    parser.add_argument("--knn", default="auto")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    for name in ("against-published", "hard", "many", "devices", "certificate"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--degree", nargs="*", metavar="NAME")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore", category=UserWarning)
    asked = {
        against_published: options.against_published,
        hard: options.hard,
        many: options.many,
        devices: options.devices,
        certificate: options.certificate,
        degree: options.degree is not None,
    }
    chosen = [function for function, wanted in asked.items() if wanted]
    for function in chosen or [sizes]:
        for row in function(options):
            print(json.dumps(row) if options.json else "  ".join(f"{k}={v}" for k, v in row.items()), flush=True)


if __name__ == "__main__":
    main()
