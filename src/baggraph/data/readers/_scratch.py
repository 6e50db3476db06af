"""Blocks of instances that may be larger than memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.data._columns import frozen
from baggraph.data._instances import release
from baggraph.errors import ParameterError


def default_memory_limit() -> int:
    """Half of the physical memory, in bytes: a larger block is kept on disk and memory-mapped."""
    if not hasattr(os, "sysconf"):
        return 4 << 30  # Windows tells no figure without another package
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def allocate(shape: tuple[int, int], dtype: Any, memory_limit: int | None) -> NDArray[Any]:
    """An empty block in memory, or on disk where it is larger than ``memory_limit`` bytes.

    The file is a temporary one that the system removes with the last reference to the block; write the
    bags with ``to_npz`` to keep them.
    """
    limit = default_memory_limit() if memory_limit is None else memory_limit
    if not isinstance(limit, int) or limit < 0:
        got, remedy = f"memory_limit={memory_limit!r}", "pass 2_000_000_000 for 2 GB"
        raise ParameterError("read", expected="a memory limit in bytes, 0 or more", got=got, remedy=remedy)
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    if size <= limit:
        return np.empty(shape, dtype)
    handle, name = tempfile.mkstemp(prefix="baggraph-", suffix=".block")
    os.close(handle)
    path = Path(name)
    block = np.memmap(path, dtype=dtype, mode="w+", shape=shape)
    path.unlink()  # the mapping keeps the data; nothing is left behind after a crash
    return block


def finish(block: NDArray[Any]) -> NDArray[Any]:
    """The filled block, read-only."""
    release(block)
    return frozen(block)
