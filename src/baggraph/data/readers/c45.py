"""C4.5: a ``.data`` file of comma-separated rows and a ``.names`` file that says what they mean."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from baggraph.data.bags import Bags
from baggraph.data.readers._text import read_lines
from baggraph.data.readers.table import from_frame
from baggraph.errors import DataFileError, InvalidBagsError


def read_c45(
    path: str | Path,
    *,
    bag: str | None = None,
    instance: str | None = None,
    names: str | Path | None = None,
    missing: str = "error",
) -> Bags:
    """Bags from C4.5 files as the UCI repository keeps the musk data.

    Parameters
    ----------
    path
        The ``.data`` file.
    bag, instance
        Attributes that name bag and instance.  Default: the first and the second discrete attribute.
    names
        The ``.names`` file.  Default: the one beside ``path``.
    missing
        What to do with ``?``: ``"error"`` or ``"impute"``.

    """
    path = Path(path)
    attributes = _read_names(Path(names) if names is not None else path.with_suffix(".names"))
    discrete = [name for name, kind in attributes.items() if kind == "discrete"]
    if bag is None and not discrete:
        raise _wrong(path, "a discrete attribute that names the bag", "none", 'say which one with bag="..."')
    bag = discrete[0] if bag is None else bag
    if instance is None and len(discrete) > 1:
        instance = discrete[1]
    frame = _read_rows(path, list(attributes))
    features = [name for name, kind in attributes.items() if kind == "continuous" and name not in (bag, instance)]
    for name in features:
        frame[name] = _to_numbers(frame, name, bag, path)
    return from_frame(frame, bag=bag, instance=instance, target="class", features=features, missing=missing)


def _read_names(path: Path) -> dict[str, str]:
    """Attributes and their kinds in order; the first line of the file lists the classes."""
    if not path.is_file():
        raise _wrong(path, "the file of names", "no such file", "pass names=... where it lies elsewhere")
    lines = [line.partition("|")[0].strip().rstrip(".") for line in read_lines(path, "c45")]
    attributes = {}
    for line in [line for line in lines if line][1:]:
        name, colon, values = line.partition(":")
        if not colon:
            raise _wrong(path, "lines 'attribute: values.'", repr(line[:40]), "correct that line")
        words = values.split()
        name = name.strip()
        if name in attributes or name == "class":
            raise _wrong(path, "every attribute once, and none called 'class'", repr(name), "rename it")
        attributes[name] = words[0] if words and words[0] in ("continuous", "ignore") else "discrete"
    return attributes


def _read_rows(path: Path, attributes: list[str]) -> pd.DataFrame:
    if not path.is_file():
        raise _wrong(path, "a file of rows", "no such file", "check the path")
    rows = []
    for number, line in enumerate(read_lines(path, "c45"), start=1):
        if not line.strip():
            continue
        values = [value.strip() for value in line.strip().removesuffix(".").split(",")]
        if len(values) != len(attributes) + 1:
            got = f"{len(values)} values in line {number}"
            raise _wrong(path, f"{len(attributes)} values and a class", got, "correct that line")
        rows.append(values)
    frame = pd.DataFrame(rows, columns=[*attributes, "class"], dtype="object").replace("?", None)
    numeric = pd.to_numeric(frame["class"], errors="coerce")
    return frame.assign(**{"class": numeric}) if (numeric.notna() | frame["class"].isna()).all() else frame


def _to_numbers(frame: pd.DataFrame, name: str, bag: str, path: Path) -> pd.Series:
    numbers = pd.to_numeric(frame[name], errors="coerce").astype(np.float64)
    bad = np.flatnonzero(numbers.isna().to_numpy() & frame[name].notna().to_numpy())
    if len(bad):
        got = f"{frame[name].iloc[bad[0]]!r} in column {name!r} (bag {frame[bag].iloc[bad[0]]!r})"
        raise InvalidBagsError("c45", expected=f"numbers in {path.name}", got=got, remedy="correct that value")
    return numbers


def _wrong(path: Path, expected: str, got: str, remedy: str) -> DataFileError:
    return DataFileError("c45", expected=f"{expected} in {path.name}", got=got, remedy=remedy)
