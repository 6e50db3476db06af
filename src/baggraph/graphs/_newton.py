"""Semismooth Newton steps with conjugate gradients, for high accuracy and where sweeps stall."""

from __future__ import annotations

from collections.abc import Callable

import torch

from baggraph.graphs._candidates import Candidates
from baggraph.graphs._gap import measure, relative
from baggraph.graphs._rows import Pass, Rows, build

MAX_STEPS = 200
MAX_CG = 400
ARMIJO = 1e-4
ROUNDING = 1e-15
MAX_HALVINGS = 40


def newton(
    candidates: Candidates,
    costs: torch.Tensor,
    start: torch.Tensor,
    tol: float,
    progress: Callable[[str, float], None] | None = None,
) -> tuple[torch.Tensor, int]:
    """Minimise F(l) = -D(l) from ``start`` until the gap is at most ``tol`` times |P|; float64 throughout.

    The Hessian at l is diag(1/l^2) + 1/2 (D_A + A), A the 0/1 matrix of active pairs: diagonally dominant.
    """
    rows = build(candidates, costs)
    potential = start.clone()
    found = rows.gather(potential).evaluate(1)
    for step in range(MAX_STEPS):
        gap, objective, _ = measure(found, potential, 1)
        distance = float(relative(gap, objective, len(potential)))
        if progress is not None:
            progress("newton", distance)
        if distance <= tol:
            return potential, step
        gradient = found.degree - 1 / potential
        direction = _direction(candidates, costs, potential, gradient)
        moved = _line_search(rows, potential, direction, float(torch.dot(gradient, direction)), found)
        if moved is None:
            return potential, step  # no descent within rounding: as good as float64 gets
        potential, found = moved
    return potential, MAX_STEPS


def _objective(found: Pass, potential: torch.Tensor) -> float:
    return float(found.squares.sum() / 8 - torch.log(potential).sum())


def _line_search(
    rows: Rows, potential: torch.Tensor, direction: torch.Tensor, slope: float, found: Pass
) -> tuple[torch.Tensor, Pass] | None:
    """Halve the step until F falls enough; potentials stay positive.  None where rounding hides any descent."""
    value = _objective(found, potential)
    falling = direction < 0
    size = 1.0
    if bool(falling.any()):
        size = min(1.0, 0.95 * float((-potential[falling] / direction[falling]).min()))
    for _ in range(MAX_HALVINGS):
        trial = potential + size * direction
        new = rows.gather(trial).evaluate(1)
        enough = value + ARMIJO * size * slope + ROUNDING * abs(value)
        if _objective(new, trial) <= enough:
            return trial, new
        size *= 0.5
    return None


def _direction(
    candidates: Candidates, costs: torch.Tensor, potential: torch.Tensor, gradient: torch.Tensor
) -> torch.Tensor:
    """Solve H p = -gradient by conjugate gradients with the diagonal as preconditioner."""
    rows = candidates.rows()
    active = potential[rows] + potential[candidates.columns] > costs
    columns = candidates.columns[active]
    counts = torch.bincount(rows[active], minlength=len(potential))
    diagonal = 1 / potential**2 + 0.5 * counts
    p = torch.zeros_like(gradient)
    residual = -gradient
    size = float(residual.norm())
    target = min(0.1, size**0.5) * size
    z = residual / diagonal
    q, rho = z.clone(), torch.dot(residual, z)
    for _ in range(MAX_CG):
        image = diagonal * q + 0.5 * torch.segment_reduce(q[columns], "sum", lengths=counts, unsafe=True)
        alpha = rho / torch.dot(q, image)
        p = p + alpha * q
        residual = residual - alpha * image
        if float(residual.norm()) <= target:
            break
        z = residual / diagonal
        new = torch.dot(residual, z)
        q, rho = z + (new / rho) * q, new
    return p
