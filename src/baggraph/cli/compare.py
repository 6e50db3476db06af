"""``baggraph compare``: methods on the same folds, with intervals and paired tests; stop it, and it goes on later."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from baggraph.cli._codes import NOT_CONVERGED, accounted
from baggraph.cli._console import err, out, print_json, warn, work_progress
from baggraph.cli._console import table as show_table
from baggraph.cli._cost import cost_of_folds
from baggraph.cli._models import committee, unfit_for_committee
from baggraph.cli._reading import Input, read_aloud
from baggraph.cli._runs import write_run
from baggraph.cli._source import bags_of
from baggraph.errors import ParameterError, closest

if TYPE_CHECKING:
    from baggraph.data.bags import Bags

EPILOG = (
    "Examples:  baggraph compare musk1 --folds 10 --repeats 10 -o run/  |  "
    'baggraph compare slides.csv --bag slide --target tumour --methods "majority, MI-Kernel, summary SVM" -o run/  |  '
    'baggraph compare fox --graph-of "B-rFF+pool-GCN" --repeats 2 -o run/'
)
COMMITTEE = "auto"
CLASSIFIERS = "majority, bag size, largest norm, summary SVM, MI-Kernel, auto"
TASKS = {"classification": "classes", "regression": "numbers"}
REGRESSORS = "mean, bag size (regression), largest norm (regression), summary ridge, distribution regression, auto"


def compare(
    source: Annotated[
        str, typer.Argument(metavar="TABLE|NAME", help="A table or folder of bags, or the name of a data set.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the results; what it has is kept.")],
    methods: Annotated[
        str | None,
        typer.Option(help="Printed names and auto, between commas. Default: trivial and plain ones, and auto."),
    ] = None,
    graph_of: Annotated[
        str | None, typer.Option("--graph-of", help="Does the graph of this method help? Adds it with every graph.")
    ] = None,
    folds: Annotated[int, typer.Option(help="Folds of a repeat.")] = 10,
    repeats: Annotated[int, typer.Option(help="Repeats, every one with new folds.")] = 10,
    metric: Annotated[str | None, typer.Option(help="What to compare. Default: accuracy, or rmse.")] = None,
    against: Annotated[str | None, typer.Option(help="Test the others against this method alone.")] = None,
    bag: Annotated[str | None, typer.Option(help="Column that names the bag of a row.")] = None,
    target: Annotated[str | None, typer.Option(help="Column of the label.")] = None,
    coords: Annotated[str | None, typer.Option(help="Columns of the position, between commas.")] = None,
    labels: Annotated[Path | None, typer.Option(help="Table of labels, for a folder of features.")] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column of what folds keep together: patient, scaffold, site.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Page to write: audit, scores, the bags.")] = None,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="A data set as the code published with the paper reads it.")
    ] = False,
    random_state: Annotated[int, typer.Option("--random-state", help="Seed of the folds.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the methods and their cost, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
) -> None:
    """Score methods by cross-validation, and say which differences are more than noise.

    Every method sees the same folds, and no label of a tested bag.
    """
    from baggraph.evaluation._division import divide
    from baggraph.evaluation.compare import compare as decide
    from baggraph.evaluation.resuming import cross_validate_into

    started = time.perf_counter()
    if as_published:
        found_in = Input(bags_of(source, as_published=True))
    else:
        found_in = read_aloud(source, bag=bag, target=target, coords=coords, labels=labels, groups=groups, quiet=quiet)
    bags, splits = found_in.bags, found_in.folds(folds, repeats, random_state)
    chosen = _chosen(methods, graph_of, bags)
    metric = _checked(metric, against, chosen, bags)
    if dry_run:
        return _plan(chosen, bags, divide(bags, splits, folds, repeats, random_state), random_state, as_json)
    with accounted(f"{output} keeps what was done, and the same command goes on"):
        with work_progress(quiet=quiet) as progress:
            table = cross_validate_into(
                output,
                chosen,
                bags,
                folds=folds,
                repeats=repeats,
                splits=splits,
                random_state=random_state,
                progress=lambda done, total, _: progress("compare", done, total),
            )
        found = decide(table, metric, against=against)
        if report is not None:
            write_run(output, table, bags, report, quiet=quiet)
    typer.echo(found.to_json() if as_json else str(found))
    if graph_of is not None and not as_json:
        from baggraph.evaluation.graph_help import GraphHelp

        out.print(escape("\n" + GraphHelp(table, found).sentences))
    if not quiet:
        seconds = time.perf_counter() - started
        err.print(
            escape(f"{len(chosen)} methods, {repeats} x {folds} folds, {seconds:.1f} s; all rows are in {output}")
        )
    if len(table.failed):
        raise typer.Exit(NOT_CONVERGED)
    return None


def _plan(chosen: dict[str, Any], bags: Bags, division: Any, random_state: int, as_json: bool) -> None:
    """What would be computed, and about how long it takes; nothing is written."""
    seconds = cost_of_folds(chosen, bags, division, random_state)
    if as_json:
        return print_json({"repeats": len(division), "seconds": {name: round(s, 1) for name, s in seconds.items()}})
    show_table("", ["method", "seconds"], [[name, f"{taken:.1f}"] for name, taken in seconds.items()])
    return err.print(
        f"about {sum(seconds.values()):.0f} s for {len(division)} x {int(division.max()) + 1} folds, at most"
    )


def _chosen(methods: str | None, graph_of: str | None, bags: Bags) -> dict[str, Any]:
    """Methods by name, made for these bags."""
    from baggraph import datasets
    from baggraph.estimators.printed import make
    from baggraph.evaluation._tasks import task_of, task_of_labels
    from baggraph.evaluation.graph_help import graph_controls

    task = task_of_labels(bags)
    dataset = bags.metadata.get("name")
    dataset = dataset if dataset in datasets.names() else None  # the paper's settings are for its own sets
    default = "" if graph_of is not None else CLASSIFIERS if task == "classification" else REGRESSORS
    names = [name.strip() for name in (default if methods is None else methods).split(",") if name.strip()]
    if methods is None and COMMITTEE in names and (hindrance := unfit_for_committee(bags, TASKS[task])) is not None:
        warn(f"auto is left out: {hindrance}; --methods with auto compares it all the same")
        names = [name for name in names if name != COMMITTEE]
    chosen = {
        name: committee(TASKS[task], "given", {}, 0) if name == COMMITTEE else make(name, dataset=dataset)
        for name in names
    }
    if graph_of is not None:
        chosen |= graph_controls(make(graph_of, dataset=dataset), bags)
    if len(chosen) < 2:
        remedy = "add one, such as majority"
        raise ParameterError("compare", expected="at least 2 methods", got=str(len(chosen)), remedy=remedy)
    if task == "regression" and task_of(chosen.values(), bags) == "classification":
        remedy = "choose methods of regression, or text as labels"
        raise ParameterError("compare", expected="methods for real targets", got="classifiers", remedy=remedy)
    return chosen


def _checked(metric: str | None, against: str | None, chosen: dict[str, Any], bags: Bags) -> str:
    """The metric that is compared; mistakes show before the work."""
    from baggraph.evaluation._tasks import task_of
    from baggraph.evaluation.metrics import metrics_for

    if against is not None and against not in chosen:
        remedy = closest(against, chosen)
        raise ParameterError("compare", expected="--against one of the methods", got=repr(against), remedy=remedy)
    task = task_of(chosen.values(), bags)
    return metrics_for(task, [metric or ("accuracy" if task == "classification" else "rmse")])[0].name
