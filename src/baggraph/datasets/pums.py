"""Regions as bags of people: from raw person files of the American Community Survey (PUMS) to bags.

After Flaxter, Wang and Smola, "Who supported Obama in 2012? Ecological inference through distribution
regression" (KDD 2015).  Columns and codes are those of the data dictionary of the 2010-2014 five-year files;
FEATURES lists the ones that are used.  A blank means "not asked of this person", not "unknown".

Only people interviewed from 2012 on carry the 2010 area code (PUMA10) on which the regions are defined.
"""

from __future__ import annotations

import gzip
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.errors import BagError, BagWarning, DataFileError, InvalidBagsError, ParameterError, name_some

__all__ = ["feature_names", "read_pums"]

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


def feature_names() -> list[str]:
    """Names of the columns that :func:`read_pums` makes, whatever the files hold.

    >>> feature_names()[:3], feature_names()[-2:], len(feature_names())
    (['AGEP', 'JWMNP', 'JWMNP_blank'], ['SEX_1', 'SEX_2'], 159)
    """
    numbers = [[name] if name in NEVER_BLANK else [name, f"{name}_blank"] for name in (*NUMBERS, *INCOMES)]
    codes = [
        [f"{name}_{code}" for code in range(1, count + 1)] + ([] if name in NEVER_BLANK else [f"{name}_blank"])
        for name, count in CATEGORIES.items()
    ]
    return [name for group in numbers + codes for name in group]


def read_pums(
    folder: str | Path,
    regions: pd.DataFrame | str | Path,
    *,
    labels: Mapping[str, float] | pd.Series | None = None,
    people_per_region: int | None = 100,
    random_state: int = 0,
    chunk_rows: int = 500_000,
) -> Bags:
    """Bags of people, a region each, drawn without replacement by person weight.

    Of every region, the people with the largest u^(1/w) stay (Efraimidis and Spirakis 2006): w is the person
    weight PWGTP, u a hash of seed, household and person, so that neither the order of the files nor the size of a
    chunk matters.  The first m people of a bag are what ``people_per_region=m`` gives.  Files are read once, in
    chunks.

    The features, :func:`feature_names`, are numbers as they are, incomes x in dollars of 2014 as
    sign(x) log(1 + |x|), and one column for each code of a category.  A blank is 0 and marked in a column
    ``<name>_blank``.

    Parameters
    ----------
    folder
        With person files, ``.csv``, ``.csv.gz`` or ``.zip``; those without a column PWGTP are passed over.
    regions
        A table, or a parquet or CSV file, with columns state_fips, puma10 and region.
    labels
        Target by region; NaN where there is none.
    people_per_region
        None keeps everybody.
    random_state
        Of the choice of people.
    chunk_rows
        People read at a time: the memory that is needed.

    """
    for name, value in (("people_per_region", people_per_region), ("chunk_rows", chunk_rows)):
        if value is not None and value < 1:
            raise _wrong(ParameterError, f"{name} of 1 or more", str(value), "raise it")
    areas = _read_regions(regions)
    names = sorted(set(areas))
    counts = dict.fromkeys(("people_read", "people_placed", "people_without_puma10", "people_in_unknown_pumas"), 0)
    parts: list[pd.DataFrame] = []
    for people in _stream(Path(folder), chunk_rows):
        placed = _place(people, areas, names, counts)
        if len(placed):
            placed["key"] = _keys(placed, random_state)
            parts = [_first(pd.concat([*parts, placed]), people_per_region)] if people_per_region else [*parts, placed]
    if not counts["people_placed"]:
        got = f"none of {counts['people_read']:,} people ({counts['people_without_puma10']:,} without PUMA10)"
        raise _wrong(DataFileError, "people in the areas of the regions", got, "pass the regions of these states")
    return _bags(_first(pd.concat(parts), None), names, labels, {**counts, "random_state": int(random_state)})


# ---------------------------------------------------------------------- files


