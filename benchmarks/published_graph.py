"""The graph iteration of the published code, reimplemented from its description, with the sign of the dual mended.

Forward-backward-forward primal-dual steps (Komodakis & Pesquet 2015; Kalofolias 2016) on the candidate edges, with the
incidence products through a dense n x n matrix, as published.  Only for comparison; it grows as n^2.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Published(NamedTuple):
    weights: NDArray[np.float64]
    gap: float
    iterations: int
    cpu_seconds: float


def candidate_edges(
    Z: NDArray[np.float64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Dense squared distances and the union of the nearest neighbours of every bag."""
    products = Z @ Z.T
    squares = np.diag(products)
    z = np.maximum(squares[:, None] + squares[None] - 2 * products, 1e-8) + 1e10 * np.eye(len(Z))
    nearest = np.argsort(z, axis=0)[:count].T
    pairs = np.sort(np.stack([nearest.ravel(), np.repeat(np.arange(len(Z)), count)], axis=1), axis=1)
    pairs = np.unique(pairs, axis=0)
    return z, pairs[:, 0], pairs[:, 1]


def solve(
    Z: NDArray[np.float64], k: int, ratio: int, theta: float, tol: float, *, tuned: bool = False, most: int = 20_000
) -> Published:
    """Iterate to a relative gap of ``tol``; the gap is looked at every ten steps and its cost is not counted.

    The step is 0.01 and the start random, as published; ``tuned`` takes the largest step that theory allows instead.
    """
    start = time.process_time()
    uncounted = 0.0
    count = min(len(Z) - 1, k * ratio)
    dense, rows, columns = candidate_edges(Z, count)
    n, z = len(Z), theta * dense[rows, columns]
    step = 0.95 / (2 + np.sqrt(2 * np.bincount(np.r_[rows, columns]).max())) if tuned else 0.01
    rng = np.random.default_rng(0)

    def node_sums(w: NDArray[np.float64]) -> NDArray[np.float64]:
        adjacency = np.zeros((n, n))
        adjacency[rows, columns] = w
        return (adjacency + adjacency.T).sum(axis=1)

    w, v = rng.random(len(z)), -k * rng.random(n)  # v is minus the dual potential, and negative
    for iteration in range(1, most + 1):
        y, y_node = w - step * (2 * w + v[rows] + v[columns]), v + step * node_sums(w)
        p, p_node = np.maximum(0, y - 2 * step * z), (y_node - np.sqrt(y_node**2 + 4 * step)) / 2
        q, q_node = p - step * (2 * p + p_node[rows] + p_node[columns]), p_node + step * node_sums(p)
        w, v = w - y + q, v - y_node + q_node
        if iteration % 10 == 0:
            looked = time.process_time()
            gap, objective = duality_gap(np.maximum(w, 0), -v, z, rows, columns, n)
            uncounted += time.process_time() - looked
            if gap <= tol * max(abs(objective), 0.1 * n):
                break
    return Published(w, gap, iteration, time.process_time() - start - uncounted)


def duality_gap(w, potential, z, rows, columns, n):  # type: ignore[no-untyped-def]
    degree = np.bincount(np.r_[rows, columns], np.r_[w, w], minlength=n)
    if (potential <= 0).any() or (degree <= 0).any():
        return np.inf, 0.0
    primal = 2 * z @ w - np.log(degree).sum() + w @ w
    active = np.maximum(potential[rows] + potential[columns] - 2 * z, 0)
    return primal - (n + np.log(potential).sum() - active @ active / 4), primal
