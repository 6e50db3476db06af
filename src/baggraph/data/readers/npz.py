"""Bags as one ``.npz`` file: exact, without pickle, and memory-mapped where it is large."""

from __future__ import annotations

import json
import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data._attachments import COLUMNS, GROUPS
from baggraph.data._columns import frozen
from baggraph.data._instances import release, row_blocks
from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.data.readers._atomic import replacing
from baggraph.errors import DataFileError

VERSION = 1
MAP_BYTES = 1 << 28
ALIGNMENT = 64
DAMAGE = (
    *(zipfile.BadZipFile, struct.error, NotImplementedError, OSError, EOFError),
    *(TypeError, LookupError, ValueError),
)
PARTS = [f"{whole}.{part}" for whole in ("instances", "graph") for part in ("data", "indices", "indptr")]
COLUMN_PARTS = [name + part for name in COLUMNS for part in ("", ".text", ".ends", ".missing")]
KNOWN = {f"{name}.npy" for name in ("note", "instances", "offsets", *PARTS, *COLUMN_PARTS)}
GROUP_MEMBER = re.compile(rf"({'|'.join(GROUPS)})\.\d+(\.text|\.ends|\.missing)?\.npy")
PADDING_FIELD = 0xBA66  # an id for the zip extra field that shifts a member onto an aligned address


def write_npz(bags: Bags, path: str | Path) -> Path:
    """Write bags to one uncompressed ``.npz`` that :func:`read_npz` gives back equal.

    Members are ordinary ``.npy`` arrays on aligned addresses; text is UTF-8 with the ends of the strings.
    """
    with replacing(Path(path)) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        if bags.is_sparse:
            for part in ("data", "indices", "indptr"):
                _write(archive, f"instances.{part}", getattr(bags.instances, part))
        else:
            _write(archive, "instances", bags.instances)
        _write(archive, "offsets", bags.offsets)
        for name, column in _columns(bags):
            _write_column(archive, name, column)
        if bags.graph is not None:
            for part in ("data", "indices", "indptr"):
                _write(archive, f"graph.{part}", getattr(bags.graph.adjacency, part))
        note = {
            "version": VERSION,
            "shape": [bags.n_instances, bags.n_features],
            "groups": {group: list(getattr(bags, group)) for group in GROUPS},
            "metadata": dict(bags.metadata),
        }
        _write(archive, "note", np.frombuffer(json.dumps(note).encode(), dtype=np.uint8))
    return Path(path)


