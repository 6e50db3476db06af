"""Batches of whole bags: which, in what order, and their instances, read while the batch before is computed."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from baggraph.data._instances import gather_rows, release
from baggraph.data.bags import Bags

Index = NDArray[np.int64]


def bits(*numbers: int) -> np.random.PCG64:
    """Random bits that follow from these numbers alone."""
    return np.random.PCG64(np.random.SeedSequence(numbers))


def packed(bags: Index, sizes: Index, most: int) -> list[Index]:
    """Bags in runs of at most ``most`` instances; a larger bag is a run of its own.

    >>> [run.tolist() for run in packed(np.arange(5), np.array([2, 1, 9, 2, 2]), 4)]
    [[0, 1], [2], [3, 4]]
    """
    ends = np.cumsum(sizes[bags])
    runs, first, before = [], 0, 0
    while first < len(bags):
        stop = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
        runs.append(bags[first:stop])
        first, before = stop, int(ends[stop - 1])
    return runs


@dataclass(frozen=True)
class Step:
    """Batches whose gradients make one step of the optimiser; ``position`` and ``first`` count in the epoch."""

    epoch: int
    position: int
    first: int
    batches: list[Index]
    ends_epoch: bool

    @property
    def bags(self) -> Index:
        """Bags of all batches."""
        return np.concatenate(self.batches)


@dataclass(frozen=True)
class Schedule:
    """In which batches ``bags`` are trained on: an order for every epoch, of seed and epoch alone."""

    bags: Index
    sizes: Index
    seed: int
    most: int
    accumulate: int

    def batches(self, epoch: int) -> list[Index]:
        """Batches of an epoch."""
        order = np.argsort(bits(self.seed, epoch).random_raw(len(self.bags)), kind="stable")
        return self.packed(self.bags[order])

    def packed(self, bags: Index) -> list[Index]:
        """These bags in batches, in their order."""
        return packed(bags, self.sizes, self.most)

    def steps(self, epoch: int) -> list[Step]:
        """Steps of an epoch; the last may have fewer batches."""
        batches = self.batches(epoch)
        firsts = range(0, len(batches), self.accumulate)
        return [
            Step(epoch, position, first, batches[first : first + self.accumulate], first == firsts[-1])
            for position, first in enumerate(firsts)
        ]

    def steps_from(self, epoch: int, position: int, epochs: int) -> Iterator[Step]:
        """Steps of this epoch from a position on, and of those after it."""
        for number in range(epoch, epochs):
            yield from self.steps(number)[position if number == epoch else 0 :]


class Loaded(NamedTuple):
    """A batch on the device: numbers of its bags (n,) and of its instances (N,), instances (N, d), offsets (n + 1,)."""

    bags: Tensor
    rows: Tensor
    instances: Tensor
    offsets: Tensor


class Reader:
    """Copies bags into two buffers in turn; pages of a memory map are handed back after every batch."""

    def __init__(self, bags: Bags, most: int, dtype: torch.dtype, device: torch.device) -> None:
        self.bags, self.device, self.on_gpu = bags, device, device.type == "cuda"
        shape = (max(int(bags.sizes.max()), min(most, bags.n_instances)), bags.n_features)
        self.buffers = [torch.empty(shape, dtype=dtype, pin_memory=self.on_gpu) for _ in range(2)]
        self.copied = [torch.cuda.Event() if self.on_gpu else None for _ in range(2)]

    def read(self, batches: Iterable[Index]) -> Generator[Loaded, None, None]:
        """One batch after the other; on a CPU, its instances are gone when the next but one is asked for."""
        ahead: Future[tuple[int, Index, Index, Index]] | None = None
        with ThreadPoolExecutor(1) as thread:
            for turn, bags in enumerate(batches):
                coming = thread.submit(self._fill, turn % 2, bags)
                if ahead is not None:
                    yield self._hand_over(*ahead.result())
                ahead = coming
            if ahead is not None:
                yield self._hand_over(*ahead.result())

    def _fill(self, side: int, bags: Index) -> tuple[int, Index, Index, Index]:
        copied, block, starts = self.copied[side], self.bags.instances, self.bags.offsets
        if copied is not None:
            copied.synchronize()  # the GPU may still be fetching what the buffer held before
        rows, offsets = gather_rows(starts, bags)
        target = self.buffers[side].numpy()
        for bag, first, stop in zip(bags, offsets[:-1], offsets[1:], strict=True):
            part = block[starts[bag] : starts[bag + 1]]
            target[first:stop] = part.toarray() if self.bags.is_sparse else part
        release(block)
        return side, bags, rows, offsets

    def _hand_over(self, side: int, bags: Index, rows: Index, offsets: Index) -> Loaded:
        instances = self.buffers[side][: len(rows)].to(self.device, non_blocking=self.on_gpu)
        copied = self.copied[side]
        if copied is not None:
            copied.record()
        small = (torch.from_numpy(np.ascontiguousarray(array)).to(self.device) for array in (bags, rows, offsets))
        numbers, instance_numbers, boundaries = small
        return Loaded(numbers, instance_numbers, instances, boundaries)


def told_apart(loaded: Loaded) -> Loaded:
    """With one more bag of two blank instances, where there are as many bags as instances.

    Dropout finds the names of its rows by their number, and would take one for the other.
    """
    if len(loaded.bags) != len(loaded.rows):
        return loaded
    none, count = loaded.bags.new_full((1,), -1), len(loaded.rows)
    blank = loaded.instances.new_zeros(2, loaded.instances.shape[1])
    return Loaded(
        torch.cat([loaded.bags, none]),
        torch.cat([loaded.rows, none, none]),
        torch.cat([loaded.instances, blank]),
        torch.cat([loaded.offsets, loaded.offsets.new_tensor([count + 2])]),
    )
