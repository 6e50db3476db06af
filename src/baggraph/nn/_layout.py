"""What follows from offsets alone: computed once for every offsets tensor, so that a captured GPU graph never waits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from baggraph.errors import InvalidBagsError, ParameterError
from baggraph.nn._padding import Padding


@dataclass(frozen=True, eq=False)
class Layout:
    """Bags as rows of one block: boundaries, sizes, and the bag of every instance."""

    offsets: Tensor
    version: int
    sizes: Tensor
    bag_of: Tensor
    longest_first: Tensor
    n_bags: int
    n_instances: int
    longest: int

    @cached_property
    def countdown(self) -> Tensor:
        """Size of the bag minus the place in it (N, 1): largest for the first instance."""
        places = torch.arange(self.n_instances, device=self.sizes.device)
        return (self.offsets[1:].index_select(0, self.bag_of) - places).unsqueeze(1)

    @cached_property
    def padding(self) -> Padding:
        """Where instances go when bags are padded."""
        with torch.inference_mode(False):
            return Padding.of(self.offsets)


_known: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def layout_of(offsets: Tensor, values: Tensor | None = None) -> Layout:
    """The layout of these offsets, checked once, and whether ``values`` has a row for every instance."""
    found, version = _known.get(offsets), 0 if offsets.is_inference() else offsets._version
    if found is None or found.version != version:
        # What is made once for inference may be met again in training.
        with torch.inference_mode(False):
            found = _known[offsets] = _measure(offsets, version)
    if values is not None:
        _check_rows(values, found.n_instances, "instances", found)
    return found


def check_bag_values(bag_values: Tensor, layout: Layout) -> None:
    """One row a bag, on the same device."""
    _check_rows(bag_values, layout.n_bags, "bags", layout)


def _measure(offsets: Tensor, version: int) -> Layout:
    if torch._C._functorch.is_batchedtensor(offsets):
        raise ParameterError(
            "ragged",
            expected="one offsets tensor for all members",
            got="offsets under vmap",
            remedy="pass in_dims=None",
        )
    own = offsets.detach()
    if own.dtype != torch.int64 or own.ndim != 1 or len(own) < 2:
        got = f"{str(own.dtype).removeprefix('torch.')} of shape {tuple(own.shape)}"
        raise InvalidBagsError("ragged", expected="offsets (B + 1,) int64", got=got, remedy="pass Bags.offsets")
    sizes = own.diff()
    smallest, bag = (int(part) for part in sizes.min(0))
    if smallest < 1 or int(own[0]) != 0:
        got = f"size {smallest} for bag {bag}, and a first offset of {int(own[0])}"
        remedy = "start at 0 and leave empty bags out"
        raise InvalidBagsError("ragged", expected="offsets that rise from 0", got=got, remedy=remedy)
    return Layout(
        offsets=own,
        version=version,
        sizes=sizes,
        bag_of=torch.repeat_interleave(sizes),
        longest_first=torch.argsort(sizes, descending=True, stable=True),
        n_bags=len(sizes),
        n_instances=int(own[-1]),
        longest=int(sizes.max()),
    )


def _check_rows(values: Tensor, count: int, what: str, layout: Layout) -> None:
    if not values.is_floating_point():
        got = str(values.dtype).removeprefix("torch.")
        raise ParameterError("ragged", expected="floating-point values", got=got, remedy="convert them first")
    if values.ndim < 1 or values.shape[0] != count:
        expected, got = f"{count} rows, one for each of the {what} of the offsets", f"shape {tuple(values.shape)}"
        raise InvalidBagsError("ragged", expected=expected, got=got, remedy="pass the offsets of these bags")
    if values.device != layout.offsets.device:
        got = f"values on {values.device} and offsets on {layout.offsets.device}"
        raise ParameterError(
            "ragged", expected="one device", got=got, remedy="move the offsets once, beside the values"
        )
