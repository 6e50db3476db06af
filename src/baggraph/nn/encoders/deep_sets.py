"""Deep Sets."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from baggraph.nn.encoders._layers import row_wise
from baggraph.nn.encoders._pooling import pooling_layer

__all__ = ["DeepSets"]


class DeepSets(nn.Module):
    r"""Deep Sets: a network on instances, their sum, and a network on the sums.

    .. math:: z_b = \rho\Big(\sum_{i \in b} \phi(x_i)\Big)

    Zaheer et al. (2017, Deep Sets), configured as for the elections of Pal et al. (2022, Bag Graph, supplement).  Their
    rental prices take ``phi=(25, 25, 25), rho=(25, 25, 25, 64), activation="elu", last_activation=False``.

    Parameters
    ----------
    n_features
        Features of an instance.
    phi, rho
        Widths of the layers for instances and for bags.
    pooling
        ``"sum"``, ``"mean"``, ``"max"``, ``"logsumexp"`` (of the mean) or ``"attention"``.
    activation
        ``"relu"``, ``"elu"``, ``"gelu"`` or ``"tanh"``.
    last_activation
        Whether the last layer of rho has one too.

    Shapes: instances (N, n_features), offsets (B + 1,) to (B, last of rho).

    >>> import torch
    >>> DeepSets(5)(torch.ones(3, 5), torch.tensor([0, 1, 3])).shape
    torch.Size([2, 64])
    """

    def __init__(
        self,
        n_features: int,
        phi: Sequence[int] = (128, 128),
        rho: Sequence[int] = (128, 64),
        *,
        pooling: str = "sum",
        activation: str = "relu",
        last_activation: bool = True,
    ) -> None:
        super().__init__()
        self.phi = nn.Sequential(*row_wise(n_features, phi, activation))
        self.pool = pooling_layer(pooling, phi[-1])
        self.rho = nn.Sequential(*row_wise(phi[-1], rho, activation, last=last_activation))
        self.width = rho[-1]
        self.level_widths = (self.width,)

    def forward(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """Embed."""
        return self.rho(self.pool(self.phi(instances), offsets))
