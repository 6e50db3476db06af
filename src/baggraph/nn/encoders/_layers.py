"""Pieces that encoders share: row-wise layers, activations by name, checks of widths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

from torch import nn

from baggraph.errors import ParameterError, closest

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "relu": partial(nn.ReLU, inplace=True),  # the linear layer before it needs only its input
    "tanh": nn.Tanh,
}


def activation_layer(name: str) -> nn.Module:
    """A new layer of this name."""
    if name not in ACTIVATIONS:
        raise ParameterError("encoder", expected="an activation", got=repr(name), remedy=closest(name, ACTIVATIONS))
    return ACTIVATIONS[name]()


def checked_widths(what: str, *widths: int) -> tuple[int, ...]:
    """Widths of layers: positive, and at least one."""
    if not widths or min(widths) < 1:
        got = str(list(widths))
        raise ParameterError("encoder", expected=f"positive numbers for {what}", got=got, remedy="pass one a layer")
    return widths


def row_wise(n_features: int, hidden: Sequence[int], activation: str, *, last: bool = True) -> nn.ModuleList:
    """rFF: layers applied to every row alone, each linear and an activation; the last linear only, where asked."""
    checked_widths("hidden layers", *hidden)
    widths = checked_widths("n_features", n_features, *hidden)
    layers = nn.ModuleList(nn.Sequential(nn.Linear(*pair), activation_layer(activation)) for pair in pairwise(widths))
    if not last:
        layers[-1] = nn.Linear(widths[-2], widths[-1])
    return layers
