"""How commands speak: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text

WIDE = 160  # where the output is no terminal, nothing may be cut off

out = Console(soft_wrap=True, width=None if sys.stdout.isatty() else WIDE, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)


def complain(text: str) -> None:
    """One line of error; NO_COLOR is respected."""
    err.print(Text.assemble(("error ", "red"), text))


def print_json(facts: Any) -> None:
    """JSON to standard output, uncoloured and whole."""
    typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))


def warn(text: str) -> None:
    """One line of warning."""
    err.print(Text.assemble(("warning ", "yellow"), text))


def table(title: str, columns: list[str], rows: list[list[str]], *, right: int = 1) -> None:
    """A table whose columns from number ``right`` on are aligned to the right."""
    shown = Table(title=title or None, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for position, name in enumerate(columns):
        shown.add_column(name, justify="right" if position >= right else "left", no_wrap=True)
    for row in rows:
        shown.add_row(*row)
    out.print(shown)


@contextmanager
def work_progress(*, quiet: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """A bar a phase with rate and time left, on a terminal only; called as ``(phase, done, total)``."""
    columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal) as progress:
        tasks: dict[str, TaskID] = {}

        def report(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = progress.add_task(phase, total=total)
            progress.update(tasks[phase], completed=done, total=total)

        yield report


class _Rate(ProgressColumn):
    """Steps a second."""

    def render(self, task: Task) -> Text:
        """As text."""
        return Text("" if task.speed is None else f"{task.speed:,.0f}/s")


@contextmanager
def download_progress(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar with rate and time left, on a terminal only, that starts with the first byte."""
    columns = (TextColumn(what), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(what, total=None, visible=False)

        def report(done: int, total: int | None) -> None:
            progress.update(task, completed=done, total=total, visible=True)

        yield report
