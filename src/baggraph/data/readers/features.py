"""A folder of feature files, one a bag, with a table of labels: how pathology pipelines write slides."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baggraph.data._convert import read_tensor
from baggraph.data._instances import refuse_inexact, release, target_dtype
from baggraph.data.bags import Bags
from baggraph.data.readers._scratch import allocate, finish
from baggraph.data.readers._sources import CsvSource, FrameSource, ParquetSource, Source
from baggraph.errors import (
    BagWarning,
    DataFileError,
    InvalidBagsError,
    MissingDependencyError,
    closest,
    name_some,
)

ALIAS = "feats"  # as STAMP writes it
SUFFIXES = (".h5", ".hdf5", ".npy", ".pt")


def read_features(
    folder: str | Path,
    *,
    labels: str | Path | pd.DataFrame | None = None,
    bag: str = "bag",
    target: str | Sequence[str] = "target",
    features: str = "features",
    coords: str = "coords",
    bag_info: Sequence[str] = (),
    memory_limit: int | None = None,
) -> Bags:
    """Bags from ``.h5``, ``.npy`` or ``.pt`` files, the name of the file being the id of the bag.

    Parameters
    ----------
    folder
        Holds one file a bag: ``.npy`` with an (n, d) array, ``.pt`` with such a tensor, or ``.h5`` with such a data
        set.
    labels, bag, target
        A CSV, a Parquet file or a DataFrame with a row a bag, and its columns of ids and labels (one column,
        or several of numbers).  Bags without a row are unlabelled.  Ids may end in the suffix of the image that
        the features were made from (``.svs``).
    features, coords
        Names of the data sets in an ``.h5`` file: the features (``feats`` is found as well), and where
        it is there, the position of every instance, kept as ``instance_info["coords"]``.
    bag_info
        More columns of the table of labels, kept as facts of the bags: a patient, a site.
    memory_limit
        Bytes above which the features are kept on disk and memory-mapped.  Default: half of the memory.

    """
    folder = Path(folder)
    files = sorted(p for p in folder.iterdir() if _is_feature_file(p)) if folder.is_dir() else []
    if not files:
        raise _wrong(f"{', '.join(SUFFIXES)} files in {folder.name}", "none", elsewhere(folder))
    ids = [path.stem for path in files]
    shapes = [_shape(path, features) for path in files]
    _refuse_ragged(files, [shape for shape, _ in shapes])
    offsets = np.concatenate([[0], np.cumsum([shape[0] for shape, _ in shapes])])
    dtype = np.result_type(*(target_dtype(kind) for _, kind in shapes))
    block = allocate((int(offsets[-1]), shapes[0][0][1]), dtype, memory_limit)
    places = []
    for position, path in enumerate(files):
        block[offsets[position] : offsets[position + 1]], place = _values(path, features, coords)
        places.append(place)
        release(block)
    without = [path.name for path, place in zip(files, places, strict=True) if place is None]
    if without and len(without) < len(files):
        text = f"features: left out {coords!r}: {len(without)} of {len(files)} files have none: {name_some(without)}"
        warnings.warn(text, BagWarning, stacklevel=2)
    info = {} if without else {"coords": np.concatenate(places)}
    y, facts = (None, {}) if labels is None else _labels(labels, bag, target, bag_info, ids)
    return Bags(finish(block), offsets, y, ids=ids, bag_info=facts, instance_info=info)


def elsewhere(folder: Path) -> str:
    """Pipelines write ``h5_files`` and ``pt_files`` into one folder."""
    below = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    found = [path.name for path in below if any(_is_feature_file(inside) for inside in path.iterdir())]
    return f"pass the folder in it: {name_some(found)}" if found else "check the folder"


def _is_feature_file(path: Path) -> bool:
    """By its suffix; what starts with a dot was left there by a system (``._s1.h5`` of macOS)."""
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """The arrays of a file by name; an ``.npy`` or ``.pt`` has one, under any name."""
    if path.suffix.lower() == ".pt":
        try:
            tensor = read_tensor(path)
        except (ValueError, EOFError, OSError, RuntimeError, pickle.UnpicklingError) as error:
            raise _unreadable(path, error) from error
        yield _AnyName(tensor)
        return
    if path.suffix.lower() == ".npy":
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise _unreadable(path, error) from error
        yield _AnyName(array)
        return
    try:
        import h5py
    except ImportError as error:
        raise MissingDependencyError(
            "features", expected="the package h5py", got="none", remedy="pip install 'baggraph[h5]'"
        ) from error
    try:
        with h5py.File(path, "r") as file:
            yield file
    except OSError as error:
        raise _unreadable(path, error) from error


class _AnyName:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __contains__(self, name: str) -> bool:
        return name != "coords"

    def __getitem__(self, name: str) -> Any:
        return self.array


def _named(file: Any, features: str) -> str:
    """The usual name has another usual one."""
    return ALIAS if features == "features" and features not in file and ALIAS in file else features


def _shape(path: Path, features: str) -> tuple[tuple[int, int], np.dtype[Any]]:
    with _open(path) as file:
        features = _named(file, features)
        if features not in file:
            raise _wrong(f"a data set {features!r} in {path.name}", name_some(file), closest(features, file))
        if not hasattr(file[features], "shape"):
            raise _wrong(f"a data set {features!r} in {path.name}", "a group", "name the data set, as in 'group/name'")
        shape = file[features].shape
        if len(shape) == 3 and shape[0] == 1:  # some pipelines keep a batch axis
            shape = shape[1:]
        if len(shape) != 2:
            raise _wrong(f"a 2-D array in {path.name}", f"shape {shape}", "store one row an instance")
        if shape[0] == 0:
            raise _wrong(f"at least one instance in {path.name}", "none", "leave empty bags out")
        return shape, np.dtype(file[features].dtype)


def _values(path: Path, features: str, coords: str) -> tuple[Any, Any]:
    with _open(path) as file:
        values = np.asarray(file[_named(file, features)])
        place = np.asarray(file[coords]) if coords in file else None
    values = values[0] if values.ndim == 3 else values
    refuse_inexact(values, f" in {path.name}")  # here, as the block may be of floats already
    if place is not None:
        place = place[0] if place.ndim == 3 else place
        if len(place) != len(values):
            got = f"{len(place)} for {len(values)} instances"
            raise _wrong(f"one row of {coords!r} an instance in {path.name}", got, "write the file again")
    return values, place


def _refuse_ragged(files: list[Path], shapes: list[tuple[int, int]]) -> None:
    widths = np.array([shape[1] for shape in shapes])
    usual = int(np.bincount(widths).argmax())
    odd = np.flatnonzero(widths != usual)
    if len(odd):
        got = f"{widths[odd[0]]} in {files[odd[0]].name}" + (f" and {len(odd) - 1} more files" if len(odd) > 1 else "")
        raise _wrong(f"{usual} features in every file", got, "extract all bags with one encoder")


def _labels(
    table: str | Path | pd.DataFrame, bag: str, target: str | Sequence[str], more: Sequence[str], ids: list[str]
) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """Labels, and more facts by name, in the order of the ids."""
    targets = [target] if isinstance(target, str) else list(target)
    source: Source = FrameSource(table) if isinstance(table, pd.DataFrame) else _label_file(Path(table), bag)
    for name in (bag, *targets, *more):
        if source.columns.count(name) != 1:
            there = name in source.columns
            remedy = "rename one of them" if there else closest(name, map(str, source.columns))
            raise _wrong("a column of the table of labels", f"{name!r} more than once" if there else repr(name), remedy)
    frame = source.whole(list(dict.fromkeys([bag, *targets, *more])))
    if frame[bag].isna().any():
        got = f"none in row {int(frame[bag].isna().to_numpy().argmax())}"
        raise _wrong("the id of a bag in every row of the table of labels", got, "fill it in")
    names = _without_suffix(frame[bag].astype(str), set(ids))
    if names.duplicated().any():
        raise _wrong(
            "one row a bag in the table of labels", f"{name_some(names[names.duplicated()])} twice", "drop one"
        )
    known = names.isin(ids)
    if not known.any():
        got = f"{name_some(names, 2) or 'none'} there and {name_some(ids, 2)} in the folder"
        raise _wrong("ids in the table of labels that are names of files", got, "make them equal, without suffix")
    if not known.all():
        text = f"features: {(~known).sum()} labelled bags have no file: {name_some(names[~known])}"
        warnings.warn(text, BagWarning, stacklevel=3)
    # As objects, else a bag without a row would make floats of integers.
    known_bags = frame.set_index(names).astype(object).reindex(ids)
    values = known_bags[targets].to_numpy()
    facts = {name: known_bags[name].to_numpy() for name in more}
    return (values[:, 0] if isinstance(target, str) else values), facts


def _without_suffix(names: pd.Series[Any], ids: set[str]) -> pd.Series[Any]:
    """``a.svs`` becomes ``a`` where a file is called so, and none is called ``a.svs``."""
    return names.map(lambda name: name if name in ids or Path(name).stem not in ids else Path(name).stem)


def _label_file(path: Path, bag: str) -> Source:
    if not path.is_file():
        raise _wrong("a table of labels", f"no file at {path}", "check the path")
    return ParquetSource(path) if path.suffix.lower() == ".parquet" else CsvSource(path, (bag,))


def _wrong(expected: str, got: str, remedy: str) -> InvalidBagsError:
    return InvalidBagsError("features", expected=expected, got=got, remedy=remedy)


def _unreadable(path: Path, error: Exception) -> DataFileError:
    return DataFileError(
        "features",
        expected=f"arrays in {path.name}",
        got=str(error).partition("\n")[0],
        remedy="write the file again; it may be truncated",
    )
