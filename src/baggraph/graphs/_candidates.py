"""Candidate pairs: the union of all neighbour lists, as rows of a symmetric matrix."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Candidates:
    """Pairs (i, j) that may become edges, stored in both directions and sorted by row, then column.

    ``starts`` (n + 1), ``columns`` (E) int64, ``distances`` (E): z of every pair, the same number in both directions.
    """

    starts: torch.Tensor
    columns: torch.Tensor
    distances: torch.Tensor

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.starts) - 1

    @property
    def counts(self) -> torch.Tensor:
        """Number of candidates of every node."""
        return self.starts.diff()

    def rows(self) -> torch.Tensor:
        """Row of every entry."""
        return torch.repeat_interleave(self.counts)


def union(sources: torch.Tensor, targets: torch.Tensor, distances: torch.Tensor, n_nodes: int) -> Candidates:
    """Candidates from directed pairs (P): each unordered pair once, whoever named it.

    >>> pairs = union(torch.tensor([0, 1, 2]), torch.tensor([1, 0, 0]), torch.tensor([4.0, 4.0, 9.0]), 3)
    >>> pairs.starts.tolist(), pairs.columns.tolist(), pairs.distances.tolist()
    ([0, 2, 3, 4], [1, 2, 0, 0], [4.0, 9.0, 4.0, 9.0])
    """
    proper = sources != targets
    low, high = torch.minimum(sources, targets)[proper], torch.maximum(sources, targets)[proper]
    key, order = torch.sort(low * n_nodes + high)
    first = torch.ones_like(key, dtype=torch.bool)
    first[1:] = key[1:] != key[:-1]
    key, z = key[first], distances[proper][order[first]]
    return from_half(key // n_nodes, key % n_nodes, z, n_nodes)


def from_half(low: torch.Tensor, high: torch.Tensor, distances: torch.Tensor, n_nodes: int) -> Candidates:
    """Candidates from pairs low < high that are sorted by (low, high), each once."""
    up = torch.bincount(low, minlength=n_nodes)
    down = torch.bincount(high, minlength=n_nodes)
    starts = _starts(up + down)
    by_high = torch.sort(high, stable=True).indices  # within one high, lows stay in rising order
    # Row i holds its smaller neighbours first: they end where its larger ones begin.
    shift_up = (starts[:-1] + down) - _starts(up)[:-1]
    shift_down = starts[:-1] - _starts(down)[:-1]
    place = torch.arange(len(low), device=low.device)
    to_up = place + shift_up[low]
    to_down = place + shift_down[high[by_high]]
    columns = torch.empty(2 * len(low), dtype=torch.int64, device=low.device)
    both = torch.empty(2 * len(low), dtype=distances.dtype, device=low.device)
    columns[to_up], both[to_up] = high, distances
    columns[to_down], both[to_down] = low[by_high], distances[by_high]
    return Candidates(starts, columns, both)


def _starts(counts: torch.Tensor) -> torch.Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
