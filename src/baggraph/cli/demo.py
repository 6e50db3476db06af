"""``baggraph demo``: the main job on data that comes with the package."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.markup import escape

from baggraph.cli._codes import accounted
from baggraph.cli._console import err, out, print_json, table, work_progress
from baggraph.cli._runs import command_line

if TYPE_CHECKING:
    from baggraph.data.bags import Bags
    from baggraph.data.results import ResultTable
    from baggraph.evaluation.compare import Comparison

EPILOG = "Examples:  baggraph demo  |  baggraph demo -o digits.html --random-state 1"
EPOCHS, DRAWS = 100, 20  # half the epochs of the paper: enough for these bags, and the demo stays short
HIDDEN = 3  # every third label is kept from the model that the page is about


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="The page.")] = Path("report.html"),
    random_state: Annotated[int, typer.Option("--random-state", help="Seed of bags, folds and networks.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only write the page.")] = False,
) -> None:
    """Bags of handwritten digits, is there a 9 in the bag?  Audit, compare, fit, explain, and write report.html."""
    from baggraph import audit, compare, datasets
    from baggraph.evaluation.graph_help import GraphHelp
    from baggraph.report.content import Content
    from baggraph.report.html import write_page

    started, say = time.perf_counter(), (lambda _: None) if as_json or quiet else out.print
    with accounted("nothing was written"):
        bags = datasets.load("digits-bags", random_state=random_state)
        say(escape(str(bags)) + "\n")
        with err.status("audit"):
            found = audit(bags, random_state=random_state)
        say(f"Audit: {len(found.findings)} findings, {len(found.above('note'))} of them above a note.\n")
        with work_progress(quiet=quiet) as progress:
            scores = _scores(bags, random_state, progress)
        compared = compare(scores, "accuracy")
        if not (as_json or quiet):
            _show(compared)
        say("\n" + escape(GraphHelp(scores, compared).sentences))
        hidden = np.arange(len(bags)) % HIDDEN == 0
        seen = bags.replace(y=np.where(hidden, np.nan, bags.y))
        with work_progress(quiet=quiet) as progress:
            model = _network(random_state, "learned", DRAWS, progress).fit(seen)
        right = model.transduction_[hidden] == bags.y[hidden]
        say(f"\n{model.graph_!r}")
        say(f"Fitted with {hidden.sum()} labels hidden, of which it guesses {100 * right.mean():.1f} % rightly.")
        with err.status("explanations and page"):
            content = Content.of(seen, model=model, truth=bags.y, audit=found, commands=[command_line()])
            page = write_page(content, scores, output)
    say(f"[bold]{escape(str(page))}[/bold]: open it in a browser.")
    seconds = time.perf_counter() - started
    if as_json:
        print_json({"page": str(page), "seconds": round(seconds, 1), **json.loads(compared.to_json())})
    elif not quiet:
        err.print(f"{seconds:.0f} s")


def _network(random_state: int, graph: str | None, n_draws: int, verbose: Any = 0) -> Any:
    """The bag graph, or its base model where ``graph`` is None."""
    from baggraph import BagGraphClassifier

    head = "linear" if graph is None else "gcn"
    settings: dict[str, Any] = {"epochs": EPOCHS, "random_state": random_state, "verbose": verbose}
    return BagGraphClassifier(head=head, graph=graph, n_draws=n_draws, **settings)


def _scores(bags: Bags, random_state: int, progress: Any) -> ResultTable:
    """Trivial and classical methods, the network, the bag graph with every graph, the committee, on the same folds."""
    from baggraph import AutoBagClassifier, cross_validate
    from baggraph.baselines import MajorityClassifier, MIKernel, OneNumberClassifier, SummarySVM
    from baggraph.evaluation.graph_help import graph_controls
    from baggraph.inference._sharing import sharing_base_models

    methods = {
        "majority": MajorityClassifier(),
        "bag size": OneNumberClassifier(number="size"),
        "summary SVM": SummarySVM(),
        "MI-Kernel": MIKernel(),
        "network": _network(random_state, None, 0, progress),
        "auto": AutoBagClassifier(random_state=random_state, verbose=progress),
        **graph_controls(_network(random_state, "learned", DRAWS, progress), bags),
    }
    metrics = ["accuracy", "auc", "nll", "ece"]
    with sharing_base_models():
        return cross_validate(methods, bags, folds=5, repeats=2, metrics=metrics, random_state=random_state)


def _show(compared: Comparison) -> None:
    shown = compared.scores
    values = 100 * shown[["mean", "low", "high"]].to_numpy()
    rows = [
        [str(name), f"{mean:.1f}", f"{low:.1f} to {high:.1f}"]
        for name, (mean, low, high) in zip(shown["method"], values, strict=True)
    ]
    table("Accuracy in %, 5 folds x 2 repeats, with 95 % intervals", ["method", "mean", "interval"], rows)
    out.print("The last rows are one bag graph with no graph, its graph shuffled, nearest neighbours, the learned one.")
    out.print("Nothing was tuned, and no method saw the labels of the fold it was tested on.")
