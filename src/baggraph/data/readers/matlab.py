"""MATLAB files: PRTools data sets (one row an instance) and cells (one row a bag)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from baggraph.data.bags import Bags
from baggraph.errors import DataFileError, InvalidBagsError, name_some


def read_matlab(path: str | Path) -> Bags:
    """Bags from a ``.mat`` file in one of two layouts, told apart by what the file holds.

    * A PRTools data set with the fields ``data``, ``nlab``, ``lablist`` and ``ident.milbag``.  Labels are
      those of the bag, or of the instances, then combined by presence: a bag is of the last class (positive)
      when any of its instances is.
    * A cell of shape (bags, 2 or 3): instances, label of the bag, and labels of the instances (a vector)
      or their affinities (a square matrix, which is not read).
    """
    path = Path(path)
    for value in _load(path).values():
        if isinstance(value, np.ndarray) and value.dtype.names and {"data", "nlab"} <= set(value.dtype.names):
            return _from_prtools(value.ravel()[0], path)
        if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 2 and value.shape[1] in (2, 3):
            return _from_cell(value, path)
    found = name_some(k for k in _load(path) if not k.startswith("__")) or "nothing"
    raise _unreadable(path, "a PRTools data set or a cell with a row a bag", f"variables {found}")


def _load(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        content: dict[str, Any] = loadmat(path)
    except NotImplementedError as error:
        raise DataFileError(
            "matlab",
            expected="a MATLAB file of version 5 to 7",
            got=f"version 7.3 in {path.name}",
            remedy="save it again in MATLAB with save(..., '-v7')",
        ) from error
    except (MatReadError, ValueError, TypeError, OSError, EOFError) as error:
        raise _unreadable(path, "a MATLAB file", str(error) or type(error).__name__) from error
    return content


def _unreadable(path: Path, expected: str, got: str) -> DataFileError:
    return DataFileError("matlab", expected=f"{expected} in {path.name}", got=got, remedy="check the file")


# ---------------------------------------------------------------------- PRTools


def _from_prtools(record: Any, path: Path) -> Bags:
    data = record["data"]
    block = sp.csr_array(data) if sp.issparse(data) else np.asarray(data)
    names = _bag_names(record, path)
    if len(names) != block.shape[0]:
        got = f"{len(names)} bag names for {block.shape[0]} instances"
        raise _unreadable(path, "one bag name an instance", got)
    ids, first, codes = np.unique(names, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # bags in order of first appearance, not of the alphabet
    codes = np.argsort(order)[codes]
    rows = np.argsort(codes, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    numbers = np.asarray(record["nlab"]).ravel().astype(np.int64)[rows]
    high = np.maximum.reduceat(numbers, offsets[:-1])
    low = np.minimum.reduceat(numbers, offsets[:-1])
    classes = _class_names(record, path)
    if numbers.min() < 0 or numbers.max() > len(classes):
        raise _unreadable(path, f"labels 1 to {len(classes)}", f"{numbers.min()} to {numbers.max()}")
    mixed = bool((low != high).any())
    if mixed and len(classes) != 2:
        bag = str(ids[order][int(np.argmax(low != high))])
        raise InvalidBagsError(
            "matlab",
            expected="one label a bag, or instances of two classes",
            got=f"labels {classes[low[low != high][0] - 1]} and {classes[high[low != high][0] - 1]} in bag {bag!r}",
            remedy="correct the labels",
        )
    named = np.array([None, *classes], dtype=object)  # PRTools numbers classes from 1; 0 is unlabelled
    return Bags(block[rows], offsets, named[high], ids=ids[order], instance_y=named[numbers] if mixed else None)


def _bag_names(record: Any, path: Path) -> Any:
    ident = record["ident"]
    if not (isinstance(ident, np.ndarray) and ident.dtype.names and "milbag" in ident.dtype.names):
        raise _unreadable(path, "bag names in ident.milbag", "none")
    names = np.asarray(ident.ravel()[0]["milbag"]).ravel()
    if names.dtype == object:  # a cell, with a text or a number in every place
        inner = [np.asarray(entry).ravel() for entry in names]
        sizes = np.array([entry.size for entry in inner])
        if (sizes != 1).any():
            row = int(np.argmax(sizes != 1))
            raise _unreadable(path, "one bag name an instance in ident.milbag", f"{sizes[row]} in row {row + 1}")
        names = np.concatenate(inner)
    if names.dtype.kind == "U":
        return np.char.strip(names)  # MATLAB pads text to equal length with blanks
    if names.dtype.kind not in "biuf" or not (names % 1 == 0).all():
        raise _unreadable(path, "text or whole numbers in ident.milbag", f"other values, such as {names[0]}")
    return names.astype(np.int64).astype(str)


def _class_names(record: Any, path: Path) -> list[str]:
    """Names of the classes: text, a cell of texts, or a cell of several lists, the first of which counts."""
    listed = np.asarray(record["lablist"])
    while listed.dtype == object and listed.size:
        entries = [np.asarray(entry) for entry in listed.ravel()]
        if all(entry.dtype.kind == "U" and entry.size == 1 for entry in entries):
            listed = np.concatenate([entry.ravel() for entry in entries])
        else:
            listed = entries[0]
    names = [str(name).strip() for name in listed.ravel()]
    if not names:
        raise _unreadable(path, "names of the classes in lablist", "none")
    return names


# ---------------------------------------------------------------------- cells


def _from_cell(cell: Any, path: Path) -> Bags:
    arrays = [sp.csr_array(entry) if sp.issparse(entry) else np.atleast_2d(entry) for entry in cell[:, 0]]
    labels = []
    for position, entry in enumerate(cell[:, 1]):
        values = np.asarray(entry).ravel()
        if values.size != 1 or values.dtype.kind not in "biufU":
            what = "a cell" if values.dtype.kind == "O" else str(values.size)
            got = f"{what} in row {position + 1}"
            raise _unreadable(path, "one label in the second column of every row", got)
        labels.append(values[0])
    # MATLAB keeps all numbers as floats; text among them stays what it is, and is refused.
    whole = all(not isinstance(label, str) and label % 1 == 0 for label in labels)
    y = [int(label) for label in labels] if whole else labels
    return Bags.from_list(arrays, y, instance_y=_inner_labels(cell, arrays))


def _inner_labels(cell: Any, arrays: list[Any]) -> Any:
    """The third column where it holds one value an instance; square matrices are affinities."""
    if cell.shape[1] < 3:
        return None
    third = [np.asarray(entry) for entry in cell[:, 2]]
    sizes = [a.shape[0] for a in arrays]
    vectors = all(t.size == n and t.ndim == 2 and min(t.shape) == 1 for t, n in zip(third, sizes, strict=True))
    if not vectors or max(sizes) == 1:
        return None
    values = np.concatenate([t.ravel() for t in third])
    return values.astype(np.int64) if (values % 1 == 0).all() else values
