"""Long tables that can be read twice: whole columns first, then the features a part at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from baggraph.errors import DataFileError

MISSING_MARKS = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A")
# Older pandas must be asked to read every float back as it was written; newer ones do, and warn of the request.
EXACT: dict[str, Any] = (
    {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}
)
CSV_ROWS = 200_000
PARQUET_ROWS = 65_536


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
        return list(self._read(nrows=0).columns)

    def whole(self, names: list[str]) -> pd.DataFrame:
        """See :class:`Source`."""
        return self._read(usecols=names)[names]

    def batches(self, names: list[str]) -> Iterator[pd.DataFrame]:
        """See :class:`Source`."""
        with self._read(usecols=names, chunksize=CSV_ROWS) as chunks:
            for chunk in chunks:
                yield chunk[names]

    def _read(self, **how: Any) -> Any:
        separator = "\t" if ".tsv" in self.path.suffixes else ","
        try:
            header = list(pd.read_csv(self.path, sep=separator, nrows=0).columns)
            text = [name for name in self.text if name in header]
            marks = {name: [""] if name in text else list(MISSING_MARKS) for name in header}
            return pd.read_csv(
                self.path,
                sep=separator,
                dtype=dict.fromkeys(text, "str"),
                keep_default_na=False,
                na_values=marks,
                **EXACT,
                low_memory=False,
                **how,
            )
        except (ValueError, UnicodeDecodeError, pd.errors.EmptyDataError, OSError) as error:
            raise DataFileError(
                "table", expected=f"a table in {self.path.name}", got=str(error), remedy="check the file"
            ) from error


class ParquetSource:
    """A Parquet file, read by row groups."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            self.file = pq.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            raise DataFileError(
                "table", expected=f"a Parquet file in {path.name}", got=str(error), remedy="write it again"
            ) from error

    @property
    def columns(self) -> list[str]:
        """See :class:`Source`."""
        return list(self.file.schema_arrow.names)

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """What the writer noted in the schema."""
        return dict(self.file.schema_arrow.metadata or {})

    def whole(self, names: list[str]) -> pd.DataFrame:
        """See :class:`Source`."""
        return self.file.read(columns=names).to_pandas(split_blocks=True)[names]

    def batches(self, names: list[str]) -> Iterator[pd.DataFrame]:
        """See :class:`Source`."""
        for batch in self.file.iter_batches(batch_size=PARQUET_ROWS, columns=names):
            yield batch.to_pandas(split_blocks=True)[names]
