"""Long tables that can be read twice: whole columns first, then the features a part at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from baggraph.data._columns import EXACT as LONGEST
from baggraph.errors import BagError, DataFileError, InvalidBagsError, name_some

MISSING_MARKS = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A")
# Older pandas must be asked to read every float back as it was written; newer ones do, and warn of the request.
EXACT: dict[str, Any] = (
    {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}
)
BATCH_BYTES = 1 << 25  # of a table that is read a part at a time
WORD = 8


class Source(Protocol):
    """A long table that can be read twice."""

    @property
    def columns(self) -> list[str]:
        """Names of all columns."""
        ...

    def whole(self, names: list[str]) -> pd.DataFrame:
        """These columns, all rows."""
        ...

    def batches(self, names: list[str]) -> Iterator[pd.DataFrame]:
        """These columns, some rows at a time."""
        ...


@dataclass(frozen=True)
class FrameSource:
    """A DataFrame in memory."""

    frame: pd.DataFrame

    @property
    def columns(self) -> list[str]:
        """See :class:`Source`."""
        return list(self.frame.columns)

    def whole(self, names: list[str]) -> pd.DataFrame:
        """See :class:`Source`."""
        return self.frame[names]

    def batches(self, names: list[str]) -> Iterator[pd.DataFrame]:
        """See :class:`Source`."""
        yield self.frame[names]


@dataclass(frozen=True)
class CsvSource:
    """A CSV or TSV file; columns that name things are read as text."""

    path: Path
    text: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """See :class:`Source`."""
        with self._explained():
            names = pd.read_csv(
                self.path, sep=self._separator, header=None, nrows=1, dtype="str", keep_default_na=False
            )
            header = [str(name) for name in names.iloc[0]]
        for name in self.text[:1]:
            if name not in header and len(header) == 1 and (mark := _other_separator(header[0])):
                remedy = "write it again with commas and decimal points, or read it with pandas and use from_frame"
                raise _wrong(f"commas between the columns of {self.path.name}", repr(mark), remedy)
        return header

    def whole(self, names: list[str]) -> pd.DataFrame:
        """See :class:`Source`."""
        with self._explained():
            frame: pd.DataFrame = self._read(usecols=names)[names]
        for name in names:
            _refuse_stray_blanks(frame[name])
            _refuse_rounded(frame[name])
        return frame

    def batches(self, names: list[str]) -> Iterator[pd.DataFrame]:
        """See :class:`Source`; all columns are read, as pandas overlooks surplus cells where it reads only some."""
        rows = _rows(len(self.columns))
        with self._explained(), self._read(chunksize=rows) as chunks:
            while True:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", pd.errors.ParserWarning)
                    chunk = next(chunks, None)
                if chunk is None:
                    return
                for name in names:
                    _refuse_rounded(chunk[name])
                yield chunk[names]

    @property
    def _separator(self) -> str:
        return "\t" if ".tsv" in self.path.name.lower() else ","

    def _read(self, **how: Any) -> Any:
        header = self.columns
        text = [name for name in self.text if name in header]
        marks = {name: [""] if name in text else list(MISSING_MARKS) for name in header}
        return pd.read_csv(
            self.path,
            sep=self._separator,
            dtype=dict.fromkeys(text, "str"),
            index_col=False,  # else a comma at the end of every line would shift all columns
            keep_default_na=False,
            na_values=marks,
            **EXACT,
            low_memory=False,
            **how,
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except pd.errors.ParserWarning as error:
            got = "more cells than columns in some row"
            raise DataFileError(
                "table", expected=f"a table in {self.path.name}", got=got, remedy="correct these rows"
            ) from error
        except (ValueError, OSError) as error:
            if isinstance(error, BagError):
                raise
            raise DataFileError(
                "table", expected=f"a table in {self.path.name}", got=str(error).strip(), remedy="check the file"
            ) from error


def _rows(n_columns: int) -> int:
    """Rows of a batch: fewer where the table is wide."""
    return max(1, BATCH_BYTES // (WORD * max(1, n_columns)))


def _other_separator(header: str) -> str | None:
    return next((mark for mark in (";", "\t", "|", ",") if mark in header), None)


def _refuse_stray_blanks(column: pd.Series[Any]) -> None:
    """A file written by hand may have 'a' and 'a ': two bags, or two classes, where one is meant."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return
    names = [name for name in column.dropna().unique() if isinstance(name, str)]
    bare = pd.Series([name.strip() for name in names], dtype="object")
    if bare.duplicated().any():
        alike = [name for name, kept in zip(names, bare, strict=True) if kept == bare[bare.duplicated()].iloc[0]]
        got = f"{name_some(alike)} in column {column.name!r}"
        raise _wrong("names that differ in more than blanks", got, "correct the table")


