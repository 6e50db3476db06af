"""What both regimes of training are given, checked and as tensors: settings, weights of bags, targets, rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from baggraph.data.bags import Bags
from baggraph.errors import InvalidBagsError, ParameterError, closest
from baggraph.inference._program import PRECISIONS, Settings
from baggraph.nn.losses import AbstractLoss

CHOICES = {"decay": ("decoupled", "l2"), "decay_on": ("biases", "weights"), "precision": tuple(PRECISIONS)}


def check_settings(settings: Settings, seeds: Sequence[int]) -> None:
    """Raise at the first number or name that cannot be."""
    for name, choices in CHOICES.items():
        value = getattr(settings, name)
        if value not in choices:
            raise refused(f"{name} to be one of {choices}", repr(value), closest(str(value), choices))
    for name, value, allowed, fine in (
        ("epochs", settings.epochs, "a whole number from 1", settings.epochs >= 1),
        ("patience", settings.patience, "None or a whole number from 1", (settings.patience or 0) >= 1),
        ("clip", settings.clip, "None or positive", (settings.clip or 0) > 0),
    ):
        if value is not None and not fine:
            raise refused(f"{name} {allowed}", repr(value), "change it")
    if not len(seeds):
        raise refused("a seed a member", "none", "pass at least one")


def member_weights(masks: Any, count: int, bags: Bags) -> Tensor:
    """Weights (M, B) that sum to one a member."""
    weights = torch.as_tensor(np.asarray(masks, dtype=np.float64))
    if weights.shape != (count, len(bags)):
        got = f"shape {tuple(weights.shape)}"
        raise refused(f"masks of shape (seeds, bags) ({count}, {len(bags)})", got, "pass a row a member")
    if not bool(((weights >= 0) & torch.isfinite(weights)).all()):
        raise refused("masks that are finite and not negative", f"{float(weights.min())}", "use 0 to hide a bag")
    empty = weights.sum(1) == 0
    if bool(empty.any()):
        got = f"none for member {int(empty.int().argmax())}"
        raise refused("a labelled bag for every member", got, "set some of its mask to 1")
    return weights / weights.sum(1, keepdim=True)


def member_targets(targets: Any, loss: AbstractLoss, weights: Tensor, bags: Bags) -> Tensor:
    """Targets (B, n_targets) or (M, B, n_targets), zero where no member looks."""
    values = torch.as_tensor(np.asarray(targets, dtype=np.float64))
    if values.ndim == 1:
        values = _one_hot(values, loss.n_targets) if loss.takes_classes else values.unsqueeze(1)
    shapes = [(len(bags), loss.n_targets), (len(weights), len(bags), loss.n_targets)]
    if tuple(values.shape) not in shapes:
        got = f"shape {tuple(values.shape)}"
        raise InvalidBagsError("stack", expected=f"targets of shape {shapes[0]}", got=got, remedy="pass a row a bag")
    seen = weights > 0 if values.ndim == 3 else (weights > 0).any(0)
    bad = ~torch.isfinite(values).all(-1) & seen
    if bool(bad.any()):
        bag = bags.ids[int(bad.reshape(-1, len(bags)).any(0).int().argmax())]
        got = f"NaN or infinity (bag {str(bag)!r})"
        raise InvalidBagsError("stack", expected="finite targets of labelled bags", got=got, remedy="hide it by masks")
    return torch.where(seen.unsqueeze(-1), values, 0.0)


def _one_hot(codes: Tensor, n_classes: int) -> Tensor:
    classes = torch.arange(n_classes)
    hot = (codes.unsqueeze(1) == classes).to(codes.dtype)
    return torch.where(hot.any(1, keepdim=True), hot, torch.nan)


def one_each(value: Any, count: int, name: str) -> Tensor:
    """A number (count,) a member, of one for all or one each."""
    numbers = np.broadcast_to(np.asarray(value, dtype=np.float64), count) if np.ndim(value) == 0 else np.asarray(value)
    if len(numbers) != count or not np.isfinite(numbers).all() or (numbers < 0).any():
        raise refused(f"{name} from 0, one for all or {count}", repr(value), "change it")
    return torch.as_tensor(np.array(numbers, dtype=np.float64))


def refused(expected: str, got: str, remedy: str) -> ParameterError:
    """The error of a parameter."""
    return ParameterError("stack", expected=expected, got=got, remedy=remedy)
