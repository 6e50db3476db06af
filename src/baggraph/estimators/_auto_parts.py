"""What committees say of bags, member by member, and which labelled bags they say it from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.errors import ParameterError, closest
from baggraph.estimators._auto_members import SpreadScorer, spreading
from baggraph.estimators._auto_tables import Tables
from baggraph.estimators._auto_targets import Asked
from baggraph.inference.gp import FittedProcess

Array = NDArray[np.float64]
NOTHING = 1e-9  # of the largest: a label that was not seen, to rounding
NAMES = {"identity": "target", "log": "log of the target", "logit": "log odds of the target"}


@dataclass(frozen=True, eq=False)
class Votes:
    """Of one class or target: scores are the bias and, member by member, ``factor * weight * said``.

    Parameters
    ----------
    names, weights : (k,)
        The members with a say.
    said : (k, m)
        What each says of every bag.
    factor, bias
        Of the pool.
    usual
        The mean score of labelled bags, each from fits without it.

    """

    names: list[str]
    weights: Array
    said: Array
    factor: float
    bias: float
    usual: float

    @property
    def parts(self) -> Array:
        """What every member adds to the scores (k, m)."""
        return self.factor * self.weights[:, None] * self.said

    @property
    def scores(self) -> Array:
        """Scores of the bags (m,)."""
        return np.asarray(self.bias + self.parts.sum(axis=0))

    def of(self, places: Any) -> Votes:
        """On some of the bags."""
        return Votes(self.names, self.weights, self.said[:, places], self.factor, self.bias, self.usual)


@dataclass(frozen=True, eq=False)
class Heard:
    """What labels of bags in fit add to scores: ``weights * labels``, (m, B) times (B,)."""

    weights: Array
    labels: Array


@dataclass(eq=False)
class AbstractSubject(ABC):
    """A fitted committee, asked why."""

    model: Any

    @cached_property
    def own(self) -> Tables:
        """Tables of the bags in fit."""
        tables: Tables = self.model._maker.tables()
        return tables

    @abstractmethod
    def chosen(self, of: Any, scores: Array) -> tuple[int, float, str]:
        """Which class or target is explained, given the scores of all, the sign of its score, and what it is called."""

    @abstractmethod
    def votes(self, bags: Bags, kept: Bags, links: Any, same: Any = None) -> list[Votes]:
        """Of new bags, a class or target each; ``kept`` are the instances that tables see, numbered by ``same``."""

    @abstractmethod
    def votes_in_fit(self, bags: Bags, places: Any) -> list[Votes]:
        """Of bags of the fit."""

    @abstractmethod
    def heard(self, part: int, bags: Bags, links: Any, places: Any) -> Heard:
        """What labels add to the score of one class or target; ``places`` in the fit are None for new bags."""


@dataclass(eq=False)
class Classes(AbstractSubject):
    """Of classes: pooled log odds."""

    def chosen(self, of: Any, scores: Array) -> tuple[int, float, str]:
        """See :class:`AbstractSubject`."""
        names = [str(name) for name in self.model.classes_.tolist()]
        if of is not None and str(of) not in names:
            raise ParameterError("explain", expected="one of the classes", got=repr(of), remedy=closest(str(of), names))
        if len(names) == 2:
            first = of is not None and str(of) == names[0]
            return 0, -1.0 if first else 1.0, f"log odds of {names[0 if first else 1]!r}"
        part = int(scores.argmax()) if of is None else names.index(str(of))
        return part, 1.0, f"log odds of {names[part]!r} against the rest"

    def votes(self, bags: Bags, kept: Bags, links: Any, same: Any = None) -> list[Votes]:  # noqa: ARG002
        """See :class:`AbstractSubject`."""
        return self._votes(self.model._maker.tables(kept, links, same=same))

    def votes_in_fit(self, bags: Bags, places: Any) -> list[Votes]:  # noqa: ARG002
        """See :class:`AbstractSubject`."""
        return [one.of(places) for one in self._votes(self.own)]

    def _votes(self, tables: Tables) -> list[Votes]:
        found = []
        for one in self.model.committees_:
            names, weights = [seat.name for seat in one.seats], np.array([seat.weight for seat in one.seats])
            said = np.stack(one.logits(tables))
            factor, bias = one.sigmoid
            found.append(Votes(names, weights, said, factor, bias, float(one.held.mean())))
        return found

    def heard(self, part: int, bags: Bags, links: Any, places: Any) -> Heard:
        """Through label spreading, which is linear in the labels."""
        committee = self.model.committees_[part]
        spreads = [seat for seat in committee.seats if isinstance(seat.scorer, SpreadScorer)]
        count = len(self.model._maker.ids)
        weights, labels = np.zeros((len(bags), count)), np.zeros(count)
        if not spreads:
            return Heard(weights, labels)
        tables = None if places is not None else self.model._maker.tables(bags, links)
        for seat in spreads:
            system = spreading(self.own, known=seat.scorer.known)
            start = system @ seat.scorer.found
            labels = np.where(np.abs(start) > NOTHING * np.abs(start).max(), start, 0.0)
            asked = np.eye(len(start))[places] if tables is None else _shares(seat.scorer.links(tables), tables)
            slopes = np.linalg.solve(system, asked.T).T
            weights += committee.sigmoid[0] * seat.weight * seat.sigmoid[0] * slopes
        return Heard(weights, labels)


def _shares(links: sp.csr_array | None, tables: Tables) -> Array:
    """Rows that sum to one, or to nothing where no bag is heard."""
    if links is None:
        return np.zeros(tables.kernel.shape)
    rows = links.toarray()
    return np.asarray(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-12))


@dataclass(eq=False)
class Targets(AbstractSubject):
    """Of real targets: what is expected on the scale of the link."""

    def chosen(self, of: Any, scores: Array) -> tuple[int, float, str]:
        """See :class:`AbstractSubject`."""
        part = 0 if of is None else of
        if not isinstance(part, int | np.integer) or not 0 <= part < len(scores):
            expected = f"the number of a target, below {len(scores)}"
            raise ParameterError("explain", expected=expected, got=repr(of), remedy="count from 0")
        name = NAMES[self.model.link_]
        return int(part), 1.0, name if len(scores) == 1 else f"{name} {part}"

    def votes(self, bags: Bags, kept: Bags, links: Any, same: Any = None) -> list[Votes]:
        """See :class:`AbstractSubject`."""
        return self._votes(self._asked(bags, kept, links, same))

    def votes_in_fit(self, bags: Bags, places: Any) -> list[Votes]:
        """See :class:`AbstractSubject`."""
        return self._votes(self._asked_in_fit(bags, places))

    def _votes(self, asked: Asked) -> list[Votes]:
        found, scale = [], self.model._scale
        for t, one in enumerate(self.model.councils_):
            names, weights = [voice.name for voice in one.voices], np.array([voice.weight for voice in one.voices])
            said = np.stack([voice.answer(asked)[0] for voice in one.voices])
            factor, bias = float(scale.spread[t]), float(scale.center[t])
            found.append(Votes(names, weights, said, factor, bias, bias + factor * float(one.held_mean.mean())))
        return found

    def _asked(self, bags: Bags, kept: Bags, links: Any, same: Any = None) -> Asked:
        asked: Asked = self.model._asked_tables(bags, self.model._maker.tables(kept, links, same=same), links)
        return asked

    def _asked_in_fit(self, bags: Bags, places: Any) -> Asked:
        tables = self.own.take(places)
        rows = {name: one.take(places) for name, one in self.model._descriptions.items()}
        plain = {"level": np.ones((len(bags), 1)), "noise": np.ones(len(bags))}
        rows["average kernel"] = plain | {"kernel": tables.kernel @ self.model._roots}
        return Asked(tables, rows, None if bags.coords is None else np.asarray(bags.coords, dtype=np.float64))

    def heard(self, part: int, bags: Bags, links: Any, places: Any) -> Heard:
        """Through Gaussian processes, whose means are linear in the targets."""
        council, scale = self.model.councils_[part], self.model._scale
        asked = self._asked(bags, bags, links) if places is None else self._asked_in_fit(bags, places)
        count = len(self.model._maker.ids)
        weights, labels = np.zeros((len(bags), count)), np.zeros(count)
        for voice in council.voices:
            if isinstance(voice.model, FittedProcess):
                weights[:, self.model._visible] += voice.weight * voice.model.shares(asked.rows[voice.name])
                labels[self.model._visible] = float(scale.spread[part]) * voice.model.targets[:, 0]
        return Heard(weights, labels)
