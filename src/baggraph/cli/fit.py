"""``baggraph fit``: from a file to a model, its scores and its card."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from baggraph.cli._codes import accounted
from baggraph.cli._console import err, out, print_json, work_progress
from baggraph.errors import ParameterError

if TYPE_CHECKING:
    from baggraph.cli._fitting import Job

EPILOG = (
    "Examples:  baggraph fit drugs.csv --bag molecule --target musk -o model  |  "
    "baggraph fit slides/ --labels slides.csv -o model --calibration 0.2  |  "
    "baggraph fit people.csv --bag region --target share --coords lat,lon -o model  |  "
    "baggraph fit digits-bags -o model --dry-run"
)


NETWORKS = "Networks (any of these stands for --model bag-graph)"


def fit(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="TABLE|FOLDER|NAME",
            help="A long table (a row an instance), a folder of features (.h5, .npy, .pt; one a bag), or a data set.",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the model, which must not exist yet.")],
    bag: Annotated[str | None, typer.Option(help="Column that names the bag of a row. Guessed.")] = None,
    target: Annotated[str | None, typer.Option(help="Column of the label, or several: a,b. Guessed.")] = None,
    labels: Annotated[Path | None, typer.Option(help="Table of labels of a folder, a row a bag.")] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column of what folds keep together: patient, scaffold, site. No feature.")
    ] = None,
    leave_out: Annotated[
        list[str] | None, typer.Option("--leave-out", help="A column that is no feature; may be given again.")
    ] = None,
    task: Annotated[str, typer.Option(help="classes, numbers, shares (0 to 1), or auto.")] = "auto",
    model: Annotated[
        str | None,
        typer.Option(
            help="auto, a committee with nothing to tune, or bag-graph, a network.  Default: auto, unless an option of "
            "networks is given, or bags are too few or too many for a committee."
        ),
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            help="none, given (that of the data set), or a table of edges (.csv, .parquet); of networks also learned, "
            "their default, and knn."
        ),
    ] = None,
    coords: Annotated[
        str | None, typer.Option(help="Columns of places: lat,lon or x,y. Joins every bag with its -k nearest.")
    ] = None,
    encoder: Annotated[
        str, typer.Option(help="Encoder of bags, such as rff-pool, attention, deep-sets.", rich_help_panel=NETWORKS)
    ] = "rff-pool",
    pooling: Annotated[
        str | None, typer.Option(help="mean, max, sum, logsumexp or attention.", rich_help_panel=NETWORKS)
    ] = None,
    n_neighbors: Annotated[int, typer.Option("-k", "--n-neighbors", help="Neighbours of a bag.")] = 3,
    epochs: Annotated[int, typer.Option(help="Passes over all bags.", rich_help_panel=NETWORKS)] = 200,
    lr: Annotated[float, typer.Option(help="Learning rate.", rich_help_panel=NETWORKS)] = 5e-4,
    weight_decay: Annotated[
        float, typer.Option("--weight-decay", help="Decay of weights.", rich_help_panel=NETWORKS)
    ] = 5e-3,
    n_draws: Annotated[int, typer.Option("--n-draws", help="Draws of the posterior.", rich_help_panel=NETWORKS)] = 50,
    n_members: Annotated[
        int, typer.Option("--n-members", help="Networks of an ensemble.", rich_help_panel=NETWORKS)
    ] = 1,
    calibration: Annotated[
        float,
        typer.Option(
            help="Share of labelled bags held out to calibrate, for sets and intervals.", rich_help_panel=NETWORKS
        ),
    ] = 0.0,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation that the card quotes; 0: none.")] = 5,
    report: Annotated[Path | None, typer.Option(help="Page to write: audit, scores, graph, every bag.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.", rich_help_panel=NETWORKS)] = "auto",
    random_state: Annotated[int, typer.Option("--random-state", help="Seed.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace the model that is there.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and its cost, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only results, warnings and errors.")] = False,
) -> None:
    """Fit a model, cross-validate it, and write it with its card, ready for `baggraph predict`.

    What columns mean is guessed where it is not said, and shown.  Bags without a label take part in the graph; what is
    believed of them, and of all others, is in posterior.parquet beside the model.
    """
    from baggraph.cli._fitting import cost_of, prepare
    from baggraph.cli._models import Choice
    from baggraph.cli._reading import read_input

    started = time.perf_counter()
    with accounted("nothing was written; the same command starts anew"):
        if not dry_run:
            _refuse_existing(output, force)
        found = read_input(
            source, bag=bag, target=target, coords=coords, labels=labels, leave_out=leave_out or (), groups=groups
        )
        settings: dict[str, Any] = {
            "encoder": encoder, "pooling": pooling, "n_neighbors": n_neighbors, "epochs": epochs, "lr": lr,
            "weight_decay": weight_decay, "n_draws": n_draws, "n_members": n_members, "calibration": calibration,
            "device": device, "random_state": random_state,
        }  # fmt: skip
        given = frozenset(name for name in settings if _is_given(context, name))
        job = prepare(found, source, Choice(task, model, graph, coords, given), settings, folds)
        if not quiet:
            _show(job.plan)
        if dry_run:
            return _end(job, {"seconds": round(cost_of(job), 1)}, as_json, "about {seconds} s of fitting", quiet=False)
        with work_progress(quiet=quiet) as progress:
            job.score(progress)
            job.fit(progress)
        command = "baggraph " + shlex.join(sys.argv[1:])
        job.write(output, overwrite=force, command=command)
        if report is not None:
            job.page(report, output)
    facts: dict[str, Any] = {"model": str(output), "seconds": round(time.perf_counter() - started, 1)}
    facts |= {} if report is None else {"report": str(report)}
    return _end(job, facts, as_json, "wrote {model} in {seconds} s; its card is {model}/card.md", quiet=quiet)


def _is_given(context: typer.Context, name: str) -> bool:
    """Whether an option was typed, or remembered in the file of settings."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _refuse_existing(output: Path, force: bool) -> None:
    """Before the work, not after it."""
    if output.exists() and not force and (output.is_file() or any(output.iterdir())):
        got, remedy = f"one: {output}", "choose another, or pass --force to replace a model"
        raise ParameterError("fit", expected="an output that does not exist yet", got=got, remedy=remedy)


def _show(plan: list[tuple[str, str]]) -> None:
    for name, value in plan:
        err.print(f"{name:<12}{escape(value)}")


def _end(job: Job, facts: dict[str, Any], as_json: bool, text: str, *, quiet: bool) -> None:
    if as_json:
        return print_json({**job.facts(), **facts})
    for name, value in job.scores.items():
        out.print(f"{name:<20}{escape(value)}")
    return None if quiet else err.print(escape(text.format(**facts)))
