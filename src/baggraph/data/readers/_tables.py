"""Looks at tables before anything is guessed of them, and what cannot be meant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baggraph.data.readers._sources import CsvSource, ParquetSource, Source
from baggraph.errors import ParameterError, name_some

SLIPS = 0.2  # of a column of numbers may be words by mistake; more make it one of text


def refuse_slips(name: str, column: pd.Series[Any]) -> None:
    """Numbers with a word among them are no column of text, and must not be lost without a word."""
    known = column.dropna()
    odd = pd.to_numeric(known, errors="coerce").isna()
    if len(known) and 0 < odd.sum() <= SLIPS * len(known):
        value, row = str(known[odd].iloc[0]), int(np.flatnonzero(column.index == known[odd].index[0])[0]) + 1
        raise wrong(f"numbers in column {name!r}", f"{value!r} in row {row}", f"mend it, or pass --leave-out {name}")


def refuse_holes(table: pd.DataFrame, named: str | None, possible: Sequence[str]) -> None:
    """A column ``named`` as a bag is meant, even where a row of it is empty."""
    if named is not None and named not in possible and table[named].isna().any() and table[named].nunique() > 1:
        row = int(table[named].isna().to_numpy().argmax()) + 1
        raise wrong(f"a bag in every row of {named!r}", f"none in row {row}", "fill it in, or pass --bag COLUMN")


def counts_rows(column: pd.Series[Any], bags: pd.Series[Any]) -> bool:
    """Whether it numbers the rows of every bag: 0, 1, 2 or 1, 2, 3; bags of one row alone would show nothing."""
    place = column.groupby(bags, sort=False).cumcount()
    return bool(place.max() > 1 and ((column == place).all() or (column == place + 1).all()))


def named_in(column: pd.Series[Any], files: set[str]) -> float:
    """How many entries name a file, with or without the suffix of the image that it was made from."""
    return float(column.astype(str).map(lambda name: name in files or Path(name).stem in files).mean())


def sample(path: Path) -> pd.DataFrame:
    source: Source = ParquetSource(path) if path.suffix.lower() == ".parquet" else CsvSource(path, ())
    first = next(source.batches(source.columns), None)
    columns = source.columns
    if len(columns) == 1 and (mark := next((mark for mark in ";\t|" if mark in columns[0]), None)):
        remedy = "write the table with commas, or with tabs as .tsv"
        raise wrong(
            f"columns of {path.name} parted by commas", f"one column: {columns[0][:40]!r}, with {mark!r} in it", remedy
        )
    if first is None or not len(first):
        raise wrong(f"at least one row in {path.name}", "none", "check the file")
    return first


def wrong(expected: str, got: str, remedy: str) -> ParameterError:
    return ParameterError("columns", expected=expected, got=got, remedy=remedy)


def only_table(folder: Path) -> Path:
    """The table in a folder, or beside it under its name or as labels."""
    beside = [folder.parent / f"{stem}{end}" for stem in (folder.name, "labels") for end in (".csv", ".parquet")]
    inside = [path for end in ("*.csv", "*.tsv", "*.parquet") for path in sorted(folder.glob(end))]
    found = [path for path in [*inside, *beside] if path.is_file()]
    if len(found) != 1:
        got = f"{len(found)} that could be it" + (f": {name_some(path.name for path in found)}" if found else "")
        raise wrong(f"a table of labels for the files in {folder.name}", got, "pass --labels FILE")
    return found[0]


# ---------------------------------------------------------------------- rules
