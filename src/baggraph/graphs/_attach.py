"""New bags join a fitted graph, each on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch

from baggraph.errors import InvalidGraphError
from baggraph.graphs._rows import own_root
from baggraph.graphs.neighbors import nearest

if TYPE_CHECKING:
    from baggraph.graphs.learned import LearnedGraph

ROWS = 65_536


def attach(learned: LearnedGraph, Z_new: Any) -> sp.csr_array:
    """Weights (m, n) of new nodes: 1/l = sum_j (l + l_j - c_j)_+ / 2, the fitted l_j fixed, over the nearest bags."""
    fitted, problem, potential = learned._Z, learned._problem, learned._solution.potential
    new = torch.as_tensor(np.asarray(Z_new)).to(fitted)
    if new.ndim != 2 or new.shape[1] != fitted.shape[1] or not bool(torch.isfinite(new).all()):
        raise InvalidGraphError(
            "attach",
            expected=f"finite embeddings of shape (bags, {fitted.shape[1]})",
            got=f"shape {tuple(new.shape)}" if new.ndim != 2 or new.shape[1] != fitted.shape[1] else "NaN or infinity",
            remedy="embed the new bags as the fitted ones",
        )
    width = max(learned.n_neighbors * learned.candidate_ratio, learned.n_neighbors + 1)
    parts = []
    for chunk in new.split(ROWS):
        found = nearest(fitted, width, queries=chunk, method="exact")
        z = found.distances.to(torch.float64)
        if problem.scale is not None:
            k = min(learned.n_neighbors, z.shape[1]) - 1
            own = z[:, k].sqrt().clamp_min(float(problem.scale.min()))
            z = z / (own[:, None] * problem.scale[found.indices])
        terms = potential[found.indices] - 2 * learned.theta_ * z
        level = own_root(terms)
        weight = 0.5 * (level[:, None] + terms).clamp_min(0)
        keep = weight > 0
        counts = keep.sum(dim=1)
        order = torch.where(keep, found.indices, len(fitted)).sort(dim=1).indices
        kept = keep.gather(1, order)
        starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        arrays = (weight.gather(1, order)[kept], found.indices.gather(1, order)[kept], starts)
        parts.append(sp.csr_array(tuple(a.cpu().numpy() for a in arrays), shape=(len(chunk), len(fitted))))
    return sp.csr_array(sp.vstack(parts))
