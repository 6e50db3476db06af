"""A layer with weights of their own for a bag itself and for what its neighbours say."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from baggraph.nn.gcn import Propagation

__all__ = ["OwnNeighbors"]


class OwnNeighbors(nn.Module):
    r"""``H' = H W_own + A_norm H W_near + b``: GraphSAGE with the mean of :class:`~baggraph.nn.GraphConvolution`.

    Hamilton et al. (2017, Inductive representation learning on large graphs): a bag is set beside its neighbours, not
    stirred in with them, so that a graph of strangers can be given no weight.  Without a graph, ``H W_own + b``.

    Shapes: (B, n_features) to (B, n_outputs).

    >>> OwnNeighbors(3, 2)(torch.ones(4, 3)).shape
    torch.Size([4, 2])
    """

    def __init__(self, n_features: int, n_outputs: int) -> None:
        super().__init__()
        self.own = nn.Linear(n_features, n_outputs, bias=False)
        self.near = nn.Linear(n_features, n_outputs, bias=False)
        self.bias = nn.Parameter(torch.empty(n_outputs))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As for ``nn.Linear``: uniform in ± 1 / sqrt(n_features)."""
        self.own.reset_parameters()
        self.near.reset_parameters()
        bound = self.own.in_features**-0.5
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, h: Tensor, graph: Propagation | None = None) -> Tensor:
        """One layer."""
        own = nn.functional.linear(h, self.own.weight, self.bias)
        return own if graph is None else own + graph.mix(self.near(h))
