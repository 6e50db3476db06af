"""``baggraph reproduce``: the tables of the paper, beside what it printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from baggraph.cli._codes import accounted
from baggraph.cli._console import err, out, print_json, table

if TYPE_CHECKING:
    from baggraph.data.results import ResultTable
    from baggraph.experiments.recipe import Recipe
    from baggraph.experiments.run import Progress

EPILOG = (
    "Examples:  baggraph reproduce benchmark --tier smoke -o runs  |  "
    "baggraph reproduce all --tier full --engine processes -o runs  |  "
    "baggraph reproduce rental --protocol as-published -o runs"
)


def reproduce(
    experiment: Annotated[
        str, typer.Argument(help="benchmark, text, election, rental, all, or a recipe of yours (.toml).")
    ],
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
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", help="A set of the tables; may be given again.")
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(help="At most so many repeats or splits; 0 shows what is there.")
    ] = None,
    rows_from: Annotated[
        Path | None, typer.Option(help="A folder of results whose fitting rows are taken over.")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="Write a page (.md) with tables and figures beside it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the cells beside the printed ones as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Run what the paper ran, and lay our numbers beside the printed ones.  Stop it when you like: it goes on later."""
    from baggraph.experiments.executors import by_name
    from baggraph.experiments.recipe import select
    from baggraph.experiments.run import run

    chosen = select(experiment, protocol)
    how = by_name(engine, jobs)
    told = None if quiet else _say
    with accounted(f"{escape(str(output))} keeps what was done; the same command goes on"):
        tables = run(
            chosen,
            output,
            tier=tier,
            only=only or (),
            sets=dataset or (),
            repeats=repeats,
            rows_from=rows_from,
            executor=how,
            progress=told,
            finished=None if quiet else _say_finished,
        )
    if tier == "smoke":
        err.print("Networks were trained for a few epochs only: these numbers say that everything runs, and no more.")
    if as_json:
        print_json({recipe.name: _facts(recipe, tables[recipe.name]) for recipe in chosen})
    else:
        for recipe in chosen:
            _show(recipe, tables[recipe.name])
    if page is not None:
        from baggraph.cli._page import write

        err.print(f"wrote {escape(str(write(page, chosen, output, tier)))}")


def _show(recipe: Recipe, results: ResultTable) -> None:
    """The printed numbers beside ours, what became of the claims, and the table in a line."""
    from baggraph.experiments.verdict import cells, claims, one_line

    found = cells(recipe, results)
    shown = found[found["ours"].notna() & found["metric"].isin([*recipe.expected, recipe.metrics[0]])]
    names = ["method", "dataset", "metric", "ours", "sd", "printed", "difference", "verdict"]
    rows = [[_cell(value) for value in row] for row in shown[names].itertuples(index=False)]
    table(f"{recipe.title} ({recipe.source}, {recipe.protocol})", names, rows, right=3)
    for claim in claims(recipe, results).to_dict("records"):
        out.print(escape(f"{claim['claim']} ({claim['dataset']}): {claim['verdict']}"))
    out.print(escape(one_line(recipe, found)) + "\n")


def _facts(recipe: Recipe, results: ResultTable) -> dict[str, Any]:
    from baggraph.experiments.verdict import cells, claims, one_line

    found = cells(recipe, results)
    frames = {"cells": found, "claims": claims(recipe, results)}
    records = {name: json.loads(frame.to_json(orient="records")) for name, frame in frames.items()}
    return {**records, "verdict": one_line(recipe, found)}


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.2f}"  # NaN is not itself
    return str(value).partition(":")[0]


def _say_finished(recipe: Recipe, results: ResultTable) -> None:
    from baggraph.experiments.verdict import cells, one_line

    err.print(f"done  {escape(one_line(recipe, cells(recipe, results)))}")


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
