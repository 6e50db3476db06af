"""A Gaussian process over a graph of a million bags: time and memory, and the exact process at 2,000 beside.

python benchmarks/gp_sparse.py --bags 2000 1000000 --threads 2
python benchmarks/gp_sparse.py --device cuda

Bags lie in the plane, each joined to its five nearest; targets follow a smooth field, three features and noise, and
half of them are visible.  Parameters are fitted by the exact process on a ball of the graph; memory is the peak.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import scipy.sparse as sp
import torch
from scipy.spatial import cKDTree

from baggraph import BagGraph
from baggraph.inference.gp import FittedProcess, Process, fit_process
from baggraph.inference.gp_graph import laplacian, spectrum
from baggraph.inference.gp_kernels import Constant, Linear, Parameter, Spectral
from baggraph.inference.gp_scale import Scale
from baggraph.inference.gp_sparse import SparseProcess, ball, mean_variance

BALL = 1000
LEVEL = 1.0


def world(n: int) -> tuple[BagGraph, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    places = random.random((n, 2))
    near = cKDTree(places).query(places, k=6)[1][:, 1:]
    links = sp.csr_array((np.ones(near.size), (np.repeat(np.arange(n), 5), near.ravel())), shape=(n, n))
    graph = BagGraph.from_adjacency(links, np.arange(n), symmetric="max")
    features = random.normal(size=(n, 3))
    waves = np.sqrt(n) / 12  # as many bags a wave whatever the number of bags
    signal = np.sin(waves * places[:, 0]) * np.cos(waves * places[:, 1]) + features @ [0.4, -0.2, 0.0]
    return graph, features, signal, signal + 0.4 * random.normal(size=n), random.random(n) < 0.5


def exact_rows(graph: BagGraph, features: np.ndarray) -> tuple[Process, dict[str, np.ndarray]]:
    values, vectors = spectrum(graph)
    kernels = {"level": Constant(Parameter("level", LEVEL, 0.0)), "graph": Spectral(values), "linear": Linear()}
    rows = {"level": features, "graph": vectors, "linear": features, "noise": np.ones(len(graph))}
    return Process(kernels, {"noise": Parameter("noise", 0.3)}), rows


def measure(n: int, draws: int, device: str) -> str:
    graph, features, signal, y, visible = world(n)
    center, spread = float(y[visible].mean()), float(y[visible].std())
    z = (y - center) / spread
    started = time.perf_counter()
    piece = ball(graph, int(np.flatnonzero(visible)[0]), min(BALL, n))
    process, rows = exact_rows(graph.take(piece), features[piece])
    seen = visible[piece]
    theta = fit_process(process, {k: v[seen] for k, v in rows.items()}, z[piece][seen, None], starts=1).theta
    fitted = time.perf_counter() - started
    _, variance, kappa, slope, noise = theta
    sparse = SparseProcess(graph, variance, kappa, features, np.full(3, slope), LEVEL, np.full(n, noise))
    scale = Scale("identity", np.zeros(1), np.ones(1))
    normaliser = mean_variance(graph, kappa, device=device)
    if n <= 4000:
        normaliser = float(np.diag(np.linalg.inv(np.eye(n) + laplacian(graph).toarray() / kappa)).mean())
    found = sparse.posterior(z, visible, scale, n_draws=draws, normaliser=normaliser, device=device)
    seconds = time.perf_counter() - started
    error = np.sqrt(np.mean((found.mean[~visible, 0] * spread + center - signal[~visible]) ** 2))
    constant = np.sqrt(np.mean((center - signal[~visible]) ** 2))
    beside = ""
    if n <= 4000:
        process, rows = exact_rows(graph, features)
        known = {name: value[visible] for name, value in rows.items()}
        mean = FittedProcess(process, theta, known, z[visible, None], 0.0, 0.0).predict(rows)[0]
        beside = f", largest difference from the exact mean {np.abs(mean - found.mean).max():.1e}"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return (
        f"{n:,} bags, {graph.n_edges:,} edges: {seconds:.0f} s ({fitted:.0f} s for the parameters), {draws} draws, "
        f"peak {peak:.1f} GiB, RMSE of the signal {error:.3f} (constant {constant:.3f}){beside}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bags", type=int, nargs="+", default=[2000, 1_000_000])
    parser.add_argument("--draws", type=int, default=16)
    parser.add_argument("--device", default="cpu", help="cpu, or a GPU by its name in torch")
    parser.add_argument("--threads", type=int, default=2, help="of the CPU")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for n in options.bags:
        print(measure(n, options.draws, options.device), flush=True)


if __name__ == "__main__":
    main()
