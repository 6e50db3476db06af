"""``baggraph predict``: what a fitted model says of new bags, and how sure it is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from baggraph.cli._codes import accounted
from baggraph.cli._console import err, print_json, warn, work_progress
from baggraph.errors import InvalidGraphError

if TYPE_CHECKING:
    import pandas as pd

    from baggraph.data.bags import Bags

EPILOG = (
    "Examples:  baggraph predict model new.csv -o predictions.parquet  |  "
    "baggraph predict model new-slides/ --coverage 0.95 -o predictions.csv  |  baggraph predict model new.csv | head"
)
AT_ONCE = 1000  # bags, between two steps of the progress


def predict(
    model: Annotated[Path, typer.Argument(help="Folder that `baggraph fit` or model.save wrote.")],
    source: Annotated[
        str, typer.Argument(metavar="TABLE|FOLDER|NAME", help="New bags, with the columns that the fit used.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Table to write: .parquet or .csv. Default: CSV to the output."),
    ] = None,
    bag: Annotated[str | None, typer.Option(help="Column that names the bag, where it has another name now.")] = None,
    graph: Annotated[
        Path | None, typer.Option(help="Table of edges from new bags to those in the fit, for a given graph.")
    ] = None,
    coverage: Annotated[float, typer.Option(help="Of intervals, and of sets of classes, 0 to 1.")] = 0.9,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be predicted, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines, a record a bag.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only results, warnings and errors.")] = False,
) -> None:
    """Predict new bags: a row a bag, with probabilities or values and their uncertainty.

    Classes have p_ columns and the entropy and, of networks, std_ columns and the mutual information (how much the
    draws disagree); real targets a standard deviation and an interval.  A committee or a calibrated network adds sets
    of classes of the coverage asked for, or its intervals are of that.
    """
    if output is not None and output.suffix not in (".parquet", ".csv"):
        raise typer.BadParameter("the output must end in .parquet or .csv", param_hint="-o")
    if not 0 < coverage < 1:
        raise typer.BadParameter("the coverage must lie between 0 and 1", param_hint="--coverage")
    from baggraph.cli._reading import read_again
    from baggraph.estimators import load

    started = time.perf_counter()
    with accounted("nothing was written; the same command starts anew"):
        fitted = load(model)
        notes = fitted.notes_ if isinstance(fitted.notes_, dict) else {}
        bags = read_again(source, notes.get("roles", {}), bag)
        known = len(set(bags.ids.tolist()) & set(fitted.posterior_.ids.tolist()))
        if not quiet and err.is_terminal:
            err.print(f"{escape(str(model))}: {type(fitted).__name__}, fitted on {len(fitted.posterior_):,} bags")
            err.print(f"{escape(source)}: {len(bags):,} bags, {bags.n_instances:,} instances")
        if known:
            warn(f"{known:,} bags have the id of one in the fit, and are predicted as if new; for what the fit says, "
                 f"see posterior.parquet in the model")  # fmt: skip
        _tell_reach(fitted, coverage)
        if dry_run:
            err.print(f"would predict {len(bags):,} bags, {bags.n_instances:,} instances")
            return
        links = _links(notes, fitted, bags, graph)
        with work_progress(quiet=quiet) as progress:
            frame = _predicted(fitted, bags, links, coverage, progress, shares=notes.get("task") == "shares")
        _hand_over(frame, output, as_json)
    if output is not None and not quiet:
        err.print(escape(f"wrote {output} in {time.perf_counter() - started:.1f} s: {', '.join(frame.columns)}"))


def _tell_reach(fitted: Any, coverage: float) -> None:
    """Few bags held out cannot promise much: then every class is in the set, and intervals have no end."""
    conformal = getattr(fitted, "conformal_", None)  # Gaussian processes have none
    held = None if conformal is None else len(conformal.scores)
    if held is not None and coverage > held / (held + 1):
        most = f"{held} bags held out promise a coverage of {held / (held + 1):.2f} at most"
        warn(f"{most}: sets and intervals of {coverage:g} hold everything; lower --coverage, or calibrate on more")


def _predicted(fitted: Any, bags: Bags, links: Any, coverage: float, progress: Any, *, shares: bool) -> pd.DataFrame:
    """Some bags at a time; each is joined to the graph as if it came alone, so this changes nothing."""
    import pandas as pd

    from baggraph.cli._fitting import posterior_frame

    parts = []
    for start in range(0, len(bags), AT_ONCE):
        some = slice(start, min(start + AT_ONCE, len(bags)))
        own = None if links is None else links[some]
        posterior = fitted.predict_posterior(bags[some], links=own)
        frame = posterior_frame(posterior, coverage)
        if getattr(fitted, "conformal_", None) is not None:
            _add_conformal(frame, fitted, posterior, coverage)
        if shares or getattr(fitted, "loss", None) == "bce":
            ends = [name for name in frame.columns if name.startswith(("lower", "upper", "prediction"))]
            frame[ends] = frame[ends].clip(0, 1)  # shares lie there, so nothing is lost of the coverage
        parts.append(frame)
        progress("predict", some.stop, len(bags))
    return pd.concat(parts)


def _add_conformal(frame: pd.DataFrame, fitted: Any, posterior: Any, coverage: float) -> None:
    if posterior.is_classification:
        sets = fitted.conformal_.sets(posterior, coverage)
        frame["set"] = ["|".join(str(name) for name in posterior.classes[row]) for row in sets]
        return
    for position, ends in enumerate(fitted.conformal_.intervals(posterior, coverage).transpose(1, 0, 2)):
        tail = "" if posterior.mean.shape[1] == 1 else f"_{position}"
        frame[f"lower{tail}"], frame[f"upper{tail}"] = ends.T


def _links(notes: dict[str, Any], fitted: Any, bags: Bags, edges: Path | None) -> Any:
    """Known weights from new bags to those in the fit; None where the model joins them itself."""
    places = notes.get("places")
    if edges is not None:
        return _from_edges(edges, fitted.posterior_.ids, bags.ids)
    if places is None:
        return None
    from baggraph.graphs.places import place_links

    if bags.coords is None:
        remedy = "give them in a table, in the columns of the fit"
        raise InvalidGraphError("predict", expected="places of the new bags", got="none", remedy=remedy)
    return place_links(bags.coords, places["coords"], places["n_neighbors"], geographic=places["geographic"])


def _from_edges(path: Path, known: Any, new: Any) -> Any:
    """Weights of the edges between new bags and those in the fit; other edges are told, and left out."""
    import numpy as np

    from baggraph.data.graph import BagGraph
    from baggraph.data.readers.edges import read_edges

    edges, weight = read_edges(path)
    fresh = [name for name in new.tolist() if name not in set(known.tolist())]
    here = edges["source"].isin([*known, *fresh]) & edges["target"].isin([*known, *fresh])
    if not here.all():
        warn(f"{(~here).sum():,} edges of {path.name} name a bag that is neither here nor in the fit, and are left out")
    union = BagGraph.from_table(edges[here], np.concatenate([known, np.array(fresh, dtype=object)]), weight=weight)
    place = {name: position for position, name in enumerate(union.ids.tolist())}
    links = union.adjacency[[place[name] for name in new.tolist()]][:, : len(known)]
    if not links.nnz:
        remedy = "check the ids in its columns source and target"
        raise InvalidGraphError(
            "predict", expected=f"edges to bags in the fit in {path.name}", got="none", remedy=remedy
        )
    return links


def _hand_over(frame: pd.DataFrame, output: Path | None, as_json: bool) -> None:
    from baggraph.data.readers._atomic import replacing

    if output is not None:
        with replacing(output) as draft:
            frame.to_csv(draft) if output.suffix == ".csv" else frame.to_parquet(draft)
    if as_json:
        print_json(frame.reset_index().to_dict(orient="records"))
    elif output is None:
        typer.echo(frame.to_csv(), nl=False)
