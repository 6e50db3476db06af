"""What a folder of results has already, and who is at work on what."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from pathlib import Path

import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from baggraph.data._fingerprint import digest
from baggraph.data.readers._atomic import replacing
from baggraph.experiments._tasks import Done, Key, Task

__all__ = ["Ledger"]

COLUMNS = ["method", "dataset", "repeat", "recipe_sha256"]


class Ledger:
    """Rows of one recipe in a folder that others may write to as well.

    A task is written as one file, whole or not at all.  Whoever works on it holds a lock that the system takes back
    when the process ends, however it ends.

    Parameters
    ----------
    folder
        Of the recipe's rows.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: set[str] = set()
        self._keys: set[Key] = set()
        self._locks: dict[Task, list[FileLock]] = {}
        (folder / ".locks").mkdir(parents=True, exist_ok=True)

    def has(self, keys: AbstractSet[Key]) -> bool:
        """Whether all rows of a task are there."""
        return keys <= self._keys or keys <= self._read()

    def _read(self) -> set[Key]:
        for path in sorted(self.folder.glob("*.parquet")):
            if path.name not in self._seen and not path.name.startswith("."):
                rows = pq.read_table(path, columns=COLUMNS).to_pydict()
                self._keys |= set(zip(*(rows[name] for name in COLUMNS), strict=True))
                self._seen.add(path.name)
        return self._keys

    def claim(self, task: Task) -> bool:
        """Take a task; False where another runner has a repeat of it."""
        taken: list[FileLock] = []
        for repeat in task.repeats:
            name = digest([task.recipe, task.tier, task.dataset, task.methods, repeat])[:16]
            lock = FileLock(self.folder / ".locks" / f"{name}.lock")
            try:
                lock.acquire(blocking=False)
            except Timeout:
                _give_back(taken)
                return False
            taken.append(lock)
        self._locks[task] = taken
        return True

    def release(self, task: Task) -> None:
        """Give a task back."""
        _give_back(self._locks.pop(task))

    def enter(self, task: Task, done: Done) -> None:
        """Write what became of a task, predictions first, and give it back."""
        if done.predictions is not None:
            home = self.folder / "predictions"
            home.mkdir(exist_ok=True)
            for (dataset, method), part in done.predictions.groupby(["dataset", "method"], sort=False):
                name = f"{dataset}--{method}".replace("/", "_").replace(" ", "_")
                with replacing(home / f"{name}.parquet") as draft:
                    part.to_parquet(draft, index=False)
        done.rows.append(self.folder)
        self.release(task)


def _give_back(locks: list[FileLock]) -> None:
    for lock in locks:
        lock.release()
