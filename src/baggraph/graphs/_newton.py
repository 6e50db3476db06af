"""Semismooth Newton steps with conjugate gradients, for high accuracy and where sweeps stall."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from baggraph.graphs._candidates import Candidates
from baggraph.graphs._fine import slack, two_sum
from baggraph.graphs._gap import measure, relative
from baggraph.graphs._rows import Pass, Rows, build

MAX_STEPS = 200
LOOSE = 30.0  # potential l from which the 1 / l^2 that holds a node is little beside the 1/2 of every pair
MAX_LOOSE = 300
MAX_BASES = 20
BLUR = 1e-3  # share of a node's degree 1 / l that rounding of offsets may take
MAX_CG = 400
ARMIJO = 1e-4
ROUNDING = 1e-15
MAX_HALVINGS = 40

Progress = Callable[[str, float], None]


def newton(
    candidates: Candidates,
    costs: torch.Tensor,
    start: torch.Tensor,
    tol: float,
    progress: Progress | None = None,
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Minimise F(l) = -D(l) from ``start`` until the gap is at most ``tol`` times |P|: potentials, their rest, steps.

    The Hessian at l is diag(1/l^2) + 1/2 (D_A + A), A the 0/1 matrix of active pairs: diagonally dominant.
    Steps move offsets from a base, and costs are those left over the base; where rounding ends them, the base follows.
    """
    base, offset = start, torch.zeros_like(start)
    done = 0
    for _ in range(MAX_BASES):
        base, offset = two_sum(base, offset)
        shifted = _Shifted.at(candidates, costs, base)
        joined = shifted.joined(offset)
        moved = not torch.equal(joined, offset)
        offset, distance, steps = _descend(shifted, joined, tol, MAX_STEPS - done, progress)
        done += steps
        if distance <= tol or done >= MAX_STEPS or not (moved or steps):
            break
    return *two_sum(base, offset), done


@dataclass(frozen=True)
class _Shifted:
    """The problem for offsets from base potentials: costs (E) are c_ij - base_i - base_j."""

    candidates: Candidates
    base: torch.Tensor
    costs: torch.Tensor
    rows: Rows

    @classmethod
    def at(cls, candidates: Candidates, costs: torch.Tensor, base: torch.Tensor) -> _Shifted:
        left = -slack(base, torch.zeros_like(base), candidates.rows(), candidates.columns, costs)
        return cls(candidates, base, left, build(candidates, left))

    def joined(self, offset: torch.Tensor) -> torch.Tensor:
        """Offsets under which nodes without an active pair, whose gap is infinite, have one with their nearest."""
        terms = offset[self.candidates.columns] - self.costs
        nearest = torch.segment_reduce(terms, "max", lengths=self.candidates.counts, unsafe=True)
        return torch.where(offset + nearest > 0, offset, 2 / (self.base - nearest) - nearest)

    def evaluate(self, offset: torch.Tensor) -> Pass:
        """What a pass finds at these offsets."""
        return self.rows.gather(offset).evaluate(1)


def _descend(
    shifted: _Shifted, offset: torch.Tensor, tol: float, max_steps: int, progress: Progress | None
) -> tuple[torch.Tensor, float, int]:
    """Newton steps until the relative gap is ``tol`` or rounding is felt: offsets, that gap, steps."""
    found = shifted.evaluate(offset)
    for step in range(max_steps + 1):
        potential = shifted.base + offset
        gap, objective, _ = measure(found, potential, 1)
        distance = float(relative(gap, objective, len(potential)))
        if progress is not None:
            progress("newton", distance)
        felt = (ROUNDING * offset.abs() * potential > BLUR) & (offset.abs() > ROUNDING * potential)
        if distance <= tol or step == max_steps or bool(felt.any()):
            break
        gradient = found.degree - 1 / potential
        direction = _direction(shifted, offset, gradient)
        moved = _line_search(shifted, offset, direction, float(torch.dot(gradient, direction)), found)
        if moved is None:
            break
        offset, found = moved
        if bool((found.degree <= 0).any()):
            offset = shifted.joined(offset)
            found = shifted.evaluate(offset)
    return offset, distance, step


