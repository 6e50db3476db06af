"""Lines of text files, whatever system wrote them."""

from __future__ import annotations

from pathlib import Path

from baggraph.errors import DataFileError


def read_lines(path: Path, stage: str) -> list[str]:
    """Lines in UTF-8, without the mark that Windows puts first; only line ends divide them, no rarer separator."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            return [line.rstrip("\n") for line in file]
    except (UnicodeDecodeError, OSError) as error:
        raise DataFileError(
            stage, expected=f"text in UTF-8 in {path.name}", got=str(error), remedy="save it as UTF-8"
        ) from error
