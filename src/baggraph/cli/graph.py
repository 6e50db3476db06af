"""``baggraph graph``: learn the graph between bags, and say how good it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from baggraph.cli._console import err, out
from baggraph.cli._reading import read_aloud

if TYPE_CHECKING:
    from baggraph.data.graph import BagGraph
    from baggraph.graphs.learned import LearnedGraph

EPILOG = (
    "Examples:  baggraph graph embeddings.npy -o edges.parquet  |  "
    "baggraph graph slides.csv --bag slide --target tumour -k 5 -o edges.csv  |  baggraph graph musk1 --certify exact"
)


def graph(
    source: Annotated[
        str,
        typer.Argument(
            metavar="TABLE|EMBEDDINGS.npy|NAME",
            help="A table or folder of bags, an array of embeddings (one row a bag), or the name of a data set.",
        ),
    ],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Edge table: .parquet or .csv.")] = None,
    n_neighbors: Annotated[int, typer.Option("-k", "--n-neighbors", help="Neighbours that a bag is to keep.")] = 10,
    candidate_ratio: Annotated[int, typer.Option("-r", "--candidate-ratio", help="Candidates a neighbour.")] = 3,
    bag: Annotated[str | None, typer.Option(help="Column that names the bag of a row. Guessed.")] = None,
    target: Annotated[
        str | None, typer.Option(help="Column of the label: not a feature, and not looked at. Guessed.")
    ] = None,
    degree_match: Annotated[str, typer.Option(help="rule, or exact: adjust until the mean degree is -k.")] = "rule",
    local_scaling: Annotated[bool, typer.Option("--local-scaling", help="Even out dense and thin places.")] = False,
    observed: Annotated[Path | None, typer.Option(help="Edge table of a known graph.")] = None,
    trust: Annotated[float, typer.Option(help="How much known edges shrink distances, 0 to 1.")] = 0.0,
    tol: Annotated[float, typer.Option(help="Largest relative duality gap.")] = 1e-4,
    knn: Annotated[str, typer.Option(help="Search of neighbours: auto, exact, ivf or hnsw.")] = "auto",
    certify: Annotated[str, typer.Option(help="no, check, or exact: the graph of all pairs.")] = "check",
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only results, warnings and errors.")] = False,
) -> None:
    """Learn a sparse graph between bags from embeddings; a table of bags is embedded by the means of its features.

    Prints degree, duality gap, certificate, recall of the neighbours, components, and the time of every phase.
    """
    import numpy as np

    from baggraph.data.graph import BagGraph
    from baggraph.graphs.learned import LearnedGraph

    if output is not None and output.suffix not in (".parquet", ".csv"):
        raise typer.BadParameter("the output must end in .parquet or .csv", param_hint="-o")
    Z, ids = _embed(source, bag, target, quiet)
    known = (
        None
        if observed is None
        else BagGraph.from_table(observed, [str(i) for i in range(len(Z))] if ids is None else ids)
    )
    maker = LearnedGraph(
        n_neighbors,
        candidate_ratio,
        degree_match=degree_match,
        local_scaling=local_scaling,
        observed=known,
        trust=trust,
        tol=tol,
        certify=False if certify == "no" else certify,
        knn=knn,
    )
    if not quiet:
        err.print(f"learning the graph of {len(Z):,} bags, {Z.shape[1]} dimensions")
    learned = maker.fit(np.asarray(Z), ids=ids, progress=_say if err.is_terminal and not quiet else None)
    facts = _facts(learned, n_neighbors)
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
    else:
        for key, value in facts.items():
            share = key in ("certified", "recall") and value is not None
            out.print(f"{key:<14}{f'{value:.1%}' if share else escape(_readable(value))}")
    if output is not None:
        _write(learned.graph_, output)


def _embed(source: str, bag: str | None, target: str | None, quiet: bool) -> tuple[Any, Any]:
    """Embeddings and ids of what was named."""
    import numpy as np

    from baggraph.baselines.summary import summarise
    from baggraph.errors import DataFileError

    path = Path(source)
    if path.suffix == ".npy" and path.is_file():
        try:
            return np.load(path, allow_pickle=False), None
        except (ValueError, EOFError) as error:
            remedy = "write it with numpy.save"
            raise DataFileError("graph", expected=f"an array in {path.name}", got=str(error), remedy=remedy) from error
    bags = read_aloud(source, bag=bag, target=target, labelled=False, quiet=quiet).bags
    means = summarise(bags)
    spread = means.std(axis=0)
    return (means - means.mean(axis=0)) / np.where(spread > 0, spread, 1.0), bags.ids


def _say(phase: str, number: float) -> None:
    text = f"{phase}: {number:.0%} of the bags" if phase == "neighbours" else f"{phase}: relative gap {number:.1e}"
    err.print(f"  {text:<40}", end="\r")


def _facts(learned: LearnedGraph, asked: int) -> dict[str, Any]:
    graph = learned.graph_
    return {
        "bags": len(graph),
        "edges": graph.n_edges,
        "degree": {"asked": asked, "reached": round(learned.degree_, 2)},
        "gap": {"relative": learned.relative_gap_, "reached": learned.converged_},
        "certified": learned.certified_fraction_,
        "recall": learned.recall_,
        "components": graph.n_components,
        "isolates": len(graph.isolates),
        "theta": learned.theta_,
        "seconds": {phase: round(seconds, 3) for phase, seconds in learned.timings_.items()},
    }


def _readable(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_readable(item)}" for key, item in value.items())
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "not asked"}[value]
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _write(graph: BagGraph, output: Path) -> None:
    written = graph.to_csv(output) if output.suffix == ".csv" else graph.to_parquet(output)
    err.print(f"wrote {escape(str(written))}")
