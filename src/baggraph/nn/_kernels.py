"""Sums, means, maxima and their adjoints on arrays (M, N, h): Triton on a GPU that has it, torch elsewhere.

Measured on one core: ``scatter_reduce_`` with an index that is the same for all columns is the fastest of what needs no
loop over bags. The instance that reaches a maximum is found the same way, by the largest place counted down from the
bag's size.
"""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

from baggraph.nn import _triton as _triton_kernels
from baggraph.nn._jit import TRITON
from baggraph.nn._layout import Layout

HALVES = (torch.bfloat16, torch.float16)
# Beyond this, places in a bag are not exact in float32.
LONGEST_IN_FLOAT32 = 1 << 24


def sums(values: Tensor, layout: Layout) -> Tensor:
    """(M, N, h) to (M, B, h)."""
    if (kernels := _triton(values)) is not None:
        return kernels.sums(values, layout)
    return _reduced(_wide(values), layout, "sum").to(values.dtype)


def means(values: Tensor, layout: Layout) -> Tensor:
    """(M, N, h) to (M, B, h)."""
    if (kernels := _triton(values)) is not None:
        return kernels.means(values, layout)
    wide = _wide(values)
    return (_reduced(wide, layout, "sum") / layout.sizes.to(wide.dtype).unsqueeze(1)).to(values.dtype)


def shares(bag_values: Tensor, layout: Layout) -> Tensor:
    """(M, B, h) to (M, N, h): the value of a bag in equal parts."""
    return spreads((bag_values / layout.sizes.unsqueeze(1)).to(bag_values.dtype), layout)


def spreads(bag_values: Tensor, layout: Layout) -> Tensor:
    """(M, B, h) to (M, N, h)."""
    if (kernels := _triton(bag_values)) is not None:
        return kernels.spreads(bag_values, layout)
    return bag_values.index_select(1, layout.bag_of)


def maxima(values: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    """(M, N, h) to maxima (M, B, h) and the first instances that reach them."""
    if (kernels := _triton(values)) is not None:
        return kernels.maxima(values, layout)
    wide = values.double() if layout.longest > LONGEST_IN_FLOAT32 else _wide(values)
    top = _reduced(wide, layout, "max")
    # Member by member on a CPU: the scratch of one stays in the caches.
    together = 1 if values.is_cpu else len(values)
    parts = zip(wide.split(together), top.split(together), strict=True)
    winners = [_winners(part, best, layout) for part, best in parts]
    return top.to(values.dtype), torch.cat(winners) if len(winners) > 1 else winners[0]


def routes(bag_values: Tensor, winners: Tensor, layout: Layout) -> Tensor:
    """(M, B, h) to (M, N, h): to the winners alone."""
    if (kernels := _triton(bag_values)) is not None:
        return kernels.routes(bag_values, winners, layout)
    members, _, width = bag_values.shape
    return bag_values.new_zeros(members, layout.n_instances, width).scatter_(1, winners, bag_values)


def _winners(values: Tensor, top: Tensor, layout: Layout) -> Tensor:
    # Floats, because comparisons into booleans and choices by them are several times slower on a CPU.
    scratch = top.index_select(1, layout.bag_of)
    torch.eq(values, scratch, out=scratch).mul_(layout.countdown)
    # At least 1: where a maximum is not a number, nothing equals it.
    left = _reduced(scratch, layout, "max").clamp_(min=1).long()
    return left.neg_().add_(layout.offsets[1:].unsqueeze(1))


def _reduced(values: Tensor, layout: Layout, how: str) -> Tensor:
    # Where additions run side by side, by segments: the others would use atomics.
    return _by_index(values, layout, how) if values.is_cpu else _by_segments(values, layout, how)


def _by_index(values: Tensor, layout: Layout, how: str) -> Tensor:
    members, _, width = values.shape
    out = values.new_full((members, layout.n_bags, width), 0 if how == "sum" else -torch.inf)
    index = layout.bag_of.unsqueeze(1).expand(-1, width)
    for own, rows in zip(out, values, strict=True):  # torch is fast where the index is a matrix
        own.scatter_reduce_(0, index, rows, "sum" if how == "sum" else "amax")
    return out


def _by_segments(values: Tensor, layout: Layout, how: str) -> Tensor:
    sizes = layout.sizes.expand(len(values), -1).contiguous()
    return torch.segment_reduce(values.contiguous(), how, lengths=sizes, axis=1, unsafe=True)


def _wide(values: Tensor) -> Tensor:
    return values.float() if values.dtype in HALVES else values


def _triton(values: Tensor) -> ModuleType | None:
    return _triton_kernels if values.is_cuda and TRITON else None
