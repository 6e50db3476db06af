r"""The log-degree problem in its dual: node-wise sweeps, a duality gap in closed form, Newton where sweeps stall.

Primal, over pairs:   P(w) = 2 theta z.w - sum_i log (S w)_i + ||w||^2,   w >= 0
Dual, over nodes:     D(l) = n + sum_i log l_i - 1/4 sum_pairs (l_i + l_j - 2 theta z_ij)_+^2,   l > 0
Weights of l:         w_ij = 1/2 (l_i + l_j - 2 theta z_ij)_+,   so zeros are exact
Gap of l:             P(w) - D(l) = sum_i phi(l_i d_i),   phi(x) = x - 1 - log x,   d = S w

Kalofolias (2016), How to learn a graph from smooth signals; Kalofolias & Perraudin (2019), Large scale graph learning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from baggraph.graphs._candidates import Candidates
from baggraph.graphs._fine import slack
from baggraph.graphs._gap import measure, relative
from baggraph.graphs._newton import newton
from baggraph.graphs._rows import Pass, Rows, Sweep, build

DAMPING = 0.7  # of a sweep; 0.5 never overshoots, since every term couples two nodes
SAFE_DAMPING = 0.5
SWEEP_TOLERANCE = 1e-6  # below this relative gap, sweeps in float32 see only rounding
STALL_SWEEPS, STALL_FACTOR = 12, 0.7
LATENCY_BOUND = 10_000  # nodes up to which a GPU waits for launches in Newton's many short steps, and a CPU does not

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Solution:
    """Dual potentials (n,) of M graphs of equal size, and how good they are: gap and |P| of each graph.

    ``fine`` (n,) is what float64 rounds off the potentials, None where sweeps alone solved all graphs.
    """

    potential: torch.Tensor
    fine: torch.Tensor | None
    gap: torch.Tensor
    objective: torch.Tensor
    kkt: torch.Tensor
    n_iter: int
    converged: torch.Tensor

    @property
    def relative_gap(self) -> torch.Tensor:
        """Gap over |P|, which may cross zero, or over the number of nodes where that is larger."""
        return relative(self.gap, self.objective, len(self.potential) // len(self.gap))


def solve(
    candidates: Candidates,
    costs: torch.Tensor,
    start: torch.Tensor,
    *,
    tol: float,
    max_sweeps: int = 500,
    n_graphs: int = 1,
    order: torch.Tensor | None = None,
    progress: Progress | None = None,
) -> Solution:
    """Potentials whose relative gap is at most ``tol`` in every graph, or the best that was reached.

    ``costs`` (E) are c = 2 theta z of the candidates; a graph that is done stays as it is while others go on.
    """
    rows = build(candidates, costs, order)
    potential, n_iter = _sweep(rows, start, max(tol, SWEEP_TOLERANCE), max_sweeps, n_graphs, progress)
    exact = build(candidates, costs.to(torch.float64), order) if costs.dtype != torch.float64 else rows
    if exact is not rows and not _finite(exact, potential, n_graphs):
        # Far outliers: l_i + l_j - c is smaller than what float32 resolves of its parts.
        potential, more = _sweep(exact, start, max(tol, SWEEP_TOLERANCE), max_sweeps, n_graphs, progress)
        n_iter += more
    gap, objective, kkt = measure(exact.gather(potential).evaluate(1), potential, n_graphs)
    n = len(potential) // n_graphs
    # Rounding of float32 costs is a change of the problem, not of the gap: the gap is that of these costs.
    open_graphs = (relative(gap, objective, n) > tol).nonzero().flatten().tolist()
    fine = torch.zeros_like(potential)
    for graph in open_graphs:
        inside = slice(graph * n, (graph + 1) * n)
        part, entries = _graph(candidates, inside)
        own = costs[entries].to(torch.float64)
        place = torch.device("cpu") if n <= LATENCY_BOUND else own.device
        found = newton(part.to(place), own.to(place), potential[inside].to(place), tol, progress)
        potential[inside], fine[inside] = found[0].to(own.device), found[1].to(own.device)
        n_iter += found[2]
    if open_graphs:
        left = -slack(potential, torch.zeros_like(fine), candidates.rows(), candidates.columns, costs)
        gap, objective, kkt = measure(build(candidates, left, order).gather(fine).evaluate(1), potential, n_graphs)
    return Solution(
        potential, fine if open_graphs else None, gap, objective, kkt, n_iter, relative(gap, objective, n) <= tol
    )


def _finite(rows: Rows, potential: torch.Tensor, n_graphs: int) -> bool:
    gap, _, _ = measure(rows.gather(potential).evaluate(1), potential, n_graphs)
    return bool(torch.isfinite(gap).all())


def _graph(candidates: Candidates, nodes: slice) -> tuple[Candidates, slice]:
    entries = slice(int(candidates.starts[nodes.start]), int(candidates.starts[nodes.stop]))
    starts = candidates.starts[nodes.start : nodes.stop + 1] - entries.start
    return Candidates(starts, candidates.columns[entries] - nodes.start, candidates.distances[entries]), entries


def _sweep(
    rows: Rows, start: torch.Tensor, tol: float, max_sweeps: int, n_graphs: int, progress: Progress | None
) -> tuple[torch.Tensor, int]:
    """Damped sweeps over all nodes at once, until every graph is done or they stop helping."""
    n = len(start) // n_graphs

    def distance_of(found: Pass, potential: torch.Tensor) -> torch.Tensor:
        gap, objective, _ = measure(found, potential, n_graphs)
        return relative(gap, objective, n)

    return sweep(rows.gather, distance_of, start, tol, max_sweeps, progress)


def sweep(
    gather: Callable[[torch.Tensor], Sweep],
    distance_of: Callable[[Pass, torch.Tensor], torch.Tensor],
    start: torch.Tensor,
    tol: float,
    max_sweeps: int,
    progress: Progress | None = None,
) -> tuple[torch.Tensor, int]:
    """Damped sweeps, where ``gather`` starts a pass and ``distance_of`` tells the relative gap (M,) of every graph."""
    # One-node potentials may leave a node without an active pair, where the gap is infinite; this mends it.
    potential = 0.5 * (start + gather(start).evaluate().improved)
    history: list[float] = []
    damping = DAMPING
    for done in range(max_sweeps):
        found = gather(potential).evaluate()
        distance = distance_of(found, potential)
        history.append(float(distance.max()))
        if progress is not None:
            progress("solve", history[-1])
        stalled = len(history) > STALL_SWEEPS and history[-1] >= STALL_FACTOR * history[-1 - STALL_SWEEPS]
        if history[-1] <= tol or stalled:
            return potential, done + 1
        if len(history) > 1 and history[-1] > history[-2] * 1.5:
            damping = SAFE_DAMPING
        live = (distance > tol).repeat_interleave(len(start) // len(distance))
        potential = torch.where(live, potential + damping * (found.improved - potential), potential)
    return potential, max_sweeps
