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
from baggraph.cli._models import Choice, Chosen, choose
from baggraph.cli._reading import Input
from baggraph.cli._runs import PAGE, write_run
from baggraph.errors import ParameterError

if TYPE_CHECKING:
    from baggraph.data.bags import Bags
    from baggraph.data.posterior import Posterior
    from baggraph.data.results import ResultTable

Progress = Callable[[str, int, int], None]
SHOWN = {
    "classes": ("accuracy", "balanced accuracy", "auc", "nll", "ece"),
    "numbers": ("rmse", "mae", "r2", "nll"),
}
PROBE_BAGS, PROBE_EPOCHS = 300, 3
PROBE_COMMITTEE = 100


@dataclass
class Job:
    """A model to be fitted to bags, and what is found out on the way."""

    found: Input
    chosen: Chosen
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
    def model(self) -> Any:
        """The estimator."""
        return self.chosen.model

    @property
    def task(self) -> str:
        """Of the labels."""
        return self.chosen.task

    @property
    def name(self) -> str:
        """Of the model."""
        return self.chosen.name

    @property
    def _kind_of_folds(self) -> str:
        return "random folds" if self.found.groups is None else f"folds that keep every {self.found.groups} whole"

    @property
    def plan(self) -> list[tuple[str, str]]:
        """What will be done, as (name, what)."""
        bags, labelled = self.bags, int(self.bags.labelled.sum())
        counts = f"{len(bags):,}, {labelled:,} labelled; {bags.n_instances:,} instances, {bags.n_features:,} features"
        check = f"{self.folds} {self._kind_of_folds}" if self.folds else "none"
        plan = [*self.found.told, ("bags", counts), ("labels", f"{self.task}: {_labels(bags, self.task)}")]
        plan += [("model", self._model_in_words()), ("graph", self.chosen.graph)]
        if self.name == "bag-graph":
            plan.append(("network", f"{self.model.encoder}, {self.model.epochs} epochs"))
        return [*plan, ("scores from", check)]

    def _model_in_words(self) -> str:
        if self.name == "auto":
            return "auto, a committee with nothing to tune  (--model bag-graph fits a network)"
        return f"bag-graph  ({self.chosen.why})"

    def facts(self) -> dict[str, Any]:
        """For machines."""
        bags = self.bags
        counts = {"bags": len(bags), "labelled": int(bags.labelled.sum()), "instances": bags.n_instances}
        return {
            "kind": type(self.model).__name__,
            **counts,
            "features": bags.n_features,
            "task": self.task,
            "model": self.name,
            "graph": self.chosen.graph,
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
        methods = {self.name: self.model.set_params(verbose=tell), "constant": constant}
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
            mean, spread, base = found["mean"][self.name], found["sd_splits"][self.name], found["mean"]["constant"]
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
        frame = posterior_frame(self.model.posterior_)
        if self.bags.y.ndim == 1:
            frame.insert(0, "label", self.bags.y)
        frame.to_parquet(output / "posterior.parquet")

    def page(self, path: Path, folder: Path) -> Path:
        """The page of the fit: audit, scores, graph, what is believed of every bag, and why."""
        if self.table is not None:
            self.table.append(folder / PAGE)
        return write_run(folder / PAGE, self.table, self.bags, path, quiet=True, model=self.model)


def prepare(found: Input, source: str, choice: Choice, settings: dict[str, Any], folds: int) -> Job:
    """The estimator for these bags, with the graph that was asked for."""
    if folds < 0 or folds == 1:
        raise ParameterError("fit", expected="--folds 0, or from 2", got=str(folds), remedy="pass 5")
    chosen = choose(found, choice, settings)
    return Job(found, chosen, folds, {"source": source, "task": chosen.task, **chosen.notes})


def posterior_frame(posterior: Posterior, coverage: float = 0.9) -> Any:
    """A row a bag; of one draw, nothing is said of how far draws spread."""
    frame = posterior.frame(coverage=coverage)
    if posterior.is_classification and len(posterior.draws) == 1:
        spread = [name for name in frame.columns if name.startswith("std_") or name == "mutual_information"]
        return frame.drop(columns=spread)
    return frame


def cost_of(job: Job) -> float:
    """About how many seconds fitting takes, from a few bags."""
    bags = job.bags.take(job.bags.labelled).replace(graph=None)
    order = np.random.default_rng(0).permutation(len(bags))
    return _cost_of_committee(job, bags, order) if job.name == "auto" else _cost_of_network(job, bags, order)


def _cost_of_network(job: Job, bags: Bags, order: Any) -> float:
    """From a few epochs."""
    from sklearn.base import clone

    some = bags.take(np.sort(order[:PROBE_BAGS]))
    probe = clone(job.model).set_params(graph=None, n_draws=0, n_members=1, calibration=0.0)
    seconds = []
    for epochs in (1, 1 + PROBE_EPOCHS):
        started = time.perf_counter()
        probe.set_params(epochs=epochs).fit(some)
        seconds.append(time.perf_counter() - started)
    an_epoch = max(seconds[1] - seconds[0], 1e-4) / PROBE_EPOCHS * job.bags.n_instances / some.n_instances
    trainings = 1 if job.model.graph is None else 2
    return float(an_epoch * job.model.epochs * trainings * job.model.n_members * (1 + job.folds))


def _cost_of_committee(job: Job, bags: Bags, order: Any) -> float:
    """From one fit to some bags; factors of processes grow with the third power of their number, tables less."""
    from sklearn.base import clone

    if job.task == "classes":  # some of every class
        codes = np.unique(bags.y, return_inverse=True)[1]
        rank = np.empty(len(order))
        for side in np.unique(codes):
            own = order[codes[order] == side]
            rank[own] = np.arange(len(own)) / len(own)
        order = np.argsort(rank, kind="stable")
    some = bags.take(np.sort(order[:PROBE_COMMITTEE]))
    started = time.perf_counter()
    clone(job.model).set_params(graph=None).fit(some)
    growth = (len(job.bags) / len(some)) ** (2 if job.task == "classes" else 3)
    return float((time.perf_counter() - started) * growth * (1 + job.folds))


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
