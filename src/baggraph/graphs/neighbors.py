"""Nearest neighbours between the embeddings of bags: exact, or approximate with a measured recall."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from baggraph.errors import InvalidGraphError, ParameterError, closest
from baggraph.graphs import _approximate
from baggraph.graphs._exact import search
from baggraph.graphs._points import Points

__all__ = ["Neighbors", "nearest", "nearest_many"]

METRICS = ("cosine", "euclidean")
METHODS = ("auto", "exact", "hnsw", "ivf")
# From here on cells are faster, their making and the measuring of the recall included (benchmarks/neighbors.py).
EXACT_UP_TO = {"cpu": 50_000, "cuda": 1_000_000}
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
    rows: tuple[int, int] | None = None,
    metric: str = "euclidean",
    method: str = "auto",
    count_self: bool = False,
    recall_target: float = 0.95,
    memory_bytes: int = 1 << 28,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Neighbors:
    """The nearest rows of Z (n, d) to every row of Z, to its ``rows`` (from, to), or to every row of ``queries``.

    A row of Z is no neighbour of itself, unless ``count_self`` makes it the first: the published variant.  Where there
    are fewer others than asked for, all of them are given.  ``progress(done, total)`` is called as the search goes on.

    ``method`` "exact" compares all pairs; "ivf" looks into the nearest cells of points only, "hnsw" follows a graph of
    points (needs faiss).  Both search until ``recall_target`` is met on a sample; "auto" takes "ivf" for many points.

    >>> found = nearest(torch.tensor([[0.0], [1.0], [3.0], [3.0]]), 2)
    >>> found.indices.tolist(), found.distances.tolist()
    ([[1, 2], [0, 2], [3, 1], [2, 1]], [[1.0, 9.0], [1.0, 4.0], [0.0, 4.0], [0.0, 4.0]])
    """
    _check(n_neighbors, metric, method, recall_target)
    if count_self and queries is not None:
        raise _parameter("count_self=True only where the points ask", "queries", "leave queries out")
    raw = _prepared(Z, metric, "Z")
    asked = None if queries is None else _prepared(queries, metric, "queries")
    if asked is not None and asked.shape[1] != raw.shape[1]:
        raise _wrong(f"queries of {raw.shape[1]} features", str(asked.shape[1]), "embed them as the others")
    count = min(n_neighbors - count_self, len(raw) - (asked is None))
    total = len(raw) if asked is None else len(asked)

    def tell(done: int) -> None:
        if progress is not None:
            progress(done, total)

    if method == "auto":
        few = len(raw) <= EXACT_UP_TO[raw.device.type] or asked is not None or rows is not None
        method = "exact" if few else "ivf"
    if method == "exact":
        found = Neighbors(*_exact(raw, asked, rows, count, memory_bytes, tell))
    elif asked is not None or rows is not None:
        raise _parameter("method='exact' for queries or rows", repr(method), "search all points, or exactly")
    else:
        how = _approximate.ivf if method == "ivf" else _approximate.hnsw
        found = Neighbors(*how(raw, count, recall_target, memory_bytes, random_state, tell))
    if metric == "cosine":
        found.distances.mul_(0.5)  # of unit vectors: |x - y|^2 = 2 - 2 cos
    return _with_self(found, rows) if count_self else found


@torch.no_grad()
def nearest_many(stack: Tensor, n_neighbors: int) -> tuple[Tensor, Tensor]:
    """Indices and squared distances (M, n, K) inside each of M sets of n points (M, n, d), as :func:`nearest` gives.

    >>> nearest_many(torch.tensor([[[0.0], [1.0], [3.0]], [[0.0], [4.0], [3.0]]]), 1)[0].squeeze(-1).tolist()
    [[1, 0, 1], [2, 2, 1]]
    """
    n = stack.shape[1]
    sets = max(1, MANY_BYTES // (n * n * stack.element_size())) if stack.is_cpu else len(stack)
    parts = []
    for part in stack.split(sets):
        points = Points.around(part, part.mean(1, keepdim=True))
        parts.append(search(points, points, min(n_neighbors, n - 1), own_from=0, memory_bytes=1 << 28))
    indices, distances = zip(*parts, strict=True)
    return torch.cat(indices), torch.cat(distances)


def _exact(
    raw: Tensor,
    asked: Tensor | None,
    rows: tuple[int, int] | None,
    count: int,
    memory_bytes: int,
    tell: Callable[[int], None],
) -> tuple[Tensor, Tensor]:
    centre = raw.mean(0)[None, None]
    points = Points.around(raw[None], centre)
    if asked is not None:
        queries, own_from = Points.around(asked[None], centre), None
    else:
        start, stop = rows or (0, len(raw))
        queries, own_from = points.rows(start, stop), start
    indices, distances = search(queries, points, count, own_from=own_from, memory_bytes=memory_bytes, progress=tell)
    return indices[0], distances[0]


def _with_self(found: Neighbors, rows: tuple[int, int] | None) -> Neighbors:
    start = 0 if rows is None else rows[0]
    own = torch.arange(start, start + len(found.indices), device=found.indices.device).unsqueeze(1)
    indices = torch.cat([own, found.indices], 1)
    distances = torch.cat([torch.zeros_like(found.distances[:, :1]), found.distances], 1)
    return replace(found, indices=indices, distances=distances)


def _prepared(Z: Tensor, metric: str, name: str) -> Tensor:
    if Z.ndim != 2 or not Z.is_floating_point() or len(Z) < (2 if name == "Z" else 1):
        got = f"{Z.dtype} of shape {tuple(Z.shape)}"
        raise _wrong(f"{name} as a floating-point table of at least two bags", got, "stack the embeddings")
    _refuse(~torch.isfinite(Z).all(1), f"finite {name}", "NaN or infinity")
    if metric == "euclidean":
        return Z
    norms = torch.linalg.vector_norm(Z, dim=1, keepdim=True)
    _refuse(norms[:, 0] == 0, "a direction of every bag for metric='cosine'", "zeros only")
    return Z / norms


def _refuse(bad: Tensor, expected: str, got: str) -> None:
    if bool(bad.any()):
        raise _wrong(expected, f"{got} in row {int(bad.int().argmax())}", "look at that bag")


def _check(n_neighbors: int, metric: str, method: str, recall_target: float) -> None:
    for name, value, choices in (("metric", metric, METRICS), ("method", method, METHODS)):
        if value not in choices:
            raise _parameter(f"{name} to be one of {choices}", repr(value), closest(str(value), choices))
    if isinstance(n_neighbors, bool) or n_neighbors != int(n_neighbors) or n_neighbors < 1:
        raise _parameter("n_neighbors a whole number from 1", repr(n_neighbors), "change it")
    if not 0 < recall_target <= 1:
        raise _parameter("recall_target above 0 and up to 1", repr(recall_target), "change it")


def _wrong(expected: str, got: str, remedy: str) -> InvalidGraphError:
    return InvalidGraphError("neighbours", expected=expected, got=got, remedy=remedy)


def _parameter(expected: str, got: str, remedy: str) -> ParameterError:
    return ParameterError("neighbours", expected=expected, got=got, remedy=remedy)
