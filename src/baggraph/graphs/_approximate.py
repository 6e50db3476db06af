"""Approximate neighbours of many points: search wider until a sample says that enough of the true ones are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from baggraph.errors import MissingDependencyError
from baggraph.graphs._cells import Cells, make_cells, probes_for, search_cells, share_probed
from baggraph.graphs._exact import search
from baggraph.graphs._points import Points, in_order, measured

SAMPLE = 1_000  # half of it says how wide to search, the other half what recall that gives
WORTHWHILE = 0.5  # looking at a larger share of all pairs than this, an exact search is faster
CELLS = 2.0  # cells for n points: this times the square root of n
HNSW_LINKS, HNSW_MARGIN = 32, 8

Found = tuple[Tensor, Tensor, float, str, Tensor | None]


def ivf(
    raw: Tensor, count: int, target: float, memory_bytes: int, random_state: int, tell: Callable[[int], None]
) -> Found:
    """Neighbours (n, count) from the nearest cells: indices, squared distances, recall, how, cells."""
    generator = torch.Generator().manual_seed(random_state)
    centre = raw.mean(0)
    asked, truth = _sample(raw, centre, count, generator, memory_bytes)
    cells = make_cells(raw, centre, max(1, round(CELLS * len(raw) ** 0.5)), generator)
    half = len(asked) // 2
    while True:
        probes = probes_for(cells, cells.cell[asked[:half]], truth[:half], target)
        if share_probed(cells, cells.cell[asked], probes) > WORTHWHILE:
            return _exact(cells, raw, centre, count, memory_bytes, tell)
        found = search_cells(cells, None, probes, count, memory_bytes=memory_bytes, progress=tell)
        recall = _recall(found[0][asked[half:]], truth[half:])
        if recall >= target:
            return *found, recall, "ivf", cells.cell
        target += (1 - target) / 2  # the other half was harder: aim higher


def hnsw(
    raw: Tensor, count: int, target: float, memory_bytes: int, random_state: int, tell: Callable[[int], None]
) -> Found:
    """Neighbours (n, count) along the graph of faiss: indices, squared distances, recall, how, no cells."""
    faiss = _faiss()
    generator = torch.Generator().manual_seed(random_state)
    centre = raw.mean(0)
    asked, truth = _sample(raw, centre, count, generator, memory_bytes)
    points = (raw - centre).to("cpu", torch.float32).contiguous().numpy()
    index = faiss.IndexHNSWFlat(points.shape[1], HNSW_LINKS)
    index.add(points)
    wide = min(len(raw), count + 1 + HNSW_MARGIN)
    index.hnsw.efSearch = 2 * wide
    while _recall(torch.from_numpy(index.search(points[asked.cpu()], wide)[1]).to(raw.device), truth) < target:
        index.hnsw.efSearch *= 2
    places = torch.from_numpy(index.search(points, wide)[1]).to(raw.device)
    cut_off = (places < 0).any(1).nonzero().flatten()  # the graph of faiss need not be connected
    if len(cut_off):
        places[cut_off] = _all_places(raw, centre, cut_off, wide, memory_bytes)
    places = _without(places, torch.arange(len(places), device=raw.device), wide - 1)
    around = Points.around(raw[None], centre[None, None])
    indices, distances = in_order(places[None], measured(around, around, places[None]), count)
    tell(len(raw))
    return indices[0], distances[0], _recall(indices[0][asked], truth), "hnsw", None


def _sample(
    raw: Tensor, centre: Tensor, count: int, generator: torch.Generator, memory_bytes: int
) -> tuple[Tensor, Tensor]:
    """Some points and their true neighbours."""
    asked = torch.randperm(len(raw), generator=generator)[:SAMPLE].to(raw.device)
    return asked, _without(_all_places(raw, centre, asked, count + 1, memory_bytes), asked, count)


def _all_places(raw: Tensor, centre: Tensor, asked: Tensor, count: int, memory_bytes: int) -> Tensor:
    """The nearest points of some of them, usually each itself among these."""
    points = Points.around(raw[None], centre[None, None])
    queries = Points.around(raw[asked][None], centre[None, None])
    return search(queries, points, count, own_from=None, memory_bytes=memory_bytes)[0][0]


def _without(places: Tensor, own: Tensor, count: int) -> Tensor:
    """The first ``count`` places that are not the query itself, which duplicates may have pushed out."""
    mine = places == own[:, None]
    last = torch.arange(places.shape[1], device=places.device)
    order = torch.where(mine, places.shape[1], last).argsort(1)
    return places.gather(1, order)[:, :count]


def _recall(found: Tensor, truth: Tensor) -> float:
    return float((truth.unsqueeze(2) == found.unsqueeze(1)).any(2).double().mean())


def _exact(
    cells: Cells, raw: Tensor, centre: Tensor, count: int, memory_bytes: int, tell: Callable[[int], None]
) -> Found:
    points = Points.around(raw[None], centre[None, None])
    indices, distances = search(points, points, count, own_from=0, memory_bytes=memory_bytes, progress=tell)
    return indices[0], distances[0], 1.0, "exact", cells.cell


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise MissingDependencyError(
            "neighbours",
            expected="faiss for method='hnsw'",
            got="no such package",
            remedy="pip install 'baggraph[ann]', or method='ivf', which needs nothing",
        ) from None
    return faiss
