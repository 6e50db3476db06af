"""New bags join a fitted graph, each on its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from baggraph.errors import InvalidGraphError
from baggraph.graphs._rows import own_slack
from baggraph.graphs.neighbors import Neighbors, nearest

ROWS = 65_536


class AbstractRule(ABC):
    """How strongly new bags are joined to fitted ones, given the embeddings of both."""

    fitted: Tensor

    def attach(self, Z_new: Any) -> sp.csr_array:
        """Weights (m, n) between m new bags and the n fitted ones, each new bag as if it came alone."""
        new = torch.as_tensor(np.asarray(Z_new)).to(self.fitted)
        if new.ndim != 2 or new.shape[1] != self.fitted.shape[1] or not bool(torch.isfinite(new).all()):
            wide = new.ndim == 2 and new.shape[1] == self.fitted.shape[1]
            raise InvalidGraphError(
                "attach",
                expected=f"finite embeddings of shape (bags, {self.fitted.shape[1]})",
                got="NaN or infinity" if wide else f"shape {tuple(new.shape)}",
                remedy="embed the new bags as the fitted ones",
            )
        return sp.csr_array(sp.vstack([self._rows(chunk) for chunk in new.split(ROWS)]))

    def _nearest(self, queries: Tensor, width: int) -> Neighbors:
        return nearest(self.fitted, width, queries=queries, method="exact")

    @abstractmethod
    def _rows(self, new: Tensor) -> sp.csr_array:
        """Weights of a chunk of new bags."""


@dataclass(frozen=True, eq=False)
class OneNodeRule(AbstractRule):
    """``1/l = sum_j (l + l_j - c_j)_+ / 2`` over the nearest bags, their potentials l_j fixed: of a learned graph.

    ``scale`` (n,) are the local scales of the fitted bags, or None.
    """

    fitted: Tensor
    potential: Tensor
    theta: float
    scale: Tensor | None
    n_neighbors: int
    width: int

    def _rows(self, new: Tensor) -> sp.csr_array:
        found = self._nearest(new, self.width)
        z = found.distances.to(torch.float64)
        if self.scale is not None:
            k = min(self.n_neighbors, z.shape[1]) - 1
            own = z[:, k].sqrt().clamp_min(float(self.scale.min()))
            z = z / (own[:, None] * self.scale[found.indices])
        terms = self.potential[found.indices] - 2 * self.theta * z
        return _sorted_rows(0.5 * own_slack(terms), found.indices, len(self.fitted))


@dataclass(frozen=True, eq=False)
class NearestRule(AbstractRule):
    """Weight 1 to each of the nearest bags: of a graph of nearest neighbours."""

    fitted: Tensor
    n_neighbors: int

    def _rows(self, new: Tensor) -> sp.csr_array:
        found = self._nearest(new, self.n_neighbors)
        return _sorted_rows(torch.ones_like(found.distances, dtype=torch.float64), found.indices, len(self.fitted))


def _sorted_rows(weight: Tensor, indices: Tensor, count: int) -> sp.csr_array:
    """A row a new bag, its columns in order and without zeros."""
    keep = weight > 0
    order = torch.where(keep, indices, count).sort(dim=1).indices
    kept = keep.gather(1, order)
    starts = torch.cat([keep.new_zeros(1, dtype=torch.int64), keep.sum(dim=1).cumsum(0)])
    arrays = (weight.gather(1, order)[kept], indices.gather(1, order)[kept], starts)
    return sp.csr_array(tuple(a.cpu().numpy() for a in arrays), shape=(len(weight), count))
