"""Padding for the operators that need it: bags of similar sizes side by side, in few blocks and little waste."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# Lengths grow by quarters of an octave, so that a bag is padded to less than 5/4 of its size.
STEPS_AN_OCTAVE = 4


def padded_length(size: int) -> int:
    """The length that a bag is padded to: less than 5/4 of its size.

    >>> [padded_length(size) for size in (1, 7, 9, 17, 1044)]
    [1, 7, 10, 20, 1280]
    """
    step = max(1, (1 << (size - 1).bit_length()) // (2 * STEPS_AN_OCTAVE))
    return -(-size // step) * step


@dataclass(frozen=True, eq=False)
class Padding:
    """Bags in the order of their sizes, those of one padded length as one block.

    Attributes
    ----------
    order, back : (B,)
        The bags as blocks hold them, and the place of every bag there.
    take, place : (P,) and (N,)
        The instance in every padded row (0 where there is none), and the padded row of every instance.
    pads : (P - N,)
        The padded rows that hold no instance.
    bias : (P,) float32
        0, and minus infinity in these rows: what attention scores of keys are raised by.
    blocks : tuple of (bags, length)
        The blocks, one after the other; P = sum of bags * length < 5/4 N.
    """

    order: Tensor
    back: Tensor
    take: Tensor
    place: Tensor
    pads: Tensor
    bias: Tensor
    blocks: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, offsets: Tensor) -> Padding:
        """For these bags."""
        own = offsets.cpu()
        sizes, order = torch.sort(own.diff(), stable=True)
        lengths = torch.tensor([padded_length(size) for size in sizes.tolist()])
        kinds, counts = torch.unique_consecutive(lengths, return_counts=True)
        bag = torch.repeat_interleave(lengths)
        inside = torch.arange(len(bag)) - (torch.cumsum(lengths, 0) - lengths)[bag]
        real = inside < sizes[bag]
        take = torch.where(real, own[order][bag] + inside, 0)
        place = torch.empty(int(own[-1]), dtype=torch.int64)
        place[take[real]] = torch.nonzero(real).flatten()
        pads = torch.nonzero(~real).flatten()
        bias = torch.zeros(len(bag)).masked_fill_(~real, -torch.inf)
        return cls(
            order=order.to(offsets.device),
            back=torch.argsort(order).to(offsets.device),
            take=take.to(offsets.device),
            place=place.to(offsets.device),
            pads=pads.to(offsets.device),
            bias=bias.to(offsets.device),
            blocks=tuple(zip(counts.tolist(), kinds.tolist(), strict=True)),
        )
