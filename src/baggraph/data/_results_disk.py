"""Result tables on disk: a folder of Parquet files that are only ever added to."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from baggraph.data.readers._atomic import replacing
from baggraph.errors import DataFileError


def write_part(rows: pa.Table, folder: Path) -> Path:
    """One new file; its name begins with the time, and no two writers choose the same."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        got = f"{folder} ({error.strerror})"
        raise DataFileError("results", expected="a folder to append to", got=got, remedy="choose another") from error
    path = folder / f"{time.time_ns():020d}-{uuid.uuid4().hex}.parquet"
    with replacing(path) as draft:
        pq.write_table(rows, draft, compression="zstd")
    return path


def read_parts(folder: Path, schema: Any) -> pa.Table:
    """All rows in the order in which they were written; drafts of writers at work are not looked at."""
    if not folder.is_dir():
        remedy = "append to it first"
        raise DataFileError("results", expected="a folder of results", got=f"none at {folder}", remedy=remedy)
    parts = sorted(path for path in folder.glob("*.parquet") if not path.name.startswith("."))
    return pa.concat_tables([schema.empty_table(), *(_read_part(path, schema) for path in parts)])


def _read_part(path: Path, schema: Any) -> pa.Table:
    try:
        rows = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        remedy = "move the file away; the others stay readable"
        raise DataFileError("results", expected=f"Parquet in {path.name}", got=str(error), remedy=remedy) from error
    absent = [name for name in schema.names if name not in rows.schema.names]
    if absent:
        remedy = "look whether another program wrote it"
        got = f"none in {path.name}"
        raise DataFileError("results", expected=f"a column {absent[0]!r}", got=got, remedy=remedy)
    return rows.select(schema.names).cast(schema)
