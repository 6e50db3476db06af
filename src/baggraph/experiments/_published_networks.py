"""The networks of the published rental experiment, and their optimiser."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from baggraph.errors import ParameterError, closest

DROPOUT = 0.3
WIDTH = 64
HEADS = 4


class Adam:
    """Adam with decay of the weights as an L2 penalty; torch.optim loads compilers, which take seconds."""

    def __init__(self, weights: Sequence[Tensor], biases: Sequence[Tensor], lr: float, decay: float) -> None:
        self.values, self.lr, self.count = [*weights, *biases], lr, 0
        self.decays = [decay] * len(weights) + [0.0] * len(biases)
        self.first, self.second = ([torch.zeros_like(value) for value in self.values] for _ in range(2))

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        self.count += 1
        rate = self.lr / (1 - 0.9**self.count)
        for value, gradient, decay, m, v in zip(
            self.values, gradients, self.decays, self.first, self.second, strict=True
        ):
            full = gradient.add(value, alpha=decay)
            m.lerp_(full, 0.1)
            v.mul_(0.999).addcmul_(full, full, value=0.001)
            value.addcdiv_(m, (v / (1 - 0.999**self.count)).sqrt_().add_(1e-8), value=-rate)


class Rents(nn.Module):
    """Embedding, dropout where there is some, and one linear layer, averaged over neighbours."""

    def __init__(self, encoder: str, n_features: int) -> None:
        super().__init__()
        makers: dict[str, Callable[[int], nn.Module]] = {"deep-sets": _DeepSets, "set-transformer": _SetTransformer}
        if encoder not in makers:
            remedy = closest(encoder, makers)
            raise ParameterError("published rents", expected="an encoder", got=repr(encoder), remedy=remedy)
        self.embed = makers[encoder](n_features)
        self.last = nn.Linear(WIDTH, 1)
        self.share = DROPOUT if encoder == "deep-sets" else 0.0

    def drop(self, embedding: Tensor) -> Tensor:
        """Dropout that is never switched off."""
        return nn.functional.dropout(embedding, self.share, training=True)

    def read(self, embedding: Tensor, graph: Tensor | None) -> Tensor:
        mixed = embedding @ self.last.weight.T
        return ((mixed if graph is None else graph @ mixed) + self.last.bias).squeeze(1)


class _DeepSets(nn.Module):
    def __init__(self, n_features: int, width: int = 25) -> None:
        super().__init__()
        self.phi = _mlp(n_features, width, width, width)
        self.rho = _mlp(width, width, width, WIDTH, WIDTH)

    def forward(self, features: Tensor) -> Tensor:
        return self.rho(self.phi(features).sum(dim=1))


class _SetTransformer(nn.Module):
    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.attend, self.pool = _Attention(n_features), _Attention(WIDTH)
        self.seed = nn.Parameter(nn.init.xavier_uniform_(torch.empty(1, WIDTH)))

    def forward(self, features: Tensor) -> Tensor:
        found = self.attend(features, features)
        return self.pool(self.seed.expand(len(found), 1, WIDTH), found).squeeze(1)


class _Attention(nn.Module):
    """Attention block of the published Set Transformer: the queries are added before the heads are joined."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(n_features, WIDTH) for _ in range(3))
        self.feed = nn.Linear(WIDTH, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        def heads(values: Tensor) -> Tensor:
            return values.unflatten(2, (HEADS, -1)).transpose(1, 2)

        query, key, value = heads(self.query(x)), heads(self.key(y)), heads(self.value(y))
        attention = (query @ key.transpose(2, 3) / math.sqrt(WIDTH)).softmax(dim=3)
        joined = self.norms[0]((query + attention @ value).transpose(1, 2).flatten(2))
        return self.norms[1](joined + self.feed(joined).relu())


def _mlp(*widths: int) -> nn.Sequential:
    """Linear layers with ELUs between them."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ELU()]
    return nn.Sequential(*layers[:-1])
