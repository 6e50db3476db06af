"""Queries whose last neighbour is tied, or nearly, with points that the selection left out."""

from __future__ import annotations

import torch
from torch import Tensor

from baggraph.graphs._points import Points, paired


def settle(
    queries: Points, points: Points, own: Tensor | None, places: Tensor, distances: Tensor, memory_bytes: int
) -> tuple[Tensor, Tensor]:
    """Exact places and squared distances (m, K), given the best K found so far.

    One set: queries (1, m, d), points (1, n, d).  Every point whose lower bound does not exceed the distance of the
    last of the K is measured.  ``own[i]`` is the point that query i itself is.
    """
    count, places, distances = places.shape[-1], places.clone(), distances.clone()
    todo = torch.arange(len(places), device=places.device)
    zero = distances[:, -1] == 0
    if bool(zero.any()):
        # Many equal points need no distances: the first of them by index are the answer.
        twins, known = _twins(points.raw[0], None if own is None else own[zero], places[zero])
        places[todo[zero][known]] = twins[known]
        todo = todo[~zero.index_put((todo[zero],), known)]
    n, d = points.raw.shape[1:]
    step = max(1, memory_bytes // (n * (32 + d * points.raw.element_size())))
    for rows in todo.split(step):
        some = queries.only(0, rows)
        reach = distances[rows, -1:]
        places[rows], distances[rows] = _within(some, points, None if own is None else own[rows], reach, count)
    return places, distances


def _twins(points: Tensor, own: Tensor | None, places: Tensor) -> tuple[Tensor, Tensor]:
    """The first K points (m, K) that equal the first neighbour, and whether (m,) there are as many."""
    count = places.shape[1]
    _, group = points.unique(dim=0, return_inverse=True)
    by_group = torch.sort(group, stable=True).indices
    sizes = group.bincount()
    starts = sizes.cumsum(0) - sizes
    mine = group[places[:, 0]]
    spare = 0 if own is None else 1
    known = sizes[mine] >= count + spare
    if own is not None:
        # A difference too small to be squared counts as none, and yet the two are not equal.
        known &= group[own] == mine
    span = starts[mine].unsqueeze(1) + torch.arange(count + spare, device=places.device)
    twins = by_group[span.clamp_(max=len(points) - 1)]
    if own is not None:
        twins = torch.where(twins == own.unsqueeze(1), len(points), twins).sort(-1).values[:, :count]
    return twins, known


def _within(queries: Points, points: Points, own: Tensor | None, reach: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The nearest ``count`` among all points that may lie within ``reach`` (m, 1); at least so many do."""
    bounds = queries.norms[0].unsqueeze(1) + torch.addmm(
        points.norms[0], queries.centred[0], points.centred[0].T, alpha=-2
    )
    if own is not None:
        bounds.scatter_(1, own.unsqueeze(1), torch.inf)
    row, place = torch.nonzero(bounds <= reach, as_tuple=True)
    distance = paired(queries.raw[0][row].unsqueeze(1), points.raw[0], place.unsqueeze(1)).squeeze(1)
    # Sorting by the less important key first leaves ties in rising order of places.
    order = torch.sort(distance, stable=True).indices
    order = order[torch.sort(row[order], stable=True).indices]
    sizes = row.bincount(minlength=len(reach))
    first = (sizes.cumsum(0) - sizes).unsqueeze(1) + torch.arange(count, device=row.device)
    return place[order[first]], distance[order[first]]
