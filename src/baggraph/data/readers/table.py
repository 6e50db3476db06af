"""Long tables, a row an instance: DataFrames, CSV and Parquet, streamed where they are large."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data._columns import from_pandas, is_missing
from baggraph.data._instances import refuse_inexact, release, target_dtype
from baggraph.data.bags import Bags
from baggraph.data.readers._scratch import allocate, finish
from baggraph.data.readers._sources import CsvSource, FrameSource, ParquetSource, Source
from baggraph.errors import DataFileError, InvalidBagsError, closest, name_some

Columns = str | tuple[str, ...]  # one column gives a vector, a tuple of them a matrix


@dataclass(frozen=True)
class Roles:
    """Which columns of a long table mean what; those of no role are features unless these are named."""

    bag: str
    target: Columns | None = None
    instance: str | None = None
    instance_y: str | None = None
    features: tuple[str, ...] | None = None
    coords: Columns | None = None
    bag_info: Mapping[str, Columns] = field(default_factory=dict)
    instance_info: Mapping[str, Columns] = field(default_factory=dict)
    splits: Mapping[str, Columns] = field(default_factory=dict)

    @property
    def per_bag(self) -> list[str]:
        """Columns that must read the same in all rows of a bag."""
        return _flat([self.target, self.coords, *self.bag_info.values(), *self.splits.values()])

    @property
    def side(self) -> list[str]:
        """Every column that is no feature, once."""
        rows = _flat([self.instance, self.instance_y, *self.instance_info.values()])
        return list(dict.fromkeys([self.bag, *self.per_bag, *rows]))


def _flat(columns: Sequence[Columns | None]) -> list[str]:
    return [name for c in columns if c is not None for name in ((c,) if isinstance(c, str) else c)]


def from_frame(
    frame: pd.DataFrame,
    *,
    bag: str = "bag",
    target: str | Sequence[str] | None = None,
    instance: str | None = None,
    features: Sequence[str] | None = None,
    coords: Sequence[str] = (),
    instance_y: str | None = None,
    bag_info: Sequence[str] = (),
    missing: str = "error",
) -> Bags:
    """Bags from a long DataFrame; see :func:`read_table` for the parameters."""
    if not isinstance(frame, pd.DataFrame):
        raise _wrong("a DataFrame", f"a {type(frame).__name__}", "pass pandas.DataFrame(...), or use Bags.from_list")
    frame = frame.rename(columns=str)
    roles = make_roles(list(frame.columns), bag, target, instance, features, coords, instance_y, bag_info)
    return assemble(FrameSource(frame), roles, missing=missing)


def read_table(
    path: str | Path,
    *,
    bag: str = "bag",
    target: str | Sequence[str] | None = None,
    instance: str | None = None,
    features: Sequence[str] | None = None,
    coords: Sequence[str] = (),
    instance_y: str | None = None,
    bag_info: Sequence[str] = (),
    missing: str = "error",
    memory_limit: int | None = None,
) -> Bags:
    """Bags from a long CSV or Parquet table: a row an instance.

    Parameters
    ----------
    path
        ``.csv``, ``.tsv`` (also compressed) or ``.parquet``.
    bag, instance
        Columns that name the bag and the instance.  Default: ``bag``, and ``instance`` where it exists.
        In a CSV they are read as text, so that ``01001`` stays ``01001``.
    target
        Column or columns of the label, equal in all rows of a bag; missing = an unlabelled bag.
        Default: ``target``, or ``target_0``, ``target_1``, ..., where they exist.
    features
        Columns of the features.  Default: all that have no other role.
    instance_y
        Column of the labels of instances, where they are known.
    coords, bag_info
        Columns that are equal in all rows of a bag: its position, and facts to keep beside it.
    missing
        ``"error"`` or ``"impute"``, as in :class:`Bags`.
    memory_limit
        Bytes above which the features are kept on disk and memory-mapped.  Default: half of the memory.

    """
    path = Path(path)
    if not path.is_file():
        raise DataFileError("table", expected="a file", got=f"none at {path}", remedy="check the path")
    text = (bag, instance or "instance")
    source: Source = ParquetSource(path) if path.suffix.lower() == ".parquet" else CsvSource(path, text)
    roles = make_roles(source.columns, bag, target, instance, features, coords, instance_y, bag_info)
    return assemble(source, roles, missing=missing, memory_limit=memory_limit)


def make_roles(
    columns: list[str],
    bag: str,
    target: str | Sequence[str] | None,
    instance: str | None,
    features: Sequence[str] | None,
    coords: Sequence[str],
    instance_y: str | None,
    bag_info: Sequence[str],
) -> Roles:
    """The roles that a user's arguments describe; columns called ``target`` and ``instance`` speak for themselves."""
    unclaimed = [name for name in columns if name not in (features or ())]
    if target is None:
        numbered = [f"target_{i}" for i in range(len(columns)) if f"target_{i}" in unclaimed]
        target = "target" if "target" in unclaimed else numbered or None
    if instance is None and "instance" in unclaimed:
        instance = "instance"
    return Roles(
        bag=bag,
        target=target if target is None or isinstance(target, str) else tuple(target) or None,
        instance=instance,
        instance_y=instance_y,
        features=None if features is None else tuple(features),
        coords=tuple(coords) or None,
        bag_info={name: name for name in bag_info},
    )