def _read_regions(regions: pd.DataFrame | str | Path) -> pd.Series:
    """Region by state * 100000 + PUMA, the number by which an area is known in the whole country."""
    table = regions
    if not isinstance(table, pd.DataFrame):
        with _readable(Path(table)):
            table = pd.read_parquet(table) if str(table).endswith(".parquet") else pd.read_csv(table)
    missing = [name for name in ("state_fips", "puma10", "region") if name not in table]
    if missing:
        got = f"only {name_some(table.columns)}"
        raise _wrong(InvalidBagsError, f"column {missing[0]!r} in the regions", got, "rename the columns")
    areas = _numbers(table["state_fips"], "the regions") * 100_000 + _numbers(table["puma10"], "the regions")
    if areas.isna().any() or table["region"].isna().any():
        got = f"a blank in row {int((areas.isna() | table['region'].isna()).argmax())}"
        raise _wrong(InvalidBagsError, "a region for every area", got, "fill it in or drop the row")
    if areas.duplicated().any():
        state, puma = divmod(int(areas[areas.duplicated()].iloc[0]), 100_000)
        got = f"PUMA {puma} of state {state} twice"
        raise _wrong(InvalidBagsError, "one region for every area", got, "keep one of the rows")
    return pd.Series(table["region"].astype(str).to_numpy(dtype=object), index=areas.to_numpy())


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
    except BagError:
        raise
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise _wrong(DataFileError, f"a readable file {path}", str(error), "fetch it again") from error


@contextmanager
def _opened(path: Path, member: str | None) -> Iterator[IO[bytes]]:
    with _readable(path), ExitStack() as stack:
        if member is not None:
            yield stack.enter_context(stack.enter_context(zipfile.ZipFile(path)).open(member))
        elif path.suffix.lower() == ".gz":
            yield stack.enter_context(cast(IO[bytes], gzip.GzipFile(path)))
        else:
            yield stack.enter_context(path.open("rb"))


def _stream(folder: Path, chunk_rows: int) -> Iterator[pd.DataFrame]:
    """Chunks of all person files, with the columns in use, their names in capitals."""
    found = 0
    for path, member in _sources(folder):
        columns = _header(path, member)
        if "PWGTP" not in columns:
            continue
        found += 1
        name = str(path / member) if member else str(path)
        missing = [column for column in (*KEYS, *FEATURES) if column not in columns]
        if missing:
            remedy = "take the person files of the 2010-2014 five-year survey"
            raise _wrong(DataFileError, f"column {missing[0]} in {name}", "none", remedy)
        in_use = {columns[column]: column for column in (*KEYS, *FEATURES)}
        with _opened(path, member) as file:
            yield from _chunks(file, in_use, chunk_rows, name)
    if not found:
        remedy = "unpack csv_pus.zip of the 2010-2014 five-year survey there"
        raise _wrong(DataFileError, f"a person file (.csv, .csv.gz or .zip) in {folder}", "none", remedy)


def _header(path: Path, member: str | None) -> dict[str, str]:
    """Columns as they stand in the file, by their names in capitals: these files write serialno."""
    with _opened(path, member) as file:
        names = file.readline().decode("utf-8-sig", errors="replace").strip().split(",")
    return {name.strip().strip('"').upper(): name.strip().strip('"') for name in names}


def _chunks(file: IO[bytes], in_use: dict[str, str], chunk_rows: int, name: str) -> Iterator[pd.DataFrame]:
    blanks = {original: BLANK_CODES[column] for original, column in in_use.items() if column in BLANK_CODES}
    serial = next(original for original, column in in_use.items() if column == "SERIALNO")
    settings: dict[str, Any] = {"dtype": {serial: str}, "na_values": blanks, "low_memory": False}
    with pd.read_csv(file, usecols=list(in_use), chunksize=chunk_rows, skipinitialspace=True, **settings) as reader:
        for chunk in reader:
            people = chunk.rename(columns=in_use)[list(in_use.values())]
            for column in people.columns.drop("SERIALNO"):
                people[column] = _numbers(people[column], name)
            for column in ("SPORDER", "PWGTP", "ADJINC"):
                refused = people[column][~(people[column] > 0)]
                if len(refused):
                    got = _shown(refused.iloc[0])
                    raise _wrong(DataFileError, f"{column} above 0 in {name}", got, "correct the file")
            yield people


def _numbers(column: pd.Series, name: str) -> pd.Series:
    numbers = pd.to_numeric(column, errors="coerce").astype(np.float64)
    broken = column[numbers.isna() & column.notna()]
    if len(broken):
        raise _wrong(
            DataFileError, f"numbers in column {column.name} of {name}", repr(broken.iloc[0]), "correct the file"
        )
    return numbers


# ---------------------------------------------------------------------- people


def _place(people: pd.DataFrame, areas: pd.Series, names: list[str], counts: dict[str, int]) -> pd.DataFrame:
    """The people of known areas, with the position of their region; the others are counted."""
    without = ~(people["PUMA10"] > 0)  # -9, or blank
    region = (people["ST"] * 100_000 + people["PUMA10"]).mask(without).map(areas)
    counts["people_read"] += len(people)
    counts["people_placed"] += int(region.notna().sum())
    counts["people_without_puma10"] += int(without.sum())
    counts["people_in_unknown_pumas"] += int((region.isna() & ~without).sum())
    placed = people[region.notna()].copy()
    placed["region"] = pd.Categorical(region[region.notna()], categories=names).codes
    return placed


