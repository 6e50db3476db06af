"""``baggraph audit``: what to doubt about data before a score on them is believed."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from baggraph.cli._console import err, out, work_progress
from baggraph.cli._reading import read_aloud
from baggraph.cli._source import bags_of

EPILOG = (
    "Examples:  baggraph audit slides.csv --bag slide --target tumour  |  "
    "baggraph audit slides/ --labels slides.csv  |  baggraph audit rental --as-published  |  "
    "baggraph audit musk1 --beside musk2 --json  |  baggraph audit election/zcta --scores printed.csv"
)
STEPS = 5  # that an audit tells of, one more with printed scores


def audit(
    source: Annotated[
        str, typer.Argument(metavar="TABLE|FOLDER|NAME", help="A table or folder of bags, or the name of a data set.")
    ],
    bag: Annotated[str | None, typer.Option(help="Column that names the bag of a row. Guessed.")] = None,
    target: Annotated[str | None, typer.Option(help="Column of the label. Guessed.")] = None,
    coords: Annotated[str | None, typer.Option(help="Columns of places, between commas. Guessed.")] = None,
    labels: Annotated[Path | None, typer.Option(help="Table of labels, for a folder of features.")] = None,
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
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only the findings.")] = False,
) -> None:
    """Look for what solves a data set trivially, or is wrong with it: leaks, twins, constants, graphs in disorder.

    Findings are notes, warnings or serious; the exit code is 0 whatever is found.
    """
    from baggraph.evaluation.audit import audit as look

    if as_published:
        bags = bags_of(source, as_published=True)
    else:
        bags = read_aloud(source, bag=bag, target=target, coords=coords, labels=labels, quiet=quiet).bags
    others = None if beside is None else {name: bags_of(name, bag=bag, target=target) for name in beside}
    started, steps, begun = time.perf_counter(), STEPS + (scores is not None), itertools.count()
    with work_progress(quiet=quiet) as progress:
        tell = lambda phase: progress("audit", next(begun), steps)  # noqa: E731, ARG005
        found = look(bags, scores=scores, beside=others, random_state=random_state, progress=tell)
    if as_json:
        typer.echo(found.to_json())
    else:
        out.print(escape(str(found)))
    if not quiet:
        seconds = time.perf_counter() - started
        err.print(f"audited {len(bags):,} bags, {bags.n_instances:,} instances in {seconds:.1f} s")
