"""The application that the verbs hang on, and what becomes of errors."""

from __future__ import annotations

from typing import Annotated

import typer

from baggraph import __version__
from baggraph.cli import audit, compare, datasets, demo, fit, graph, predict, report, reproduce
from baggraph.cli._console import complain
from baggraph.cli._settings import remembered
from baggraph.errors import BagError, ParameterError

EPILOG = (
    "A file baggraph.toml in the current folder may hold options, in a table a verb.  "
    "Exit codes: 0 fine, 2 wrong usage, 3 data that cannot be read, fetched or trusted, 4 not converged, 5 interrupted."
)

app = typer.Typer(
    help="Multiple-instance learning when bags are related to one another.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(datasets.app, name="datasets")
app.command("audit", epilog=audit.EPILOG)(audit.audit)
app.command("compare", epilog=compare.EPILOG)(compare.compare)
app.command("demo", epilog=demo.EPILOG)(demo.demo)
app.command("fit", epilog=fit.EPILOG)(fit.fit)
app.command("graph", epilog=graph.EPILOG)(graph.graph)
app.command("predict", epilog=predict.EPILOG)(predict.predict)
app.command("report", epilog=report.EPILOG)(report.report)
app.command("reproduce", epilog=reproduce.EPILOG)(reproduce.reproduce)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"baggraph {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    del version  # its callback has done everything


def _options_by_verb() -> dict[str, set[str]]:
    """Options that a file may hold: all but those that print and leave."""
    verbs = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return {name: {option.name for option in verb.params if option.name != "help"} for name, verb in verbs.items()}


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    try:
        app(arguments, prog_name="baggraph", default_map=remembered(_options_by_verb()))
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else 0
    except BagError as error:
        complain(str(error))
        return 2 if isinstance(error, ParameterError) else 3
    return 0
