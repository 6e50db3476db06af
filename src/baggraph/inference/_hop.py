"""One hop of a graph around the bags of a batch, whole or sampled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from baggraph.data.graph import BagGraph
from baggraph.errors import ParameterError
from baggraph.inference._batches import Index, bits
from baggraph.nn.gcn import Propagation

SAMPLING = 1  # sets the bits of sampling apart from those of the order of bags


class Around(NamedTuple):
    """What the head needs for the labelled bags of a batch.

    ``columns`` (m,) are numbers of bags: those labelled and their neighbours.  The embedding of column j is row
    ``places[j]`` of the embeddings of the batch, followed by those of the bags ``outside``.
    """

    labelled: Tensor
    columns: Tensor
    places: Tensor
    outside: Tensor
    graph: Propagation


@dataclass(frozen=True, eq=False)
class Hop:
    """Rows of the propagation of a graph (B, B), to be cut out for batches."""

    matrix: sp.csr_array
    labelled: np.ndarray
    sampled: int | None
    seed: int
    device: Any
    dtype: torch.dtype

    @classmethod
    def of(cls, graph: BagGraph, labelled: np.ndarray, sampled: int | None, seed: int, **place: Any) -> Hop:
        """Of the same matrix as a full batch takes."""
        whole = Propagation.of(graph, dtype=torch.float64)
        parts = (whole.weights.numpy(), whole.columns.numpy(), whole.offsets.numpy())
        matrix = sp.csr_array(parts, shape=(len(graph), len(graph)))
        return cls(matrix, labelled, sampled, seed, **place)

    @property
    def near(self) -> Index:
        """Bags that are labelled, or neighbours of one."""
        return np.unique(self.matrix[np.flatnonzero(self.labelled)].indices).astype(np.int64)

    def around(self, bags: Index, epoch: int, batch: int) -> Around | None:
        """The hop around the labelled bags of a batch, if there are any."""
        labelled = np.flatnonzero(self.labelled[bags])
        if not len(labelled):
            return None
        rows = self.matrix[bags[labelled]]
        if self.sampled is not None:
            rows = thinned(rows, bags[labelled], self.sampled, bits(self.seed, epoch, batch, SAMPLING))
        columns, own_columns = np.unique(rows.indices, return_inverse=True)
        block = sp.csr_array((rows.data, own_columns, rows.indptr), shape=(len(labelled), len(columns)))
        inside = np.isin(columns, bags)
        places = np.empty(len(columns), dtype=np.int64)
        order = np.argsort(bags)
        places[inside] = order[np.searchsorted(bags, columns[inside], sorter=order)]
        places[~inside] = len(bags) + np.arange(np.count_nonzero(~inside))
        arrays = (labelled, columns.astype(np.int64), places, columns[~inside].astype(np.int64))
        names, numbers, sources, others = (torch.from_numpy(array).to(self.device) for array in arrays)
        return Around(names, numbers, sources, others, self._propagation(block))

    def _propagation(self, block: sp.csr_array) -> Propagation:
        there, back = (
            Propagation.of_matrices([each], device=self.device, dtype=self.dtype) for each in (block, block.T.tocsr())
        )
        return replace(there, transposed=back)


def thinned(rows: sp.csr_array, bags: Index, most: int, stream: np.random.PCG64) -> sp.csr_array:
    """Rows with at most ``most`` neighbours beside the bag itself, weighted up so that the expectation stays.

    >>> rows = sp.csr_array([[0.5, 0.25, 0.25, 0.25]])
    >>> kept = thinned(rows, np.array([0]), 2, np.random.PCG64(0))
    >>> kept.indices.tolist(), kept.data.tolist()
    ([0, 2, 3], [0.5, 0.375, 0.375])
    """
    counts = np.diff(rows.indptr)
    row = np.repeat(np.arange(len(bags)), counts)
    neighbour = rows.indices != bags[row]
    degree = np.bincount(row[neighbour], minlength=len(bags))
    order = np.lexsort((stream.random_raw(len(row)), neighbour, row))
    place = np.empty(len(row), dtype=np.int64)
    place[order] = np.arange(len(row)) - np.repeat(rows.indptr[:-1], counts)
    kept = np.flatnonzero(place - (counts - degree)[row] < most)
    scale = np.where(neighbour, degree[row] / np.clip(degree, 1, most)[row], 1.0)
    ends = np.cumsum(np.bincount(row[kept], minlength=len(bags)))
    return sp.csr_array(((rows.data * scale)[kept], rows.indices[kept], np.r_[0, ends]), shape=rows.shape)


def refuse_deep_head(head: nn.Module, width: int) -> None:
    """Raise where outputs look further than one hop: the embeddings of two are not there."""
    n_chains = 16
    ends = sp.csr_array(np.eye(3) + np.eye(3, k=1) + np.eye(3, k=-1))
    chains = Propagation.of_matrices([sp.csr_array(sp.block_diag([ends] * n_chains))])
    generator = torch.Generator().manual_seed(0)
    embedding = torch.randn(3 * n_chains, width, generator=generator).requires_grad_()
    head.eval()
    first = head(embedding, chains)[:, ::3].sum()
    if bool((torch.autograd.grad(first, embedding)[0][2::3] != 0).any()):
        raise ParameterError(
            "minibatch",
            expected="a head of one graph convolution, so that direct neighbours suffice",
            got="a head that sees neighbours of neighbours",
            remedy="leave out its hidden layers, or train without a graph, or in full batches with fit_stack",
        )
