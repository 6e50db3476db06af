"""From potentials to weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from baggraph.graphs._fine import slack
from baggraph.graphs._problem import Problem

ENTRIES = 1 << 24


def weights(problem: Problem, potential: torch.Tensor, fine: torch.Tensor | None = None) -> sp.csr_array:
    """Adjacency w_ij = (l_i + l_j - c_ij)_+ / 2 of all graphs as one block-diagonal matrix; zeros are exact.

    The potentials l are ``potential + fine``.
    """
    candidates, costs = problem.candidates, problem.costs
    rows = candidates.rows()
    columns, values, counts = [], [], torch.zeros(len(potential), dtype=torch.int64, device=potential.device)
    for start in range(0, len(costs), ENTRIES):
        part = slice(start, start + ENTRIES)
        terms = slack(potential, fine, rows[part], candidates.columns[part], costs[part])
        active = terms > 0
        counts += torch.bincount(rows[part][active], minlength=len(potential))
        columns.append(candidates.columns[part][active])
        values.append(0.5 * terms[active])
    starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    arrays: list[Any] = [_numpy(torch.cat(values)), _numpy(torch.cat(columns)), _numpy(starts)]
    return sp.csr_array(tuple(arrays), shape=(len(potential), len(potential)))


def mean_degree(problem: Problem, potential: torch.Tensor, fine: torch.Tensor | None = None) -> torch.Tensor:
    """Mean number of neighbours (M,) in every graph."""
    candidates, costs = problem.candidates, problem.costs
    rows = candidates.rows()
    counts = torch.zeros(len(potential), dtype=torch.int64, device=potential.device)
    for start in range(0, len(costs), ENTRIES):
        part = slice(start, start + ENTRIES)
        active = slack(potential, fine, rows[part], candidates.columns[part], costs[part]) > 0
        counts += torch.bincount(rows[part][active], minlength=len(potential))
    return counts.view(problem.n_graphs, -1).to(torch.float64).mean(dim=1)


def _numpy(tensor: torch.Tensor) -> Any:
    return np.asarray(tensor.cpu().numpy())
