"""``baggraph datasets``: what there is, what is known about it, and getting it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from baggraph.cli._console import download_progress, err, out, print_json, table, work_progress
from baggraph.cli._verbs import add_verb

app = typer.Typer(help="List data sets, show their cards, fetch them.", no_args_is_help=True)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Name = Annotated[str, typer.Argument(help="Name of a data set, as `baggraph datasets list` prints it.")]


def list_(as_json: AsJson = False) -> None:
    """List all data sets, and whether their files are at hand."""
    from baggraph import datasets
    from baggraph.datasets.fetch import data_folder

    cards = [datasets.card(name) for name in datasets.names()]
    if as_json:
        facts = [{"name": c.name, "title": c.title, "task": c.task, "files": datasets.state(c)} for c in cards]
        return print_json(facts)
    rows = [[c.name, c.task, datasets.state(c), *_sizes(c)] for c in cards]
    table("", ["name", "task", "files", "bags", "instances"], rows, right=3)
    out.print(f"\nData folder: {escape(str(data_folder()))} (BAGGRAPH_DATA names another)")
    return None


def info(name: Name, as_json: AsJson = False) -> None:
    """Show the card of a data set: counts, licence, citation, files, and what to know."""
    from baggraph import datasets

    card = datasets.card(name)
    if as_json:
        facts = asdict(card)
        return print_json({k: v for k, v in facts.items() if k not in ("build", "settings")})
    out.print(f"[bold]{card.name}[/bold]  {escape(card.title)}")
    counts = {k: f"{v:,}" for k, v in asdict(card.counts).items() if v is not None}
    lines = [("task", card.task), *counts.items(), ("licence", card.licence), ("cite", card.citation)]
    lines += [("home", card.home), *(("note", note) for note in card.notes)]
    for file in card.files:
        lines.append(
            ("file", f"{file.path} ({'optional, ' if file.optional else ''}sha256 {file.sha256 or 'unknown'})")
        )
        lines += [("", f"from {url}") for url in file.urls] + ([("", file.hint)] if file.hint else [])
    for key, value in lines:
        out.print(f"  {key:<10}{escape(value)}")
    return None


def get(
    name: Name,
    from_file: Annotated[
        Path | None, typer.Option("--from-file", help="A file you fetched by hand; its checksum is checked.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Also write the bags: .parquet or .npz.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch the files of a data set into the data folder, check them, and show the bags."""
    from baggraph import datasets
    from baggraph.data.readers import write

    if output is not None and output.suffix.lower() not in (".parquet", ".npz"):
        raise typer.BadParameter("the output must end in .parquet or .npz", param_hint="-o")
    if from_file is not None:
        err.print(f"placed {escape(str(datasets.supply_by_hand(name, from_file)))}")
    with download_progress(name) as progress:
        bags = datasets.load(name, progress=progress)
    if as_json:
        counts = {"bags": len(bags), "instances": bags.n_instances, "features": bags.n_features}
        print_json({"name": name, **counts, "output": None if output is None else str(output)})
    else:
        out.print(str(bags), markup=False)
    if output is not None:
        err.print(f"wrote {escape(str(write(bags, output)))}")


def check(
    names: Annotated[
        list[str] | None, typer.Argument(help="Data sets to check. Default: all whose files are here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Load data sets, verify checksums and counts, and lay the counts beside those that the paper prints."""
    from baggraph import datasets

    chosen = names or [n for n in datasets.names() if datasets.state(datasets.card(n)) in ("here", "embedded")]
    rows, facts = [], []
    with work_progress() as progress:
        for done, name in enumerate(chosen):
            progress("check", done, len(chosen))
            found = datasets.count(datasets.load(name))
            numbers = ["" if number is None else f"{number:,}" for number in vars(found).values()]
            printed = datasets.against_print(datasets.card(name), found)
            rows.append([name, printed, *numbers])
            facts.append({"name": name, "against the paper": printed, **vars(found)})
    if as_json:
        return print_json(facts)
    columns = ["name", "against the paper", "bags", "instances", "features", "smallest", "largest", "positive"]
    table("", columns, rows, right=2)
    absent = len(datasets.names()) - len(chosen)
    if names is None and absent:
        err.print(f"{absent} sets were not checked, as their files are not here: baggraph datasets list")
    return None


def _sizes(card: Any) -> list[str]:
    counts = (card.counts.bags, card.counts.instances)
    return ["" if number is None else f"{number:,}" for number in counts]


add_verb(app, list_, "Examples:  baggraph datasets list  |  baggraph datasets list --json | jq '.[].name'", "list")
add_verb(app, info, "Examples:  baggraph datasets info elephant  |  baggraph datasets info rental --json")
add_verb(
    app,
    get,
    "Examples:  baggraph datasets get musk1  |  baggraph datasets get musk2 --from-file ~/Downloads/musk2.mat  |  "
    "baggraph datasets get fox -o fox.parquet",
)
add_verb(app, check, "Examples:  baggraph datasets check  |  baggraph datasets check fox tiger elephant --json")
