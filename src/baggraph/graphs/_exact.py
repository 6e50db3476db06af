"""Exact nearest neighbours by dense products: select by a lower bound of the distance, then measure directly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from baggraph.graphs._points import Points, in_order, measured
from baggraph.graphs._ties import settle

# Candidates beyond the wanted ones: their lower bounds nearly always prove that nothing else is as near.
MARGIN = 8
# On a CPU, larger blocks of scores fall out of the caches, and are mapped and unmapped by the system every time.
SCORE_BYTES = 1 << 22
FEWEST_ROWS = 256
# Looking at column minima first pays from this many points for every one that is kept.
FOLD_FROM = 8


def search(
    queries: Points,
    points: Points,
    count: int,
    *,
    own_from: int | None,
    memory_bytes: int,
    progress: Callable[[int], None] | None = None,
) -> tuple[Tensor, Tensor]:
    """The ``count`` nearest points of every query: places and squared distances (B, m, count), ties by place.

    Query i is point ``own_from + i``, which is then not a neighbour of itself, unless ``own_from`` is None.
    """
    sets, total, width = len(points.raw), queries.raw.shape[1], points.raw.shape[1]
    bytes_of_column = sets * points.raw.element_size()
    budget = min(memory_bytes, SCORE_BYTES) if points.raw.is_cpu else memory_bytes
    rows = min(total, max(FEWEST_ROWS, budget // (bytes_of_column * width)))
    width = min(width, max(count + MARGIN, memory_bytes // (bytes_of_column * rows)))
    places = torch.empty(sets, total, count, dtype=torch.int64, device=points.raw.device)
    distances = torch.empty(sets, total, count, dtype=points.raw.dtype, device=points.raw.device)
    scratch = points.raw.new_empty(sets * rows * width)
    for start in range(0, total if count else 0, rows):
        stop = min(start + rows, total)
        own = None if own_from is None else own_from + start
        found = _nearest(queries.rows(start, stop), points, count, own, width, scratch)
        places[:, start:stop], distances[:, start:stop] = found
        if progress is not None:
            progress(stop)
    return places, distances


def _nearest(
    queries: Points, points: Points, count: int, own_from: int | None, width: int, scratch: Tensor
) -> tuple[Tensor, Tensor]:
    """Places and squared distances of one block of queries; query i is point ``own_from + i``."""
    available = points.raw.shape[1] - (own_from is not None)
    kept = min(count + MARGIN, available)
    scores, candidates = _select(queries, points, kept, own_from, width, scratch)
    places, distances = in_order(candidates, measured(queries, points, candidates), count)
    if kept < available:
        # All points that were left out are at least this far away.
        open_ = distances[..., -1] >= scores.amax(-1) + queries.norms
        for member in torch.nonzero(open_.any(-1)).flatten().tolist():
            rows = torch.nonzero(open_[member]).flatten()
            one, own = queries.only(member, rows), None if own_from is None else rows + own_from
            found = settle(one, points.only(member), own, places[member, rows], distances[member, rows], scratch.nbytes)
            places[member, rows], distances[member, rows] = found
    return places, distances


def _select(
    queries: Points, points: Points, kept: int, own_from: int | None, width: int, scratch: Tensor
) -> tuple[Tensor, Tensor]:
    """The ``kept`` lowest scores (lower bounds of the distances, less the queries' norms) and their places."""
    sets, rows = queries.norms.shape
    best: list[tuple[Tensor, Tensor]] = []
    for low in range(0, points.raw.shape[1], width):
        part = points.rows(low, low + width)
        n = part.raw.shape[1]
        scores = scratch[: sets * rows * n].view(sets, rows, n)
        torch.baddbmm(part.norms.unsqueeze(1), queries.centred, part.centred.mT, alpha=-2, out=scores)
        if own_from is not None:
            scores.diagonal(own_from - low, 1, 2).fill_(torch.inf)
        values, places = _lowest(scores, kept)
        best = [*best, (values, places + low)]
        if len(best) > 1:
            values, places = (torch.cat(both, -1) for both in zip(*best, strict=True))
            pick = _partition(values, kept)
            best = [(values.gather(-1, pick), places.gather(-1, pick))]
    return best[0]


def _lowest(scores: Tensor, kept: int) -> tuple[Tensor, Tensor]:
    """Values and places of the lowest ``kept`` along the last dimension, in no order.

    Of long rows, cut into columns of some ten entries, only the columns with the lowest minima are looked at.
    """
    n = scores.shape[-1]
    if n < FOLD_FROM * kept:
        pick = _partition(scores, kept)
        return scores.gather(-1, pick), pick
    folds = round((n / kept) ** 0.5)
    width = n // folds
    body, tail = scores[..., : folds * width].unflatten(-1, (folds, width)), scores[..., folds * width :]
    columns = _partition(body.amin(-2), kept).unsqueeze(-2)
    columns = columns.expand(*columns.shape[:-2], folds, kept)
    starts = torch.arange(0, folds * width, width, device=scores.device).unsqueeze(-1)
    rest = torch.arange(folds * width, n, device=scores.device).expand(tail.shape)
    values = torch.cat([body.gather(-1, columns).flatten(-2), tail], -1)
    places = torch.cat([(columns + starts).flatten(-2), rest], -1)
    pick = _partition(values, kept)
    return values.gather(-1, pick), places.gather(-1, pick)


def _partition(values: Tensor, kept: int) -> Tensor:
    """Places of the lowest ``kept`` along the last dimension, in no order."""
    if kept >= values.shape[-1]:
        return torch.arange(values.shape[-1], device=values.device).expand(values.shape)
    if values.is_cpu:
        # Four times as fast as topk, which builds a list of pairs of every row.
        return torch.from_numpy(np.argpartition(values.numpy(), kept - 1, axis=-1)[..., :kept])
    return values.topk(kept, largest=False, sorted=False).indices
