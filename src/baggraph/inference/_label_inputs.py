"""Labels as inputs of the head: what is shown while training, and what when bags are answered for.

Shi et al. (2021, Masked label prediction): labels of some bags are inputs, those of others are predicted from them.  In
every step half of the labelled bags are shown, by a coin of the member's key, and only the others count in the loss:
no bag sees its own label in its own term.  Afterwards all labels are shown, but to bags that have one, for which the
head is asked five times, each time without the labels of a fifth of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from baggraph.inference.sampling import Draws
from baggraph.nn.dropout import coins

__all__ = ["label_inputs", "masked", "out_of_fold"]

FOLDS = 5
SALT = 0x1ABE1  # the coins must not repeat the masks of dropout, which come from the same keys
LEAST = 1e-12


def label_inputs(targets: Tensor, weights: Tensor) -> Tensor:
    """Targets (B, t) or (M, B, t) where weights (M, B) are not zero, and a one that says so: (M, B, t + 1).

    >>> label_inputs(torch.tensor([[2.0], [3.0]]), torch.tensor([[0.5, 0.0]])).tolist()
    [[[2.0, 1.0], [0.0, 0.0]]]
    """
    seen = (weights > 0).unsqueeze(-1)
    values = torch.where(seen, targets, 0.0)
    return torch.cat([values, seen.to(values.dtype)], dim=-1)


def masked(labels: Tensor, weights: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs (M, B, t + 1) of which half of the bags are shown, and weights (M, 1, B) of the others, for keys (M,).

    >>> one, key = torch.ones(1, 6, 2), torch.tensor([5], dtype=torch.int32)
    >>> shown, counted = masked(one, torch.full((1, 1, 6), 1 / 6), key)
    >>> bool(((shown[0, :, 1] > 0) != (counted[0, 0] > 0)).all()), round(float(counted.sum()), 5)
    (True, 1.0)
    """
    shown = coins(key ^ SALT, labels.shape[1], labels.dtype)
    counted = weights * (1 - shown.to(weights.dtype)).unsqueeze(1)
    total = counted.sum(-1, keepdim=True).clamp_min(LEAST)
    return labels * shown.unsqueeze(-1), counted / total


def out_of_fold(answer: Callable[[Tensor], Draws], embedding: Tensor, labels: Tensor, seeds: Sequence[int]) -> Draws:
    """Draws (M, S, B, t) of all bags from embeddings (M, B, h) and labels, none of them from its own label."""
    found = answer(torch.cat([embedding, labels], dim=-1))
    part = torch.stack([_parts(own[:, -1] > 0, seed) for own, seed in zip(labels.cpu(), seeds, strict=True)])
    for number in range(FOLDS):
        asked = part == number
        if not bool(asked.any()):
            continue
        shown = labels * (~asked).to(labels).unsqueeze(-1)
        other, where = answer(torch.cat([embedding, shown], dim=-1)), asked[:, None, :, None]
        mean = torch.where(where, other.mean, found.mean)
        both = other.variance is None or found.variance is None
        found = Draws(mean, None if both else torch.where(where, other.variance, found.variance))  # type: ignore[arg-type]
    return found


def _parts(seen: Tensor, seed: int) -> Tensor:
    """A fold (B,) for every bag that is seen, of equal sizes; -1 for others."""
    places = np.flatnonzero(seen.numpy())
    order = np.argsort(np.random.PCG64(np.random.SeedSequence([seed, SALT])).random_raw(len(places)), kind="stable")
    part = np.full(len(seen), -1)
    part[places[order]] = np.arange(len(places)) % FOLDS
    return torch.from_numpy(part)