def _refuse_rounded(column: pd.Series[Any]) -> None:
    """Pandas makes floats of integers beside a gap; long ones, which are identifiers, would be rounded."""
    if column.dtype != np.float64 or not column.abs().max() >= LONGEST or not column.isna().any():
        return
    present = column.dropna()
    if np.isfinite(present).all() and (present % 1 == 0).all():
        got = f"one of about {present.abs().max():.0f} in column {column.name!r}"
        raise _wrong("integers up to 2**53 beside missing values", got, "leave out columns of identifiers")


def _wrong(expected: str, got: str, remedy: str) -> InvalidBagsError:
    return InvalidBagsError("table", expected=expected, got=got, remedy=remedy)


class ParquetSource:
    """A Parquet file; a part that is read is at least one row group, which must fit into memory."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path, self.trouble = path, (pa.ArrowException, OSError, KeyError, UnicodeDecodeError)
        # Integers with gaps would become float64, which rounds the long ones.
        self.types = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype(), pa.bool_(): pd.BooleanDtype()}
        with self._explained():
            # Buffered ahead, a file larger than memory would fill it.
            options = {"page_checksum_verification": True, "pre_buffer": False, "buffer_size": 1 << 16}
            self.file = pq.ParquetFile(path, **options)
            names = self.file.schema_arrow.names
        # The index that pandas numbers rows with is no column of anybody.
        self.columns = [name for name in names if not name.startswith("__index_level_")]

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """What the writer noted in the schema."""
        return dict(self.file.schema_arrow.metadata or {})

    def whole(self, names: list[str]) -> pd.DataFrame:
        """See :class:`Source`."""
        with self._explained():
            return self._frame(self.file.read(columns=names), names)

    def read(self, names: list[str]) -> Any:
        """These columns as an Arrow table, each under its very name."""
        with self._explained():
            return self.file.read(columns=names).select(names)

    def batches(self, names: list[str]) -> Iterator[pd.DataFrame]:
        """See :class:`Source`."""
        with self._explained():
            for groups in self._row_groups():
                # Arrow lets go of what it read of a row group when it is through with all that were asked for.
                for batch in self.file.iter_batches(batch_size=_rows(len(names)), columns=names, row_groups=groups):
                    yield self._frame(batch, names)

    def _row_groups(self) -> Iterator[list[int]]:
        """Neighbouring row groups of one batch together."""
        groups: list[int] = []
        size = 0
        for group in range(self.file.num_row_groups):
            more = self.file.metadata.row_group(group).total_byte_size
            if groups and size + more > BATCH_BYTES:
                yield groups
                groups, size = [], 0
            groups, size = [*groups, group], size + more
        yield groups

    def _frame(self, table: Any, names: list[str]) -> pd.DataFrame:
        gaps = {field.type for field, column in zip(table.schema, table.columns, strict=True) if column.null_count}
        types = {kind: own for kind, own in self.types.items() if kind in gaps}
        return table.to_pandas(split_blocks=True, ignore_metadata=True, types_mapper=types.get)[names]

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self.trouble as error:
            raise DataFileError(
                "table",
                expected=f"a Parquet file in {self.path.name}",
                got=" ".join(str(error).split()),
                remedy="write it again",
            ) from error
