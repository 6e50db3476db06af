"""Graphs as tables of edges, in memory, in CSV and in Parquet."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data._graph_builders import from_columns
from baggraph.data._graph_checks import wrong
from baggraph.errors import DataFileError, closest

if TYPE_CHECKING:
    from baggraph.data.readers._sources import Source


def to_table(adjacency: sp.csr_array, ids: NDArray[Any]) -> pd.DataFrame:
    """See :meth:`BagGraph.to_table`."""
    half = sp.csr_array(sp.triu(adjacency, k=1)).tocoo()
    rows, columns = half.coords
    return pd.DataFrame({"source": ids[rows], "target": ids[columns], "weight": half.data})


def write_csv(table: pd.DataFrame, path: str | Path) -> Path:
    """See :meth:`BagGraph.to_csv`."""
    from baggraph.data.readers._atomic import replacing  # readers stand on bags, and bags on graphs

    with replacing(Path(path)) as draft:
        table.to_csv(draft, index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    return Path(path)


def write_parquet(table: pd.DataFrame, path: str | Path) -> Path:
    """See :meth:`BagGraph.to_parquet`."""
    from baggraph.data.readers._atomic import replacing

    with replacing(Path(path)) as draft:
        table.to_parquet(draft, index=False)
    return Path(path)


def from_table(table: Any, names: NDArray[Any], *, source: str, target: str, weight: str | None) -> sp.csr_array:
    """See :meth:`BagGraph.from_table`."""
    wanted = [source, target] + ([] if weight is None else [weight])
    origin = _origin(table, (source, target))
    for column in wanted:
        if column not in origin.columns:
            raise wrong("a table of edges", f"no column {column!r}", closest(column, map(str, origin.columns)))
    frame = origin.whole(wanted)
    for column in (source, target):
        holes = frame[column].isna().to_numpy()
        if holes.any():
            got = f"none in column {column!r} of row {int(np.argmax(holes))}"
            raise wrong("a bag at both ends of every edge", got, "fill it in or drop that edge")
    ends = [[str(end) for end in frame[column].tolist()] for column in (source, target)]
    return from_columns(ends[0], ends[1], [1.0] * len(frame) if weight is None else frame[weight].tolist(), names)


def _origin(table: Any, text: tuple[str, str]) -> Source:
    from baggraph.data.readers._sources import CsvSource, FrameSource, ParquetSource

    if isinstance(table, pd.DataFrame):
        return FrameSource(table)
    path = Path(table)
    if path.suffix == ".csv":
        return CsvSource(path, text)
    if path.suffix == ".parquet":
        return ParquetSource(path)
    raise DataFileError(
        "graph", expected="a .csv or .parquet file", got=path.name, remedy="convert it, or pass a frame"
    )
