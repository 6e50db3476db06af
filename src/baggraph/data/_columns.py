"""Ids, labels and side information in one canonical form each, or an error that names the bag."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.errors import InvalidBagsError, name_some

Column = NDArray[Any]
EXACT = 2**53  # float64 holds every integer up to here


def frozen(array: Column) -> Column:
    """Return a view of ``array`` that cannot be written through.

    >>> frozen(np.zeros(2)).flags.writeable
    False
    """
    view = array.view()
    view.setflags(write=False)
    return view


def canonical_names(names: Any, what: str, count: int, per: str) -> Column:
    """Names as an object array of strings; integers become their decimal text.

    >>> canonical_names([3, 4], "bag ids", 2, "bag").tolist()
    ['3', '4']
    """
    # Straight from a list to objects: numpy's own text type drops trailing NULs and turns 1 into "1".
    values = names.tolist() if hasattr(names, "tolist") else list(names)
    if len(values) != count or np.ndim(names) != 1:
        raise InvalidBagsError(
            "bags",
            expected=f"one of {what} a {per} ({count})",
            got=f"shape {np.shape(names)}",
            remedy=f"pass a flat sequence of {count} strings or integers",
        )
    return frozen(_names(values, what, per))


def _names(values: list[Any], what: str, per: str) -> Column:
    result = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        if isinstance(value, bytes):
            value = value.decode("utf-8", errors="replace")
        if isinstance(value, bool) or not isinstance(value, str | int | np.integer) or value == "":
            shown = "an empty string" if isinstance(value, str) else repr(value)
            raise InvalidBagsError(
                "bags",
                expected=f"{what} that are strings or integers",
                got=f"{shown} at {per} {position}",
                remedy="convert them with str() or fill in the missing ones",
            )
        result[position] = str(value)
    _refuse_broken_text(result, what)
    return result


def _refuse_broken_text(values: Any, what: str) -> None:
    """Half a surrogate pair cannot be written to any file, so it may not come in."""
    try:
        "".join(v for v in values if v is not None).encode()
    except UnicodeEncodeError as error:
        raise InvalidBagsError(
            "bags", expected=f"{what} in valid Unicode", got=repr(error.object[error.start]), remedy="decode them anew"
        ) from error


def canonical_ids(ids: Any, count: int) -> Column:
    """Bag ids: strings, one a bag, none twice.

    >>> canonical_ids(None, 2).tolist()
    ['0', '1']
    """
    if ids is None:
        return frozen(np.array([str(i) for i in range(count)], dtype=object))
    names = canonical_names(ids, "bag ids", count, "bag")
    seen: set[str] = set()
    twice = [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    if twice:
        raise InvalidBagsError(
            "bags",
            expected="unique bag ids",
            got=f"{name_some(dict.fromkeys(twice))} more than once",
            remedy="rename or merge these bags",
        )
    return names


def is_missing(value: object) -> bool:
    """True for None, NaN, pandas' NA and NaT.

    >>> [is_missing(v) for v in (None, float("nan"), 0, "")]
    [True, True, False, False]
    """
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def canonical_column(
    values: Any, what: str, count: int, name_of: Callable[[int], str], *, finite: bool = False
) -> Column:
    """One value (or one row of numbers) a bag or instance, in one of five forms.

    ===================  =========================================
    passed               kept as
    ===================  =========================================
    booleans             bool; float64 with NaN if some are missing
    integers             int64; float64 with NaN if some are missing
    real numbers         float64, missing = NaN
    text                 object array of str, missing = None
    2-D numbers          float64, missing = NaN
    ===================  =========================================

    >>> canonical_column(["a", None], "label", 2, str).tolist()
    ['a', None]
    >>> canonical_column([1, None], "label", 2, str).tolist()
    [1.0, nan]
    """
    array = values if isinstance(values, np.ndarray) else np.asarray(_materialise(values))
    if array.ndim not in (1, 2) or array.shape[0] != count or (array.ndim == 2 and array.shape[1] == 0):
        raise InvalidBagsError(
            "bags",
            expected=f"{count} values of {what}",
            got=f"shape {array.shape}",
            remedy=f"pass one {what} each, in the order of the bags",
        )
    if array.dtype.kind in "USO":
        array = _from_objects(array, what, name_of)
    array = _from_numbers(array, what, name_of)
    if finite and array.dtype.kind == "f" and np.isinf(array).any():
        first = int(np.argmax(np.isinf(array).reshape(count, -1).any(axis=1)))
        raise _bad_value(what, "a finite number", "an infinite one", name_of(first))
    return frozen(array)


def _materialise(values: Any) -> Any:
    """Keep mixed Python lists as objects, so that numpy does not turn [1, 'a'] into text."""
    if hasattr(values, "to_numpy"):
        return values.to_numpy()
    values = list(values)
    scalar = all(isinstance(v, str | bytes) or not isinstance(v, Sequence | np.ndarray) for v in values)
    numbers = all(isinstance(v, bool | int | float | np.number | np.bool_) for v in values)
    return np.array(values, dtype=object) if scalar and not numbers else values


def _bad_value(what: str, expected: str, got: str, where: str) -> InvalidBagsError:
    return InvalidBagsError(
        "bags",
        expected=f"{expected} as {what}",
        got=f"{got} ({where})",
        remedy="correct it, or mark it as missing with NaN or None",
    )


def _from_numbers(array: Column, what: str, name_of: Callable[[int], str]) -> Column:
    kind = array.dtype.kind
    if kind == "O" or (kind == "b" and array.ndim == 1):
        return array
    if array.ndim == 2 and kind in "biuf":
        return array.astype(np.float64)
    if kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise _bad_value(what, "an integer below 2**63", "a larger one", name_of(int(array.argmax())))
    if kind in "iu":
        return array.astype(np.int64)
    if kind == "f":
        return array.astype(np.float64)
    raise _bad_value(what, "numbers, booleans or text", f"values of type {array.dtype}", name_of(0))


def _from_objects(array: Column, what: str, name_of: Callable[[int], str]) -> Column:
    if array.ndim == 2:
        return _matrix_from_objects(array, what, name_of)
    values = array.tolist()
    missing = np.fromiter((is_missing(v) for v in values), dtype=bool, count=len(values))
    present = [v for v in values if not is_missing(v)]
    if all(isinstance(v, str) for v in present):  # also where all are missing: text or number, nobody knows
        text = np.array([None if m else str(v) for v, m in zip(values, missing, strict=True)], dtype=object)
        _refuse_broken_text(text, what)
        return text
    for position, value in enumerate(values):
        if not missing[position] and not isinstance(value, bool | int | float | np.number | np.bool_):
            kind = "text" if isinstance(value, str) else f"a {type(value).__name__}"
            raise _bad_value(what, "values of one kind", f"{kind} among numbers: {value!r}", name_of(position))
    if not missing.any():
        return np.array(present)
    for position, value in enumerate(values):
        if not missing[position] and isinstance(value, int) and abs(value) > EXACT:
            raise _bad_value(what, "an integer up to 2**53 where others are missing", repr(value), name_of(position))
    return np.array([np.nan if m else float(v) for v, m in zip(values, missing, strict=True)])


def _matrix_from_objects(array: Column, what: str, name_of: Callable[[int], str]) -> Column:
    result = np.empty(array.shape, dtype=np.float64)
    for position, row in enumerate(array.tolist()):
        for column, value in enumerate(row):
            if not is_missing(value) and (isinstance(value, str) or not np.isscalar(value)):
                raise _bad_value(what, "numbers in every column", repr(value), f"{name_of(position)}, column {column}")
            result[position, column] = np.nan if is_missing(value) else value
    return result


def missing_mask(column: Column) -> NDArray[np.bool_]:
    """Which entries are missing; a row of several targets is missing where any of them is.

    >>> missing_mask(np.array([0.0, np.nan])).tolist()
    [False, True]
    """
    if column.dtype.kind == "O":
        return np.fromiter((v is None for v in column), dtype=bool, count=len(column))
    if column.dtype.kind != "f":
        return np.zeros(len(column), dtype=bool)
    return np.asarray(np.isnan(column).reshape(len(column), -1).any(axis=1))


def same_column(left: Column | None, right: Column | None) -> bool:
    """Equal in dtype, shape and value, with missing equal to missing.

    >>> same_column(np.array([np.nan]), np.array([np.nan]))
    True
    """
    if left is None or right is None:
        return left is right
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    return bool(np.array_equal(left, right, equal_nan=left.dtype.kind == "f"))
