"""Regions as bags of people: from raw person files of the American Community Survey (PUMS) to bags.

After Flaxman, Wang and Smola, "Who supported Obama in 2012? Ecological inference through distribution
regression" (KDD 2015).  A blank in the files means "not asked of this person", not "unknown".

Only people interviewed from 2012 on carry the 2010 area code (PUMA10) on which the regions are defined.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.datasets._pums_files import (
    CATEGORIES,
    FEATURES,
    INCOMES,
    NEVER_BLANK,
    NUMBERS,
    STAGE,
    people_in,
    read_regions,
    shown,
    wrong,
)
from baggraph.errors import BagWarning, DataFileError, InvalidBagsError, ParameterError, name_some

__all__ = ["feature_names", "read_pums"]


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
    ``sign(x) log(1 + |x|)``, and one column for each code of a category.  A blank is 0 and marked in a column
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
            raise wrong(ParameterError, f"{name} of 1 or more", str(value), "raise it")
    areas = read_regions(regions)
    names = sorted(set(areas))
    counts: Counter[str] = Counter()
    parts: list[pd.DataFrame] = []
    for people in people_in(Path(folder), chunk_rows):
        placed = _place(people, areas, names, counts)
        if len(placed):
            placed["key"] = _keys(placed, random_state)
            parts = [_first(pd.concat([*parts, placed]), people_per_region)] if people_per_region else [*parts, placed]
    if not counts["people_placed"]:
        got = f"none of {counts['people_read']:,} people ({counts['people_without_puma10']:,} without PUMA10)"
        raise wrong(DataFileError, "people in the areas of the regions", got, "pass the regions of these states")
    return _bags(_first(pd.concat(parts), None), names, labels, {**counts, "random_state": int(random_state)})


# ---------------------------------------------------------------------- people


def _place(people: pd.DataFrame, areas: pd.Series, names: list[str], counts: Counter[str]) -> pd.DataFrame:
    """The people of known areas, with the position of their region; the others are counted."""
    without = ~(people["PUMA10"] > 0)  # -9, or blank
    region = (people["ST"] * 100_000 + people["PUMA10"]).mask(without).map(areas)
    counts.update(
        people_read=len(people),
        people_placed=int(region.notna().sum()),
        people_without_puma10=int(without.sum()),
        people_in_unknown_pumas=int((region.isna() & ~without).sum()),
    )
    placed = people[region.notna()].copy()
    placed["region"] = pd.Categorical(region[region.notna()], categories=names).codes
    return placed


def _keys(people: pd.DataFrame, random_state: int) -> NDArray[np.float64]:
    """-log(u) / w, whose order is that of 1 - u^(1/w): small keys first."""
    text = np.char.encode(people["SERIALNO"].fillna("").to_numpy(dtype=object).astype(str), "utf-8")
    letters = np.ascontiguousarray(text).view(np.uint8).reshape(len(text), -1).astype(np.uint64)
    state = _mix(np.full(len(text), int(random_state) % 2**64, dtype=np.uint64))
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
        raise wrong(DataFileError, "every person once", got, remedy)
    sizes = np.bincount(people["region"], minlength=len(names))
    present = [name for name, size in zip(names, sizes, strict=True) if size]
    if len(present) < len(names):
        empty = name_some(sorted(set(names) - set(present)))
        warnings.warn(f"{STAGE}: left out regions without people: {empty}", BagWarning, stacklevel=3)
    targets = None if labels is None else [float(labels.get(name, np.nan)) for name in present]
    if targets is not None and np.isnan(targets).all():
        got = f"labels of {name_some(labels.keys(), at_most=2)}"
        raise wrong(InvalidBagsError, f"labels of regions such as {present[0]!r}", got, "key the labels by region")
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
        values, codes = people[name].to_numpy(), np.arange(1, CATEGORIES.get(name, 0) + 1)
        blank = np.isnan(values)
        refused = np.where(blank, name in NEVER_BLANK, name in CATEGORIES and ~np.isin(values, codes))
        if refused.any():
            what = f"a code from 1 to {len(codes)}" if name in CATEGORIES else "a number"
            got = f"{shown(values[refused.argmax()])} for person {persons[refused.argmax()]!r}"
            raise wrong(DataFileError, f"{what} as {name}", got, "take files of the 2010-2014 five-year survey")
        if name in INCOMES:
            dollars = values * people["ADJINC"].to_numpy() / 1e6
            values = np.sign(dollars) * np.log1p(np.abs(dollars))
        columns += [values == code for code in codes] if name in CATEGORIES else [np.nan_to_num(values)]
        columns += [] if name in NEVER_BLANK else [blank]
    return np.stack(columns, axis=1, dtype=np.float32)
