"""Is the graph of the candidates that of all pairs?  A free certificate, and the search for pairs that were missed.

A pair that is no candidate carries no weight in the optimum of all pairs as long as l_i + l_j <= 2 theta z_ij.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from baggraph.graphs._candidates import Candidates

MEMORY = 1 << 27
SLACK = 1e-12


def certified(potential: torch.Tensor, theta: float, radius: torch.Tensor) -> torch.Tensor:
    """Nodes (n,) with l_i <= theta R_i, R_i the distance to the last one listed; if all are, the graph is exact."""
    return potential <= theta * radius.to(torch.float64)


def missing_pairs(
    Z: torch.Tensor,
    scale: torch.Tensor | None,
    potential: torch.Tensor,
    theta: float,
    candidates: Candidates,
    nodes: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pairs (i, j, z_ij) of these nodes with any other that are no candidates but would carry weight."""
    n = len(Z)
    centred = (Z - Z.mean(dim=0)).to(torch.float64)
    norms = (centred * centred).sum(dim=1)
    known = torch.sort(_keys(candidates.rows(), candidates.columns, n)).values
    found = []
    for part in _chunks(nodes, n):
        z = (norms[part][:, None] + norms[None] - 2 * (centred[part] @ centred.T)).clamp_min_(0)
        if scale is not None:
            z /= scale[part][:, None] * scale[None]
        woken = potential[part][:, None] + potential[None] > 2 * theta * z * (1 + SLACK)
        row, column = woken.nonzero(as_tuple=True)
        found.append(torch.unique(_keys(part[row], column, n)[part[row] != column]))
    keys = torch.unique(torch.cat(found)) if found else known[:0]
    at = torch.searchsorted(known, keys).clamp_max(max(len(known) - 1, 0))
    keys = keys[known[at] != keys] if len(known) else keys
    low, high = keys // n, keys % n
    return low, high, pair_distances(Z, low, high, scale)


def pair_distances(Z: torch.Tensor, low: torch.Tensor, high: torch.Tensor, scale: torch.Tensor | None) -> torch.Tensor:
    """Squared distances of pairs by direct difference, locally scaled where there are scales."""
    z = torch.empty(len(low), dtype=Z.dtype, device=Z.device)
    step = max(1, MEMORY // (8 * Z.shape[1]))
    for start in range(0, len(low), step):
        part = slice(start, start + step)
        z[part] = (Z[low[part]] - Z[high[part]]).square_().sum(dim=1)
    return z if scale is None else (z / (scale[low] * scale[high])).to(Z.dtype)


def _keys(a: torch.Tensor, b: torch.Tensor, n: int) -> torch.Tensor:
    return torch.minimum(a, b) * n + torch.maximum(a, b)


def _chunks(nodes: torch.Tensor, n: int) -> Iterator[torch.Tensor]:
    yield from nodes.split(max(1, MEMORY // (32 * n)))
