"""Many graphs in one call: their nodes side by side, each graph stopping on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch

from baggraph.data._columns import canonical_ids
from baggraph.data.graph import BagGraph
from baggraph.errors import ParameterError
from baggraph.graphs._problem import pose
from baggraph.graphs._solve import solve
from baggraph.graphs._weights import weights
from baggraph.graphs.neighbors import nearest_many


@dataclass(frozen=True)
class GraphStack:
    """M learned graphs over the same n bags; ``stack[m]`` is one as a :class:`BagGraph`.

    ``adjacency`` (M n, M n) is block-diagonal; ``dual`` is (M, n); ``theta``, ``gap``, ``relative_gap``, ``kkt``,
    ``degree`` and ``converged`` are arrays (M,).
    """

    adjacency: sp.csr_array
    dual: np.ndarray
    theta: np.ndarray
    gap: np.ndarray
    relative_gap: np.ndarray
    kkt: np.ndarray
    converged: np.ndarray

    def __len__(self) -> int:
        return len(self.theta)

    def __getitem__(self, m: int) -> BagGraph:
        n = self.dual.shape[1]
        m = range(len(self))[m]
        rows = slice(m * n, (m + 1) * n)
        return BagGraph._trusted(sp.csr_array(self.adjacency[rows, rows]), canonical_ids(None, n))

    @property
    def degree(self) -> np.ndarray:
        """Mean number of neighbours of every graph."""
        return np.diff(self.adjacency.indptr).reshape(len(self), -1).mean(axis=1)


def fit_stack(
    stack: torch.Tensor,
    n_neighbors: list[int],
    candidate_ratio: list[int],
    theta: Sequence[float] | None,
    *,
    local_scaling: bool,
    tol: float,
) -> GraphStack:
    """Graphs of embeddings (M, n, d) with their own numbers of neighbours and candidates."""
    for name, given in (("n_neighbors", n_neighbors), ("candidate_ratio", candidate_ratio), ("theta", theta)):
        if given is not None and len(given) != len(stack):
            raise ParameterError(
                "learned graph", expected=f"{len(stack)} values of {name}", got=str(len(given)), remedy="one a graph"
            )
    longest = stack.shape[1] - 1
    lengths = [min(longest, k * r) for k, r in zip(n_neighbors, candidate_ratio, strict=True)]
    indices, distances = nearest_many(stack, min(longest, max(*lengths, max(n_neighbors) + 1)))
    problem = pose(stack, indices, distances, n_neighbors, lengths, local_scaling=local_scaling)
    if theta is not None:
        problem = problem.with_theta(problem.theta.new_tensor(theta))
    solution = solve(problem.candidates, problem.costs, problem.start, tol=tol, n_graphs=len(stack))
    numbers = (problem.theta, solution.gap, solution.relative_gap, solution.kkt, solution.converged)
    theta_, gap, relative_gap, kkt, converged = (a.cpu().numpy() for a in numbers)
    dual = solution.potential.view(len(stack), -1).cpu().numpy()
    return GraphStack(
        weights(problem, solution.potential, solution.fine), dual, theta_, gap, relative_gap, kkt, converged
    )
