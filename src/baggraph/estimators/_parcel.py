"""A model on disk: one folder of JSON, safetensors and Parquet, with a digest of every byte, and no code anywhere."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors import numpy as safetensors

import baggraph
from baggraph.data._fingerprint import digest
from baggraph.data.graph import BagGraph
from baggraph.errors import BagError, DataFileError

FORMAT, VERSION = "baggraph model", 1
HEADER, ARRAYS = "model.json", "arrays.safetensors"
NOT_JSON = (ValueError, RecursionError)  # UnicodeDecodeError and JSONDecodeError are ValueErrors


@dataclass
class Parcel:
    """What is on the disk: facts that JSON holds, arrays by name, and graphs in the order of their files."""

    facts: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    graphs: list[BagGraph] = field(default_factory=list)


# ---------------------------------------------------------------------- writing


def write_parcel(parcel: Parcel, folder: Path, *, overwrite: bool) -> None:
    """Write the folder whole, or not at all; of what stands there, only another model may be replaced."""
    _refuse_occupied(folder, overwrite)
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        (draft / ARRAYS).write_bytes(safetensors.save(parcel.arrays))
        for number, graph in enumerate(parcel.graphs):
            pq.write_table(_table(graph), draft / _graph_file(number))
        body = {**parcel.facts, "versions": versions(), "files": _digests(draft)}
        document = {"format": FORMAT, "version": VERSION, "digest": digest(body), "model": body}
        (draft / HEADER).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        draft.chmod(0o755)
        if folder.exists():
            folder.rename(draft.with_name(draft.name + ".old"))
        draft.rename(folder)
    finally:
        for rest in (draft, draft.with_name(draft.name + ".old")):
            shutil.rmtree(rest, ignore_errors=True)


def versions() -> dict[str, str]:
    """Of what made the model."""
    import torch

    found = {"baggraph": baggraph.__version__, "python": platform.python_version(), "torch": str(torch.__version__)}
    return {**found, "numpy": np.__version__}


def _refuse_occupied(folder: Path, overwrite: bool) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    is_model = (folder / HEADER).is_file()
    if not is_model or not overwrite:
        got = f"a model in {folder}" if is_model else f"something else at {folder}"
        remedy = "pass overwrite=True, or choose another" if is_model else "choose another"
        raise DataFileError("save", expected="a folder that does not exist yet", got=got, remedy=remedy)


def _digests(folder: Path) -> dict[str, str]:
    return {path.name: _sha256(path.read_bytes()) for path in sorted(folder.iterdir())}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _graph_file(number: int) -> str:
    return f"graph-{number}.parquet"


def _table(graph: BagGraph) -> pa.Table:
    """A row a bag: its id, positions of its neighbours, and their weights."""
    matrix = graph.adjacency
    starts = pa.array(matrix.indptr.astype(np.int64))
    columns = {"neighbors": matrix.indices.astype(np.int64), "weights": matrix.data}
    lists = {name: pa.LargeListArray.from_arrays(starts, pa.array(values)) for name, values in columns.items()}
    return pa.table({"bag": pa.array(graph.ids.tolist(), type=pa.string()), **lists})


# ---------------------------------------------------------------------- reading


def read_parcel(folder: Path) -> Parcel:
    """Read a folder after its format, its version and the digest of every file were found right."""
    body = _header(folder)
    files = body.get("files")
    wanted = {ARRAYS} | {_graph_file(number) for number in range(len(files) - 1)} if isinstance(files, Mapping) else {}
    if not isinstance(files, Mapping) or set(files) != wanted:
        raise _broken(HEADER, f"a list of files that is not one: {files!r:.80}")
    contents = {name: _checked(folder / name, files[name]) for name in files}
    try:
        arrays = safetensors.load(contents[ARRAYS])
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _broken(ARRAYS, f"no safetensors ({error})") from error
    graphs = [_graph(contents[_graph_file(number)], _graph_file(number)) for number in range(len(files) - 1)]
    return Parcel({name: fact for name, fact in body.items() if name != "files"}, arrays, graphs)


def _header(folder: Path) -> dict[str, Any]:
    path = folder / HEADER
    if not path.is_file():
        got = f"no {HEADER} in {folder}" if folder.is_dir() else f"no folder {folder}"
        raise DataFileError("load", expected="a folder that save wrote", got=got, remedy="check the path")
    try:
        document = json.loads(path.read_bytes())
    except NOT_JSON as error:
        raise _broken(HEADER, f"no JSON ({error})") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _broken(HEADER, "a header of something else")
    version = document.get("version")
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        remedy = "update baggraph" if newer else "write the model again"
        got = f"version {version!r}" + (f", written by baggraph {_writer(document)}" if newer else "")
        raise DataFileError("load", expected=f"format version {VERSION}", got=got, remedy=remedy)
    body = document.get("model")
    if not isinstance(body, dict) or document.get("digest") != digest(body):
        raise _broken(HEADER, "facts that were altered")
    return body


def _writer(document: dict[str, Any]) -> str:
    try:
        return str(document["model"]["versions"]["baggraph"])
    except (KeyError, TypeError):
        return "of an unknown version"


def _checked(path: Path, expected: Any) -> bytes:
    if not path.is_file():
        raise _broken(path.name, "no such file")
    content = path.read_bytes()
    if _sha256(content) != expected:
        raise _broken(path.name, f"{len(content):,} bytes that are not those that were written")
    return content


def _graph(content: bytes, name: str) -> BagGraph:
    try:
        table = pq.ParquetFile(pa.BufferReader(content)).read()
        neighbors, weights = (table.column(column).combine_chunks() for column in ("neighbors", "weights"))
        starts = np.concatenate([[0], np.cumsum(neighbors.value_lengths().to_numpy(zero_copy_only=False))])
        parts = (weights.flatten().to_numpy(), neighbors.flatten().to_numpy(), starts)
        matrix = sp.csr_array(parts, shape=(len(table), len(table)))
        matrix.check_format(full_check=True)  # scipy follows a column that does not exist to wherever it leads
        return BagGraph(matrix, table.column("bag").to_pylist())
    except BagError as error:
        raise _broken(name, f"a graph that is none ({error})") from error
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise _broken(name, f"no table of a graph ({error})") from error


def _broken(name: str, got: str) -> DataFileError:
    remedy = "the model is damaged or was altered: copy it again, or fit it again"
    return DataFileError("load", expected=f"{name} as it was saved", got=" ".join(got.split()), remedy=remedy)
