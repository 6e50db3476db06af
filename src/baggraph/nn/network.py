"""An encoder and a head as one network."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from baggraph.errors import ParameterError
from baggraph.nn.dropout import own_dropout
from baggraph.nn.gcn import Propagation

__all__ = ["Forward", "Network"]


class Forward(NamedTuple):
    """What a network makes of bags: outputs (levels, B, C) and embedding (B, h)."""

    outputs: Tensor
    embedding: Tensor


class Network(nn.Module):
    """Bags in, outputs and embeddings out: ``head(encoder(instances, offsets), graph)``.

    ``encoder`` is any module that maps (instances (N, d), offsets (B + 1)) to (B, h), ``head`` any that maps that and a
    :class:`~baggraph.nn.gcn.Propagation` or None to (levels, B, C).  Dropout layers of torch inside the encoder are
    exchanged for our own, whose masks depend on the seed of a member alone.  ``labels`` (B, n_labels), what is known of
    labels, stand beside the embedding for a head that takes them.
    """

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder, self.head = own_dropout(encoder), head

    def reset_parameters(self) -> None:
        """Draw all parameters anew from torch's global generator."""
        for reset in self.resetters():
            reset()

    def resetters(self) -> list[Callable[[], None]]:
        """``reset_parameters`` of every layer with parameters, in order."""
        found = []
        for name, module in self.named_modules():
            if not list(module.parameters(recurse=False)):
                continue
            if not callable(getattr(module, "reset_parameters", None)):
                raise ParameterError(
                    "network",
                    expected="reset_parameters() on every layer with parameters, so that members can start differently",
                    got=f"none on {type(module).__name__} ({name})",
                    remedy="add it",
                )
            found.append(module.reset_parameters)
        return found

    def forward(
        self, instances: Tensor, offsets: Tensor, graph: Propagation | None = None, labels: Tensor | None = None
    ) -> Forward:
        """Outputs and embedding of all bags."""
        embedding = self.encoder(instances, offsets)
        given = embedding if labels is None else torch.cat([embedding, labels.to(embedding.dtype)], dim=1)
        return Forward(self.head(given, graph), embedding)
