"""A layer that walks several steps through the graph, and starts again from the bag itself now and then."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from baggraph.nn.gcn import Propagation

__all__ = ["RestartPropagation"]


class RestartPropagation(nn.Module):
    r"""``H' = H W_own + P + b``, where P are K steps of personalised PageRank from ``P_0 = H W_near``.

    .. math:: P_{k+1} = (1 - \alpha) A_{norm} P_k + \alpha P_0

    Gasteiger et al. (2019, Predict then propagate); the term of the bag's own is ours, since P alone passes low
    frequencies only.  Without a graph, ``H W_own + b``.

    Shapes: (B, n_features) to (B, n_outputs).

    >>> RestartPropagation(3, 2, steps=4)(torch.ones(4, 3)).shape
    torch.Size([4, 2])
    """

    def __init__(self, n_features: int, n_outputs: int, *, steps: int = 10, restart: float = 0.1) -> None:
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
            walked = (1 - self.restart) * graph.mix(walked) + self.restart * start
        return own + walked

    def extra_repr(self) -> str:
        """Show the walk."""
        return f"steps={self.steps}, restart={self.restart}"
