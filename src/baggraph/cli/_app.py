"""The application that the verbs hang on, and what becomes of errors."""

from __future__ import annotations

from typing import Annotated

import typer

from baggraph import __version__
from baggraph.cli import audit, compare, datasets, demo, fit, graph, predict, report, reproduce
from baggraph.cli._codes import BAD_DATA, INTERRUPTED, WRONG_USAGE
from baggraph.cli._console import complain
from baggraph.cli._settings import remembered
from baggraph.cli._verbs import add_verb
from baggraph.errors import BagError, ParameterError

EPILOG = (
    "Start with: baggraph demo. With data of yours: baggraph audit TABLE, then compare, fit and predict; every verb "
    "shows examples with --help.\n\n"
    "A file baggraph.toml in the current folder may hold options, in a table a verb.\n\n"
    "Exit codes: 0 fine, 2 wrong usage, 3 data that cannot be read, fetched or trusted, 4 not converged, "
    "5 interrupted: what resumes goes on with the same command."
)

app = typer.Typer(
    help="Multiple-instance learning when bags are related to one another.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
add_verb(app, demo.demo, demo.EPILOG)
add_verb(app, audit.audit, audit.EPILOG)
add_verb(app, compare.compare, compare.EPILOG)
add_verb(app, fit.fit, fit.EPILOG)
add_verb(app, predict.predict, predict.EPILOG)
add_verb(app, graph.graph, graph.EPILOG)
add_verb(app, report.report, report.EPILOG)
add_verb(app, reproduce.reproduce, reproduce.EPILOG)
app.add_typer(datasets.app, name="datasets")


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
        return WRONG_USAGE if isinstance(error, ParameterError) else BAD_DATA
    except KeyboardInterrupt:  # before or after the verb itself
        complain("interrupted")
        return INTERRUPTED
    return 0
