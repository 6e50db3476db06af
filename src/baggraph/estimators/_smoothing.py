"""Correct and smooth: errors and labels of neighbours mend what a network says, or nothing does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data._graph_measures import normalised
from baggraph.data.bags import Bags
from baggraph.data.posterior import LEAST_PROBABILITY, Posterior
from baggraph.graphs.wiring import Wired
from baggraph.inference.bag_graph import Inference
from baggraph.nn.gcn import over_largest

Array = NDArray[np.float64]
FOLDS = 5
STEPS, RESTART = 10, 0.1  # of the walk, as in baggraph.nn.own_neighbors
CORRECT, SMOOTH = (0.0, 0.5, 1.0), (0.0, 0.25, 0.5)  # the first of each is "or none"
SALT = 0x50F7


@dataclass(frozen=True, eq=False)
class Smoother:
    """How much is corrected and smoothed, and what new bags are corrected and smoothed by.

    ``residuals`` and ``values`` (B, C) are those of the bags in fit: true where labels are seen, else propagated.
    ``shares`` says that targets lie between 0 and 1.
    """

    correct: float
    smooth: float
    residuals: Array
    values: Array
    shares: bool

    @property
    def acts(self) -> bool:
        """Whether it changes anything."""
        return self.correct > 0 or self.smooth > 0

    def of_new(self, posterior: Posterior, links: Sequence[sp.csr_array]) -> Posterior:
        """The posterior of new bags, mended by the bags in fit that links (m, B) of every member join them to."""
        if not self.acts:
            return posterior
        rows = sum(links[1:], links[0]) / len(links)
        total = np.asarray(rows.sum(axis=1))[:, None]
        joined = total > 0
        total = np.where(joined, total, 1.0)
        corrected = posterior.mean + np.where(joined, self.correct * (rows @ self.residuals) / total, 0.0)
        mended = np.where(joined, (1 - self.smooth) * corrected + self.smooth * (rows @ self.values) / total, corrected)
        return shifted(posterior, mended - posterior.mean, self.shares)


def smooth_all(
    estimator: Any,
    raw: list[Posterior],
    found: Inference,
    bags: Bags,
    targets: Array,
    visible: Any,
    sample_weight: Array,
    seeds: Sequence[Sequence[int]],
) -> tuple[list[Posterior], list[Smoother | None]]:
    """Posteriors of all rows of ``visible`` (M, B), mended where inner folds, fitted as one more stack, say so."""
    visible = estimator._weights(targets, np.asarray(visible), sample_weight) > 0  # a weight of zero hides a label
    inner = [inner_masks(mask, own[0]) for mask, own in zip(visible, seeds, strict=True)]
    if estimator.smoothing is None or found.wired is None or not all(len(masks) for masks in inner):
        return raw, [None] * len(raw)
    again = [own for own, masks in zip(seeds, inner, strict=True) for _ in masks]
    parts, fits, *_ = estimator._infer(bags, targets, np.concatenate(inner), sample_weight, again, attachable=False)
    truth, members = estimator._truth(targets), int(estimator.n_members)
    graphs = _by_row(fits.wired, members)
    shares = getattr(estimator, "loss", None) == "bce"
    posteriors: list[Posterior] = []
    smoothers: list[Smoother | None] = []
    for own, masks, mask, wired in zip(raw, inner, visible, _by_row(found.wired, members), strict=True):
        some, parts = list(zip(parts, graphs, masks, strict=False)), parts[len(masks) :]
        graphs = graphs[len(masks) :]
        chosen = smoother(own, some, mask, truth, wired, shares=shares)
        smoothers.append(chosen)
        posteriors.append(mended(own, chosen, mask, truth, wired))
    return posteriors, smoothers


def _by_row(wired: list[Wired] | None, members: int) -> list[list[Wired]]:
    """Graphs of the members of every row of masks."""
    return [] if wired is None else [wired[i : i + members] for i in range(0, len(wired), members)]


def inner_masks(visible: Any, seed: int) -> NDArray[np.bool_]:
    """Which labels are seen (K, B) when those of every fold but one are; none where there are fewer than two labels."""
    places = np.flatnonzero(visible)
    count = min(FOLDS, len(places)) if len(places) > 1 else 0
    order = np.argsort(np.random.PCG64(np.random.SeedSequence([seed, SALT])).random_raw(len(places)), kind="stable")
    masks = np.repeat(np.asarray(visible, dtype=bool)[None], count, axis=0)
    for fold in range(count):
        masks[fold, places[order[fold::count]]] = False
    return masks


def smoother(
    posterior: Posterior,
    inner: Sequence[tuple[Posterior, Sequence[Wired], Any]],
    visible: Any,
    truth: Array,
    wired: Sequence[Wired],
    *,
    shares: bool = False,
) -> Smoother:
    """The choice of least inner log-loss.

    ``inner`` are posterior and graphs of fits, each with the labels (B,) that it saw; ``truth`` (B, C) are one-hot
    labels or targets.  Residuals are those of bags a fit did not see, and a fold is scored as if its labels were
    hidden, on the graphs of its fit.
    """
    held = [np.asarray(visible) & ~np.asarray(mask) for _, _, mask in inner]
    outside = np.zeros_like(truth)
    for fold, (part, _, _) in zip(held, inner, strict=True):
        outside[fold] = part.mean[fold]
    residuals = np.where(np.asarray(visible)[:, None], truth - outside, 0.0)
    choices = [(c, s) for c in CORRECT for s in SMOOTH]
    found: dict[tuple[float, float], list[Array]] = {choice: [] for choice in choices}
    for fold, (part, graphs, mask) in zip(held, inner, strict=True):
        matrix = _matrix(graphs)
        own = np.where(mask[:, None], outside, part.mean)
        spread = _spread(matrix, residuals, mask)
        for choice in choices:
            found[choice].append(_mended(matrix, own, spread, truth, mask, *choice)[0][fold])
    known = np.concatenate([truth[fold] for fold in held])
    losses = [_log_loss(np.concatenate(found[choice]), known, posterior.is_classification) for choice in choices]
    correct, smooth = choices[int(np.argmin(losses))]
    matrix = _matrix(wired)
    spread = _spread(matrix, residuals, np.asarray(visible))
    values = _mended(matrix, posterior.mean, spread, truth, np.asarray(visible), correct, smooth)[1]
    return Smoother(correct, smooth, np.where(np.asarray(visible)[:, None], residuals, spread), values, shares)


def mended(posterior: Posterior, own: Smoother, visible: Any, truth: Array, wired: Sequence[Wired]) -> Posterior:
    """The posterior of the bags in fit; those whose label is seen keep what the network says."""
    if not own.acts:
        return posterior
    seen = np.asarray(visible)
    after, _ = _mended(_matrix(wired), posterior.mean, own.residuals, truth, seen, own.correct, own.smooth)
    return shifted(posterior, np.where(seen[:, None], 0.0, after - posterior.mean), own.shares)


def shifted(posterior: Posterior, shift: Array, shares: bool) -> Posterior:
    """Every draw moved alike; probabilities and shares stay such."""
    moved = np.asarray(posterior.draws) + shift
    if not posterior.is_classification:
        return Posterior(np.clip(moved, 0.0, 1.0) if shares else moved, posterior.ids, None, posterior.variance)
    moved = np.maximum(moved, LEAST_PROBABILITY)
    return Posterior(moved / moved.sum(axis=2, keepdims=True), posterior.ids, posterior.classes)


def _matrix(wired: Sequence[Wired]) -> sp.csr_array:
    """The mean over members of D^-1/2 (A / max A + I) D^-1/2."""
    parts = [normalised(over_largest(one.graph.adjacency), 1.0, "symmetric") for one in wired]
    return sp.csr_array(sum(parts[1:], parts[0]) / len(parts))


def _walk(matrix: sp.csr_array, start: Array) -> Array:
    found = start
    for _ in range(STEPS):
        found = (1 - RESTART) * (matrix @ found) + RESTART * start
    return found


def _spread(matrix: sp.csr_array, residuals: Array, seen: Any) -> Array:
    """Mean residual (B, C) of the bags seen, near ones weighing more; zero where no walk leads."""
    both = _walk(matrix, np.hstack([residuals * seen[:, None], seen[:, None].astype(np.float64)]))
    return np.where(both[:, -1:] > 0, both[:, :-1] / np.where(both[:, -1:] > 0, both[:, -1:], 1.0), 0.0)


def _mended(
    matrix: sp.csr_array, own: Array, spread: Array, truth: Array, seen: Any, correct: float, smooth: float
) -> tuple[Array, Array]:
    """Means after both steps, and before the second one with labels in the place of those seen (B, C)."""
    corrected = own + correct * spread
    values = np.where(seen[:, None], truth, corrected)
    weight = _walk(matrix, np.ones((len(own), 1)))
    return (1 - smooth) * corrected + smooth * _walk(matrix, values) / weight, values


def _log_loss(means: Array, truth: Array, classes: bool) -> float:
    """Of probabilities, or of normal laws whose variances are the mean squared residuals, up to constants."""
    if classes:
        means = np.maximum(means, LEAST_PROBABILITY)
        means = means / means.sum(axis=1, keepdims=True)
        return float(-(truth * np.log(means)).sum(axis=1).mean())
    return float(0.5 * np.log(np.maximum(((means - truth) ** 2).mean(axis=0), np.finfo(np.float64).tiny)).sum())
