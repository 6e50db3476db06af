"""Attention over instances, which also explains."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from baggraph.nn.encoders._layers import checked_widths, row_wise
from baggraph.nn.encoders._pooling import ATTENTION_WIDTH, AttentionPooling

__all__ = ["Attention", "GatedAttention"]


class Attention(nn.Module):
    r"""Attention-based pooling: a weighted mean of instances, with weights that are learned.

    .. math:: z_b = \sum_{i \in b} a_i h_i, \quad a_i = \mathrm{softmax}_{i \in b}\, w^\top \tanh(V h_i)

    with h a row-wise network.  Ilse et al. (2018, Attention-based deep multiple instance learning, equations 7 and 8).

    Parameters
    ----------
    n_features
        Features of an instance.
    hidden
        Widths of the layers that make h; none: h is the instance itself.
    attention_width
        Rows of V.
    activation
        ``"relu"``, ``"elu"``, ``"gelu"`` or ``"tanh"``.

    Shapes: instances (N, n_features), offsets (B + 1,) to (B, last of hidden).

    >>> import torch
    >>> encoder = Attention(5)
    >>> encoder(torch.ones(3, 5), torch.tensor([0, 1, 3])).shape
    torch.Size([2, 64])
    >>> encoder.instance_weights(torch.ones(3, 5), torch.tensor([0, 1, 3]))
    tensor([1.0000, 0.5000, 0.5000], grad_fn=...)
    """

    gated = False

    def __init__(
        self,
        n_features: int,
        hidden: Sequence[int] = (256, 128, 64),
        *,
        attention_width: int = ATTENTION_WIDTH,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        checked_widths("attention_width", attention_width)
        self.layers = nn.Sequential(*row_wise(n_features, hidden, activation)) if len(hidden) else nn.Identity()
        self.width = (n_features, *hidden)[-1]
        self.level_widths = (self.width,)
        self.pool = AttentionPooling(self.width, attention_width, gated=self.gated)

    def forward(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """Embed."""
        return self.pool(self.layers(instances), offsets)

    def instance_weights(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """How much every instance counts in its bag: (N,), with sum 1 in every bag."""
        return self.pool.weights(self.layers(instances), offsets).squeeze(1)


class GatedAttention(Attention):
    r"""Attention-based pooling with a gate: :class:`Attention` whose tanh is multiplied by a sigmoid.

    .. math:: z_b = \sum_{i \in b} a_i h_i, \quad
              a_i = \mathrm{softmax}_{i \in b}\, w^\top (\tanh(V h_i) \odot \sigma(U h_i))

    Ilse et al. (2018, Attention-based deep multiple instance learning, equation 9).

    Shapes: instances (N, n_features), offsets (B + 1,) to (B, last of hidden).
    """

    gated = True
