"""Names to bags: a card for every data set, and :func:`load`.

>>> load("digits-bags", n_bags=20)
Bags digits-bags: 20 bags, ... instances, 64 features (float32, dense, ...)
  sizes   ... to ..., median ...
  labels  0 ×10, 1 ×10
  inside  0 ×..., 1 ×... (labels of instances)
  of rows digit
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from baggraph.data.bags import Bags
from baggraph.datasets import benchmark, digits, election, newsgroups, rental, synthetic
from baggraph.datasets.cards import Card, Counts, DataFile
from baggraph.datasets.fetch import data_folder, sha256_of, supply
from baggraph.datasets.fetch import fetch as fetch_file
from baggraph.errors import DataFileError, FetchError, ParameterError, closest

__all__ = ["Card", "Counts", "DataFile", "against_print", "card", "count", "load", "names", "state", "supply_by_hand"]

FAMILIES = (digits, synthetic, benchmark, newsgroups, election, rental)


@cache
def _registry() -> dict[str, Card]:
    return {card.name: card for family in FAMILIES for card in family.CARDS}


def names() -> list[str]:
    """Names of all data sets, family by family.

    >>> names()[:4]
    ['digits-bags', 'synthetic', 'musk1', 'musk2']
    """
    return list(_registry())


def card(name: str) -> Card:
    """What there is to know about a data set.

    >>> card("elephant").counts.smallest
    2
    """
    if name not in _registry():
        remedy = closest(name, names()) + "; baggraph datasets list shows all"
        raise ParameterError("datasets", expected="the name of a data set", got=repr(name), remedy=remedy)
    return _registry()[name]


def load(
    name: str,
    *,
    as_published: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
    **options: Any,
) -> Bags:
    """Bags of a data set by name, fetched where they are missing, with graph, splits and folds where they exist.

    Parameters
    ----------
    name
        One of :func:`names`.
    as_published
        The data as the code published with the paper feeds them to its models, quirks and leaks included;
        the same as otherwise where that code had none.
    progress
        Called with bytes done and bytes in all while a file is fetched.
    **options
        What the maker of a made set takes, such as ``n_bags`` or ``random_state``.
    """
    chosen = card(name)
    arguments = dict(chosen.settings)
    allowed = inspect.signature(chosen.build).parameters
    free = [key for key in allowed if key not in ("files", "as_published", *arguments)]
    for key in options:
        if key not in free:
            remedy = closest(key, free) if free else "call load without it"
            raise ParameterError(f"load({name!r})", expected="an option of this set", got=repr(key), remedy=remedy)
    if "as_published" in allowed:
        arguments["as_published"] = as_published
    elif as_published:
        got = "as_published=True"
        raise ParameterError(f"load({name!r})", expected="a set of the paper", got=got, remedy="call load without it")
    bags = chosen.build(files_of(chosen, progress=progress), **arguments, **options)
    _check_counts(chosen, bags, as_published)
    return bags.replace(metadata={**bags.metadata, "name": name, "licence": chosen.licence})


def files_of(chosen: Card, *, progress: Callable[[int, int | None], None] | None = None) -> dict[str, Path]:
    """Every file of a card by its path, fetched where it is missing; optional ones where they can be had."""
    found: dict[str, Path] = {}
    for file in chosen.files:
        if file.instead_of in found:
            continue
        try:
            found[file.path] = fetch_file(file, dataset=chosen.name, progress=progress)
        except FetchError:
            if not file.optional:
                raise
    return found


def state(chosen: Card) -> str:
    """``embedded``, ``here``, ``to fetch``, or ``by hand`` where no address serves a file that is missing."""
    needed = [file for file in chosen.files if not file.optional]
    if not needed:
        return "embedded"
    folder = data_folder()
    absent = [f for f in needed if not any((folder / path).exists() for path in (f.path, f.instead_of) if path)]
    if not absent:
        return "here"
    return "to fetch" if all(f.urls for f in absent) else "by hand"


def supply_by_hand(name: str, source: Path) -> Path:
    """Put a file that was fetched by hand where :func:`load` looks, after a check of its checksum.

    Which file of the card it is, its checksum says, or else its name.
    """
    files = card(name).files
    if not files:
        raise ParameterError("supply", expected="a set with files", got=repr(name), remedy="just load it")
    if not source.is_file():
        raise DataFileError("supply", expected="a file", got=f"none at {source}", remedy="check the path")
    named = [file for file in files if Path(file.path).name == source.name]
    known = sha256_of(source)
    same = [file for file in files if file.sha256 == known]
    if not same and not named and len(files) > 1:
        raise ParameterError(
            "supply",
            expected="a file of the card, by checksum or by name",
            got=source.name,
            remedy="name it like one of " + ", ".join(Path(file.path).name for file in files),
        )
    return supply((same or named or list(files))[0], source, dataset=name)


def count(bags: Bags) -> Counts:
    """The sizes of bags that cards state.

    >>> count(Bags(np.zeros((3, 2)), [0, 1, 3], [0, 1]))
    Counts(bags=2, instances=3, features=2, smallest=1, largest=2, positive=1)
    """
    binary = bags.y is not None and bags.y.dtype.kind == "i" and set(np.unique(bags.y)) <= {0, 1}
    positive = int((bags.y == 1).sum()) if binary else None
    low, high = int(bags.sizes.min()), int(bags.sizes.max())
    return Counts(len(bags), bags.n_instances, bags.n_features, low, high, positive)


def against_print(chosen: Card, found: Counts) -> str:
    """How the counts of a loaded set compare with those that the paper prints.

    >>> against_print(card("elephant"), card("elephant").counts)
    'smallest 2, paper 3'
    """
    if chosen.printed is None:
        return "not in the paper"
    pairs = [(key, getattr(found, key), value) for key, value in vars(chosen.printed).items() if value is not None]
    return ", ".join(f"{key} {got}, paper {value}" for key, got, value in pairs if got != value) or "equal"


def _check_counts(chosen: Card, bags: Bags, as_published: bool) -> None:
    """A file without a known checksum, and a builder gone wrong, show here."""
    found = count(bags)
    for key, expected in vars(chosen.counts).items():
        got = getattr(found, key)
        if expected is not None and got != expected and not (as_published and key == "features"):
            raise DataFileError(
                f"load({chosen.name!r})",
                expected=f"{expected} {key}",
                got=str(got),
                remedy="supply the files that the card names",
            )
