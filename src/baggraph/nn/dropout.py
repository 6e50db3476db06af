"""Dropout whose masks are a function of a key and of nothing else: not of the device, nor of what runs beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from baggraph.errors import ParameterError
from baggraph.nn._jit import TRITON
from baggraph.nn._operation import Operation
from baggraph.nn._triton_dropout import masks

__all__ = ["Dropout", "coins", "keyed", "own_dropout"]

# Signed forms of 0x7feb352d, 0x846ca68b (a 32-bit finaliser with low bias) and of the golden ratio 0x9e3779b9.
FIRST, SECOND, GOLDEN = 0x7FEB352D, 0x846CA68B - (1 << 32), 0x9E3779B9 - (1 << 32)
BITS = 16  # of a number serve a column, so that one number is enough for two


@dataclass
class _Draws:
    """A key (a 32-bit integer tensor), the names of the rows that may be dropped, and how many masks were made."""

    key: Tensor
    rows: Sequence[Tensor]
    made: int = field(default=0)


_current: ContextVar[_Draws | None] = ContextVar("draws", default=None)


@contextmanager
def keyed(key: Tensor, rows: Sequence[Tensor] = ()) -> Iterator[None]:
    """Take the masks of :class:`Dropout` from this key, a tensor of one int32, under ``vmap`` one a member.

    The n-th mask of a key is always the same.  Each of ``rows`` holds numbers (n,) for the rows of inputs with n rows,
    so that a bag is masked alike whatever bags stand beside it; without, rows are numbered as they come.
    """
    token = _current.set(_Draws(key, rows))
    try:
        yield
    finally:
        _current.reset(token)


class Dropout(nn.Module):
    r"""Zero entries with probability p and scale the others by 1 / (1 - p) while training (Srivastava et al. 2014).

    Inside :func:`keyed` the mask follows from the key; elsewhere it comes from torch's global generator.

    Shapes: any (n, ...) to the same.

    >>> layer = Dropout(0.5)
    >>> with keyed(torch.tensor(7, dtype=torch.int32)):
    ...     once = layer(torch.ones(2, 6))
    >>> with keyed(torch.tensor(7, dtype=torch.int32)):
    ...     torch.equal(layer(torch.ones(2, 6)), once)
    True
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ParameterError("dropout", expected="p from 0 to below 1", got=repr(p), remedy="change it")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Drop entries of x."""
        draws = _current.get()
        if not self.training or self.p == 0:
            return x
        if draws is None:
            return nn.functional.dropout(x, self.p)
        return x * _scaled_mask(draws, x, self.p)

    def extra_repr(self) -> str:
        """Show p."""
        return f"p={self.p}"


def _scaled_mask(draws: _Draws, x: Tensor, p: float) -> Tensor:
    draws.made += 1
    n, width = x.shape[0], x[0].numel()
    named = [rows for rows in draws.rows if len(rows) == n]
    rows = named[0].to(torch.int32) if named else torch.arange(n, dtype=torch.int32, device=x.device)
    shift = (draws.made * GOLDEN + (1 << 31)) % (1 << 32) - (1 << 31)
    mask = _Mask.run(draws.key + shift, rows, width, p, x.dtype)
    return mask.view(x.shape)


class _Mask(Operation):
    """0 or 1 / (1 - p) for rows (n,) and columns, from a seed () or one a member (M,); one operation for all."""

    @staticmethod
    def forward(seed: Tensor, rows: Tensor, width: int, p: float, dtype: torch.dtype) -> Tensor:
        least = round(p * (1 << BITS))  # the share dropped is p to this precision, the scale exactly right for it
        scale = 1 / (1 - least / (1 << BITS))
        seeds = seed.reshape(-1)
        if seeds.is_cuda and TRITON:
            mask = masks(seeds, rows, width, least, scale, dtype)
        else:
            # Rows and columns are mixed one after the other: a plain number row * width + column could overflow.
            pairs = torch.arange(-(-width // 2), dtype=torch.int32, device=rows.device)
            numbers = scrambled(scrambled(rows ^ seeds.unsqueeze(1)).unsqueeze(2) + pairs)
            kept = numbers.view(torch.int16)[..., :width] >= least - (1 << (BITS - 1))
            mask = kept.to(dtype).mul_(scale)
        return mask.view(*seed.shape, len(rows), width)

    @staticmethod
    def setup_context(ctx: Any, _inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(_ctx: Any, _gradient: Tensor) -> tuple[None, ...]:
        return (None,) * 5

    @staticmethod
    def vmap(_info: Any, in_dims: tuple[Any, ...], seed: Tensor, *rest: Any) -> tuple[Tensor, int]:
        return _Mask.run(seed.movedim(in_dims[0], 0), *rest), 0


def coins(key: Tensor, count: int, dtype: torch.dtype) -> Tensor:
    """A fair coin, 0 or 1, for every one of so many rows, from a key () or one a member (M,): (count,) or (M, count).

    >>> coins(torch.tensor(7, dtype=torch.int32), 8, torch.float32).tolist()
    [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    """
    rows = torch.arange(count, dtype=torch.int32, device=key.device)
    return _Mask.run(scrambled(key), rows, 1, 0.5, dtype).squeeze(-1) / 2


def scrambled(number: Tensor) -> Tensor:
    """Spread int32 numbers over all 32 bits, one to one.

    >>> scrambled(torch.tensor([0, 1, 2], dtype=torch.int32)).tolist()
    [0, 1753845952, -787275391]
    """
    number = (number ^ (number >> 16).bitwise_and_(0xFFFF)).mul_(FIRST)
    number ^= (number >> 15).bitwise_and_(0x1FFFF)
    number *= SECOND
    number ^= (number >> 16).bitwise_and_(0xFFFF)
    return number


def own_dropout(module: nn.Module) -> nn.Module:
    """Replace torch's dropout layers inside a module by :class:`Dropout`, in place."""
    for name, child in module.named_children():
        if type(child) is nn.Dropout:
            setattr(module, name, Dropout(child.p))
        else:
            own_dropout(child)
    return module
