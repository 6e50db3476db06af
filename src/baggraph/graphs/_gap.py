"""How far potentials are from optimal, in closed form."""

from __future__ import annotations

import torch

from baggraph.graphs._rows import Pass


def relative(gap: torch.Tensor, objective: torch.Tensor, n: int) -> torch.Tensor:
    """The gap in units of the objective, or of the number of nodes where the objective is near zero."""
    ratio = gap / torch.where(objective.abs() > 0.1 * n, objective.abs(), float(n))
    return torch.where(torch.isfinite(ratio), ratio, torch.inf)  # a node without active pair has an infinite gap


def measure(found: Pass, potential: torch.Tensor, n_graphs: int) -> tuple[torch.Tensor, ...]:
    """Gap, primal objective and largest KKT residual |l_i d_i - 1| of every graph."""
    product = potential * found.degree
    gap = (product - 1 - torch.log(product)).view(n_graphs, -1).sum(dim=1)
    terms = 1 + torch.log(potential) - found.squares / 8  # a pair stands in two rows
    dual = terms.view(n_graphs, -1).sum(dim=1)
    return gap, dual + gap, (product - 1).abs().view(n_graphs, -1).amax(dim=1)
