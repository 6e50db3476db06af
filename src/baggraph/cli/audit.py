"""``baggraph audit``: what to doubt about data before a score on them is believed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from baggraph.cli._console import err, out
from baggraph.cli._reading import read_aloud
from baggraph.cli._source import bags_of

EPILOG = (
    "Examples:  baggraph audit slides.csv --bag slide --target tumour  |  baggraph audit rental --as-published  |  "
    "baggraph audit musk1 --beside musk2 --json  |  baggraph audit election/zcta --scores printed.csv"
)


def audit(
    source: Annotated[
        str, typer.Argument(metavar="TABLE|NAME", help="A table or folder of bags, or the name of a data set.")
    ],
    bag: Annotated[str | None, typer.Option(help="Column that names the bag of a row.")] = None,
    target: Annotated[str | None, typer.Option(help="Column of the label.")] = None,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="A data set as the code published with the paper reads it.")
    ] = False,
    scores: Annotated[
        Path | None, typer.Option(help="CSV of printed scores (metric, mean, dataset), to lay beside a constant.")
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(help="Another table or data set that may share bags; may be given again. Default: relatives."),
    ] = None,
    random_state: Annotated[int, typer.Option("--random-state", help="Seed of shuffles and folds.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Look for what solves a data set trivially, or is wrong with it: leaks, twins, constants, graphs in disorder.

    Findings are notes, warnings or serious; the exit code is 0 whatever is found.
    """
    from baggraph.evaluation.audit import audit as look

    bags = bags_of(source, as_published=True) if as_published else read_aloud(source, bag=bag, target=target)
    others = None if beside is None else {name: bags_of(name, bag=bag, target=target) for name in beside}
    started = time.perf_counter()
    with err.status("audit") as shown:
        found = look(
            bags,
            scores=scores,
            beside=others,
            random_state=random_state,
            progress=lambda phase: shown.update(f"audit of {len(bags):,} bags: {phase}"),
        )
    if as_json:
        typer.echo(found.to_json())
    else:
        out.print(escape(str(found)))
    err.print(f"audited {len(bags):,} bags, {bags.n_instances:,} instances in {time.perf_counter() - started:.1f} s")
