"""Errors that say what was expected, what was got, and what to do about it.

Every error of this package is a :class:`BagError` and, at the same time, the built-in that a
caller would expect to catch (``ValueError``, ``RuntimeError``, ``ImportError``).  The text is
always one sentence of the same shape: *stage: expected ..., got ...; remedy*.

>>> raise InvalidBagsError("bags", expected="one label a bag", got="3 labels for 2 bags", remedy="pass one each")
Traceback (most recent call last):
    ...
baggraph.errors.InvalidBagsError: bags: expected one label a bag, got 3 labels for 2 bags; pass one each
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "BagError",
    "BagWarning",
    "DataFileError",
    "FetchError",
    "InvalidBagsError",
    "InvalidGraphError",
    "MissingDependencyError",
    "NotConvergedWarning",
    "ParameterError",
    "UnknownParameterError",
    "closest",
    "name_some",
]


class BagError(Exception):
    """Base of all errors raised by baggraph: *stage: expected ..., got ...; remedy*."""

    def __init__(self, stage: str, *, expected: str, got: str, remedy: str) -> None:
        super().__init__(stage, expected, got, remedy)
        self.stage, self.expected, self.got, self.remedy = stage, expected, got, remedy

    def __str__(self) -> str:
        return f"{self.stage}: expected {self.expected}, got {self.got}; {self.remedy}"

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling, and errors cross processes.
        return (_rebuild, (type(self), self.stage, self.expected, self.got, self.remedy))


class InvalidBagsError(BagError, ValueError):
    """Bags, labels, ids or tables that do not describe a data set."""


class InvalidGraphError(BagError, ValueError):
    """A graph between bags that is not one: wrong ids, negative weights, no symmetry."""


class ParameterError(BagError, ValueError):
    """A parameter with a value that is not allowed, or a name that does not exist."""


class UnknownParameterError(BagError, TypeError):
    """A keyword that no parameter has."""


class DataFileError(BagError, RuntimeError):
    """A file that cannot be read: missing, truncated, altered, or in another layout."""


class FetchError(BagError, RuntimeError):
    """A data file that could not be had from any of its sources."""


class MissingDependencyError(BagError, ImportError):
    """An optional package that this call needs is not installed."""


class BagWarning(UserWarning):
    """Something that works but is probably not what was meant."""


class NotConvergedWarning(BagWarning):
    """A fit or a graph that did not get as far as was asked; the result is there, and less sure."""


def _rebuild(kind: type[BagError], stage: str, expected: str, got: str, remedy: str) -> BagError:
    return kind(stage, expected=expected, got=got, remedy=remedy)


def closest(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest known name, or list the known ones.

    >>> closest("musk", ["musk1", "fox"])
    "did you mean 'musk1'?"
    >>> closest("FOX", ["musk1", "fox"])
    "did you mean 'fox'?"
    >>> closest("zzz", ["musk1", "fox"])
    "choose from 'fox', 'musk1'"
    """
    choices = sorted(known)
    plain = {choice.casefold(): choice for choice in choices}
    near = get_close_matches(str(name), choices, n=1, cutoff=0.6)
    near = near or [plain[match] for match in get_close_matches(str(name).casefold(), plain, n=1, cutoff=0.6)]
    if near:
        return f"did you mean {near[0]!r}?"
    return "choose from " + name_some(choices, at_most=30)


def name_some(items: Iterable[object], at_most: int = 5) -> str:
    """Name the first few of many things.

    >>> name_some(["a", "b", "c"], at_most=2)
    "'a', 'b' and 1 more"
    """
    names = [repr(item.item() if hasattr(item, "item") else item) for item in items]
    shown = ", ".join(names[:at_most])
    return shown if len(names) <= at_most else f"{shown} and {len(names) - at_most:,} more"
