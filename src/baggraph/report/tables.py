"""Frames as Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

__all__ = ["grid", "markdown"]


def markdown(frame: pd.DataFrame, formats: Mapping[str, Callable[[Any], str]] | None = None) -> str:
    r"""A table of Markdown; numbers have two decimals, what is missing is empty.

    >>> print(markdown(pd.DataFrame({"method": ["a|b"], "rmse": [1.234]})))
    | method | rmse |
    | --- | ---: |
    | a\|b | 1.23 |
    """
    formats = formats or {}
    numeric = [pd.api.types.is_numeric_dtype(frame[name]) for name in frame]
    lines = ["| " + " | ".join(map(str, frame.columns)) + " |"]
    lines.append("| " + " | ".join("---:" if number else "---" for number in numeric) + " |")
    for row in frame.itertuples(index=False):
        shown = [formats.get(str(name), _plain)(value) for name, value in zip(frame.columns, row, strict=True)]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in shown) + " |")
    return "\n".join(lines)


def _plain(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


WIDE = 6


def grid(cells: pd.DataFrame, across: str = "dataset") -> pd.DataFrame:
    """Cells of one table laid out as papers do: a row a method, ``ours ± sd (repeats) / printed`` in every column.

    >>> row = {"method": "a", "dataset": "d", "ours": 1.5, "sd": 0.25, "repeats": 3, "of": 10, "printed": 2.0}
    >>> grid(pd.DataFrame([row])).to_dict("records")
    [{'method': 'a', 'd': '1.50 ± 0.25 (3) / 2.00'}]
    """
    if cells[across].nunique() > WIDE:  # columns in which we have nothing only take the reader's time
        cells = cells[cells.groupby(across)["ours"].transform("count") > 0]
    methods, columns = list(dict.fromkeys(cells["method"])), list(dict.fromkeys(cells[across]))
    found = pd.DataFrame("", index=methods, columns=columns)
    for row in cells.to_dict("records"):
        found.loc[row["method"], row[across]] = _cell(row)
    found = found.loc[(found != "").any(axis=1), (found != "").any(axis=0)]
    return found.rename_axis(index="method", columns=None).reset_index()


def _cell(row: Mapping[Any, Any]) -> str:
    digits = 1 if max((abs(v) for v in (row["ours"], row["printed"]) if not math.isnan(v)), default=0.0) >= 10 else 2
    shown = "–" if math.isnan(row["ours"]) else f"{row['ours']:.{digits}f}"
    if not math.isnan(row["ours"]) and not math.isnan(row["sd"]):
        shown += f" ± {row['sd']:.{digits}f}"
    if row["repeats"] and row["repeats"] < row["of"]:
        shown += f" ({row['repeats']})"
    if math.isnan(row["printed"]):
        return "" if shown == "–" else shown
    return f"{shown} / {row['printed']:.{digits}f}"
