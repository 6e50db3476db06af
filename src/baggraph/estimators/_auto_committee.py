"""A committee for one class: members are calibrated on held-out bags, weighted by their loss there, and pooled."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from baggraph.baselines._calibration import fit_sigmoid
from baggraph.data.splits import pairs, stratified_folds
from baggraph.estimators._auto_members import AbstractMember, AbstractScorer
from baggraph.estimators._auto_tables import Tables

Array = NDArray[np.float64]
Tell = Callable[[str], None]  # of a member that is done
FOLDS = 5
TRUST = 0.1  # weights go with exp(-TRUST n loss): a tenth of what n independent bags would justify
HOT = 8.0  # logits of one member are cut here, so that no single vote decides alone


@dataclass(frozen=True, eq=False)
class Seat:
    """A member at work: its scores, how they are calibrated, and what it is worth."""

    name: str
    scorer: AbstractScorer
    sigmoid: tuple[float, float]
    weight: float
    loss: float
    uses_graph: bool


@dataclass(frozen=True, eq=False)
class Committee:
    """What was decided for one class.

    Parameters
    ----------
    seats
        The members that have a say.
    sigmoid
        Slope and offset of the pooled logit.
    gain : (3,)
        Mean, lower and upper end (95 %) of what the members with a graph take off the loss of held-out bags, in nats.
    graph_kept
        Whether they have a say.
    skipped
        Members for which there was no time.
    held : (n,)
        The pooled logit of the visible bags, from fits without their inner fold.

    """

    seats: list[Seat]
    sigmoid: tuple[float, float]
    gain: tuple[float, float, float]
    graph_kept: bool
    skipped: list[str]
    held: Array

    def logit(self, tables: Tables) -> Array:
        """The pooled logit of bags (m,)."""
        pooled = np.zeros(len(tables))
        for seat, logits in zip(self.seats, self.logits(tables), strict=True):
            pooled += seat.weight * logits
        return self.sigmoid[0] * pooled + self.sigmoid[1]

    def logits(self, tables: Tables) -> list[Array]:
        """The calibrated logits of bags (m,), seat by seat."""
        found = []
        for seat in self.seats:
            slope, offset = seat.sigmoid
            found.append(np.clip(slope * seat.scorer(tables) + offset, -HOT, HOT))
        return found


def convene(
    members: Mapping[str, AbstractMember],
    tables: Tables,
    visible: Any,
    sign: Array,
    *,
    seed: int = 0,
    deadline: float | None = None,
    tell: Tell | None = None,
) -> Committee:
    """Members on the visible bags (positions) with signs -1 and +1.

    Every member is calibrated by a sigmoid on the bags that inner folds held out of it.  Its weight is in proportion to
    ``exp(-TRUST n loss)``, the loss being that of its calibrated logits: between equal weights and those that n bags
    would justify.  Members with a graph have a say only if the pool is better with them than without.
    """
    held = held_out(members, tables, visible, sign, seed=seed, deadline=deadline, tell=tell)
    decision = decide(held, sign, {name for name in held if members[name].uses_graph})
    seats = []
    for name, weight in decision.weights.items():
        scorer = members[name].fit(tables, visible, sign, seed)
        given = (decision.sigmoids[name], weight, decision.losses[name], members[name].uses_graph)
        seats.append(Seat(name, scorer, *given))
    skipped = [name for name in members if name not in held]
    kept = any(seat.uses_graph for seat in seats)
    return Committee(seats, decision.sigmoid, decision.gain, kept, skipped, decision.held)


def held_out(
    members: Mapping[str, AbstractMember],
    tables: Tables,
    visible: Any,
    sign: Array,
    *,
    seed: int = 0,
    deadline: float | None = None,
    tell: Tell | None = None,
) -> dict[str, Array]:
    """Scores (n,) of every member for the visible bags, each from a fit without its inner fold.

    No further member joins after the deadline; the first always does.
    """
    smallest = int(min((sign > 0).sum(), (sign < 0).sum()))
    folds = stratified_folds((sign > 0).astype(int), folds=min(FOLDS, smallest), repeats=1, random_state=seed)
    found: dict[str, Array] = {}
    for name, member in members.items():
        if found and deadline is not None and time.monotonic() > deadline:
            break
        found[name] = member.held_out(tables, visible, sign, list(pairs(folds)), seed)
        if tell is not None:
            tell(name)
    return found


@dataclass(frozen=True, eq=False)
class Decision:
    """What held-out scores say of members: who has a say, and how much.

    Parameters
    ----------
    weights, sigmoids, losses
        By member: of those with a say, and of all.
    sigmoid
        Of the pooled logit.
    gain : (3,)
        See :class:`Committee`.
    held : (n,)
        The pooled logit of held-out bags.

    """

    weights: dict[str, float]
    sigmoids: dict[str, tuple[float, float]]
    losses: dict[str, float]
    sigmoid: tuple[float, float]
    gain: tuple[float, float, float]
    held: Array


def decide(held: Mapping[str, Array], sign: Array, with_graph: Container[str]) -> Decision:
    """Calibrate, weigh and pool held-out scores; see :func:`convene`."""
    calibrated = {name: fit_sigmoid(scores, sign) for name, scores in held.items()}
    logits = {name: np.clip(a * held[name] + b, -HOT, HOT) for name, (a, b) in calibrated.items()}
    losses = {name: float(-log_expit(sign * values).mean()) for name, values in logits.items()}
    plain = [name for name in held if name not in with_graph]
    pooled, without = (_pool(names, logits, losses, sign) for names in (list(held), plain))
    each = without.losses - pooled.losses
    error = 1.96 * float(each.std() / np.sqrt(len(each)))
    gain = (float(each.mean()), float(each.mean()) - error, float(each.mean()) + error)
    chosen = pooled if gain[0] > 0 else without
    return Decision(chosen.weights, calibrated, losses, chosen.sigmoid, gain, chosen.held)


@dataclass(frozen=True, eq=False)
class _Pooled:
    weights: dict[str, float]
    sigmoid: tuple[float, float]
    losses: Array
    held: Array


def _pool(names: list[str], logits: dict[str, Array], losses: dict[str, float], sign: Array) -> _Pooled:
    best = min(losses[name] for name in names)
    raw = np.array([np.exp(-TRUST * len(sign) * (losses[name] - best)) for name in names])
    weights = dict(zip(names, (raw / raw.sum()).tolist(), strict=True))
    pooled = np.asarray(sum(weight * logits[name] for name, weight in weights.items()))
    slope, offset = fit_sigmoid(pooled, sign)
    held = slope * pooled + offset
    return _Pooled(weights, (slope, offset), -log_expit(sign * held), held)