def assemble(
    source: Source, roles: Roles, *, missing: str = "error", memory_limit: int | None = None, **more: Any
) -> Bags:
    """Read the columns beside the features first, then the features straight to their places."""
    features = _check_columns(source.columns, roles)
    side = source.whole(roles.side)
    if not len(side):
        raise _wrong("at least one row", "an empty table", "check the file")
    codes, ids = _number_bags(side[roles.bag], roles.bag)
    counts = np.bincount(codes, minlength=len(ids))
    offsets = np.concatenate([[0], np.cumsum(counts)])
    places = None if (np.diff(codes) >= 0).all() else _places(codes)
    rows = np.arange(len(codes)) if places is None else np.argsort(codes, kind="stable")
    first = rows[offsets[:-1]]
    _refuse_conflicts(side, roles.per_bag, codes, ids)
    block = more.pop("block", None)
    if block is None:
        block = _read_features(source, features, places, len(codes), memory_limit, lambda row: ids[codes[row]])
    return Bags(
        block,
        offsets,
        _columns(side, roles.target, first),
        ids=ids,
        feature_names=more.pop("feature_names", features),
        instance_names=_columns(side, roles.instance, rows),
        instance_y=_columns(side, roles.instance_y, rows),
        coords=_columns(side, roles.coords, first),
        splits={key: _columns(side, c, first).T.astype(np.int64) for key, c in roles.splits.items()},
        bag_info={key: _columns(side, c, first) for key, c in roles.bag_info.items()},
        instance_info={key: _columns(side, c, rows) for key, c in roles.instance_info.items()},
        missing=missing,
        **more,
    )


def _check_columns(columns: list[str], roles: Roles) -> list[str]:
    twice = list(dict.fromkeys(name for name in columns if columns.count(name) > 1)) if _repeat(columns) else []
    if twice:
        raise _wrong("unique column names", f"{name_some(twice)} more than once", "rename these columns")
    for name in [*roles.side, *(roles.features or ())]:
        if name not in columns:
            raise _wrong("a column of the table", repr(name), closest(name, columns))
    if roles.features is None:
        features = [name for name in columns if name not in roles.side]
        _refuse_doubtful(columns, features, roles)
    else:
        features = list(roles.features)
        _refuse_leak(features, roles)
    if not features:
        raise _wrong("at least one column of features", "none", f"name them; the table has {name_some(columns)}")
    return features


def _repeat(columns: list[str]) -> bool:
    return len(set(columns)) < len(columns)


def _refuse_doubtful(columns: list[str], features: list[str], roles: Roles) -> None:
    """No column becomes a feature that has no name, or nearly the name of another role."""
    for name in features:
        plain = name.strip().casefold()
        if not plain:
            got = f"none for column {columns.index(name) + 1}"
            remedy = "write the table without its index, or name the columns to use with features=[...]"
            raise _wrong("a name for every column", got, remedy)
        if plain in ("target", "instance") and getattr(roles, plain) is None:
            remedy = f"rename it, say what it is with {plain}=..., or name the columns to use with features=[...]"
            raise _wrong(f"a column called {plain!r}", repr(name), remedy)


def _refuse_leak(features: list[str], roles: Roles) -> None:
    targets = set(_flat([roles.target]))
    both = [name for name in features if name in targets]
    if both:
        raise _wrong("features apart from the target", f"{name_some(both)} as both", "leave it out of the features")


