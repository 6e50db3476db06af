"""``baggraph reproduce``: the tables of the paper, beside what it printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from baggraph.cli._console import err

if TYPE_CHECKING:
    from baggraph.experiments.run import Progress

EPILOG = (
    "Examples:  baggraph reproduce benchmark --tier smoke -o runs  |  "
    "baggraph reproduce all --tier full --engine processes -o runs  |  "
    "baggraph reproduce rental --protocol as-published -o runs"
)


def reproduce(
    experiment: Annotated[str, typer.Argument(help="benchmark, text, election, rental, or all.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder of the results; what it has is not computed again.")
    ],
    tier: Annotated[str, typer.Option(help="smoke (seconds), short (minutes) or full (the claim).")] = "short",
    protocol: Annotated[str | None, typer.Option(help="sound or as-published. Default: both.")] = None,
    engine: Annotated[str, typer.Option(help="serial or processes.")] = "serial",
    jobs: Annotated[int | None, typer.Option("-j", "--jobs", help="Processes; default, one a core.")] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="A method of the tables; may be given again.")
    ] = None,
    repeats: Annotated[int | None, typer.Option(help="At most so many repeats or splits.")] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Run what the paper ran, and lay our numbers beside the printed ones.  Stop it when you like: it goes on later."""
    from baggraph.experiments.executors import executor
    from baggraph.experiments.recipe import select
    from baggraph.experiments.run import run

    chosen = select(experiment, protocol)
    how = executor(engine, jobs)
    told = None if quiet else _say
    run(chosen, output, tier=tier, only=only or (), repeats=repeats, executor=how, progress=told)


def _say(state: Progress) -> None:
    err.print(f"{state.done}/{state.total}  {escape(str(state.last))}  about {_readable(state.seconds_left)} left")


def _readable(seconds: float) -> str:
    """Hours, minutes or seconds.

    >>> _readable(90), _readable(7200), _readable(12)
    ('2 min', '2.0 h', '12 s')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
