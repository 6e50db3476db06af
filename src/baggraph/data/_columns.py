"""Ids, labels and side information in one canonical form each, or an error that names the bag."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.errors import InvalidBagsError, name_some

Column = NDArray[Any]
EXACT = 2**53  # float64 holds every integer up to here
LARGEST = 2**63 - 1
NUMBERS = (bool, int, float, np.integer, np.floating, np.bool_)


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
    dates = getattr(getattr(names, "dtype", None), "kind", "") in "mM"  # tolist would make plain integers of them
    flat = np.ndim(names) == 1
    values = [] if not flat else list(names) if dates else names.tolist() if hasattr(names, "tolist") else list(names)
    if len(values) != count or not flat:
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
            value = value.decode("utf-8", errors="surrogateescape")
        if isinstance(value, bool | np.timedelta64) or not isinstance(value, str | int | np.integer) or value == "":
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
    array = _materialise(values, what)
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


def _materialise(values: Any, what: str) -> Column:
    """An array of anything that has an order; lists stay objects, so that numpy does not turn [1, 'a'] into text."""
    if isinstance(values, np.ma.MaskedArray):
        objects = values.data.astype(object)
        objects[np.ma.getmaskarray(values)] = None
        return np.asarray(objects)
    if hasattr(values, "to_numpy"):
        return from_pandas(values)
    if hasattr(values, "__array__"):
        return as_array(values, what)
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable) or not _ordered(values):
        raise InvalidBagsError(
            "bags",
            expected=f"a sequence of {what}",
            got=f"a {type(values).__name__}",
            remedy=f"pass one {what} each, in the order of the bags",
        )
    values = list(values)
    scalar = all(isinstance(v, str | bytes) or not isinstance(v, Sequence | np.ndarray) for v in values)
    return np.array(values, dtype=object) if scalar else as_array(values, what)


def from_pandas(values: Any) -> Column:
    """The array of a column; pandas' own types as objects, as to_numpy rounds long integers beside missing ones.

    >>> import pandas as pd
    >>> from_pandas(pd.array([1, None], dtype="Int64")).tolist()
    [1, <NA>]
    """
    kind = getattr(values, "dtype", None)
    own = kind is not None and not isinstance(kind, np.dtype)
    return np.asarray(values.to_numpy(dtype=object) if own else values.to_numpy())


def as_array(values: Any, what: str) -> Column:
    """``numpy.asarray``, with an error where rows differ in length."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InvalidBagsError(
            "bags",
            expected=f"{what} in rows of one length",
            got="rows of several lengths",
            remedy="fill in or cut off, so that all are equally long",
        ) from error


def _ordered(values: Any) -> bool:
    return not isinstance(values, Set) or hasattr(values, "mapping")  # views of a dict keep its order


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
        long = (array > EXACT) | (array < -EXACT) if kind in "iu" else np.zeros(array.shape, bool)
        if long.any():
            row = int(np.argmax(long.any(axis=1)))
            raise _bad_value(what, "integers up to 2**53 in a matrix", repr(int(array[long][0])), name_of(row))
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
    values = [v.decode("utf-8", errors="surrogateescape") if isinstance(v, bytes) else v for v in array.tolist()]
    missing = np.fromiter((is_missing(v) for v in values), dtype=bool, count=len(values))
    present = [v for v in values if not is_missing(v)]
    if all(isinstance(v, str) for v in present):  # also where all are missing: text or number, nobody knows
        text = np.array([None if m else str(v) for v, m in zip(values, missing, strict=True)], dtype=object)
        _refuse_broken_text(text, what)
        return text
    for position, value in enumerate(values):
        if not missing[position] and not isinstance(value, NUMBERS):
            expected, got = "values of one kind", f"text among numbers: {str(value)!r}"
            if not isinstance(value, str):
                expected, got = "numbers, booleans or text", f"{value!r} of type {type(value).__name__}"
            raise _bad_value(what, expected, got, name_of(position))
    _refuse_long_integers(values, missing, what, name_of)
    if not missing.any():
        return np.array(present)
    return np.array([np.nan if m else float(v) for v, m in zip(values, missing, strict=True)])


def _refuse_long_integers(values: list[Any], missing: Any, what: str, name_of: Callable[[int], str]) -> None:
    """Integers stay integers where all are; beside a gap or a fraction they become float64, which would round."""
    stay = not missing.any() and not any(isinstance(v, float | np.floating) for v in values)
    limit = LARGEST if stay else EXACT
    expected = "an integer below 2**63" if stay else "an integer up to 2**53 where others are missing or fractions"
    for position, value in enumerate(values):
        if not missing[position] and isinstance(value, int | np.integer) and abs(int(value)) > limit:
            raise _bad_value(what, expected, repr(int(value)), name_of(position))


def _matrix_from_objects(array: Column, what: str, name_of: Callable[[int], str]) -> Column:
    result = np.empty(array.shape, dtype=np.float64)
    for position, row in enumerate(array.tolist()):
        for column, value in enumerate(row):
            where = f"{name_of(position)}, column {column}"
            if not is_missing(value) and not isinstance(value, NUMBERS):
                raise _bad_value(what, "numbers in every column", repr(value), where)
            if isinstance(value, int | np.integer) and abs(int(value)) > EXACT:
                raise _bad_value(what, "integers up to 2**53 in a matrix", repr(int(value)), where)
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