def _number_bags(column: pd.Series[Any], name: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Number the bags in order of first appearance."""
    codes, ids = pd.factorize(column, use_na_sentinel=True)
    if (codes < 0).any():
        rows = np.flatnonzero(codes < 0)
        raise _wrong(f"a bag in every row of column {name!r}", f"none in row {name_some(rows)}", "fill it in")
    return codes.astype(np.int64), np.asarray(ids)


def _places(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each row of the table goes, so that every bag lies in one piece."""
    places = np.empty(len(codes), dtype=np.int64)
    places[np.argsort(codes, kind="stable")] = np.arange(len(codes))
    return places


def _refuse_conflicts(side: pd.DataFrame, names: list[str], codes: NDArray[np.int64], ids: NDArray[Any]) -> None:
    """A fact about a bag must read the same in all of its rows."""
    for name in names:
        values, uniques = pd.factorize(side[name], use_na_sentinel=False)
        pairs = np.unique(np.stack([codes, values]), axis=1)
        bags, count = np.unique(pairs[0], return_counts=True)
        if (count > 1).any():
            bad = bags[count > 1]
            found = [uniques[v] for v in pairs[1][pairs[0] == bad[0]]]
            shown = " and ".join("missing" if is_missing(v) else str(v) for v in found)
            more = f" (and {len(bad) - 1} more bags)" if len(bad) > 1 else ""
            raise _wrong(
                f"one value of {name!r} a bag",
                f"{shown} in bag {str(ids[bad[0]])!r}{more}",
                "correct the table, or name another column",
            )


def _columns(side: pd.DataFrame, columns: Columns | None, rows: NDArray[np.int64]) -> Any:
    if columns is None or isinstance(columns, str):
        return None if columns is None else from_pandas(side[columns])[rows]
    parts = [from_pandas(side[name])[rows] for name in columns]
    kinds = {part.dtype.kind for part in parts}
    # Numpy would round long integers beside real numbers without a word.
    return np.stack([part.astype(object) for part in parts] if {"i", "f"} <= kinds else parts, axis=1)


def _read_features(
    source: Source,
    features: list[str],
    places: NDArray[np.int64] | None,
    n_rows: int,
    memory_limit: int | None,
    bag_of: Any,
) -> Any:
    block, start = None, 0
    for batch in source.batches(features):
        if block is None and all(isinstance(t, pd.SparseDtype) for t in batch.dtypes):
            matrix = _sparse(batch)
            return matrix if places is None else matrix[np.argsort(places)]
        values = _numbers(batch, lambda row, start=start: bag_of(start + row))
        if block is None:
            block = allocate((n_rows, len(features)), values.dtype, memory_limit)
        elif values.dtype == np.float64 and block.dtype == np.float32:
            block = _widen(block, start, memory_limit)
        stop = start + len(batch)
        block[slice(start, stop) if places is None else places[start:stop]] = values
        release(block)
        start = stop
    return finish(block) if block is not None else None


def _sparse(batch: pd.DataFrame) -> sp.csr_array:
    other = [f"{kind.fill_value} in column {name!r}" for name, kind in batch.dtypes.items() if kind.fill_value != 0]
    if other:
        raise _wrong("sparse columns that leave out zeros", other[0], "make them dense with .sparse.to_dense()")
    return sp.csr_array(batch.sparse.to_coo())  # type: ignore[attr-defined]


def _widen(block: NDArray[Any], filled: int, memory_limit: int | None) -> NDArray[Any]:
    """Start over in float64 where a later part of the table needs it; rare, and lossless."""
    wide = allocate((block.shape[0], block.shape[1]), np.float64, memory_limit)
    wide[...] = block if filled else 0.0
    return wide


def _numbers(batch: pd.DataFrame, bag_of: Any) -> NDArray[Any]:
    kinds = []
    for name, column in batch.items():
        kind = getattr(column.dtype, "numpy_dtype", column.dtype)
        if not isinstance(kind, np.dtype) or kind.kind not in "biuf":
            raise _not_a_number(str(name), column, bag_of)
        if kind.kind in "iu":
            refuse_inexact(column.dropna().to_numpy(dtype=kind), f" in column {name!r}")
        kinds.append(target_dtype(kind))
    dtype = np.result_type(*kinds)
    return batch.to_numpy(dtype=dtype, na_value=np.nan)


def _not_a_number(name: str, column: pd.Series[Any], bag_of: Any) -> InvalidBagsError:
    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    bad = np.flatnonzero(numbers.isna().to_numpy() & ~column.isna().to_numpy())
    if len(bad):
        got = f"{column.iloc[bad[0]]!r} in column {name!r} (bag {str(bag_of(int(bad[0])))!r})"
    else:
        got = f"values of type {column.dtype} in column {name!r}"
    remedy = "encode it, give it another role, or name the columns to use with features=[...]"
    return _wrong("numbers as features", got, remedy)


def _wrong(expected: str, got: str, remedy: str) -> InvalidBagsError:
    return InvalidBagsError("table", expected=expected, got=got, remedy=remedy)
