"""Row-wise layers and pooling, with deep supervision or without."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from baggraph.nn.encoders._layers import row_wise
from baggraph.nn.encoders._pooling import pooling_layer

__all__ = ["MINet", "MINetDeepSupervision", "RffPool"]


class RffPool(nn.Module):
    r"""rFF + pool: every layer is pooled, and the pooled levels stand side by side.

    .. math:: X^l = a(X^{l-1} W_l + b_l), \quad z = [\mathrm{pool}(X^1), \ldots, \mathrm{pool}(X^L)]

    The benchmark network of Pal et al. (2022, Bag Graph, supplement: 256-128-64, ReLU, deep supervision), after MI-Net
    with deep supervision of Wang et al. (2018, Revisiting multiple instance neural networks).  A head has one part a
    level; the graph is learned from all of z.  Without deep supervision only the last level is pooled: MI-Net.

    Parameters
    ----------
    n_features
        Features of an instance.
    hidden
        Widths of the layers.
    pooling
        ``"mean"``, ``"max"``, ``"sum"``, ``"logsumexp"`` (of the mean) or ``"attention"``.
    activation
        ``"relu"``, ``"elu"``, ``"gelu"`` or ``"tanh"``.
    deep_supervision
        Whether every level is pooled.

    Shapes: instances (N, n_features), offsets (B + 1,) to (B, sum of level_widths).

    >>> import torch
    >>> RffPool(5)(torch.ones(3, 5), torch.tensor([0, 1, 3])).shape
    torch.Size([2, 448])
    """

    def __init__(
        self,
        n_features: int,
        hidden: Sequence[int] = (256, 128, 64),
        *,
        pooling: str = "max",
        activation: str = "relu",
        deep_supervision: bool = True,
    ) -> None:
        super().__init__()
        self.level_widths = tuple(hidden) if deep_supervision else tuple(hidden)[-1:]
        self.width = sum(self.level_widths)
        self.layers = row_wise(n_features, hidden, activation)
        self.pools = nn.ModuleList(pooling_layer(pooling, width) for width in self.level_widths)

    def forward(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """Embed."""
        pooled, n_unsupervised = [], len(self.layers) - len(self.pools)
        for number, layer in enumerate(self.layers):
            instances = layer(instances)
            if number >= n_unsupervised:  # at once, while the level lies in the caches
                pooled.append(self.pools[number - n_unsupervised](instances, offsets))
        return torch.cat(pooled, dim=1)


def MINet(  # noqa: N802 - a network by its printed name
    n_features: int, hidden: Sequence[int] = (256, 128, 64), *, pooling: str = "max", activation: str = "relu"
) -> RffPool:
    r"""MI-Net: :class:`RffPool` of which only the last level is pooled.

    .. math:: X^l = a(X^{l-1} W_l + b_l), \quad z = \mathrm{pool}(X^L)

    Wang et al. (2018, Revisiting multiple instance neural networks).

    Shapes: instances (N, n_features), offsets (B + 1,) to (B, last of hidden).
    """
    return RffPool(n_features, hidden, pooling=pooling, activation=activation, deep_supervision=False)


def MINetDeepSupervision(  # noqa: N802 - a network by its printed name
    n_features: int, hidden: Sequence[int] = (256, 128, 64), *, pooling: str = "max", activation: str = "relu"
) -> RffPool:
    r"""MI-Net with deep supervision: the same network as :class:`RffPool`.

    .. math:: X^l = a(X^{l-1} W_l + b_l), \quad z = [\mathrm{pool}(X^1), \ldots, \mathrm{pool}(X^L)]

    Wang et al. (2018, Revisiting multiple instance neural networks).

    Shapes: instances (N, n_features), offsets (B + 1,) to (B, sum of hidden).
    """
    return RffPool(n_features, hidden, pooling=pooling, activation=activation)
