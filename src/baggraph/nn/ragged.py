"""Operations within the bags of one flat block: instances (N, ...) and offsets (B + 1,), without padding.

All work under ``torch.vmap`` over members of a stack in one batched operation, with gradients, on CPU and GPU. They use
no atomic additions, so that the same input gives the same output; half precision is accumulated in float32.

>>> import torch
>>> values, offsets = torch.tensor([1.0, 5.0, 2.0]), torch.tensor([0, 2, 3])
>>> segment_sum(values, offsets)
tensor([6., 2.])
>>> spread(segment_max(values, offsets), offsets)
tensor([5., 5., 2.])
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from baggraph.nn._layout import check_bag_values, layout_of
from baggraph.nn._segments import BagMap, Max

__all__ = [
    "segment_logsumexp",
    "segment_max",
    "segment_mean",
    "segment_softmax",
    "segment_std",
    "segment_sum",
    "spread",
]


def segment_sum(values: Tensor, offsets: Tensor) -> Tensor:
    """``sum_{i in b} v_i``: values (N, ...) to (B, ...)."""
    layout = layout_of(offsets, values)
    out = BagMap.run(_flat(values), layout, "sum")
    return out.reshape(layout.n_bags, *values.shape[1:])


def segment_mean(values: Tensor, offsets: Tensor) -> Tensor:
    """``1 / |b| sum_{i in b} v_i``: values (N, ...) to (B, ...)."""
    layout = layout_of(offsets, values)
    out = BagMap.run(_flat(values), layout, "mean")
    return out.reshape(layout.n_bags, *values.shape[1:])


def segment_max(values: Tensor, offsets: Tensor) -> Tensor:
    """``max_{i in b} v_i``: values (N, ...) to (B, ...). The gradient goes to the first instance that reaches it."""
    layout = layout_of(offsets, values)
    out, _ = Max.run(_flat(values), layout)
    return out.reshape(layout.n_bags, *values.shape[1:])


def segment_logsumexp(values: Tensor, offsets: Tensor) -> Tensor:
    """``log sum_{i in b} exp v_i``: values (N, ...) to (B, ...)."""
    wide = _wide(values)
    top = _finite(segment_max(wide.detach(), offsets))
    sums = segment_sum((wide - spread(top, offsets)).exp(), offsets)
    return (sums.log() + top).to(values.dtype)


def segment_std(values: Tensor, offsets: Tensor) -> Tensor:
    """``sqrt(1 / |b| sum_{i in b} (v_i - mean_b)^2)``: values (N, ...) to (B, ...); gradient 0 where it is 0."""
    wide = _wide(values)
    away = wide - spread(segment_mean(wide, offsets), offsets)
    variance = segment_mean(away.square(), offsets)
    varies = variance > 0
    return torch.where(varies, torch.where(varies, variance, 1).sqrt(), 0).to(values.dtype)


def segment_softmax(values: Tensor, offsets: Tensor) -> Tensor:
    """``exp v_i / sum_{j in b(i)} exp v_j``: values (N, ...) to weights (N, ...) that sum to 1 in every bag."""
    wide = _wide(values)
    top = _finite(segment_max(wide.detach(), offsets))
    weights = (wide - spread(top, offsets)).exp()
    return (weights / spread(segment_sum(weights, offsets), offsets)).to(values.dtype)


def spread(bag_values: Tensor, offsets: Tensor) -> Tensor:
    """``v_{b(i)}``: one value a bag (B, ...) to one an instance (N, ...)."""
    layout = layout_of(offsets)
    check_bag_values(bag_values, layout)
    out = BagMap.run(_flat(bag_values), layout, "spread")
    return out.reshape(layout.n_instances, *bag_values.shape[1:])


def _flat(values: Tensor) -> Tensor:
    """One member (1, N, h)."""
    return values.reshape(1, len(values), math.prod(values.shape[1:]))


def _wide(values: Tensor) -> Tensor:
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values


def _finite(top: Tensor) -> Tensor:
    """A bag of nothing but minus infinity is shifted by nothing: infinity minus itself is no number."""
    return torch.where(top == -torch.inf, 0, top)
