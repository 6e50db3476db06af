"""Encoders: from the instances of bags to one embedding a bag.

Every encoder is a plain module for one member: ``forward(instances (N, d), offsets (B + 1,)) -> (B, width)``.  Its
``level_widths``, which sum to ``width``, say where the levels of deep supervision begin.  Any such module will do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from baggraph.errors import ParameterError, closest
from baggraph.nn.encoders.attention import Attention, GatedAttention
from baggraph.nn.encoders.deep_sets import DeepSets
from baggraph.nn.encoders.mi_net import MiNet
from baggraph.nn.encoders.res_pool import MINetResidual, ResPool
from baggraph.nn.encoders.rff_pool import MINet, MINetDeepSupervision, RffPool
from baggraph.nn.encoders.set_transformer import ISAB, MAB, PMA, SAB, SetTransformer

__all__ = [
    "ISAB",
    "MAB",
    "PMA",
    "SAB",
    "Attention",
    "DeepSets",
    "GatedAttention",
    "MINet",
    "MINetDeepSupervision",
    "MINetResidual",
    "MiNet",
    "ResPool",
    "RffPool",
    "SetTransformer",
    "encoder",
]

ENCODERS: dict[str, Callable[..., nn.Module]] = {
    "attention": Attention,
    "deep-sets": DeepSets,
    "gated-attention": GatedAttention,
    "mi-net": MiNet,
    "mi-net-bag": MINet,
    "mi-net-deep-supervision": MINetDeepSupervision,
    "mi-net-residual": MINetResidual,
    "res-pool": ResPool,
    "rff-pool": RffPool,
    "set-transformer": SetTransformer,
}


def encoder(name: str, n_features: int, **settings: Any) -> nn.Module:
    """A new encoder by name, for instances of ``n_features`` features.

    >>> encoder("res-pool", 5, pooling="max").width
    128
    >>> encoder("rff-pol", 5)
    Traceback (most recent call last):
        ...
    baggraph.errors.ParameterError: encoder: expected the name of an encoder, got 'rff-pol'; did you mean 'rff-pool'?
    """
    if name not in ENCODERS:
        raise ParameterError(
            "encoder", expected="the name of an encoder", got=repr(name), remedy=closest(name, ENCODERS)
        )
    return ENCODERS[name](n_features, **settings)
