"""``baggraph demo``: the main job on data that comes with the package."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.markup import escape

from baggraph.cli._codes import accounted
from baggraph.cli._console import err, out, table, work_progress

if TYPE_CHECKING:
    from baggraph.data.bags import Bags
    from baggraph.data.results import ResultTable

EPILOG = "Examples:  baggraph demo  |  baggraph demo -o digits.html --random-state 1"
EPOCHS, DRAWS = 100, 20  # half the epochs of the paper: enough for these bags, and the demo stays short
HIDDEN = 3  # every third label is kept from the model that the page is about


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="The page.")] = Path("report.html"),
    random_state: Annotated[int, typer.Option("--random-state", help="Seed of bags, folds and networks.")] = 0,
) -> None:
    """Bags of handwritten digits, is there a 9 in the bag?  Audit, compare, fit, explain, and write report.html."""
    from baggraph import audit, datasets
    from baggraph.report.content import Content
    from baggraph.report.html import write_page

    started = time.perf_counter()
    with accounted("nothing was written"):
        bags = datasets.load("digits-bags", random_state=random_state)
        out.print(escape(str(bags)) + "\n")
        with err.status("audit"):
            found = audit(bags, random_state=random_state)
        out.print(f"Audit: {len(found.findings)} findings, {len(found.above('note'))} of them above a note.\n")
        with work_progress() as progress:
            scores = _scores(bags, random_state, progress)
        _show(scores)
        hidden = np.arange(len(bags)) % HIDDEN == 0
        seen = bags.replace(y=np.where(hidden, np.nan, bags.y))
        with work_progress() as progress:
            model = _network(random_state, "learned", DRAWS, progress).fit(seen)
        right = model.transduction_[hidden] == bags.y[hidden]
        out.print(f"\n{model.graph_!r}")
        out.print(f"Fitted with {hidden.sum()} labels hidden, of which it guesses {100 * right.mean():.1f} % rightly.")
        with err.status("explanations and page"):
            content = Content.of(seen, model=model, truth=bags.y, audit=found, commands=["baggraph demo"])
            page = write_page(content, scores, output)
    out.print(f"[bold]{escape(str(page))}[/bold]: open it in a browser.")
    err.print(f"{time.perf_counter() - started:.0f} s")


def _network(random_state: int, graph: str | None, n_draws: int, verbose: Any = 0) -> Any:
    """The bag graph, or its base model where ``graph`` is None."""
    from baggraph import BagGraphClassifier

    head = "linear" if graph is None else "gcn"
    settings: dict[str, Any] = {"epochs": EPOCHS, "random_state": random_state, "verbose": verbose}
    return BagGraphClassifier(head=head, graph=graph, n_draws=n_draws, **settings)


def _scores(bags: Bags, random_state: int, progress: Any) -> ResultTable:
    """Trivial, classical and neural methods on the same folds."""
    from baggraph import AutoBagClassifier, cross_validate
    from baggraph.baselines import MajorityClassifier, MIKernel, OneNumberClassifier, SummarySVM
    from baggraph.inference._sharing import sharing_base_models

    methods = {
        "majority": MajorityClassifier(),
        "bag size": OneNumberClassifier(number="size"),
        "summary SVM": SummarySVM(),
        "MI-Kernel": MIKernel(),
        "network": _network(random_state, None, 0, progress),
        f"network, {DRAWS} draws": _network(random_state, None, DRAWS, progress),
        "bag graph": _network(random_state, "learned", DRAWS, progress),
        "auto": AutoBagClassifier(random_state=random_state, verbose=progress),
    }
    metrics = ["accuracy", "auc", "nll", "ece"]
    with sharing_base_models():
        return cross_validate(methods, bags, folds=5, repeats=2, metrics=metrics, random_state=random_state)


def _show(scores: ResultTable) -> None:
    from baggraph.evaluation.compare import compare

    shown = compare(scores, "accuracy").scores
    values = 100 * shown[["mean", "low", "high"]].to_numpy()
    rows = [
        [str(name), f"{mean:.1f}", f"{low:.1f} to {high:.1f}"]
        for name, (mean, low, high) in zip(shown["method"], values, strict=True)
    ]
    table("Accuracy in %, 5 folds x 2 repeats, with 95 % intervals", ["method", "mean", "interval"], rows)
    out.print("Nothing was tuned, and no method saw the labels of the fold it was tested on.")
