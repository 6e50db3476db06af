"""Rows of candidates as dense blocks: rows of similar length lie together, padded to a common width.

A pass over the candidates is then a few dense operations a block, small enough to stay in the cache, on a
CPU or a GPU alike, without atomics, so that every run gives the same digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from baggraph.graphs._candidates import Candidates

CACHE_ENTRIES = 1 << 18
GPU_ENTRIES = 1 << 25


@dataclass(frozen=True)
class Block:
    """Rows of at most ``width`` candidates: nodes (b,), columns (b, width) with padding, costs c (b, width)."""

    nodes: torch.Tensor
    columns: torch.Tensor
    costs: torch.Tensor


@dataclass(frozen=True)
class Rows:
    """All rows, block by block, with costs c = 2 theta z; padding points at a node of potential -inf."""

    n_nodes: int
    blocks: tuple[Block, ...]

    def gather(self, potential: torch.Tensor) -> Sweep:
        """Start a pass: the potentials as the rows see them."""
        dtype = self.blocks[0].costs.dtype if self.blocks else potential.dtype
        return Sweep(self, torch.cat([potential.to(dtype), potential.new_full((1,), -torch.inf, dtype=dtype)]))


@dataclass(frozen=True)
class Pass:
    """What one pass finds at every node: weighted degree d, sum of squares of active terms, improved potential."""

    degree: torch.Tensor
    squares: torch.Tensor
    improved: torch.Tensor


@dataclass(frozen=True)
class Sweep:
    """A pass over rows that see these potentials."""

    rows: Rows
    extended: torch.Tensor

    def terms(self, block: Block) -> tuple[torch.Tensor, torch.Tensor]:
        """Own potentials l (b,) and t = l + potential of the neighbour - cost (b, width)."""
        own = self.extended[block.nodes]
        terms = self.extended.index_select(0, block.columns.view(-1)).view_as(block.costs)
        return own, terms.sub_(block.costs).add_(own[:, None])

    def evaluate(self, inner_steps: int = 2) -> Pass:
        """Degrees and, for every node, the potential that solves its own equation with the others fixed.

        The equation 1/l = 1/2 sum_j (l + a_j)_+ has, for a fixed set of k active terms with sum B of a, the root
        l = (-B + sqrt(B^2 + 8 k)) / (2 k).  From any l each step lands above the solution and then falls to it.
        """
        n = self.rows.n_nodes
        degree, squares, improved = (self.extended.new_zeros(n, dtype=torch.float64) for _ in range(3))
        for block in self.rows.blocks:
            own, terms = self.terms(block)
            level = own
            for step in range(inner_steps):
                active = (terms > 0).sum(dim=1)
                positive = terms.clamp_min(0) if step + 1 < inner_steps or step == 0 else terms.clamp_min_(0)
                total = positive.sum(dim=1)
                if step == 0:
                    degree[block.nodes] = 0.5 * total.to(torch.float64)
                    squares[block.nodes] = torch.linalg.vecdot(positive, positive).to(torch.float64)
                new = _root(active, total - active * level, level, terms)
                if step + 1 < inner_steps:
                    terms.add_((new - level)[:, None])
                level = new
            improved[block.nodes] = level.to(torch.float64)
        return Pass(degree, squares, improved)


def _root(active: torch.Tensor, total: torch.Tensor, level: torch.Tensor, terms: torch.Tensor) -> torch.Tensor:
    """The root for the active set; where nothing is active, that of the nearest candidate alone."""
    lonely = active == 0
    if bool(lonely.any()):
        nearest = terms.max(dim=1).values - level
        total = torch.where(lonely, nearest, total)
        active = torch.where(lonely, torch.ones_like(active), active)
    # For total > 0 the textbook root cancels; its conjugate does not.
    root = torch.sqrt(total * total + 8 * active)
    return torch.where(total > 0, 4 / (root + total), (root - total) / (2 * active))


def own_slack(terms: torch.Tensor) -> torch.Tensor:
    """The slacks (l + a_j)_+ (m, K) where 1/l = 1/2 sum_j (l + a_j)_+ for rows of a, in closed form.

    With a sorted falling and M_k the mean of the k largest, u = l + a_1 is the least of x - (M_k - a_1), where
    x (x - M_k) = 2 / k.  No two large numbers cancel, so that rows of far outliers keep their small slacks.

    >>> own_slack(torch.tensor([[1.0, -50.0], [-1e12, -2e12]], dtype=torch.float64)).tolist()
    [[2.0, 0.0], [2e-12, 0.0]]
    """
    best = terms.amax(dim=1, keepdim=True)
    behind = terms - best
    k = torch.arange(1, terms.shape[1] + 1, dtype=terms.dtype, device=terms.device)
    fall = behind.sort(dim=1, descending=True).values.cumsum(dim=1) / k
    mean = best + fall
    root = torch.hypot(mean, torch.sqrt(8 / k).expand_as(mean))
    mean_slack = torch.where(mean > 0, (root + mean) / 2, 4 / (k * (root - mean)))
    return ((mean_slack - fall).amin(dim=1, keepdim=True) + behind).clamp_min(0)


def build(
    candidates: Candidates, costs: torch.Tensor, order: torch.Tensor | None = None, n_columns: int | None = None
) -> Rows:
    """Dense blocks of the candidates' rows with these costs (E); ``order`` (n) visits neighbouring nodes together.

    ``n_columns`` tells how many potentials the columns point into, where these are not the nodes alone.
    """
    n = candidates.n_nodes
    counts = candidates.counts
    nodes = torch.arange(n, device=counts.device) if order is None else order
    level = _width_level(counts[nodes])
    by_level = torch.sort(level, stable=True).indices
    blocks = []
    limit = CACHE_ENTRIES if counts.device.type == "cpu" else GPU_ENTRIES
    for value in torch.unique(level).tolist():
        members = nodes[by_level[(level[by_level] == value)]]
        width = _width(value)
        for part in members.split(max(1, limit // width)):
            blocks.append(_block(candidates, costs, part, width, n_columns or n))
    return Rows(n, tuple(blocks))


def _block(candidates: Candidates, costs: torch.Tensor, nodes: torch.Tensor, width: int, padding: int) -> Block:
    # The width depends on the row alone, so that a row adds up alike whatever rows stand beside it.
    offset = torch.arange(width, device=nodes.device)
    inside = offset[None] < candidates.counts[nodes][:, None]
    entries = torch.where(inside, candidates.starts[nodes][:, None] + offset[None], 0)
    columns = torch.where(inside, candidates.columns[entries], padding).to(torch.int32)
    return Block(nodes, columns, torch.where(inside, costs[entries], costs.new_zeros(())))


def _width_level(counts: torch.Tensor) -> torch.Tensor:
    """Levels of width 4, 6, 8, 12, 16, 24, ...: at most a third of a block is padding, beyond the shortest."""
    exact = torch.log2(counts.clamp_min(4).to(torch.float64))
    whole = exact.ceil().to(torch.int64)
    three_quarters = counts * 4 <= 3 * (1 << whole)
    return 2 * whole - three_quarters.to(torch.int64)


def _width(level: int) -> int:
    return 1 << (level // 2) if level % 2 == 0 else 3 << ((level + 1) // 2 - 2)
