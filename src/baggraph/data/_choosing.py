"""Which bags are meant: by position, by id, or by a mask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.data._columns import as_array
from baggraph.errors import InvalidBagsError, name_some


def positions(which: Any, count: int, place: Mapping[str, int]) -> NDArray[np.int64]:
    """Positions from 0 of the bags that are asked for, at least one and each once; ``place`` has those of the ids.

    >>> positions([-1, 0], 3, {}).tolist(), positions(["b"], 2, {"a": 0, "b": 1}).tolist()
    ([2, 0], [1])
    """
    index = _resolve(as_array(which, "positions"), which, count, place)
    if not len(index):
        raise _wrong("at least one bag to take", "none", "check the mask or the list of bags")
    if len(np.unique(index)) < len(index):
        raise _wrong("every bag at most once", "repeated positions", "use Bags.concat with new ids to repeat bags")
    return index


def _resolve(array: NDArray[Any], which: Any, count: int, place: Mapping[str, int]) -> NDArray[np.int64]:
    if array.ndim == 1 and not array.size:
        return np.zeros(0, np.int64)
    if array.dtype.kind in "UO" and array.ndim == 1:
        unknown = [name for name in array.tolist() if name not in place]
        if unknown:
            raise _wrong("ids of bags", name_some(unknown), "look at bags.ids")
        return np.array([place[name] for name in array.tolist()], dtype=np.int64)
    if array.dtype.kind == "b" and array.shape == (count,):
        return np.flatnonzero(array)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        got = f"{array.dtype} of shape {array.shape}" if array.ndim else f"a {type(which).__name__}"
        raise _wrong(f"positions, ids or a mask of {count} booleans", got, "pass one flat sequence")
    outside = array[(array < -count) | (array >= count)]
    if len(outside):
        raise IndexError(f"bags: expected positions below {count}, got {outside[0]}; count from 0")
    return array.astype(np.int64) % count


def _wrong(expected: str, got: str, remedy: str) -> InvalidBagsError:
    return InvalidBagsError("bags", expected=expected, got=got, remedy=remedy)
