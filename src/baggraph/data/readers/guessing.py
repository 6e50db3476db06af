"""Which column of a table means what, guessed from names and values, with the reason for every guess."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from baggraph.data.readers._tables import counts_rows, named_in, only_table, refuse_holes, refuse_slips, sample, wrong
from baggraph.data.readers.features import SUFFIXES, elsewhere
from baggraph.errors import ParameterError, closest, name_some

__all__ = ["RoleGuess", "guess_labels", "guess_roles"]

BAGS = (
    "bag slide wsi image scan sample molecule compound ligand drug thread document conversation region district area "
    "tract county puma zip zcta municipality neighbourhood neighborhood parcel tile patient case subject user group"
).split()
TARGETS = "target label y class outcome diagnosis response share proportion rate score grade status".split()
INSTANCE_LABELS = ("instance_y", "instance_label", "instance_target", "patch_label", "instance_class")
PLACES = (("longitude", "latitude"), ("lon", "lat"), ("lng", "lat"), ("long", "lat"), ("easting", "northing"))
LATITUDES = ("latitude", "lat", "northing")
COUNTERS = re.compile(r"^(unnamed: \d+|index|row|row_?id|id|.+_id|.+_index)$")


@dataclass(frozen=True)
class RoleGuess:
    """Roles of the columns of a table; ``reasons`` has those that were guessed, ``left_out`` the unused columns.

    ``options`` are what :func:`baggraph.read` takes.
    """

    bag: str
    target: str | tuple[str, ...] | None
    coords: tuple[str, ...]
    features: tuple[str, ...]
    instance_y: str | None = None
    groups: str | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, Any]:
        """Keywords of :func:`baggraph.data.readers.table.read_table`."""
        given = {"bag": self.bag, "target": self.target, "features": self.features, "coords": self.coords}
        return {**given, "instance_y": self.instance_y, "bag_info": (self.groups,) if self.groups else ()}


def guess_roles(
    path: str | Path,
    *,
    bag: str | None = None,
    target: str | Sequence[str] | None = None,
    coords: Sequence[str] = (),
    groups: str | None = None,
    leave_out: Iterable[str] = (),
) -> RoleGuess:
    r"""Roles of the columns of a long table, of which those that are passed stand.

    The bag is a column of names or whole numbers that repeat, the target one that is equal in all rows of a bag, the
    place a pair of columns called longitude and latitude, likewise.  Columns of text, and counters of rows, are no
    features; nor is that of ``groups``, which bags have in common.  A large table is judged by its first rows.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "drugs.csv"
    ...     _ = path.write_text("molecule,label,f1,f2\nm1,good,1,2\nm1,good,2,2\nm2,bad,1,3\nm2,bad,4,5\n")
    ...     guess = guess_roles(path)
    >>> guess.bag, guess.target, guess.features, sorted(guess.reasons)
    ('molecule', 'label', ('f1', 'f2'), ['bag', 'target'])
    """
    table = sample(Path(path))
    targets = () if target is None else (target,) if isinstance(target, str) else tuple(target)
    columns = [str(name) for name in table.columns]
    for name in [*([bag] if bag else []), *targets, *coords, *([groups] if groups else []), *leave_out]:
        if name not in columns:
            raise wrong("a column of the table", repr(name), closest(name, columns))
    reasons: dict[str, str] = {}
    table = table.drop(columns=list(leave_out))
    places = tuple(coords) or _places(list(table.columns))
    if bag is None:
        bag, reasons["bag"] = _bag(table, targets, places)
    constant = _constant(table, bag)
    if not coords and (not places or not set(places) <= constant):
        places = ()
    elif not coords:
        reasons["coords"] = "names of a place, equal within bags"
    if not targets:
        found, why = _target(table, constant - {bag, groups, *places})
        targets = (found,) if found else ()
        reasons |= {"target": why} if found else {}
    used = {bag, *targets, *places, *([groups] if groups else [])}
    inside = next(
        (name for name in table.columns if str(name).casefold() in INSTANCE_LABELS and name not in used), None
    )
    features, left_out = _features(table, bag, {*used, *([inside] if inside else [])})
    left_out |= {
        name: f"text, shared by bags: --groups {name} keeps them together" for name in _shared(table, bag, left_out)
    }
    left_out |= dict.fromkeys(leave_out, "as asked")
    chosen = targets[0] if len(targets) == 1 else targets or None
    return RoleGuess(bag, chosen, _east_first(places), features, inside, groups, reasons, left_out)


def guess_labels(
    folder: str | Path,
    *,
    labels: str | Path | None = None,
    bag: str | None = None,
    target: str | None = None,
    groups: str | None = None,
) -> tuple[Path, str, str, dict[str, str]]:
    """The table of labels of a folder of feature files, its columns of ids and labels, and what was guessed and why.

    A column of ``groups``, which bags have in common, is neither.
    """
    folder = Path(folder)
    names = {path.stem for path in folder.iterdir() if path.suffix.lower() in SUFFIXES}
    if not names:
        raise wrong(f"feature files ({', '.join(SUFFIXES)}) in {folder.name}", "none", elsewhere(folder))
    reasons: dict[str, str] = {}
    if labels is None:
        labels, reasons["labels"] = only_table(folder), "the only table there"
    if not Path(labels).is_file():
        raise wrong("a table of labels", f"no file at {labels}", "check the path")
    table = sample(Path(labels)).astype(object)
    columns = [str(name) for name in table.columns]
    for name in {bag, target, groups} - {None, *columns}:
        raise wrong(f"a column of {Path(labels).name}", repr(name), closest(str(name), columns))
    if bag is None:
        shares = {name: named_in(table[name], names) for name in columns if name != target}
        bag = max(shares, key=lambda name: shares[name])
        if not shares[bag]:
            got = f"{name_some(columns)} in {Path(labels).name}, and files such as {name_some(sorted(names), 2)}"
            raise wrong("a column with the names of the files, without suffix", got, "pass --bag COLUMN")
        reasons["bag"] = f"{shares[bag]:.0%} of its entries are names of files"
    if target is None:
        rest = [name for name in columns if name not in (bag, groups)]
        target, why = _by_name(rest, TARGETS)
        if target is None and len(rest) == 1:
            target, why = rest[0], "the only other column"
        if target is None:
            raise wrong("a column of labels", f"{name_some(rest)}", "pass --target COLUMN")
        reasons["target"] = why
    return Path(labels), bag, target, reasons


def _plain(name: object) -> str:
    """A name without case, blanks, and what says only that it is a name."""
    return re.sub(r"[ _-]?(id|name|nr|no|number|code)$", "", str(name).strip().casefold())


def _by_name(columns: Sequence[str], words: Sequence[str]) -> tuple[str | None, str]:
    for word in words:
        for name in columns:
            if _plain(name) == word:
                return name, f"called {name!r}"
    return None, ""


def _bag(table: pd.DataFrame, targets: tuple[str, ...], places: tuple[str, ...]) -> tuple[str, str]:
    possible = []
    for name in table.columns:
        column = table[name]
        whole = pd.api.types.is_integer_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
        text = not pd.api.types.is_numeric_dtype(column.dtype)
        kinds = column.nunique()
        fits = (whole or text) and 1 < kinds < len(table) and not column.isna().any()
        if fits and name not in (*targets, *places) and set(targets) <= _constant(table, name):
            possible.append((name, text, kinds))
    refuse_holes(table, _by_name(list(map(str, table.columns)), BAGS)[0], [name for name, _, _ in possible])
    found, why = _by_name([name for name, _, _ in possible], BAGS)
    if found is not None:
        return found, f"{why}, values repeat"
    texts = [(kinds, name) for name, text, kinds in possible if text and _plain(name) not in TARGETS]
    if not texts and targets:
        _refuse_varying(table, targets, places)
    if not texts:
        got = f"none among {name_some(table.columns, 8)}"
        raise wrong("a column of text whose values repeat, to name the bags", got, "pass --bag COLUMN")
    return max(texts)[1], "the column of text with the most values that repeat"


def _refuse_varying(table: pd.DataFrame, targets: tuple[str, ...], places: tuple[str, ...]) -> None:
    """What would be the bag, did its rows agree on the target."""
    try:
        bag, _ = _bag(table, (), places)
    except ParameterError:
        return
    varying = name_some([name for name in targets if name not in _constant(table, bag)])
    if varying:
        got, remedy = f"several in bags of {bag!r}", "name another --target, or the bags with --bag COLUMN"
        raise wrong(f"one value of {varying} a bag", got, remedy)


def _constant(table: pd.DataFrame, bag: str) -> set[str]:
    """Columns that are equal in all rows of every bag."""
    counts = table.groupby(bag, sort=False, observed=True).nunique(dropna=False).max()
    return {str(name) for name in counts.index[counts <= 1]}


def _target(table: pd.DataFrame, constant: set[str]) -> tuple[str | None, str]:
    able = [str(name) for name in table.columns if name in constant and _plain(name) not in BAGS]  # a patient is none
    varying = [name for name in able if table[name].nunique() > 1]
    found, why = _by_name(varying, TARGETS)
    if found is not None:
        return found, f"{why}, equal within bags"
    if len(varying) == 1:
        return varying[0], "the only column that is equal within bags"
    if varying:
        raise wrong("one column that can be the target", name_some(varying), "pass --target COLUMN")
    return None, ""


def _places(columns: list[str]) -> tuple[str, ...]:
    plain = {str(name).strip().casefold(): str(name) for name in columns}
    return next(((plain[a], plain[b]) for a, b in PLACES if a in plain and b in plain), ())


def _east_first(places: tuple[str, ...]) -> tuple[str, ...]:
    """Longitude before latitude, in whatever order they were named."""
    if len(places) == 2 and str(places[0]).strip().casefold() in LATITUDES:
        return (places[1], places[0])
    return places


def is_geographic(places: Sequence[str]) -> bool:
    """Whether two columns are called longitude and latitude."""
    plain = tuple(str(name).strip().casefold() for name in _east_first(tuple(places)))
    return plain in PLACES[:4]


def _shared(table: pd.DataFrame, bag: str, left_out: Iterable[str]) -> list[str]:
    """Columns of text that are equal within bags, and have several bags a value: patients, scaffolds, sites."""
    constant = _constant(table, bag)
    found = []
    for name in left_out:
        if name in constant and not pd.api.types.is_numeric_dtype(table[name].dtype):
            kinds, bags = table[name].nunique(), table[bag].nunique()
            found += [name] if 1 < kinds <= bags / 2 else []
    return found


def _features(table: pd.DataFrame, bag: str, used: set[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    features, left_out = [], {}
    for name in map(str, table.columns):
        if name in used:
            continue
        column = table[name]
        if not pd.api.types.is_numeric_dtype(column.dtype):
            refuse_slips(name, column)
            left_out[name] = "text"
        elif COUNTERS.match(name.strip().casefold()) and pd.api.types.is_integer_dtype(column.dtype):
            left_out[name] = "a number that names something"
        elif pd.api.types.is_integer_dtype(column.dtype) and counts_rows(column, table[bag]):
            left_out[name] = "it numbers the rows of a bag"
        else:
            features.append(name)
    return tuple(features), left_out
