"""Graph convolution: the product with normalised adjacencies of one graph, or of one a member."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from baggraph.data._graph_measures import normalised
from baggraph.data.graph import BagGraph
from baggraph.errors import InvalidGraphError
from baggraph.nn._operation import Operation
from baggraph.nn.ragged import segment_sum

__all__ = ["GraphConvolution", "Propagation"]


@dataclass(frozen=True, eq=False)
class Propagation:
    """Weights with which bags listen to bags: M sparse matrices (n, m) below one another, as one CSR.

    Parameters
    ----------
    columns : (E,) int64
        Column in 0 ... M m of every entry; matrix k has its columns from k m on.
    offsets : (M n + 1,) int64
        Where rows begin.
    weights : (E,)
        The entries.
    n_graphs
        M: one for all members, or one a member.
    transposed
        The transposed matrices, or None where each is symmetric.

    """

    columns: Tensor
    offsets: Tensor
    weights: Tensor
    n_graphs: int = 1
    transposed: Propagation | None = None

    @classmethod
    def of(
        cls, graphs: BagGraph | Sequence[BagGraph], *, device: Any = "cpu", dtype: Any = torch.float32
    ) -> Propagation:
        """D^-1/2 (A / max A + I) D^-1/2 of one graph or of many over the same bags (Kipf & Welling 2017).

        Dividing by the largest weight gives the bag itself as much weight as its strongest neighbour.

        >>> pair = BagGraph.from_edges([("a", "b", 4.0)], ids=["a", "b"])
        >>> Propagation.of(pair).mix(torch.tensor([[1.0], [3.0]])).tolist()
        [[2.0], [2.0]]
        """
        many = [graphs] if isinstance(graphs, BagGraph) else list(graphs)
        sizes = sorted({len(graph) for graph in many})
        if len(sizes) != 1:
            got = f"graphs over {sizes} bags" if many else "no graph"
            raise InvalidGraphError("propagation", expected="graphs over the same bags", got=got, remedy="align them")
        blocks = [normalised(over_largest(graph.adjacency), 1.0, "symmetric") for graph in many]
        return cls.of_matrices(blocks, device=device, dtype=dtype)

    @classmethod
    def of_matrices(
        cls, blocks: Sequence[sp.csr_array], *, device: Any = "cpu", dtype: Any = torch.float32
    ) -> Propagation:
        """From symmetric matrices of one size, taken as they are."""
        n = blocks[0].shape[1]
        columns = np.concatenate([block.indices.astype(np.int64) + k * n for k, block in enumerate(blocks)])
        counts = np.concatenate([np.diff(block.indptr) for block in blocks])
        offsets = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        weights = np.concatenate([block.data for block in blocks])
        places, starts = (torch.from_numpy(array).to(device) for array in (columns, offsets))
        return cls(places, starts, torch.from_numpy(weights).to(device, dtype), len(blocks))

    def to(self, dtype: torch.dtype) -> Propagation:
        """The same with weights of another type."""
        other = None if self.transposed is None else self.transposed.to(dtype)
        return Propagation(self.columns, self.offsets, self.weights.to(dtype), self.n_graphs, other)

    def members(self, start: int, stop: int) -> Propagation:
        """The matrices of some of the members; one matrix for all stays one."""
        if self.n_graphs == 1:
            return self
        n = (len(self.offsets) - 1) // self.n_graphs
        offsets = self.offsets[start * n : stop * n + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        columns = self.columns[first:last] - start * n
        return Propagation(columns, offsets - first, self.weights[first:last], stop - start)

    def mix(self, h: Tensor) -> Tensor:
        """Every bag's weighted sum over the bags: (m, C) to (n, C), differentiable and under ``vmap``."""
        return _Mix.run(h, self)

    def product(self, h: Tensor) -> Tensor:
        """The product with (m, C), or with one of these a member, (M, m, C)."""
        if h.ndim == 2:
            return self._rows(h)
        members, m, width = h.shape
        if self.n_graphs == 1:
            beside = self._rows(h.transpose(0, 1).reshape(m, members * width))
            return beside.view(-1, members, width).transpose(0, 1)
        if members != self.n_graphs:
            got = f"{self.n_graphs} graphs for {members} members"
            raise InvalidGraphError("propagation", expected="a graph a member, or one", got=got, remedy="pass as many")
        return self._rows(h.reshape(members * m, width)).view(members, -1, width)

    def _rows(self, h: Tensor) -> Tensor:
        return segment_sum(h.index_select(0, self.columns) * self.weights.to(h.dtype).unsqueeze(1), self.offsets)


class _Mix(Operation):
    """The product as an operation of its own: its gradient is the product with the transpose, without scatter."""

    @staticmethod
    def forward(h: Tensor, graph: Propagation) -> Tensor:
        return graph.product(h)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Propagation], _output: Tensor) -> None:
        ctx.graph = inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        graph = ctx.graph
        return (graph if graph.transposed is None else graph.transposed).mix(gradient), None

    @staticmethod
    def vmap(_info: Any, in_dims: tuple[int, None], h: Tensor, graph: Propagation) -> tuple[Tensor, int]:
        return graph.mix(h.movedim(in_dims[0], 0)), 0


class GraphConvolution(nn.Module):
    r"""A linear layer whose result is averaged over neighbours: ``H' = A_norm H W + b`` (Kipf & Welling 2017).

    Without a graph it is the linear layer, with the same parameters: "a GCN replaces the last layer".

    Shapes: (B, n_features) to (B, n_outputs).
    """

    def __init__(self, n_features: int, n_outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(n_features, n_outputs, bias=False)
        self.bias = nn.Parameter(torch.empty(n_outputs))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As for ``nn.Linear``: uniform in ± 1 / sqrt(n_features)."""
        self.linear.reset_parameters()
        bound = self.linear.in_features**-0.5
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, h: Tensor, graph: Propagation | None = None) -> Tensor:
        """One layer."""
        if graph is None:
            return nn.functional.linear(h, self.linear.weight, self.bias)
        return graph.mix(self.linear(h)) + self.bias


def over_largest(adjacency: sp.csr_array) -> sp.csr_array:
    """Weights relative to the largest, so that a self-loop of 1 weighs as much as the strongest neighbour."""
    return adjacency / adjacency.data.max() if adjacency.nnz else adjacency
