"""Bags as one Parquet file: a long table that any tool can read, and that comes back without loss."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

from baggraph.data._instances import freeze_csr
from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.data.readers._atomic import replacing
from baggraph.data.readers._sources import ParquetSource
from baggraph.data.readers.table import Roles, assemble
from baggraph.errors import DataFileError

KEY = b"baggraph"
CHECK = b"baggraph.crc32"  # Parquet guards its pages, but not its schema
VERSION = 1
GROUP_BYTES = 1 << 26


def write_parquet(bags: Bags, path: str | Path) -> Path:
    """Write a row an instance: columns ``bag``, ``target``, ``instance``, the features, and what else there is.

    Facts about a bag are repeated in its rows, which Parquet stores once a run.  A sparse block becomes
    two list columns.  What a table cannot say (order of the columns, splits, metadata) is noted in the
    schema, so that :func:`read_parquet` gives back equal bags.
    """
    layout = _Layout(bags)
    note = json.dumps(layout.note).encode()
    schema = layout.schema.with_metadata({KEY: note, CHECK: str(zlib.crc32(note)).encode()})
    with replacing(Path(path)) as draft, pq.ParquetWriter(draft, schema, write_page_checksum=True) as writer:
        for start, stop in _groups(bags):
            writer.write_table(pa.Table.from_arrays(layout.arrays(start, stop), schema=schema))
    return Path(path)


def read_parquet(path: str | Path, *, memory_limit: int | None = None) -> Bags:
    """Read what :func:`write_parquet` wrote; for any other table use :func:`read_table`."""
    source = ParquetSource(Path(path))
    note = _note(source, Path(path))
    roles = Roles(**{k: _tuples(v) for k, v in note["roles"].items()})
    more: dict[str, Any] = {"metadata": note["metadata"]}
    if not note["feature_names"]:
        more["feature_names"] = None
    if note["sparse"]:
        more["block"] = _read_lists(source, note)
        more["feature_names"] = note["feature_names"]
    bags = assemble(source, roles, memory_limit=memory_limit, **more)
    return bags.replace(graph=_read_graph(source, bags, note["graph"])) if note["graph"] else bags


def is_ours(path: str | Path) -> bool:
    """Whether :func:`write_parquet` wrote this file."""
    return KEY in ParquetSource(Path(path)).metadata


class _Layout:
    """Which columns the file has, in which order, and where their values come from."""

    def __init__(self, bags: Bags) -> None:
        self.bags = bags
        self.names: list[str] = []
        self.values: list[tuple[str, Any]] = []  # ("bag" | "instance" | "first" | "block", array)
        named = bags.feature_names is not None
        features = list(bags.feature_names) if named else [f"x{i}" for i in range(bags.n_features)]
        lists = bags.is_sparse
        self.taken = set() if lists else set(features)
        roles: dict[str, Any] = {"bag": self._add("bag", "bag", bags.ids)}
        for role, name, per, array in (
            ("target", "target", "bag", bags.y),
            ("instance", "instance", "instance", bags.instance_names),
            ("instance_y", "instance_y", "instance", bags.instance_y),
            ("coords", "coord", "bag", bags.coords),
        ):
            roles[role] = None if array is None else self._add_columns(name, per, array)
        for role, info, per in (
            ("bag_info", bags.bag_info, "bag"),
            ("instance_info", bags.instance_info, "instance"),
            ("splits", {k: v.T for k, v in bags.splits.items()}, "bag"),
        ):
            roles[role] = {key: self._add_columns(f"{role}.{key}", per, array) for key, array in info.items()}
        graph = self._add_graph() if bags.graph is not None else None
        if lists:
            roles["features"] = [self._add("feature_indices", "indices", None), self._add("feature_values", "data", 0)]
        else:
            roles["features"] = features
            self.names += features
        self.note = {
            "version": VERSION,
            "roles": roles,
            "feature_names": features if named else None,
            "n_features": bags.n_features,
            "sparse": lists,
            "graph": graph,
            "metadata": dict(bags.metadata),
        }

    def _add(self, name: str, per: str, array: Any) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.names.append(name)
        self.values.append((per, array))
        return name

    def _add_columns(self, name: str, per: str, array: Any) -> str | list[str]:
        if array.ndim == 1:
            return self._add(name, per, array)
        return [self._add(f"{name}_{i}", per, column) for i, column in enumerate(array.T)]

    def _add_graph(self) -> list[str]:
        """Neighbours and weights as lists in the first row of every bag."""
        return [self._add("graph_neighbors", "first", "indices"), self._add("graph_weights", "first", "data")]

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        types = [_type(per, array, self.bags) for per, array in self.values]
        types += [pa.from_numpy_dtype(self.bags.instances.dtype)] * (len(self.names) - len(types))
        return pa.schema([pa.field(n, t) for n, t in zip(self.names, types, strict=True)])

    def arrays(self, start: int, stop: int) -> list[pa.Array]:
        """The columns of bags ``start`` to ``stop``."""
        bags = self.bags
        rows = slice(int(bags.offsets[start]), int(bags.offsets[stop]))
        sizes = bags.sizes[start:stop]
        result = []
        for per, array in self.values:
            if per == "bag":
                result.append(_array(np.repeat(array[start:stop], sizes)))
            elif per == "instance":
                result.append(_array(array[rows]))
            elif per == "first":
                result.append(_first_rows(bags, start, stop, array))
            else:
                result.append(_csr_lists(bags.instances[rows], per))
        if not bags.is_sparse:
            block = np.asarray(bags.instances[rows])
            result += [pa.array(np.ascontiguousarray(block[:, j])) for j in range(block.shape[1])]
        return result


def _type(per: str, array: Any, bags: Bags) -> pa.DataType:
    if per == "first":
        return pa.list_(pa.int64() if array == "indices" else pa.float64())
    if per in ("indices", "data"):
        return pa.list_(pa.int64() if per == "indices" else pa.from_numpy_dtype(bags.instances.dtype))
    return pa.string() if array.dtype.kind == "O" else pa.from_numpy_dtype(array.dtype)


def _array(values: Any) -> pa.Array:
    return pa.array(values, type=pa.string()) if values.dtype.kind == "O" else pa.array(values)


def _lists(values: Any, ends: Any) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array(ends.astype(np.int64)), pa.array(values)).cast(
        pa.list_(pa.from_numpy_dtype(values.dtype))
    )


def _csr_lists(block: Any, part: str) -> pa.Array:
    values = block.indices.astype(np.int64) if part == "indices" else block.data
    return _lists(values, block.indptr)


def _first_rows(bags: Bags, start: int, stop: int, part: str) -> pa.Array:
    assert bags.graph is not None  # noqa: S101 - only reached with a graph
    adjacency = bags.graph.adjacency[start:stop]
    values = adjacency.indices.astype(np.int64) if part == "indices" else adjacency.data
    counts = np.zeros(int(bags.sizes[start:stop].sum()), dtype=np.int64)
    counts[bags.offsets[start:stop] - bags.offsets[start]] = np.diff(adjacency.indptr)
    return _lists(values, np.concatenate([[0], np.cumsum(counts)]))


def _groups(bags: Bags) -> Iterator[tuple[int, int]]:
    """Bags that make row groups of about 64 MB."""
    width = 12 * bags.instances.nnz // max(1, bags.n_instances) if bags.is_sparse else bags.n_features * 8
    rows = max(1, GROUP_BYTES // max(1, width))
    start = 0
    while start < len(bags):
        stop = int(np.searchsorted(bags.offsets, bags.offsets[start] + rows, side="right")) - 1
        stop = min(len(bags), max(start + 1, stop))
        yield start, stop
        start = stop


def _note(source: ParquetSource, path: Path) -> dict[str, Any]:
    raw = source.metadata.get(KEY)
    if raw is None:
        raise DataFileError(
            "parquet",
            expected="a file written by baggraph",
            got=f"another table in {path.name}",
            remedy="use read_table and name its columns",
        )
    if source.metadata.get(CHECK) != str(zlib.crc32(raw)).encode():
        got = "a schema that was altered"
        raise DataFileError("parquet", expected=f"bags in {path.name}", got=got, remedy="fetch or write it again")
    note: dict[str, Any] = json.loads(raw)
    if note.get("version") != VERSION:
        raise DataFileError(
            "parquet",
            expected=f"layout version {VERSION}",
            got=f"version {note.get('version')} in {path.name}",
            remedy="read it with the version of baggraph that wrote it, or a newer one",
        )
    return note


def _tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return {k: _tuples(v) for k, v in value.items()} if isinstance(value, dict) else value


def _read_lists(source: ParquetSource, note: dict[str, Any]) -> sp.csr_array:
    table = source.read(note["roles"]["features"])
    indices, values = (table.column(i).combine_chunks() for i in range(2))
    indptr = np.concatenate([[0], np.cumsum(indices.value_lengths().to_numpy(zero_copy_only=False))])
    parts = (values.flatten().to_numpy(), indices.flatten().to_numpy(), indptr)
    return freeze_csr(sp.csr_array(parts, shape=(len(table), note["n_features"])))


def _read_graph(source: ParquetSource, bags: Bags, names: list[str]) -> BagGraph:
    table = source.read(names).take(pa.array(bags.offsets[:-1]))
    neighbors, weights = (table.column(i).combine_chunks() for i in range(2))
    indptr = np.concatenate([[0], np.cumsum(neighbors.value_lengths().to_numpy(zero_copy_only=False))])
    parts = (weights.flatten().to_numpy(), neighbors.flatten().to_numpy(), indptr)
    return BagGraph(sp.csr_array(parts, shape=(len(bags), len(bags))), bags.ids)
