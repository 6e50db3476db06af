"""What processes tell each other: errors, rows of tables, sums.  A process without a group is a team of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import torch.distributed as dist
from torch import Tensor

from baggraph.errors import BagError, ParameterError

T = TypeVar("T")


class Team:
    """All processes of the default group.  ``sent`` counts the bytes that left this process in tables and sums."""

    def __init__(self) -> None:
        alone = not dist.is_initialized()
        self.rank, self.size = (0, 1) if alone else (dist.get_rank(), dist.get_world_size())
        self.sent = 0

    def together(self, work: Callable[[], T]) -> T:
        """What ``work`` gives in this process; where it fails in one, all raise the error of the first."""
        result, failure = None, None
        try:
            result = work()
        except BagError as error:
            failure = error
        for other in self.share(failure):
            if other is not None:
                raise other
        return cast(T, result)

    def refuse_disagreement(self, named: dict[str, Any]) -> None:
        """Raise in all processes where one of these values is not the same in all."""
        theirs = self.share(named)
        for name, first in theirs[0].items():
            other = next((p for p in range(self.size) if theirs[p][name] != first), None)
            if other is not None:
                raise ParameterError(
                    "distributed graph",
                    expected=f"the same {name} in all processes",
                    got=f"{first!r} in process 0 and {theirs[other][name]!r} in process {other}",
                    remedy="start all with the same file and arguments",
                )

    def share(self, value: T) -> list[T]:
        """The values of all processes."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        with _answered():
            dist.all_gather_object(values, value)
        return values

    def exchange(self, table: Tensor, send: list[int], receive: list[int]) -> Tensor:
        """The first ``send[0]`` rows go to process 0, the next to process 1, ...; theirs come in the same order."""
        if self.size == 1:
            return table
        received = table.new_empty((sum(receive), *table.shape[1:]))
        with _answered():
            dist.all_to_all_single(received, table.contiguous(), receive, send)
        leaving = len(table) - send[self.rank]
        self.sent += leaving * table[:1].nbytes
        return received

    def gather(self, own: Tensor, sizes: list[int]) -> Tensor:
        """The rows of all processes, of which each has ``sizes``, in the order of the processes."""
        return self.exchange(own.repeat(self.size, 1), [len(own)] * self.size, sizes)

    def total(self, values: Tensor) -> Tensor:
        """The sum over all processes, the same bits in all."""
        if self.size == 1:
            return values
        values = values.clone()
        with _answered():
            dist.all_reduce(values)
        self.sent += values.nbytes
        return values


@contextmanager
def _answered() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # gloo: a peer is gone, or silent for longer than the timeout of the group
        raise BagError(
            "distributed graph",
            expected="an answer from all processes",
            got=str(error).split("\n", 1)[0],
            remedy="look for the process that failed first, or allow a longer timeout",
        ) from error
