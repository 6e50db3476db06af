"""Conjugate gradients on the precision of a sparse process, many right-hand sides at once, on a CPU or a GPU."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from baggraph.errors import BagError

Array = NDArray[np.float64]
TOLERANCE = 1e-6
MOST_STEPS = 2000


@dataclass(frozen=True, eq=False)
class Precision:
    """``[[Q + R, R C], [C'R, C'R C + S^-1]]`` of (f, w): Q sparse, R = diag(weights), C dense columns; float64.

    Parameters
    ----------
    sparse : (n, n)
        Q, as CSR.
    weights : (n, 1)
        The diagonal of R.
    columns : (n, p)
        C; none where p is 0.
    corner : (p, p)
        ``C'R C + S^-1``.
    diagonal : (n, 1)
        Of Q + R.

    """

    sparse: Tensor
    weights: Tensor
    columns: Tensor
    corner: Tensor
    diagonal: Tensor

    @classmethod
    def of(
        cls, sparse: sp.csr_array, weights: Any = None, columns: Any = None, corner: Any = None, *, device: Any = "cpu"
    ) -> Precision:
        """From arrays; weights of zero and no columns by default."""
        n = sparse.shape[0]
        weights = np.zeros(n) if weights is None else np.asarray(weights, dtype=np.float64)
        columns = np.zeros((n, 0)) if columns is None else columns
        corner = np.zeros((0, 0)) if corner is None else corner
        dense = (weights[:, None], columns, corner, (sparse.diagonal() + weights)[:, None])
        return cls(
            _csr(sparse).to(device), *(torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in dense)
        )

    def product(self, values: Tensor) -> Tensor:
        """With (n + p, r) values."""
        n = len(self.weights)
        top, bottom = values[:n], values[n:]
        pulled = self.weights * top
        upper = self.sparse @ top
        upper += pulled
        upper += self.weights * (self.columns @ bottom)
        return torch.cat([upper, self.columns.T @ pulled + self.corner @ bottom])

    def precondition(self, values: Tensor) -> Tensor:
        """Divided by the diagonal of the graph's part, solved in that of the columns."""
        n = len(self.weights)
        return torch.cat([values[:n] / self.diagonal, torch.linalg.solve(self.corner, values[n:])])

    def solve(self, right: Array, *, tolerance: float = TOLERANCE) -> Array:
        """Preconditioned conjugate gradients, right-hand sides (n + p, r) side by side, each with steps of its own.

        >>> chain = sp.csr_array(np.eye(3) + 0.5 * np.eye(3, k=1) + 0.5 * np.eye(3, k=-1))
        >>> Precision.of(chain).solve(chain @ np.array([[1.0], [2.0], [3.0]])).round(6).ravel().tolist()
        [1.0, 2.0, 3.0]
        """
        residual = torch.from_numpy(right).to(self.weights.device, copy=True)
        found = torch.zeros_like(residual)
        goal = tolerance * residual.norm(dim=0).clamp_min(1e-300)
        direction = self.precondition(residual)
        energy = (residual * direction).sum(dim=0)
        for _ in range(MOST_STEPS):
            if bool((residual.norm(dim=0) <= goal).all()):
                return found.cpu().numpy()
            image = self.product(direction)
            step = energy / (direction * image).sum(dim=0).clamp_min(1e-300)
            found.addcmul_(direction, step)
            residual.addcmul_(image, step, value=-1)
            fresh = self.precondition(residual)
            before, energy = energy, (residual * fresh).sum(dim=0)
            direction.mul_(energy / before.clamp_min(1e-300)).add_(fresh)
        left = float((residual.norm(dim=0) / goal).max()) * tolerance
        got = f"a residual of {left:.1e} after {MOST_STEPS} steps"
        raise BagError("sparse process", expected="a solution", got=got, remedy="raise kappa or the noise")


def _csr(matrix: sp.csr_array) -> Tensor:
    index = np.int64 if matrix.nnz > np.iinfo(np.int32).max else np.int32
    rows, columns = (torch.from_numpy(part.astype(index)) for part in (matrix.indptr, matrix.indices))
    values = torch.from_numpy(matrix.data.astype(np.float64))
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Sparse", UserWarning
        )  # in beta; checks are opted into, which old ones overlook
        return torch.sparse_csr_tensor(rows, columns, values, size=matrix.shape, check_invariants=True)
