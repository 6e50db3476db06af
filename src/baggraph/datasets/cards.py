"""Cards: what there is to know about a data set before loading it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from baggraph.data.bags import Bags


@dataclass(frozen=True)
class DataFile:
    """One file of a data set.

    Parameters
    ----------
    path
        Where it lies below a data folder; the layout of the cache and of every mirror.
    sha256
        Its checksum; None where the publisher's file could not be had, so that its contents are checked
        against the counts of the card instead.
    urls
        Public addresses, tried in this order.
    optional
        Whether the set also loads, with less beside it, where this file is missing.
    hint
        How to come by it where no address serves it.

    """

    path: str
    sha256: str | None
    urls: tuple[str, ...] = ()
    optional: bool = False
    hint: str = ""
    instead_of: str | None = None


@dataclass(frozen=True)
class Counts:
    """Sizes that a set must have once it is loaded; None where its options decide."""

    bags: int | None = None
    instances: int | None = None
    features: int | None = None
    smallest: int | None = None
    largest: int | None = None
    positive: int | None = None


@dataclass(frozen=True)
class Card:
    """Name, counts, licence, citation, home and files of a data set, and the function that builds it.

    ``printed`` holds the counts that the paper prints, where it does and they are of these very data.
    """

    name: str
    title: str
    task: str
    counts: Counts
    licence: str
    citation: str
    home: str
    build: Callable[..., Bags] = field(repr=False)
    files: tuple[DataFile, ...] = ()
    printed: Counts | None = None
    notes: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