def _keys(people: pd.DataFrame, random_state: int) -> NDArray[np.float64]:
    """-log(u) / w, whose order is that of 1 - u^(1/w): small keys first."""
    text = np.char.encode(people["SERIALNO"].fillna("").to_numpy(dtype=object).astype(str), "utf-8")
    letters = np.ascontiguousarray(text).view(np.uint8).reshape(len(text), -1).astype(np.uint64)
    state = _mix(np.full(len(text), random_state % 2**64, dtype=np.uint64))
    for column in (*letters.T, people["SPORDER"].to_numpy().astype(np.uint64)):
        # Letters are padded with zeros as far as the longest of the chunk, which must not matter.
        state = np.where(column == 0, state, _mix(state ^ column))
    uniform = ((state >> np.uint64(11)).astype(np.float64) + 0.5) / 2**53
    return -np.log(uniform) / people["PWGTP"].to_numpy()


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One step of the generator SplitMix64 (Steele, Lea and Flood 2014)."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def _first(people: pd.DataFrame, count: int | None) -> pd.DataFrame:
    """The people with the smallest keys of every region, region by region."""
    order = np.lexsort((people["key"], people["region"]))
    region = people["region"].to_numpy()[order]
    rank = np.arange(len(order)) - np.searchsorted(region, region)
    return people.iloc[order if count is None else order[rank < count]]


def _bags(people: pd.DataFrame, names: list[str], labels: Any, facts: dict[str, int]) -> Bags:
    persons = (people["SERIALNO"].fillna("") + "-" + people["SPORDER"].astype(int).astype(str)).to_numpy(dtype=object)
    twice = pd.Series(persons).duplicated()
    if twice.any():
        got, remedy = f"{persons[twice.argmax()]!r} twice", "remove the file that repeats another"
        raise _wrong(DataFileError, "every person once", got, remedy)
    sizes = np.bincount(people["region"], minlength=len(names))
    present = [name for name, size in zip(names, sizes, strict=True) if size]
    if len(present) < len(names):
        empty = name_some(sorted(set(names) - set(present)))
        warnings.warn(f"{STAGE}: left out regions without people: {empty}", BagWarning, stacklevel=3)
    targets = None if labels is None else [float(labels.get(name, np.nan)) for name in present]
    if targets is not None and np.isnan(targets).all():
        got = f"labels of {name_some(labels.keys(), at_most=2)}"
        raise _wrong(InvalidBagsError, f"labels of regions such as {present[0]!r}", got, "key the labels by region")
    return Bags(
        _encode(people, persons),
        np.concatenate([[0], np.cumsum(sizes[sizes > 0])]),
        targets,
        ids=present,
        feature_names=feature_names(),
        instance_names=persons,
        instance_info={"weight": people["PWGTP"].to_numpy()},
        metadata={"name": "pums", "survey": "ACS PUMS 2010-2014, people of 2012-2014", **facts},
    )


def _encode(people: pd.DataFrame, persons: NDArray[Any]) -> NDArray[np.float32]:
    columns: list[NDArray[Any]] = []
    for name in FEATURES:
        values = people[name].to_numpy()
        blank, allowed = np.isnan(values), name not in NEVER_BLANK
        count = CATEGORIES.get(name)
        strange = np.zeros(len(blank), bool) if count is None else ~np.isin(values, np.arange(1, count + 1))
        wrong = np.where(blank, not allowed, strange)
        if wrong.any():
            what = "a number" if count is None else f"a code from 1 to {count}"
            got = f"{_shown(values[wrong.argmax()])} for person {persons[wrong.argmax()]!r}"
            raise _wrong(DataFileError, f"{what} as {name}", got, "take files of the 2010-2014 five-year survey")
        if name in INCOMES:
            dollars = values * people["ADJINC"].to_numpy() / 1e6
            values = np.sign(dollars) * np.log1p(np.abs(dollars))
        columns += [np.nan_to_num(values)] if count is None else [values == code for code in range(1, count + 1)]
        columns += [blank] if allowed else []
    return np.stack(columns, axis=1, dtype=np.float32)


def _shown(value: float) -> str:
    return "a blank" if np.isnan(value) else f"{value:g}"


def _wrong(kind: type[BagError], expected: str, got: str, remedy: str) -> BagError:
    return kind(STAGE, expected=expected, got=got, remedy=remedy)
