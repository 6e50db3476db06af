"""Processes that train one member together.  A process without a group is alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import torch.distributed as dist
from torch import Tensor

from baggraph.errors import BagError, ParameterError

T = TypeVar("T")


class Peers:
    """All processes of the default group."""

    def __init__(self) -> None:
        started = dist.is_available() and dist.is_initialized()
        if not started and int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise ParameterError(
                "minibatch",
                expected="a process group",
                got=f"{os.environ['WORLD_SIZE']} processes without one",
                remedy="call torch.distributed.init_process_group() first",
            )
        self.rank, self.size = (dist.get_rank(), dist.get_world_size()) if started else (0, 1)

    def owner(self, number: int) -> int:
        """Who computes a batch."""
        return number % self.size

    def own(self, items: list[T]) -> list[tuple[int, T]]:
        """My share of a list, with the places in it."""
        return list(enumerate(items))[self.rank :: self.size]

    def add(self, values: Tensor) -> None:
        """Replace values by their sum over all processes."""
        if self.size > 1:
            dist.all_reduce(values)

    def hand_round(self, values: Tensor, owner: int) -> None:
        """Replace values by those of one process."""
        if self.size > 1:
            dist.broadcast(values, owner)

    def ask_first(self, work: Callable[[], T]) -> T:
        """What ``work`` gives in process 0; where it fails there, all raise its error."""
        answer: list[Any] = [None]
        if self.rank == 0:
            try:
                answer = [work()]
            except BagError as error:
                answer = [error]
        if self.size > 1:
            dist.broadcast_object_list(answer)
        if isinstance(answer[0], BagError):
            raise answer[0]
        return answer[0]

    def refuse_disagreement(self, facts: dict[str, Any]) -> None:
        """Raise in all processes where one of the arguments is not the same in all."""
        if self.size == 1:
            return
        theirs: list[Any] = [None] * self.size
        dist.all_gather_object(theirs, facts)
        for name, value in theirs[0].items():
            other = next((p for p in range(self.size) if theirs[p][name] != value), None)
            if other is not None:
                raise ParameterError(
                    "minibatch",
                    expected=f"the same {name} in all processes",
                    got=f"{value!r} in process 0 and {theirs[other][name]!r} in process {other}",
                    remedy="start all with the same data and arguments",
                )