def read_npz(path: str | Path, *, memory_map: bool | None = None) -> Bags:
    """Read bags that :func:`write_npz` wrote.

    ``memory_map=None`` maps a dense block above 256 MB: it stays on disk until it is looked at, and is
    trusted as it was checked when it was written.
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive, path, memory_map)
    except DAMAGE as error:
        if isinstance(error, DataFileError):
            raise
        remedy = "fetch or write it again"
        raise DataFileError("npz", expected=f"bags in {path.name}", got=str(error), remedy=remedy) from error


def _columns(bags: Bags) -> Iterator[tuple[str, Any]]:
    for name in COLUMNS:
        if getattr(bags, name) is not None:
            yield name, getattr(bags, name)
    for group in GROUPS:
        for position, column in enumerate(getattr(bags, group).values()):
            yield f"{group}.{position}", column


# ---------------------------------------------------------------------- writing


def _write_column(archive: zipfile.ZipFile, name: str, column: NDArray[Any]) -> None:
    if column.dtype.kind != "O":
        return _write(archive, name, column)
    pieces = [b"" if value is None else value.encode() for value in column]
    _write(archive, f"{name}.text", np.frombuffer(b"".join(pieces), dtype=np.uint8))
    _write(archive, f"{name}.ends", np.cumsum([len(p) for p in pieces], dtype=np.int64))
    if any(value is None for value in column):
        _write(archive, f"{name}.missing", np.array([value is None for value in column]))
    return None


def _write(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    """One member, written block by block on an aligned address."""
    info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
    start = archive.fp.tell() if archive.fp is not None else 0
    fixed, zip64_field, own_field = 30, 20, 4
    gap = -(start + fixed + len(info.filename.encode()) + zip64_field + own_field) % ALIGNMENT
    info.extra = struct.pack("<HH", PADDING_FIELD, gap) + bytes(gap)
    with archive.open(info, "w", force_zip64=True) as member:
        facts = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
        np.lib.format.write_array_header_1_0(member, facts)
        if array.ndim < 2:
            member.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
            return
        for rows in row_blocks(array.shape[0], array.shape[1] * array.itemsize):
            member.write(np.ascontiguousarray(array[rows]).data.cast("B"))
            release(array)


# ---------------------------------------------------------------------- reading


def _read(archive: zipfile.ZipFile, path: Path, memory_map: bool | None) -> Bags:
    names = set(archive.namelist())
    strange = sorted(names - KNOWN - {name for name in names if GROUP_MEMBER.fullmatch(name)})
    if "note.npy" not in names:
        got = f"another .npz with {', '.join(sorted(names)[:5])}"
        raise DataFileError("npz", expected="a file written by baggraph", got=got, remedy="build Bags from its arrays")
    note = json.loads(_member(archive, "note").tobytes())
    if note["version"] != VERSION:
        remedy = "read it with the version of baggraph that wrote it, or a newer one"
        raise DataFileError("npz", expected=f"layout version {VERSION}", got=f"{note['version']}", remedy=remedy)
    if strange:  # a damaged name would make an optional member vanish
        raise ValueError(f"a member {strange[0]!r} that nobody wrote")
    fields: dict[str, Any] = {name: _column(archive, names, name) for name in COLUMNS}
    for group in GROUPS:
        fields[group] = {key: _column(archive, names, f"{group}.{i}") for i, key in enumerate(note["groups"][group])}
    fields["metadata"] = note["metadata"]
    offsets = _member(archive, "offsets")
    if "graph.data.npy" in names:
        fields["graph"] = BagGraph(_csr(archive, "graph", (len(offsets) - 1,) * 2), fields["ids"])
    if "instances.npy" not in names:
        return Bags(_csr(archive, "instances", tuple(note["shape"])), offsets, **fields)
    size = archive.getinfo("instances.npy").file_size
    if memory_map or (memory_map is None and size > MAP_BYTES):
        return _mapped(path, archive, offsets, fields)
    return Bags(_member(archive, "instances"), offsets, **fields)


def _mapped(path: Path, archive: zipfile.ZipFile, offsets: Any, fields: dict[str, Any]) -> Bags:
    """Bags over a mapped block; all but its values is checked again."""
    block = _map(path, archive.getinfo("instances.npy"))
    return Bags._over(frozen(block), offsets, **fields)


def _map(path: Path, info: zipfile.ZipInfo) -> NDArray[Any]:
    with path.open("rb") as file:
        file.seek(info.header_offset + 26)
        name_length, extra_length = struct.unpack("<HH", file.read(4))
        file.seek(info.header_offset + 30 + name_length + extra_length)
        shape, _, dtype = _header(file)
        return np.memmap(path, dtype=dtype, mode="r", offset=file.tell(), shape=shape)


def _header(file: IO[bytes]) -> tuple[Any, bool, Any]:
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an array of a newer .npy version")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    return shape, fortran, dtype


def _member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as member:
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
    return frozen(array)


def _csr(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...]) -> sp.csr_array:
    return sp.csr_array(tuple(_member(archive, f"{name}.{p}") for p in ("data", "indices", "indptr")), shape=shape)


def _column(archive: zipfile.ZipFile, names: set[str], name: str) -> Any:
    if f"{name}.npy" in names:
        return _member(archive, name)
    if f"{name}.text.npy" not in names:
        return None
    text, ends = _member(archive, f"{name}.text").tobytes(), _member(archive, f"{name}.ends")
    starts = np.concatenate([[0], ends[:-1]])
    missing = _member(archive, f"{name}.missing") if f"{name}.missing.npy" in names else np.zeros(len(ends), bool)
    pieces = [None if m else text[a:b].decode() for a, b, m in zip(starts, ends, missing, strict=True)]
    return np.array(pieces, dtype=object)
