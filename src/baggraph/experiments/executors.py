"""Where tasks are run: one after the other here, or several at once in processes.

An executor is anything with ``run(work, tasks)``, which takes tasks from an iterator as it has room for them and gives
back pairs of a task and its result, in any order.  The iterator gives None where there is nothing to do just now, as
others are at work on what is left.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from baggraph.errors import ParameterError, closest

__all__ = ["Executor", "Processes", "Serial", "by_name"]

T = TypeVar("T")
R = TypeVar("R")
PATIENCE = 0.5  # seconds between looks at what others have in hand


class Executor(Protocol):
    """Runs tasks."""

    def run(self, work: Callable[[T], R], tasks: Iterator[T | None]) -> Iterator[tuple[T, R]]:
        """Pairs of a task and its result, as they end."""


@dataclass(frozen=True)
class Serial:
    """One task after the other, in this process.

    >>> list(Serial().run(abs, iter([-1, 2])))
    [(-1, 1), (2, 2)]
    """

    def run(self, work: Callable[[T], R], tasks: Iterator[T | None]) -> Iterator[tuple[T, R]]:
        """Pairs of a task and its result, in order."""
        for task in tasks:
            if task is None:
                time.sleep(PATIENCE)
            else:
                yield task, work(task)


@dataclass(frozen=True)
class Processes:
    """Several tasks at once, each in a process of its own that ends when this one does.

    Parameters
    ----------
    n_jobs
        How many; None for one a core.
    """

    n_jobs: int | None = None

    def run(self, work: Callable[[T], R], tasks: Iterator[T | None]) -> Iterator[tuple[T, R]]:
        """Pairs of a task and its result, as they end."""
        count = self.n_jobs or os.cpu_count() or 1
        context = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
        running: dict[Future[Any], T] = {}
        pool = ProcessPoolExecutor(count, mp_context=context, initializer=_die_with_parent)
        try:
            exhausted = False
            while running or not exhausted:
                while not exhausted and len(running) < count:
                    try:
                        task = next(tasks)
                    except StopIteration:
                        exhausted = True
                        break
                    if task is None:
                        break
                    running[pool.submit(work, task)] = task
                time.sleep(0.0 if running else PATIENCE)
                ended, _ = wait(running, timeout=PATIENCE, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield running.pop(future), future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _die_with_parent() -> None:
    """Leave no process behind when the one that started it is killed."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def by_name(engine: str, n_jobs: int | None = None) -> Executor:
    """An executor by name: ``serial`` or ``processes``."""
    makers: dict[str, Callable[[], Executor]] = {"serial": Serial, "processes": lambda: Processes(n_jobs)}
    if engine not in makers:
        remedy = closest(engine, makers)
        raise ParameterError("reproduce", expected="an engine", got=repr(engine), remedy=remedy)
    return makers[engine]()
