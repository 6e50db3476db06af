"""The problem of :mod:`baggraph.graphs._solve` in parts: posed and swept by all processes together."""

from __future__ import annotations

import torch
from torch import Tensor

from baggraph.graphs._halo import Halo, Ranges, own_candidates
from baggraph.graphs._problem import Problem
from baggraph.graphs._rows import Rows, build
from baggraph.graphs._solve import SWEEP_TOLERANCE, sweep
from baggraph.graphs._theta import bounds_of_nodes, theta_from_bounds
from baggraph.graphs.neighbors import Neighbors


def pose_part(ranges: Ranges, found: Neighbors, n_neighbors: int, n_listed: int) -> tuple[Problem, Halo]:
    """Own rows of the problem, and the bags of others that they touch; columns count own bags, then foreign ones."""
    z = found.distances
    # The bounds of all bags are averaged in one order, however many processes there are.
    bounds = ranges.team.gather(bounds_of_nodes(z, n_neighbors).T.contiguous(), ranges.sizes)
    theta = theta_from_bounds(bounds.T.contiguous()[:, None])
    candidates = own_candidates(ranges, found.indices[:, :n_listed], z[:, :n_listed])
    halo = Halo.around(ranges, candidates)
    radius = z[:, :n_listed].amax(dim=1)
    return Problem(halo.localised(candidates), theta, z[None], radius, None), halo


def solve_part(problem: Problem, halo: Halo, tol: float, max_sweeps: int) -> tuple[Tensor, float, float, int]:
    """Own potentials, gap, relative gap, and sweeps.  Where float32 does not suffice, sweeps go on in float64."""
    costs, start = problem.costs, problem.start
    rows = build(problem.candidates, costs, n_columns=halo.n_local)
    narrow = costs.dtype != torch.float64
    first = max(tol, SWEEP_TOLERANCE) if narrow else tol
    potential, n_iter = _sweep(rows, halo, start, first, max_sweeps)
    if narrow:
        rows = build(problem.candidates, costs.to(torch.float64), n_columns=halo.n_local)
    gap, distance = _quality(rows, halo, potential)
    if narrow and distance > tol and n_iter < max_sweeps:
        start = potential if distance < torch.inf else start
        potential, more = _sweep(rows, halo, start, tol, max_sweeps - n_iter)
        n_iter += more
        gap, distance = _quality(rows, halo, potential)
    return potential, gap, distance, n_iter


def _quality(rows: Rows, halo: Halo, potential: Tensor) -> tuple[float, float]:
    return halo.quality(rows.gather(halo.extended(potential)).evaluate(1), potential)


def _sweep(rows: Rows, halo: Halo, start: Tensor, tol: float, max_sweeps: int) -> tuple[Tensor, int]:
    """The sweeps of one process; all stop together, since all see one gap."""
    dtype = rows.blocks[0].costs.dtype
    return sweep(
        lambda potential: rows.gather(halo.extended(potential, dtype)),
        lambda found, potential: torch.tensor([halo.quality(found, potential)[1]], dtype=torch.float64),
        start,
        tol,
        max_sweeps,
    )
