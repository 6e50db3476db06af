"""Nearest neighbours between the embeddings of bags: exact, or approximate with a measured recall."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from baggraph.errors import InvalidBagsError, ParameterError, closest
from baggraph.graphs._exact import search
from baggraph.graphs._points import Points

__all__ = ["Neighbors", "nearest", "nearest_many"]

METRICS = ("cosine", "euclidean")
METHODS = ("auto", "exact", "hnsw", "ivf")
MANY_BYTES = 1 << 24


@dataclass(frozen=True)
class Neighbors:
    """The K nearest points of each of m queries, nearest first and ties by index.

    Parameters
    ----------
    indices : (m, K) int64
    distances : (m, K)
        Squared Euclidean distances, or 1 - cosine.
    recall
        Share of the true neighbours that were found: 1 where the search was exact, else measured on a sample.
    method
        "exact", "ivf" or "hnsw": how they were found.
    cells : (n,) int64 or None
        Cell of every point where the search made cells; points of one cell are near each other.

    """

    indices: Tensor
    distances: Tensor
    recall: float = 1.0
    method: str = "exact"
    cells: Tensor | None = None


@torch.no_grad()
def nearest(
    Z: Tensor,
    n_neighbors: int,
    *,
    queries: Tensor | None = None,
    metric: str = "euclidean",
    method: str = "auto",
    count_self: bool = False,
    recall_target: float = 0.95,
    memory_bytes: int = 1 << 28,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Neighbors:
    """The nearest rows of Z (n, d) to every row of Z, or to every row of ``queries`` (m, d).

    >>> found = nearest(torch.tensor([[0.0], [1.0], [3.0], [3.0]]), 2)
    >>> found.indices.tolist(), found.distances.tolist()
    ([[1, 2], [0, 2], [3, 1], [2, 1]], [[1.0, 9.0], [1.0, 4.0], [0.0, 4.0], [0.0, 4.0]])
    """
    raw = _embeddings(Z, metric)[None]
    asked = raw if queries is None else _embeddings(queries, metric)[None]
    centre = raw.mean(1, keepdim=True)
    points = Points.around(raw, centre)
    count = min(n_neighbors, Z.shape[0] - (queries is None))
    indices, distances = search(
        points if queries is None else Points.around(asked, centre), points, count, own=queries is None, memory_bytes=memory_bytes
    )
    return Neighbors(indices[0], distances[0])


def _embeddings(Z, metric):
    return Z / Z.norm(dim=-1, keepdim=True) if metric == "cosine" else Z
