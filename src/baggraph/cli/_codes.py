"""Exit codes, and leaving with the right one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from baggraph.cli._console import complain, warn
from baggraph.errors import BagError, BagWarning, NotConvergedWarning

WRONG_USAGE, BAD_DATA, NOT_CONVERGED, INTERRUPTED = 2, 3, 4, 5


@contextmanager
def accounted(left: str) -> Iterator[None]:
    """Run work: its warnings are told, each once, and decide the exit code; Ctrl-C says what is ``left`` behind."""
    doubtful = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BagWarning)
        try:
            yield
        except KeyboardInterrupt:
            complain(f"interrupted; {left}")
            raise typer.Exit(INTERRUPTED) from None
        except BagError as error:
            if not _told(caught):
                raise
            complain(str(error))
            raise typer.Exit(NOT_CONVERGED) from None
        doubtful = _told(caught)
    if doubtful:
        raise typer.Exit(NOT_CONVERGED)


def _told(caught: list[warnings.WarningMessage]) -> bool:
    """Tell the warnings, and whether one of them says that something did not converge."""
    ours = [one for one in caught if isinstance(one.message, BagWarning)]
    for text in dict.fromkeys(str(one.message) for one in ours):
        warn(text)
    return any(isinstance(one.message, NotConvergedWarning) for one in ours)
