"""svmlight text files whose lines also name a bag."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from baggraph.data.bags import Bags
from baggraph.data.readers._sources import FrameSource
from baggraph.data.readers._text import read_lines
from baggraph.data.readers.table import Roles, assemble
from baggraph.errors import DataFileError

LARGEST = 2**62
TRIPLE = re.compile(r"([^\s:]+):([^\s:]+):([^\s:]+)")


class _Line(NamedTuple):
    bag: str
    label: str
    instance: str | None
    cells: list[str]
    number: int


def read_svmlight(path: str | Path, *, n_features: int | None = None, zero_based: bool = False) -> Bags:
    """Bags from svmlight text, one line an instance, in one of two layouts.

    * ``label qid:bag index:value ...``: the bag stands where ranking data have the query.
    * ``instance:bag:label index:value ...``: as multiple-instance tools write it.

    Indices count from 1, or from 0 with ``zero_based=True``; what follows ``#`` is a comment.
    """
    path = Path(path)
    if not path.is_file():
        raise _wrong(path, "a text file", "no such file", "check the path")
    lines = list(_lines(path))
    if not lines:
        raise _wrong(path, "at least one line", "none", "check the file")
    side = pd.DataFrame({"bag": [line.bag for line in lines]})
    side["target"] = _labels([line.label for line in lines])
    if lines[0].instance is not None:
        side["instance"] = [line.instance for line in lines]
    roles = Roles("bag", "target", instance="instance" if "instance" in side else None, features=("bag",))
    block = _block(lines, path, n_features, 0 if zero_based else 1)
    codes = pd.factorize(side["bag"])[0]
    rows = np.argsort(codes, kind="stable")
    return assemble(FrameSource(side), roles, block=block[rows], feature_names=None)


def _labels(words: list[str]) -> pd.Series[Any]:
    """Numbers where all are, whole ones as integers; ``nan`` is unlabelled."""
    text = pd.Series([None if word.lower() == "nan" else word for word in words], dtype="object")
    numbers = pd.to_numeric(text, errors="coerce")
    if (numbers.isna() & text.notna()).any():
        return text
    whole = numbers.notna().all() and (numbers % 1 == 0).all()
    return numbers.astype(np.int64) if whole else numbers


def _lines(path: Path) -> Iterator[_Line]:
    for number, text in enumerate(read_lines(path, "svmlight"), start=1):
        words = [word for word in re.split(r"[ \t]+", text.partition("#")[0]) if word]
        if not words:
            continue
        triple = TRIPLE.fullmatch(words[0])
        if triple:
            yield _Line(triple[2], triple[3], triple[1], words[1:], number)
        elif len(words) > 1 and words[1].startswith("qid:"):
            yield _Line(words[1].removeprefix("qid:"), words[0], None, words[2:], number)
        else:
            expected = "'label qid:bag ...' or 'instance:bag:label ...'"
            raise _wrong(path, expected, f"{' '.join(words[:2])!r} in line {number}", "name the bag in every line")


def _block(lines: list[_Line], path: Path, n_features: int | None, base: int) -> sp.csr_array:
    indptr, indices, data = [0], [], []
    for line in lines:
        for cell in line.cells:
            index, _, value = cell.partition(":")
            try:
                indices.append(int(index) - base)
                data.append(float(value))
                if indices[-1] > LARGEST or "_" in cell:  # Python would read 1_000
                    raise ValueError
            except ValueError:
                got = f"{cell!r} in line {line.number} (bag {line.bag!r})"
                raise _wrong(path, "cells 'index:value'", got, "correct that line") from None
        own = indices[indptr[-1] :]
        if len(set(own)) < len(own):
            got = f"one of them twice in line {line.number} (bag {line.bag!r})"
            raise _wrong(path, "every index once a line", got, "correct that line")
        indptr.append(len(indices))
    if indices and min(indices) < 0:
        raise _wrong(path, "indices from 1", "0", "pass zero_based=True")
    width = max(indices, default=0) + 1
    if n_features is not None and n_features < width:
        raise _wrong(path, f"indices up to {n_features - 1 + base}", f"{width - 1 + base}", "raise n_features")
    shape = (len(lines), width if n_features is None else n_features)
    return sp.csr_array((np.array(data, dtype=np.float64), np.array(indices, dtype=np.int64), indptr), shape=shape)


def _wrong(path: Path, expected: str, got: str, remedy: str) -> DataFileError:
    return DataFileError("svmlight", expected=f"{expected} in {path.name}", got=got, remedy=remedy)
