"""Attention and Set Transformer blocks against torch-geometric and torchmil, with copied weights."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from baggraph.nn.encoders import ISAB, MAB, PMA, SAB, Attention, GatedAttention

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch-geometric scripts classes, which torch advises against
    from torch_geometric.nn import aggr
    from torch_geometric.nn.aggr.utils import (
        InducedSetAttentionBlock,
        MultiheadAttentionBlock,
        PoolingByMultiheadAttention,
        SetAttentionBlock,
    )

WIDTH, HEADS, SIZES = 8, 2, [3, 1, 9, 17, 4]
OFFSETS = torch.tensor([0, *SIZES]).cumsum(0)
BAG_OF = torch.repeat_interleave(torch.tensor(SIZES))
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def block():
    torch.manual_seed(0)
    return torch.from_numpy(np.random.default_rng(0).normal(size=(sum(SIZES), WIDTH))).float()


def padded(values):
    """(B, longest, h), and where it is real."""
    parts = values.split(SIZES)
    mask = torch.arange(max(SIZES)) < torch.tensor(SIZES).unsqueeze(1)
    return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True), mask


def copy_block(theirs: MultiheadAttentionBlock, ours: MAB) -> None:
    # Their initial biases and norms are trivial and would hide a mistake.
    for parameter in (theirs.attn.in_proj_bias, theirs.attn.out_proj.bias):
        torch.nn.init.normal_(parameter)
    ours.feed.load_state_dict(theirs.lin.state_dict())
    ours.mix.load_state_dict(theirs.attn.out_proj.state_dict())
    for norm, own in zip((theirs.layer_norm1, theirs.layer_norm2), ours.norms, strict=True):
        torch.nn.init.normal_(norm.weight)
        torch.nn.init.normal_(norm.bias)
        own.load_state_dict(norm.state_dict())
    parts = zip(
        (ours.query, ours.key, ours.value),
        theirs.attn.in_proj_weight.chunk(3),
        theirs.attn.in_proj_bias.chunk(3),
        strict=True,
    )
    for layer, weight, bias in parts:
        layer.load_state_dict({"weight": weight, "bias": bias})


def test_set_attention_block():
    values, theirs, ours = block(), SetAttentionBlock(WIDTH, HEADS), SAB(WIDTH, HEADS)
    copy_block(theirs.mab, ours.block)
    dense, mask = padded(values)
    torch.testing.assert_close(ours(values, OFFSETS), theirs(dense, mask)[mask], **CLOSE)


def test_induced_set_attention_block():
    values, theirs, ours = block(), InducedSetAttentionBlock(WIDTH, 3, HEADS), ISAB(WIDTH, 3, HEADS)
    copy_block(theirs.mab1, ours.summarise)
    copy_block(theirs.mab2, ours.attend)
    ours.inducing.data = theirs.ind.data[0]
    dense, mask = padded(values)
    torch.testing.assert_close(ours(values, OFFSETS), theirs(dense, mask)[mask], **CLOSE)


@pytest.mark.parametrize("seeds", [1, 3])
def test_pooling_by_multihead_attention(seeds):
    values, theirs, ours = block(), PoolingByMultiheadAttention(WIDTH, seeds, HEADS), PMA(WIDTH, seeds, HEADS)
    copy_block(theirs.mab, ours.block)
    ours.feed.load_state_dict(theirs.lin.state_dict())
    ours.seeds.data = theirs.seed.data[0]
    torch.testing.assert_close(ours(values, OFFSETS), theirs(*padded(values)), **CLOSE)


@pytest.mark.parametrize("kind", [Attention, GatedAttention])
def test_attention_pooling(kind):
    """The same scores as a gate of torch-geometric's aggregation."""
    values, ours = block(), kind(WIDTH, (6,), attention_width=5)
    pool = ours.pool

    def gate(h):
        hidden = torch.tanh(h @ pool.hidden.weight.T + pool.hidden.bias)
        if pool.gate is not None:
            hidden = hidden * torch.sigmoid(h @ pool.gate.weight.T + pool.gate.bias)
        return hidden @ pool.score.weight.T

    class Gate(torch.nn.Module):
        def forward(self, h):
            return gate(h)

    theirs = aggr.AttentionalAggregation(Gate())
    torch.testing.assert_close(ours(values, OFFSETS), theirs(ours.layers(values), BAG_OF), **CLOSE)


@pytest.mark.parametrize("kind", [Attention, GatedAttention])
def test_attention_pooling_of_torchmil(kind):
    torchmil = pytest.importorskip("torchmil.nn", reason="needs torchmil")
    values, ours = block(), kind(WIDTH, (6,), attention_width=5)
    theirs = torchmil.AttentionPool(6, 5, gated=kind.gated)
    theirs.fc1.module.load_state_dict(ours.pool.hidden.state_dict())
    theirs.fc2.load_state_dict(ours.pool.score.state_dict())
    if kind.gated:
        theirs.fc_gated.module.load_state_dict(ours.pool.gate.state_dict())
    torch.testing.assert_close(ours(values, OFFSETS), theirs(*padded(ours.layers(values))), **CLOSE)