def _objective(found: Pass, potential: torch.Tensor) -> float:
    return float(found.squares.sum() / 8 - torch.log(potential).sum())


def _line_search(
    shifted: _Shifted, offset: torch.Tensor, direction: torch.Tensor, slope: float, found: Pass
) -> tuple[torch.Tensor, Pass] | None:
    """Halve the step until F falls enough; potentials stay positive.  None where rounding hides any descent."""
    potential = shifted.base + offset
    value = _objective(found, potential)
    falling = direction < 0
    size = 1.0
    if bool(falling.any()):
        size = min(1.0, 0.95 * float((-potential[falling] / direction[falling]).min()))
    for _ in range(MAX_HALVINGS):
        trial = offset + size * direction
        new = shifted.evaluate(trial)
        enough = value + ARMIJO * size * slope + ROUNDING * abs(value)
        if _objective(new, shifted.base + trial) <= enough:
            return trial, new
        size *= 0.5
    return None


def _direction(shifted: _Shifted, offset: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """Solve H p = -gradient by conjugate gradients with the diagonal as preconditioner, loosely held nodes together."""
    rows, columns = shifted.candidates.rows(), shifted.candidates.columns
    active = offset[rows] + offset[columns] > shifted.costs
    columns = columns[active]
    counts = torch.bincount(rows[active], minlength=len(offset))
    potential = shifted.base + offset
    diagonal = 1 / potential**2 + 0.5 * counts
    p = torch.zeros_like(gradient)
    residual = -gradient
    size = float((potential * residual).norm())  # about the root of twice the gap
    target = min(0.1, size**0.5) * size
    precondition = _preconditioner(rows[active], columns, potential, diagonal)
    z = precondition(residual)
    q, rho = z.clone(), torch.dot(residual, z)
    for _ in range(MAX_CG):
        image = diagonal * q + 0.5 * torch.segment_reduce(q[columns], "sum", lengths=counts, unsafe=True)
        alpha = rho / torch.dot(q, image)
        p = p + alpha * q
        residual = residual - alpha * image
        if float((potential * residual).norm()) <= target:
            break
        z = precondition(residual)
        new = torch.dot(residual, z)
        q, rho = z + (new / rho) * q, new
    return p


def _preconditioner(
    rows: torch.Tensor, columns: torch.Tensor, potential: torch.Tensor, diagonal: torch.Tensor
) -> Callable[[torch.Tensor], torch.Tensor]:
    """The inverse of H's diagonal, and of H itself over far outliers.

    Outliers with pairs only among themselves move up and down in turn almost for free, which steps of conjugate
    gradients do not find.  Over them diag(l) H diag(l) = R'R, R from a QR of one row a node and one a pair.
    """
    nodes = torch.topk(potential, min(MAX_LOOSE, len(potential))).indices
    nodes = nodes[potential[nodes] > LOOSE]
    if not len(nodes):
        return lambda residual: residual / diagonal
    place = torch.full_like(potential, -1, dtype=torch.int64)
    place[nodes] = torch.arange(len(nodes), device=nodes.device)
    first, second = place[rows], place[columns]
    outward = torch.bincount(first[(first >= 0) & (second < 0)], minlength=len(nodes))
    inner = (first >= 0) & (first < second)
    unit, scale = torch.eye(len(nodes)).to(potential), potential[nodes]
    pairs = (unit[first[inner]] + unit[second[inner]]) * scale * 0.5**0.5
    root = torch.linalg.qr(torch.cat([unit, torch.diag(scale * (outward / 2).sqrt()), pairs]), mode="r").R

    def solve(residual: torch.Tensor) -> torch.Tensor:
        image = residual / diagonal
        right = torch.linalg.solve_triangular(root.T, (scale * residual[nodes])[:, None], upper=False)
        image[nodes] = scale * torch.linalg.solve_triangular(root, right, upper=True)[:, 0]
        return image

    return solve
