"""How a function becomes a verb: help that flows, examples a line each, and a clean end on Ctrl-C."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import typer

from baggraph.cli._codes import INTERRUPTED
from baggraph.cli._console import complain


def add_verb(app: typer.Typer, function: Callable[..., None], epilog: str, name: str | None = None) -> None:
    """Hang a function on the application under its own name, or another."""
    about = flowing(inspect.getdoc(function) or "")
    app.command(name or function.__name__, help=about, epilog=one_a_line(epilog))(interruptible(function))


def interruptible(function: Callable[..., None]) -> Callable[..., None]:
    """Ctrl-C leaves with its own exit code and a line, wherever it falls."""

    @functools.wraps(function)
    def called(**options: Any) -> None:
        try:
            function(**options)
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from None

    return called


def flowing(text: str) -> str:
    r"""Paragraphs on one line each, for a terminal of any width.

    >>> flowing("One\ntwo.\n\nThree.")
    'One two.\n\nThree.'
    """
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def one_a_line(epilog: str) -> str:
    r"""Examples that are parted by two blanks and a bar, each on a line of its own.

    >>> one_a_line("Examples:  baggraph demo  |  baggraph audit musk1")
    'Examples:\n\nbaggraph demo\n\nbaggraph audit musk1'
    """
    head, _, commands = epilog.partition(":  ")
    return "\n\n".join([f"{head}:", *(command.strip() for command in commands.split("  |  "))])
