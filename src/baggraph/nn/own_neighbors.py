"""A layer with weights of their own for a bag itself and for what its neighbours say, near ones or far ones too."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from baggraph.nn.gcn import Propagation

__all__ = ["OwnNeighbors"]


class OwnNeighbors(nn.Module):
    r"""``H' = H W_own + P_K + b``, where P_K are K steps through the graph from ``P_0 = H W_near``.

    .. math:: P_{k+1} = (1 - \alpha) A_{norm} P_k + \alpha P_0

    With one step and no restart it is ``H W_own + A_norm H W_near + b``, GraphSAGE with the mean of
    :class:`~baggraph.nn.gcn.GraphConvolution` (Hamilton et al. 2017, Inductive representation learning): a bag is set
    beside its neighbours, not stirred in with them, so that a graph of strangers can be given no weight.  Many steps
    that start again with probability alpha are personalised PageRank (Gasteiger et al. 2019, Predict then propagate);
    the term of the bag's own is added to it, since P_K alone passes low frequencies only.  Without a graph,
    ``H W_own + b``.

    Shapes: (B, n_features) to (B, n_outputs).

    >>> OwnNeighbors(3, 2, steps=10, restart=0.1)(torch.ones(4, 3)).shape
    torch.Size([4, 2])
    """

    def __init__(self, n_features: int, n_outputs: int, *, steps: int = 1, restart: float = 0.0) -> None:
        super().__init__()
        self.steps, self.restart = steps, restart
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
        """All steps."""
        own = nn.functional.linear(h, self.own.weight, self.bias)
        if graph is None:
            return own
        start = walked = self.near(h)
        for _ in range(self.steps):
            walked = graph.mix(walked)
            if self.restart:
                walked = (1 - self.restart) * walked + self.restart * start
        return own + walked

    def extra_repr(self) -> str:
        """Show the walk."""
        return f"steps={self.steps}, restart={self.restart}"
