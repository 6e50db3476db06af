"""The Set Transformer on ragged bags."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from baggraph.errors import ParameterError
from baggraph.nn._layout import layout_of
from baggraph.nn.encoders._layers import checked_widths
from baggraph.nn.encoders._ragged_attention import attend

__all__ = ["ISAB", "MAB", "PMA", "SAB", "SetTransformer"]


class MAB(nn.Module):
    r"""Multihead attention block, from queries X to keys Y of the same bag.

    .. math:: \mathrm{MAB}(X, Y) = \mathrm{LN}(H + \mathrm{relu}(H W + b)), \quad
              H = \mathrm{LN}(X + \mathrm{Multihead}(X, Y, Y))

    Lee et al. (2019, Set Transformer, equations 6 and 7).

    Parameters
    ----------
    width
        Of queries, keys and outputs.
    heads
        Parts of the width that attend alone; a divisor of it.
    layer_norm
        Whether LN is there.

    Shapes: X and Y are ragged, (N, width), or have equally many rows for every bag, (B, rows, width); to that of X.
    """

    def __init__(self, width: int, heads: int = 4, *, layer_norm: bool = True) -> None:
        super().__init__()
        checked_widths("width and heads", width, heads)
        if width % heads:
            got = f"{heads} heads for a width of {width}"
            raise ParameterError(
                "set-transformer", expected="heads that divide the width", got=got, remedy="change one"
            )
        self.heads = heads
        self.query, self.key, self.value, self.mix, self.feed = (nn.Linear(width, width) for _ in range(5))
        self.norms = nn.ModuleList(nn.LayerNorm(width) if layer_norm else nn.Identity() for _ in range(2))

    def forward(self, x: Tensor, y: Tensor, offsets: Tensor) -> Tensor:
        """Attend."""
        found = attend(self.query(x), self.key(y), self.value(y), offsets, self.heads)
        h = self.norms[0](x + self.mix(found))
        return self.norms[1](h + self.feed(h).relu())


class SAB(nn.Module):
    r"""Set attention block: instances attend to all instances of their bag.

    .. math:: \mathrm{SAB}(X) = \mathrm{MAB}(X, X)

    Lee et al. (2019, Set Transformer, equation 8).

    Shapes: (N, width), offsets (B + 1,) to (N, width).
    """

    def __init__(self, width: int, heads: int = 4, *, layer_norm: bool = True) -> None:
        super().__init__()
        self.block = MAB(width, heads, layer_norm=layer_norm)

    def forward(self, x: Tensor, offsets: Tensor) -> Tensor:
        """Attend."""
        return self.block(x, x, offsets)


class ISAB(nn.Module):
    r"""Induced set attention block: instances attend to a few summaries of their bag, in time linear in its size.

    .. math:: \mathrm{ISAB}(X) = \mathrm{MAB}(X, \mathrm{MAB}(I, X))

    Lee et al. (2019, Set Transformer, equations 9 and 10).

    Shapes: (N, width), offsets (B + 1,) to (N, width).
    """

    def __init__(self, width: int, inducing: int, heads: int = 4, *, layer_norm: bool = True) -> None:
        super().__init__()
        self.inducing = _unset(inducing, width)
        self.summarise, self.attend = (MAB(width, heads, layer_norm=layer_norm) for _ in range(2))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the inducing points anew."""
        _glorot(self.inducing)

    def forward(self, x: Tensor, offsets: Tensor) -> Tensor:
        """Attend."""
        return self.attend(x, self.summarise(_one_each(self.inducing, offsets), x, offsets), offsets)


class PMA(nn.Module):
    r"""Pooling by multihead attention: a few learned seeds attend to the instances.

    .. math:: \mathrm{PMA}(Z) = \mathrm{MAB}(S, \mathrm{relu}(Z W + b))

    Lee et al. (2019, Set Transformer, equation 11).

    Shapes: (N, width), offsets (B + 1,) to (B, seeds, width).
    """

    def __init__(self, width: int, seeds: int = 1, heads: int = 4, *, layer_norm: bool = True) -> None:
        super().__init__()
        self.seeds = _unset(seeds, width)
        self.feed = nn.Linear(width, width)
        self.block = MAB(width, heads, layer_norm=layer_norm)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the seeds anew."""
        _glorot(self.seeds)

    def forward(self, z: Tensor, offsets: Tensor) -> Tensor:
        """Pool."""
        return self.block(_one_each(self.seeds, offsets), self.feed(z).relu(), offsets)


class SetTransformer(nn.Module):
    r"""Set Transformer: attention blocks on instances, and pooling by attention.

    .. math:: z = \mathrm{PMA}(\mathrm{SAB}(\cdots \mathrm{SAB}(X W + b)))

    Lee et al. (2019, Set Transformer), configured as for the rental prices of Pal et al. (2022, Bag Graph, supplement:
    one SAB and one PMA of 64 dimensions).  Bags are padded only inside the attention, and then to less than 5/4 of
    their size; a bag of n instances takes memory in proportion to n^2, or to n with inducing points.

    Parameters
    ----------
    n_features
        Features of an instance.
    width
        Of all blocks.
    heads
        Heads of every block; a divisor of the width.
    blocks
        How many attention blocks.
    inducing
        Inducing points: ISAB takes the place of SAB.
    seeds
        Seeds of the PMA; their outputs stand side by side.
    layer_norm
        Whether blocks have layer norms.

    Shapes: instances (N, n_features), offsets (B + 1,) to (B, seeds * width).

    >>> import torch
    >>> SetTransformer(5)(torch.ones(3, 5), torch.tensor([0, 1, 3])).shape
    torch.Size([2, 64])
    """

    def __init__(
        self,
        n_features: int,
        width: int = 64,
        *,
        heads: int = 4,
        blocks: int = 1,
        inducing: int | None = None,
        seeds: int = 1,
        layer_norm: bool = True,
    ) -> None:
        super().__init__()
        checked_widths("n_features, width, blocks and seeds", n_features, width, blocks, seeds)
        self.first = nn.Linear(n_features, width)
        self.blocks = nn.ModuleList(
            SAB(width, heads, layer_norm=layer_norm)
            if inducing is None
            else ISAB(width, inducing, heads, layer_norm=layer_norm)
            for _ in range(blocks)
        )
        self.pool = PMA(width, seeds, heads, layer_norm=layer_norm)
        self.width = seeds * width
        self.level_widths = (self.width,)

    def forward(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """Embed."""
        x = self.first(instances)
        for block in self.blocks:
            x = block(x, offsets)
        return self.pool(x, offsets).flatten(1)


def _unset(count: int, width: int) -> nn.Parameter:
    checked_widths("seeds or inducing points", count)
    return nn.Parameter(torch.empty(count, width))


def _glorot(points: nn.Parameter) -> None:
    nn.init.xavier_uniform_(points)  # Glorot & Bengio 2010, as Lee et al. do


def _one_each(seeds: Tensor, offsets: Tensor) -> Tensor:
    return seeds.expand(layout_of(offsets).n_bags, *seeds.shape)
