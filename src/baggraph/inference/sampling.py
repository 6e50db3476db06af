"""Draws from the posterior of the last layers: Monte-Carlo dropout at the fitted weights (Gal & Ghahramani 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call

from baggraph.inference._members import epoch_keys
from baggraph.nn.dropout import keyed
from baggraph.nn.gcn import Propagation
from baggraph.nn.losses import AbstractLoss
from baggraph.nn.network import Network

DRAW_SALT = 0x5EED  # draws must not repeat the masks of training, whose keys come from the same seeds

__all__ = ["Draws"]


@dataclass(frozen=True, eq=False)
class Draws:
    """Expected labels (M, S, B, t) of every draw, and the variance of the label around them, where the loss has one."""

    mean: Tensor
    variance: Tensor | None


def draw_keys(seeds: Sequence[int], n_draws: int) -> Tensor:
    """A key (S, M) for every draw of every member."""
    return epoch_keys([seed ^ DRAW_SALT for seed in seeds], n_draws)


def sample(
    network: Network,
    parameters: dict[str, Tensor],
    embedding: Tensor,
    paths: Propagation | None,
    keys: Tensor,
    loss: AbstractLoss,
) -> Draws:
    """Draws of all members, from embeddings (M, B, h) and keys (S, M).

    A draw drops the same columns for every bag: that is one sample ``W_s = diag(mask) W`` of the weights, as line 8 of
    Algorithm 1 says, so that neither the order of bags nor their company matters.
    """
    outputs = [head_outputs(network, parameters, embedding, paths, key).cpu() for key in keys]
    return described(torch.stack(outputs, dim=1), loss)


def head_outputs(
    network: Network, parameters: dict[str, Tensor], embedding: Tensor, paths: Propagation | None, key: Tensor | None
) -> Tensor:
    """Outputs (M, levels, B, C) of the heads alone; with keys (M,), of one draw of their weights."""
    head = {name.removeprefix("head."): value for name, value in parameters.items() if name.startswith("head.")}
    same_mask = torch.zeros(embedding.shape[1], dtype=torch.int64, device=embedding.device)

    def one(own: dict[str, Tensor], z: Tensor, own_key: Tensor | None) -> Tensor:
        if own_key is None:
            return functional_call(network.head, own, (z, paths))
        with keyed(own_key, [same_mask]):
            return functional_call(network.head, own, (z, paths))

    network.head.train(key is not None)
    with torch.no_grad():
        in_dims = (0, 0, None if key is None else 0)
        return torch.vmap(one, in_dims=in_dims, randomness="error")(head, embedding, key)


def described(outputs: Tensor, loss: AbstractLoss) -> Draws:
    """What outputs (..., levels, B, C) mean, averaged over the levels of supervision."""
    levels = loss.mean(outputs)
    mean, variance = levels.mean(-3), loss.variance(outputs)
    if variance is not None:
        variance = variance.mean(-3) + levels.var(-3, correction=0)
    return Draws(mean, variance)
