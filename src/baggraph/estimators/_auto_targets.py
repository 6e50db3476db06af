"""The committee for real targets: every member has a mean and a variance, and one for each label left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor

from baggraph.data.splits import pairs, stratified_folds
from baggraph.estimators._auto_committee import FOLDS, TRUST
from baggraph.estimators._auto_tables import Tables
from baggraph.estimators._forest import Forest
from baggraph.inference.gp import FittedProcess, Process, fit_process
from baggraph.inference.gp_bags import Description
from baggraph.inference.gp_kernels import Constant, Linear, Parameter

Array = NDArray[np.float64]
TREES = 200
LEAST_VARIANCE = 1e-6  # of targets that vary by one


@dataclass(frozen=True, eq=False)
class Asked:
    """Bags to be answered, as every member sees them."""

    tables: Tables
    rows: dict[str, dict[str, Array]]  # of the processes, by member
    places: Array | None

    def summaries(self) -> Array:
        """What trees see: statistics of the instances, and where the bags lie."""
        return self.tables.summaries if self.places is None else np.hstack([self.tables.summaries, self.places])


@dataclass(frozen=True, eq=False)
class Voice:
    """A fitted member: what it says of bags, and what it said of every label before it knew it."""

    name: str
    uses_graph: bool
    model: FittedProcess | Forest
    held_mean: Array  # (n,)
    held_variance: Array
    inflation: float = 1.0
    weight: float = 0.0
    loss: float = np.nan

    def answer(self, asked: Asked) -> tuple[Array, Array, Array]:
        """Mean, variance of the signal and of the noise (m,), on the scale of the process."""
        if isinstance(self.model, FittedProcess):
            mean, signal, noise = self.model.predict(asked.rows[self.name])
            return mean[:, 0], signal * self.inflation, noise * self.inflation
        mean = self.model(asked.summaries())
        return mean, np.zeros(len(mean)), np.full(len(mean), float(self.held_variance[0]) * self.inflation)


def kernel_process() -> Process:
    """A process on the average kernel."""
    kernels = {"level": Constant(), "kernel": Linear(Parameter("variance", 0.5, 2.0))}
    return Process(kernels, {"noise": Parameter("noise", 0.1, 2.0)})


def of_process(name: str, process: Process, rows: dict[str, Array], visible: Any, targets: Array, graph: bool) -> Voice:
    """A process fitted to the visible bags."""
    fitted = fit_process(process, {key: value[visible] for key, value in rows.items()}, targets[:, None])
    means, variances = fitted.leave_one_out()
    return Voice(name, graph, fitted, means[:, 0], variances)


def of_description(name: str, description: Description, visible: Any, targets: Array) -> Voice:
    """A process over described bags."""
    graph = "graph" in description.parts
    return of_process(name, description.process, description.rows, visible, targets, graph)


def of_trees(asked: Asked, visible: Any, targets: Array, seed: int) -> Voice:
    """Extremely randomised trees; what is left out is one of five folds."""
    rows = asked.summaries()[visible]

    def fitted(where: Any) -> Forest:
        forest = ExtraTreesRegressor(TREES, min_samples_leaf=2, random_state=seed)
        return Forest.of(forest.fit(rows[where], targets[where]))

    mean = np.empty(len(targets))
    folds = stratified_folds(np.zeros(len(targets), int), folds=min(FOLDS, len(targets)), repeats=1, random_state=seed)
    for train, test in pairs(folds):
        mean[test] = fitted(train)(rows[test])
    variance = np.full(len(targets), max(float(((targets - mean) ** 2).mean()), LEAST_VARIANCE))
    return Voice("trees", False, fitted(np.arange(len(targets))), mean, variance)


@dataclass(frozen=True, eq=False)
class Council:
    """Members for one target, weighted; ``inflation`` brings the pooled variance to what was seen of errors.

    ``held_mean`` and ``held_variance`` (n,) are what was said of every label left out, inflation included.
    """

    voices: list[Voice]
    inflation: float
    gain: tuple[float, float, float]
    graph_kept: bool
    skipped: list[str]
    held_mean: Array
    held_variance: Array

    def answer(self, asked: Asked) -> tuple[Array, Array, Array]:
        """Mean, variance of the signal and of the noise (m,)."""
        parts = [(voice.weight, *voice.answer(asked)) for voice in self.voices]
        mean = np.asarray(sum(weight * mean for weight, mean, _, _ in parts))
        signal = np.asarray(sum(weight * signal for weight, _, signal, _ in parts))
        noise = np.asarray(sum(weight * noise for weight, _, _, noise in parts))
        return mean, signal * self.inflation, np.maximum(noise * self.inflation, LEAST_VARIANCE)


def gather(makers: Mapping[str, Callable[[], Voice]], deadline: float | None, tell: Any) -> list[Voice]:
    """Voices one after the other; no further one after the deadline, but always the first."""
    found: list[Voice] = []
    for name, make in makers.items():
        if found and deadline is not None and time.monotonic() > deadline:
            break
        found.append(make())
        if tell is not None:
            tell(name)
    return found


def pool(voices: list[Voice], targets: Array, skipped: list[str]) -> Council:
    """Weights in proportion to ``exp(-TRUST n loss)``, graphs only where they lower the loss; see ``convene``."""
    voices = [_judged(voice, targets) for voice in voices]
    plain = [voice for voice in voices if not voice.uses_graph]
    everybody, without = (_weighted(some, targets) for some in (voices, plain))
    each = without.losses - everybody.losses
    error = 1.96 * float(each.std() / np.sqrt(len(each)))
    gain = (float(each.mean()), float(each.mean()) - error, float(each.mean()) + error)
    chosen = everybody if gain[0] > 0 else without
    kept = any(voice.uses_graph for voice in chosen.voices)
    return Council(chosen.voices, chosen.inflation, gain, kept, skipped, chosen.mean, chosen.variance)


def _judged(voice: Voice, targets: Array) -> Voice:
    inflation = float(((targets - voice.held_mean) ** 2 / voice.held_variance).mean())
    loss = float(_losses(targets, voice.held_mean, voice.held_variance * inflation).mean())
    given = (voice.name, voice.uses_graph, voice.model, voice.held_mean, voice.held_variance)
    return Voice(*given, inflation=inflation, loss=loss)


@dataclass(frozen=True, eq=False)
class _Pooled:
    voices: list[Voice]
    inflation: float
    mean: Array
    variance: Array
    losses: Array


def _weighted(voices: list[Voice], targets: Array) -> _Pooled:
    best = min(voice.loss for voice in voices)
    raw = np.array([np.exp(-TRUST * len(targets) * (voice.loss - best)) for voice in voices])
    weights = raw / raw.sum()
    mean = np.asarray(sum(weight * voice.held_mean for weight, voice in zip(weights, voices, strict=True)))
    spread = [weight * voice.held_variance * voice.inflation for weight, voice in zip(weights, voices, strict=True)]
    variance = np.asarray(sum(spread))
    inflation = float(((targets - mean) ** 2 / variance).mean())
    found = []
    for weight, voice in zip(weights, voices, strict=True):
        given = (voice.name, voice.uses_graph, voice.model, voice.held_mean, voice.held_variance, voice.inflation)
        found.append(Voice(*given, weight=float(weight), loss=voice.loss))
    variance = variance * inflation
    return _Pooled(found, inflation, mean, variance, _losses(targets, mean, variance))


def _losses(targets: Array, mean: Array, variance: Array) -> Array:
    """Negative log densities (n,)."""
    return np.asarray(0.5 * (np.log(2 * np.pi * variance) + (targets - mean) ** 2 / variance))
