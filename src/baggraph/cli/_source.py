"""Bags by name, or from a table or folder: what the verbs take as their first argument."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from baggraph.cli._console import download_progress
from baggraph.errors import ParameterError, closest

if TYPE_CHECKING:
    from baggraph.data.bags import Bags


def bags_of(source: str, *, bag: str | None = None, target: str | None = None, as_published: bool = False) -> Bags:
    """The bags of a file or folder that is there, or else of the data set of this name."""
    from baggraph import datasets
    from baggraph.data.readers import read

    path = Path(source)
    if path.exists():
        options = {key: value for key, value in (("bag", bag), ("target", target)) if value is not None}
        bags = read(path, **options)
        return bags if "name" in bags.metadata else bags.replace(metadata={**bags.metadata, "name": path.stem})
    if source not in datasets.names():
        expected, remedy = "a file, a folder or the name of a data set", _nearest(path, datasets.names())
        raise ParameterError("bags", expected=expected, got=repr(source), remedy=remedy)
    with download_progress(source) as progress:
        return datasets.load(source, progress=progress, **({"as_published": True} if as_published else {}))


def _nearest(path: Path, names: list[str]) -> str:
    """The file or data set that may be meant."""
    from baggraph.data.readers import OTHERS, TABLES

    entries = (
        sorted(path.parent.iterdir(), key=lambda entry: entry.suffix == path.suffix) if path.parent.is_dir() else []
    )
    stems = {entry.stem: entry.name for entry in entries}  # of the same ending, where there are several
    found = closest(path.stem, stems) if stems else ""  # stems alone: endings make strangers alike
    near = next((name for stem, name in stems.items() if found == f"did you mean {stem!r}?"), None)
    if near is not None:
        return f"did you mean {near!r}?"
    if path.name.lower().endswith((*TABLES, *OTHERS)):
        return "there is no such file"
    return closest(str(path), names) + "; baggraph datasets list shows all"
