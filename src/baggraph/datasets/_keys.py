"""Random numbers that are the same on any machine and with any version of NumPy."""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.errors import ParameterError


def keys(random_state: int, purpose: str, shape: int | tuple[int, ...]) -> NDArray[Any]:
    """Uniform numbers in [0, 1) from the raw PCG64 stream, another one for every purpose.

    NumPy promises the raw stream, but not the methods of ``Generator``.

    >>> keys(0, "sizes", 2).round(6).tolist() == keys(0, "sizes", 2).round(6).tolist()
    True
    """
    seed = [random_state, zlib.crc32(purpose.encode())]
    raw = np.random.PCG64(np.random.SeedSequence(seed)).random_raw(math.prod(np.atleast_1d(shape)))
    return ((raw >> np.uint64(11)) * 2.0**-53).reshape(shape)


def check_option(
    stage: str, name: str, value: object, *, whole: bool = False, least: float = -math.inf, above: float = -math.inf
) -> None:
    """Raise unless an option of a made set is a finite number (or an integer) in its range.

    >>> check_option("digits-bags", "n_bags", 10.5, whole=True, least=2)
    Traceback (most recent call last):
        ...
    baggraph.errors.ParameterError: digits-bags: expected n_bags an integer of at least 2, got 10.5; change that option
    """
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    number = isinstance(value, kinds) and not isinstance(value, bool)
    if number and math.isfinite(value) and value >= least and value > above:  # type: ignore[arg-type, operator]
        return
    bound = f" of at least {least:g}" if least > -math.inf else f" above {above:g}" if above > -math.inf else ""
    expected = f"{name} {'an integer' if whole else 'a finite number'}{bound}"
    raise ParameterError(stage, expected=expected, got=repr(value), remedy="change that option")
