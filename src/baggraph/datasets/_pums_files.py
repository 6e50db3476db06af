"""Raw person files of the American Community Survey (PUMS): the columns that are used, and how they are read.

Columns and codes are those of the data dictionary of the 2010-2014 five-year files.
"""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pandas as pd

from baggraph.errors import BagError, DataFileError, InvalidBagsError, name_some

STAGE = "pums"
KEYS = ("SERIALNO", "SPORDER", "ST", "PUMA10", "PWGTP", "ADJINC")

# Dollars of the year before the interview; ADJINC brings them to dollars of 2014.
INCOMES = ("INTP", "OIP", "PAP", "PERNP", "PINCP", "RETP", "SEMP", "SSIP", "SSP", "WAGP")
# Age; minutes to work; income as a percentage of the poverty line; usual hours of work a week.
NUMBERS = ("AGEP", "JWMNP", "POVPIP", "WKHP")
NEVER_BLANK = ("AGEP", "CIT", "MAR", "SEX", "DIS", "RAC1P", "HISP", "NATIVITY", *(f"HINS{i}" for i in range(1, 8)))
# Number of codes, which count from 1.
CATEGORIES = {
    "CIT": 5,  # citizenship
    "COW": 9,  # class of worker
    "DIS": 2,  # with a disability, without
    "ENG": 4,  # ability to speak English
    "ESR": 6,  # employment status
    "FER": 2,  # gave birth within the past year
    "GCL": 2,  # lives with grandchildren
    **{f"HINS{i}": 2 for i in range(1, 8)},  # health insurance by kind
    "HISP": 24,  # Hispanic origin
    "LANX": 2,  # another language than English at home
    "MAR": 5,  # marital status
    "MIG": 3,  # lived here a year ago
    "MIL": 4,  # military service
    "NATIVITY": 2,  # native, foreign born
    "RAC1P": 9,  # race
    "SCH": 3,  # school enrolment
    "SCHL": 24,  # educational attainment
    "SEX": 2,
}
FEATURES = (*NUMBERS, *INCOMES, *CATEGORIES)
# Code 8 of FER marks areas in which the answers of 2012 were withheld: a place, not a person.
BLANK_CODES = {"FER": ["8"]}


def people_in(folder: Path, chunk_rows: int) -> Iterator[pd.DataFrame]:
    """Chunks of all person files, with the columns in use, their names in capitals."""
    found = 0
    for path, member in _sources(folder):
        name = str(path / member) if member else str(path)
        with _opened(path, member) as file:
            columns = _header(file)
            if "PWGTP" in columns:
                found += 1
                yield from _chunks(file, columns, chunk_rows, name)
    if not found:
        remedy = "unpack csv_pus.zip of the 2010-2014 five-year survey there"
        raise wrong(DataFileError, f"a person file (.csv, .csv.gz or .zip) in {folder}", "none", remedy)


def _sources(folder: Path) -> Iterator[tuple[Path, str | None]]:
    """Paths of the CSV files in a folder, and members of its zip files."""
    for path in sorted(folder.glob("*")):
        if path.name.lower().endswith((".csv", ".csv.gz")):
            yield path, None
        elif path.suffix.lower() == ".zip":
            with _readable(path), zipfile.ZipFile(path) as archive:
                members = [name for name in archive.namelist() if name.lower().endswith(".csv")]
            yield from ((path, member) for member in sorted(members))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise wrong(DataFileError, f"a readable file {path}", str(error), "fetch it again") from error


@contextmanager
def _opened(path: Path, member: str | None) -> Iterator[IO[bytes]]:
    with _readable(path), ExitStack() as stack:
        if member is not None:
            yield stack.enter_context(stack.enter_context(zipfile.ZipFile(path)).open(member))
        elif path.suffix.lower() == ".gz":
            yield stack.enter_context(cast(IO[bytes], gzip.GzipFile(path)))
        else:
            yield stack.enter_context(path.open("rb"))


def _header(file: IO[bytes]) -> list[str]:
    """Names of the columns in capitals: these files write serialno."""
    names = file.readline().decode("utf-8-sig", errors="replace").split(",")
    return [name.strip().strip('"').upper() for name in names]


def _chunks(file: IO[bytes], columns: list[str], chunk_rows: int, name: str) -> Iterator[pd.DataFrame]:
    in_use = [*KEYS, *FEATURES]
    missing = [column for column in in_use if column not in columns]
    if missing:
        remedy = "take the person files of the 2010-2014 five-year survey"
        raise wrong(DataFileError, f"column {missing[0]} in {name}", "none", remedy)
    settings: dict[str, Any] = {"dtype": {"SERIALNO": str}, "na_values": BLANK_CODES, "low_memory": False}
    with pd.read_csv(
        file, names=columns, usecols=in_use, chunksize=chunk_rows, skipinitialspace=True, **settings
    ) as reader:
        for chunk in reader:
            numbers = {column: _numbers(chunk[column], name) for column in in_use if column != "SERIALNO"}
            for column in ("SPORDER", "PWGTP", "ADJINC"):
                refused = numbers[column][~(numbers[column] > 0)]
                if len(refused):
                    got = shown(refused.iloc[0])
                    raise wrong(DataFileError, f"{column} above 0 in {name}", got, "correct the file")
            yield chunk[in_use].assign(**numbers)


def read_regions(regions: pd.DataFrame | str | Path) -> pd.Series:
    """Region by state * 100000 + PUMA, the number by which an area is known in the whole country."""
    table = regions
    if not isinstance(table, pd.DataFrame):
        with _readable(Path(table)):
            table = pd.read_parquet(table) if str(table).endswith(".parquet") else pd.read_csv(table)
    missing = [name for name in ("state_fips", "puma10", "region") if name not in table]
    if missing:
        got = f"only {name_some(table.columns)}"
        raise wrong(InvalidBagsError, f"column {missing[0]!r} in the regions", got, "rename the columns")
    areas = _numbers(table["state_fips"], "the regions") * 100_000 + _numbers(table["puma10"], "the regions")
    if areas.isna().any() or table["region"].isna().any():
        got = f"a blank in row {int((areas.isna() | table['region'].isna()).argmax())}"
        raise wrong(InvalidBagsError, "a region for every area", got, "fill it in or drop the row")
    if areas.duplicated().any():
        state, puma = divmod(int(areas[areas.duplicated()].iloc[0]), 100_000)
        got = f"PUMA {puma} of state {state} twice"
        raise wrong(InvalidBagsError, "one region for every area", got, "keep one of the rows")
    return pd.Series(table["region"].astype(str).to_numpy(dtype=object), index=areas.to_numpy())


def _numbers(column: pd.Series, name: str) -> pd.Series:
    numbers = pd.to_numeric(column, errors="coerce").astype(np.float64)
    broken = column[numbers.isna() & column.notna()]
    if len(broken):
        expected, got = f"numbers in column {column.name} of {name}", repr(broken.iloc[0])
        raise wrong(DataFileError, expected, got, "correct the file")
    return numbers


def shown(value: float) -> str:
    """A number without superfluous digits.

    >>> shown(3.0), shown(np.nan)
    ('3', 'a blank')
    """
    return "a blank" if np.isnan(value) else f"{value:g}"


def wrong(kind: type[BagError], expected: str, got: str, remedy: str) -> BagError:
    """An error of this stage."""
    return kind(STAGE, expected=expected, got=got, remedy=remedy)
