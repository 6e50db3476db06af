"""Random numbers that are the same on any machine and with any version of NumPy."""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


def keys(random_state: int, purpose: str, shape: int | tuple[int, ...]) -> NDArray[Any]:
    """Uniform numbers in [0, 1) from the raw PCG64 stream, another one for every purpose.

    NumPy promises the raw stream, but not the methods of ``Generator``.

    >>> keys(0, "sizes", 2).round(6).tolist() == keys(0, "sizes", 2).round(6).tolist()
    True
    """
    seed = [random_state, zlib.crc32(purpose.encode())]
    raw = np.random.PCG64(np.random.SeedSequence(seed)).random_raw(math.prod(np.atleast_1d(shape)))
    return ((raw >> np.uint64(11)) * 2.0**-53).reshape(shape)
