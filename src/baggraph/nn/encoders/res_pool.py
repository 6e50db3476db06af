"""Row-wise layers whose pooled levels are added up."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from baggraph.errors import ParameterError
from baggraph.nn.encoders._layers import row_wise
from baggraph.nn.encoders._pooling import pooling_layer

__all__ = ["MINetResidual", "ResPool"]


class ResPool(nn.Module):
    r"""Res + pool: every further level is learned as a residual of the pooled levels before it.

    .. math:: X^l = a(X^{l-1} W_l + b_l), \quad z = \sum_{l=1}^{L} \mathrm{pool}(X^l)

    The text network of Pal et al. (2022, Bag Graph, supplement: 3 x 128, ReLU, mean pooling), after MI-Net with
    residual connections of Wang et al. (2018, Revisiting multiple instance neural networks).

    Parameters
    ----------
    n_features
        Features of an instance.
    hidden
        Widths of the layers, all equal.
    pooling
        ``"mean"``, ``"max"``, ``"sum"``, ``"logsumexp"`` (of the mean) or ``"attention"``.
    activation
        ``"relu"``, ``"elu"``, ``"gelu"`` or ``"tanh"``.

    Shapes: instances (N, n_features), offsets (B + 1,) to (B, hidden width).

    >>> import torch
    >>> ResPool(5)(torch.ones(3, 5), torch.tensor([0, 1, 3])).shape
    torch.Size([2, 128])
    """

    def __init__(
        self,
        n_features: int,
        hidden: Sequence[int] = (128, 128, 128),
        *,
        pooling: str = "mean",
        activation: str = "relu",
    ) -> None:
        super().__init__()
        if len(set(hidden)) != 1:
            raise ParameterError(
                "res-pool", expected="hidden layers of one width", got=str(list(hidden)), remedy="levels are added up"
            )
        self.layers = row_wise(n_features, hidden, activation)
        self.width = hidden[0]
        self.level_widths = (self.width,)
        self.pools = nn.ModuleList(pooling_layer(pooling, width) for width in hidden)

    def forward(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """Embed."""
        pooled = []
        for layer, pool in zip(self.layers, self.pools, strict=True):
            instances = layer(instances)
            pooled.append(pool(instances, offsets))
        return torch.stack(pooled).sum(0)


def MINetResidual(  # noqa: N802 - a network by its printed name
    n_features: int, hidden: Sequence[int] = (128, 128, 128), *, pooling: str = "max", activation: str = "relu"
) -> ResPool:
    r"""MI-Net with residual connections: the same network as :class:`ResPool`, with maximum pooling.

    .. math:: X^l = a(X^{l-1} W_l + b_l), \quad z = \sum_{l=1}^{L} \mathrm{pool}(X^l)

    Wang et al. (2018, Revisiting multiple instance neural networks).

    Shapes: instances (N, n_features), offsets (B + 1,) to (B, hidden width).
    """
    return ResPool(n_features, hidden, pooling=pooling, activation=activation)
