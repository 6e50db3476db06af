"""From embeddings, and a graph if there is one, to outputs: the last layers of a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from baggraph.nn.dropout import Dropout
from baggraph.nn.gcn import GraphConvolution, Propagation

__all__ = ["Head", "PassHead"]


class Head(nn.Module):
    r"""One stack of layers a supervision level: linear without a graph, graph convolutions with one.

    For level l with embedding z_l (a slice of the encoder's output):  o_l = A_norm drop(z_l) W_l + b_l, with A_norm = I
    where there is no graph; hidden layers are followed by a ReLU and dropout.  Pal et al. (2022), equation 2 and the
    supplement: "inputs to the deep supervision layers are subjected to dropout with probability 0.5".

    ``layer`` makes the layers, from numbers of features and outputs.  The last ``n_labels`` columns of the input are
    what is known of labels; every level gets them without dropout, and zeros where they are left out.

    Shapes: (B, sum of level_widths), or (B, sum of level_widths + n_labels), to (levels, B, n_outputs).

    >>> Head((3, 2), 1)(torch.ones(4, 5)).shape
    torch.Size([2, 4, 1])
    """

    def __init__(
        self,
        level_widths: Sequence[int],
        n_outputs: int,
        *,
        dropout: float = 0.5,
        hidden: Sequence[int] = (),
        layer: Callable[[int, int], nn.Module] = GraphConvolution,
        n_labels: int = 0,
    ) -> None:
        super().__init__()
        self.level_widths, self.n_labels = tuple(level_widths), n_labels
        widths = [(width + n_labels, *hidden, n_outputs) for width in self.level_widths]
        self.levels = nn.ModuleList(nn.ModuleList(layer(*pair) for pair in pairwise(w)) for w in widths)
        self.dropout = Dropout(dropout)

    @property
    def n_hops(self) -> int:
        """How many hops away bags are heard."""
        return sum(int(getattr(layer, "steps", 1)) for layer in cast(nn.ModuleList, self.levels[0]))

    def forward(self, embedding: Tensor, graph: Propagation | None = None) -> Tensor:
        """Outputs of every level."""
        outputs = []
        embedding, labels = self._apart(embedding)
        for layers, level in zip(self.levels, self.dropout(embedding).split(self.level_widths, dim=1), strict=True):
            first, *others = cast(nn.ModuleList, layers)
            level = first(level if labels is None else torch.cat([level, labels], dim=1), graph)
            for layer in others:
                level = layer(self.dropout(level.relu()), graph)
            outputs.append(level)
        return torch.stack(outputs)

    def _apart(self, given: Tensor) -> tuple[Tensor, Tensor | None]:
        """Embeddings, and what is known of labels."""
        if not self.n_labels:
            return given, None
        width = sum(self.level_widths)
        labels = given[:, width:] if given.shape[1] > width else given.new_zeros(len(given), self.n_labels)
        return given[:, :width], labels


class PassHead(nn.Module):
    """For encoders whose embedding is the output already, as in mi-Net (Wang et al. 2018): (B, C) to (1, B, C)."""

    def forward(self, embedding: Tensor, graph: Propagation | None = None) -> Tensor:
        """The embedding as one level, averaged over neighbours where there is a graph."""
        return (embedding if graph is None else graph.mix(embedding)).unsqueeze(0)
