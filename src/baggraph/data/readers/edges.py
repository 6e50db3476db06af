"""Tables of edges between bags, as people write them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from baggraph.data.readers._sources import CsvSource, ParquetSource, Source
from baggraph.errors import DataFileError, closest

__all__ = ["read_edges"]

ENDS = ("source", "target")


def read_edges(path: str | Path) -> tuple[pd.DataFrame, str | None]:
    r"""Edges as text in columns ``source`` and ``target``, and the name of the column of weights, where there is one.

    A table of two columns, or of two and ``weight``, may call its ends as it likes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "borders.csv"
    ...     _ = path.write_text("from,to\n01,02\n")
    ...     read_edges(path)
    (  source target
    0     01     02, None)
    """
    path = Path(path)
    if not path.is_file():
        raise DataFileError("edges", expected="a table of edges", got=f"no file at {path}", remedy="check the path")
    names = _source(path, ()).columns
    weight = "weight" if "weight" in names else None
    ends = [name for name in names if name != weight]
    if not set(ENDS) <= set(ends):
        if len(ends) != 2:
            absent = next(name for name in ENDS if name not in ends)
            got = f"none called {absent!r} in {path.name}"
            raise DataFileError("edges", expected="columns source and target", got=got, remedy=closest(absent, ends))
    else:
        ends = list(ENDS)
    source = _source(path, tuple(ends))
    frame = source.whole([*ends, *([weight] if weight else [])])
    return frame.set_axis([*ENDS, *([weight] if weight else [])], axis=1), weight


def _source(path: Path, text: tuple[str, ...]) -> Source:
    return ParquetSource(path) if path.suffix.lower() == ".parquet" else CsvSource(path, text)
