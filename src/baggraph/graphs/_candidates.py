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

    def to(self, device: torch.device) -> Candidates:
        """The same on another device."""
        return Candidates(*(tensor.to(device) for tensor in (self.starts, self.columns, self.distances)))


def union(sources: torch.Tensor, targets: torch.Tensor, distances: torch.Tensor, n_nodes: int) -> Candidates:
    """Candidates from directed pairs (P): each unordered pair once, whoever named it.

    >>> pairs = union(torch.tensor([0, 1, 2]), torch.tensor([1, 0, 0]), torch.tensor([4.0, 4.0, 9.0]), 3)
    >>> pairs.starts.tolist(), pairs.columns.tolist(), pairs.distances.tolist()
    ([0, 2, 3, 4], [1, 2, 0, 0], [4.0, 9.0, 4.0, 9.0])
    """
    proper = sources != targets
    keys = (torch.minimum(sources, targets) * n_nodes + torch.maximum(sources, targets))[proper]
    keys, order = torch.sort(keys)
    first = torch.ones_like(keys, dtype=torch.bool)
    first[1:] = keys[1:] != keys[:-1]
    keys, z = keys[first], distances[proper][order[first]]
    del order, first, proper  # of a million bags, a gigabyte that the next step can use
    return from_half(keys // n_nodes, keys % n_nodes, z, n_nodes)


def from_half(low: torch.Tensor, high: torch.Tensor, distances: torch.Tensor, n_nodes: int) -> Candidates:
    """Candidates from pairs low < high that are sorted by (low, high), each once."""
    up = torch.bincount(low, minlength=n_nodes)
    down = torch.bincount(high, minlength=n_nodes)
    starts = _starts(up + down)
    columns = torch.empty(2 * len(low), dtype=torch.int64, device=low.device)
    both = torch.empty(2 * len(low), dtype=distances.dtype, device=low.device)
    place = torch.arange(len(low), device=low.device)
    # Row i holds its smaller neighbours first: they end where its larger ones begin.
    entry = place + (starts[:-1] + down - _starts(up)[:-1])[low]
    columns[entry], both[entry] = high, distances
    del entry
    rising, by_high = torch.sort(high, stable=True)  # within one high, lows stay in rising order
    entry = place + (starts[:-1] - _starts(down)[:-1])[rising]
    columns[entry], both[entry] = low[by_high], distances[by_high]
    return Candidates(starts, columns, both)


def _starts(counts: torch.Tensor) -> torch.Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
