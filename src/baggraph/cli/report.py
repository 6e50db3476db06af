"""``baggraph report``: draw the page of a run again, without computing anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from baggraph.cli._console import err, out, print_json
from baggraph.cli._runs import PAGE

EPILOG = "Examples:  baggraph report run/  |  baggraph report run/ -o page.html --title 'Slides of ward 3'"


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder that compare or reproduce wrote, or fit --report.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The page.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Headline of the page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print where the page is as JSON.")] = False,
) -> None:
    """Write one HTML page of a run: scores, audit, graph, calibration; it needs no server and no network."""
    import dataclasses

    from baggraph import ResultTable
    from baggraph.errors import DataFileError
    from baggraph.report.content import Content
    from baggraph.report.html import write_page

    is_model = (folder / "model.json").is_file()
    folder = folder / PAGE if is_model else folder
    content = Content.load(folder)
    table = ResultTable.read(folder) if any(folder.glob("*.parquet")) else None
    if content is None and table is None:
        remedy = f"make it with baggraph {'fit ... --report PAGE' if is_model else 'compare ... -o RUN'}"
        raise DataFileError("report", expected="a folder with page.json or scores", got=str(folder), remedy=remedy)
    shown = content or Content(title=f"Report on {', '.join(table.names('dataset')) if table else folder.name}")
    shown = dataclasses.replace(shown, title=title) if title else shown
    path = write_page(shown, table, output)
    if as_json:
        print_json({"page": str(path), "bytes": path.stat().st_size})
        return
    out.print(escape(str(path)))
    err.print(f"{path.stat().st_size / 1e6:.1f} MB, one file; open it in a browser")
