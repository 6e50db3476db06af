"""Scaled dot-product attention within bags: padded block by block, masked so that no output sees the padding."""

from __future__ import annotations

import torch
from torch import Tensor

from baggraph.nn._layout import Layout, layout_of
from baggraph.nn._segments import BagMap


def attend(queries: Tensor, keys: Tensor, values: Tensor, offsets: Tensor, heads: int) -> Tensor:
    """Every query's mean of the values of its bag, weighted by ``softmax(q k / sqrt(width of a head))``.

    Each of the three is ragged, (N, h), or has the same rows for every bag, (B, m, h). To the shape of the queries.
    """
    layout = layout_of(offsets)
    padding = layout.padding
    parts = zip(*(_blocks(part, layout) for part in (queries, keys, values)), strict=True)
    biases = padding.bias.to(queries.dtype).split([bags * length for bags, length in padding.blocks])
    out = []
    for (q, k, v), bias, (bags, length) in zip(parts, biases, padding.blocks, strict=True):
        q, k, v = (part.unflatten(2, (heads, -1)).transpose(1, 2) for part in (q, k, v))
        scores = (q @ k.mT) * q.shape[-1] ** -0.5
        if keys.ndim == 2:
            scores = scores + bias.view(bags, 1, 1, length)
        out.append((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
    if queries.ndim == 3:
        return torch.cat(out).index_select(0, padding.back)
    rows = torch.cat([block.flatten(0, 1) for block in out])
    return BagMap.run(rows.unsqueeze(0), layout, "unpad").squeeze(0)


def _blocks(values: Tensor, layout: Layout) -> list[Tensor]:
    """One (bags, rows, h) a block of the padding."""
    padding = layout.padding
    if values.ndim == 3:
        return list(values.index_select(0, padding.order).split([bags for bags, _ in padding.blocks]))
    rows = BagMap.run(values.unsqueeze(0), layout, "pad").squeeze(0)
    parts = rows.split([bags * length for bags, length in padding.blocks])
    return [part.unflatten(0, block) for part, block in zip(parts, padding.blocks, strict=True)]
