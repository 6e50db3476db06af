"""EM-DD: one concept in the space of instances, found from many starts at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baggraph.baselines._batched import descend
from baggraph.baselines._classifier import BagClassifier, Index
from baggraph.baselines._input import Matrix, Vector, check_count, dense_rows
from baggraph.baselines._stump import best_threshold
from baggraph.data._instances import gather_rows
from baggraph.data._split_checks import bit_stream
from baggraph.data.bags import Bags
from baggraph.data.scaling import InstanceScaler

SMALLEST = 1e-6  # squared distance below which an instance of a negative bag counts as on the concept
MEMORY = 2**16  # numbers in an array of starts x bags x features, so that it stays in the cache


@dataclass(frozen=True)
class _Model:
    """Concepts (S, d), the one of least loss first, their scales (S, d), losses (S,), and the threshold of a bag."""

    concepts: Matrix
    scales: Matrix
    losses: Vector
    threshold: float


@dataclass(frozen=True)
class _Evidence:
    rows: Matrix
    offsets: Index

    def take(self, bags: Index) -> _Evidence:
        """These bags alone."""
        index, offsets = gather_rows(self.offsets, bags)
        return _Evidence(self.rows[index], offsets)


class EMDD(BagClassifier):
    """Expectation-maximisation of the diverse density: a concept t with scales s, under which a bag is positive with

    ``P(A) = max_{a in A} exp(-sum_j s_j^2 (a_j - t_j)^2)``,

    that makes the labels likely: ``min_{t, s}  -sum_{positive} log P(A) - sum_{negative} log(1 - P(A))``.  The E-step
    takes the nearest instance of every bag, the M-step descends with these fixed, until the loss no longer falls (Zhang
    & Goldman 2001, EM-DD: an improved multiple-instance learning technique, NIPS).  Descents start at instances of
    positive bags, all at once.  A bag is scored by the mean of ``log P`` over the ``n_kept`` concepts of least loss,
    against a threshold that errs least on the training bags.

    Parameters
    ----------
    n_starts
        Instances of positive bags to start from, drawn at random.
    n_kept
        Concepts that score a bag.
    max_iter
        Most rounds of E- and M-step.
    steps
        Most gradient steps in a round.
    scaling
        Kind of :class:`~baggraph.data.scaling.InstanceScaler`, fitted on the training bags.
    calibration_folds
        Inner folds that probabilities are fitted on; None does without.
    random_state
        Seed of the starts and of the inner folds.

    Attributes
    ----------
    concepts_, scales_ : lists of (n_kept, d) arrays
        t and s in scaled features, the concept of least loss first; one array each, or for more than two classes one
        a class.

    Examples
    --------
    >>> bags = Bags.from_list([[[0.1], [3.0]], [[0.2], [2.9]], [[0.0], [0.3]], [[0.1], [0.2]]], y=[1, 1, 0, 0])
    >>> EMDD().fit(bags).predict([[[0.3]], [[2.95], [0.1]]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        *,
        n_starts: int = 20,
        n_kept: int = 5,
        max_iter: int = 10,
        steps: int = 20,
        scaling: str = "auto",
        calibration_folds: int | None = 5,
        random_state: int = 0,
    ) -> None:
        self.n_starts = n_starts
        self.n_kept = n_kept
        self.max_iter = max_iter
        self.steps = steps
        self.scaling = scaling
        self.calibration_folds = calibration_folds
        self.random_state = random_state

    @property
    def concepts_(self) -> list[Matrix]:
        """Concepts in scaled features, one array a machine."""
        return [model.concepts for model in self.models_]

    @property
    def scales_(self) -> list[Matrix]:
        """Scales of the concepts, one array a machine."""
        return [model.scales for model in self.models_]

    def _check_parameters(self) -> None:
        counts = {"n_starts": self.n_starts, "n_kept": self.n_kept, "max_iter": self.max_iter, "steps": self.steps}
        check_count(self._stage, **counts)

    def _anchor(self, bags: Bags) -> InstanceScaler:
        return InstanceScaler(self.scaling).fit(bags)

    def _evidence(self, anchor: InstanceScaler, bags: Bags) -> _Evidence:
        return _Evidence(dense_rows(anchor.transform(bags)), bags.offsets)

    def _part(self, evidence: _Evidence, rows: Index, columns: Index) -> _Evidence:
        del columns
        return evidence.take(rows)

    def _train(self, evidence: _Evidence, sign: Vector) -> _Model:
        starts = self._starts(evidence, sign)
        scales = np.full(starts.shape, 1.0 / np.sqrt(starts.shape[1]))
        concepts, scales, losses = self._alternate(evidence, sign, starts, scales)
        best = np.argsort(losses, kind="stable")[: self.n_kept]
        concepts, scales = concepts[best], scales[best]
        threshold, _ = best_threshold(log_probability(evidence, concepts, scales), sign)
        return _Model(concepts, scales, losses[best], threshold)

    def _starts(self, evidence: _Evidence, sign: Vector) -> Matrix:
        candidates = np.flatnonzero(np.repeat(sign, np.diff(evidence.offsets)) > 0)
        keys = bit_stream(self._stage, self.random_state).random_raw(len(candidates))
        return evidence.rows[candidates[np.argsort(keys, kind="stable")[: self.n_starts]]]

    def _alternate(
        self, evidence: _Evidence, sign: Vector, concepts: Matrix, scales: Matrix
    ) -> tuple[Matrix, Matrix, Vector]:
        nearest, losses = _expect(evidence, sign, concepts, scales)
        active = np.arange(len(concepts))
        for _ in range(self.max_iter):
            steps = [
                _maximise(evidence.rows[nearest[some]], sign, concepts[some], scales[some], self.steps)
                for some in _chunks(active, len(sign) * concepts.shape[1])
            ]
            found, widths = (np.concatenate(parts) for parts in zip(*steps, strict=True))
            closest, values = _expect(evidence, sign, found, widths)
            better = values < losses[active] - 1e-4 * np.abs(losses[active])
            active = active[better]
            concepts[active], scales[active], losses[active] = found[better], widths[better], values[better]
            nearest[active] = closest[better]
            if not len(active):
                break
        return concepts, scales, losses

    def _score(self, model: _Model, evidence: _Evidence) -> Vector:
        return log_probability(evidence, model.concepts, model.scales) - model.threshold


def log_probability(evidence: _Evidence, concepts: Matrix, scales: Matrix) -> Vector:
    """``log P`` of every bag, the mean over concepts, (B,)."""
    return -np.minimum.reduceat(_distances(evidence.rows, concepts, scales), evidence.offsets[:-1], axis=1).mean(axis=0)


def _distances(rows: Matrix, concepts: Matrix, scales: Matrix) -> Matrix:
    """``sum_j s_j^2 (x_j - t_j)^2`` of every concept and instance, (S, N)."""
    squares = scales**2
    distances = squares @ (rows**2).T
    distances -= 2 * (squares * concepts) @ rows.T
    distances += np.einsum("ij,ij->i", squares, concepts**2)[:, None]
    return np.maximum(distances, 0.0, out=distances)


def _expect(evidence: _Evidence, sign: Vector, concepts: Matrix, scales: Matrix) -> tuple[Index, Vector]:
    """The first nearest instance of every bag to every concept (S, B), and losses (S,)."""
    starts, sizes = evidence.offsets[:-1], np.diff(evidence.offsets)
    distances = _distances(evidence.rows, concepts, scales)
    least = np.minimum.reduceat(distances, starts, axis=1)
    n = distances.shape[1]
    place = np.where(distances == np.repeat(least, sizes, axis=1), np.arange(n), n)
    return np.minimum.reduceat(place, starts, axis=1), _terms(least, sign).sum(axis=1)


def _terms(distances: Matrix, sign: Vector) -> Matrix:
    """``-log P`` of positive and ``-log(1 - P)`` of negative bags whose nearest instances are so far away, (S, B)."""
    distances = distances + SMALLEST
    return np.where(sign > 0, distances, -np.log(-np.expm1(-distances)))


def _chunks(starts: Index, numbers: int) -> list[Index]:
    """Starts in runs whose instances fit into the memory meant for them."""
    length = max(1, MEMORY // max(numbers, 1))
    return [starts[first : first + length] for first in range(0, len(starts), length)]


def _maximise(chosen: Matrix, sign: Vector, concepts: Matrix, scales: Matrix, steps: int) -> tuple[Matrix, Matrix]:
    """Concepts and scales after descent with fixed instances ``chosen`` (S, B, d)."""
    d, squared = concepts.shape[1], chosen**2

    def loss(points: Matrix) -> tuple[Vector, Matrix]:
        t, s = points[:, :d], points[:, d:]
        w = s**2
        distances = (squared @ w[:, :, None] - 2 * chosen @ (w * t)[:, :, None])[:, :, 0]
        distances = np.maximum(distances + np.einsum("ij,ij->i", w, t**2)[:, None], 0.0)
        slopes = np.where(sign > 0, 1.0, -1.0 / np.expm1(np.minimum(distances + SMALLEST, 500.0)))
        first = (slopes[:, None] @ chosen)[:, 0]
        total = slopes.sum(axis=1)[:, None]
        second = (slopes[:, None] @ squared)[:, 0] - 2 * t * first + t**2 * total
        return _terms(distances, sign).sum(axis=1), np.hstack([2 * w * (t * total - first), 2 * s * second])

    points, _ = descend(loss, np.hstack([concepts, scales]), steps=steps)
    return points[:, :d], points[:, d:]
