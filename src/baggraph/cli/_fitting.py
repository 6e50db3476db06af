"""What ``baggraph fit`` does between reading and writing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from baggraph.cli._console import warn
from baggraph.cli._groups import count_groups
from baggraph.cli._reading import Input, task_of
from baggraph.cli._runs import PAGE, write_run
from baggraph.errors import ParameterError, closest

if TYPE_CHECKING:
    from baggraph.data.bags import Bags
    from baggraph.data.results import ResultTable

Progress = Callable[[str, int, int], None]
GRAPHS = ("learned", "knn", "none", "given")
SHOWN = {
    "classes": ("accuracy", "balanced accuracy", "auc", "nll", "ece"),
    "numbers": ("rmse", "mae", "r2", "nll"),
}
PROBE_BAGS, PROBE_EPOCHS = 300, 3


@dataclass
class Job:
    """A model to be fitted to bags, and what is found out on the way."""

    found: Input
    model: Any
    task: str
    graph: str
    folds: int
    notes: dict[str, Any]
    scores: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)
    scored: str = "Not cross-validated."
    table: ResultTable | None = None

    @property
    def bags(self) -> Bags:
        """The bags."""
        return self.found.bags

    @property
    def _kind_of_folds(self) -> str:
        return "random folds" if self.found.groups is None else f"folds that keep every {self.found.groups} whole"

    @property
    def plan(self) -> list[tuple[str, str]]:
        """What will be done, as (name, what)."""
        bags, labelled = self.bags, int(self.bags.labelled.sum())
        counts = f"{len(bags):,}, {labelled:,} labelled; {bags.n_instances:,} instances, {bags.n_features:,} features"
        check = f"{self.folds} {self._kind_of_folds}" if self.folds else "none"
        model = f"{self.model.encoder}, {self.model.epochs} epochs"
        plan = [*self.found.told, ("bags", counts), ("labels", f"{self.task}: {_labels(bags, self.task)}")]
        return [*plan, ("graph", self.graph), ("network", model), ("scores from", check)]

    def facts(self) -> dict[str, Any]:
        """For machines."""
        bags = self.bags
        counts = {"bags": len(bags), "labelled": int(bags.labelled.sum()), "instances": bags.n_instances}
        return {
            "kind": type(self.model).__name__,
            **counts,
            "features": bags.n_features,
            "task": self.task,
            "graph": self.graph,
            "roles": self.found.roles,
            "scores": self.numbers,
        }

    def score(self, progress: Progress) -> None:
        """Cross-validate beside a constant; a set that is too small for the folds gets fewer."""
        from baggraph.baselines import MajorityClassifier, MeanRegressor
        from baggraph.data.splits import MOST_CLASSES
        from baggraph.evaluation.cross_validate import cross_validate

        labels = self.bags.y[self.bags.labelled]
        smallest = len(labels) if self.task != "classes" else min(np.unique(labels, return_counts=True)[1])
        groups = self.found.groups
        most = int(smallest) if groups is None else count_groups(self.bags, groups)
        folds = min(self.folds, most)
        if 2 <= folds < self.folds:
            warn(f"{folds} folds in place of {self.folds}, as there are no more groups, or bags of a class, than that")
        if folds < 2 or (len(np.unique(labels)) > max(MOST_CLASSES, 1) and self.task == "classes"):
            self.scored = "Not cross-validated" + (": a class has too few bags." if self.folds else ", as asked.")
            return
        constant = MajorityClassifier() if self.task == "classes" else MeanRegressor()
        tell = lambda phase, done, total: progress(f"scores: {phase}", done, total)  # noqa: E731
        methods = {"bag graph": self.model.set_params(verbose=tell), "constant": constant}
        seed = self.model.random_state
        splits = self.found.folds(folds, 1, seed)
        table = cross_validate(methods, self.bags, folds=folds, repeats=1, splits=splits, random_state=seed)
        self.table = table
        self.scored = (
            f"Mean and standard deviation over {folds} {self._kind_of_folds}, beside a constant prediction. "
            "Instances of the tested bags took part in training, their labels did not; nothing was chosen on them."
        )
        for metric in SHOWN["classes" if self.task == "classes" else "numbers"]:
            found = table.summary(metric).droplevel("dataset")
            mean, spread, base = found["mean"]["bag graph"], found["sd_splits"]["bag graph"], found["mean"]["constant"]
            self.numbers[metric] = {k: _number(v) for k, v in (("mean", mean), ("sd", spread), ("constant", base))}
            self.scores[metric] = f"{mean:.3f} ± {spread:.3f}" + ("" if np.isnan(base) else f"   constant {base:.3f}")

    def fit(self, progress: Progress) -> None:
        """Fit to all bags."""
        self.model.set_params(verbose=progress).fit(self.bags)
        self.model.set_params(verbose=0)

    def write(self, output: Path, *, overwrite: bool, command: str) -> None:
        """The model, its card, and the posterior of the bags in fit."""
        from baggraph.estimators._card import model_card

        notes = {**self.notes, "roles": self.found.roles, "scores": self.numbers}
        self.model.save(output, overwrite=overwrite, notes=json.loads(json.dumps(notes)))
        data = dict(self.plan)
        card = model_card(self.model, data=data, scores=self.scores, scored=self.scored, command=command)
        (output / "card.md").write_text(card, encoding="utf-8")
        frame = self.model.posterior_.frame()
        if self.bags.y.ndim == 1:
            frame.insert(0, "label", self.bags.y)
        frame.to_parquet(output / "posterior.parquet")

    def page(self, path: Path, folder: Path) -> Path:
        """The page of the fit: audit, scores, graph, what is believed of every bag, and why."""
        if self.table is not None:
            self.table.append(folder / PAGE)
        return write_run(folder / PAGE, self.table, self.bags, path, quiet=True, model=self.model)


def prepare(
    found: Input, source: str, task: str, graph: str, coords: str | None, settings: dict[str, Any], folds: int
) -> Job:
    """The estimator for these bags, with the graph that was asked for."""
    from baggraph.estimators import BagGraphClassifier, BagGraphRegressor

    task = task_of(found.bags, task)
    chosen, text, notes = _graph(found, graph, coords, settings["n_neighbors"])
    if task == "classes":
        model: Any = BagGraphClassifier(graph=chosen, **settings)
    else:
        model = BagGraphRegressor(graph=chosen, loss="bce" if task == "shares" else "squared", **settings)
    if folds < 0 or folds == 1:
        raise ParameterError("fit", expected="--folds 0, or from 2", got=str(folds), remedy="pass 5")
    model._check_parameters()
    return Job(found, model, task, text, folds, {"source": source, **notes})


def _graph(found: Input, graph: str, coords: str | None, k: int) -> tuple[Any, str, dict[str, Any]]:
    """What the estimator takes as its graph, in words, and what ``predict`` must know of it."""
    from baggraph.data.graph import BagGraph
    from baggraph.data.readers.edges import read_edges

    bags = found.bags
    if coords is not None:
        if graph != "learned":
            got = f"--coords beside --graph {graph}"
            raise ParameterError("fit", expected="one graph", got=got, remedy="leave one of them out")
        if bags.coords is None:
            raise ParameterError("fit", expected="places of bags", got="none", remedy="read them from a table")
        geographic = bool(found.roles.get("geographic"))
        made = BagGraph.from_coordinates(bags.coords, bags.ids, n_neighbors=k, geographic=geographic)
        where = "on the globe" if geographic else "in the plane"
        places = {"coords": bags.coords.tolist(), "n_neighbors": k, "geographic": geographic}
        return made, f"the {k} nearest places {where}: {made.n_edges:,} edges", {"places": places}
    if Path(graph).suffix in (".csv", ".parquet"):
        table, weight = read_edges(Path(graph))
        edges = BagGraph.from_table(table, bags.ids, weight=weight)
        return edges, f"{graph}: {edges.n_edges:,} edges", {}
    if graph not in GRAPHS:
        remedy = closest(graph, GRAPHS)
        raise ParameterError(
            "fit", expected=f"--graph {', '.join(GRAPHS)} or a table of edges", got=repr(graph), remedy=remedy
        )
    return (
        (None if graph == "none" else graph),
        graph if graph in ("none", "given") else f"{graph}, about {k} a bag",
        {},
    )


def cost_of(job: Job) -> float:
    """About how many seconds fitting takes, from a few epochs on a few bags."""
    from sklearn.base import clone

    bags = job.bags.take(job.bags.labelled)
    rng = np.random.default_rng(0)
    some = bags.take(np.sort(rng.permutation(len(bags))[:PROBE_BAGS]))
    probe = clone(job.model).set_params(graph=None, n_draws=0, n_members=1, calibration=0.0)
    seconds = []
    for epochs in (1, 1 + PROBE_EPOCHS):
        started = time.perf_counter()
        probe.set_params(epochs=epochs).fit(some.replace(graph=None))
        seconds.append(time.perf_counter() - started)
    an_epoch = max(seconds[1] - seconds[0], 1e-4) / PROBE_EPOCHS * job.bags.n_instances / some.n_instances
    trainings = 1 if job.model.graph is None else 2
    return float(an_epoch * job.model.epochs * trainings * job.model.n_members * (1 + job.folds))


def _labels(bags: Bags, task: str) -> str:
    labels = bags.y[bags.labelled]
    if task != "classes":
        return f"from {labels.min():.4g} to {labels.max():.4g}, mean {labels.mean():.4g}"
    kinds, counts = np.unique(labels, return_counts=True)
    some = ", ".join(f"{kind} ×{count:,}" for kind, count in list(zip(kinds, counts, strict=True))[:8])
    return some + (f" and {len(kinds) - 8} more" if len(kinds) > 8 else "")


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return None if np.isnan(value) else float(value)
