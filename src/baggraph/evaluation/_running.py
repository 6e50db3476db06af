"""One method on many divisions of the bags: as one stack, by slices of one table, or fold by fold."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from baggraph.baselines._classifier import BagClassifier
from baggraph.baselines._gram import Gram, GramClassifier
from baggraph.baselines._on_graph import _OnGraph
from baggraph.data._fingerprint import digest
from baggraph.data.bags import Bags
from baggraph.data.splits import hide_labels
from baggraph.data.stacked import AbstractStacked
from baggraph.evaluation._answers import Answer, ask, from_classes, from_posterior

Index = NDArray[np.int64]
Pair = tuple[Index, Index]
ONLY_FOR_LABELS = ("C", "class_weight", "calibration_folds")  # parameters that no table of pairs depends on


@dataclass(frozen=True)
class Outcome:
    """What became of one division: an answer for the tested bags, or the traceback of a failure."""

    answer: Answer | None
    error: str | None
    seconds: float
    chosen: dict[str, Any] | None = None


@dataclass(frozen=True)
class Trial:
    """Bags, how their labels are divided, and what is asked of methods.

    Labels are those of ``bags``; the visible ones of a pair are those of its first part, and no method is shown more.
    """

    bags: Bags
    transductive: bool
    classify: bool
    believe: bool
    tables: dict[str, Gram] = field(default_factory=dict)

    def run(self, method: Any, pairs: Sequence[Pair], seeds: Sequence[int] | None = None) -> list[Outcome]:
        """Train and ask a method on every pair of (visible, tested) positions; a seeded stack, with a seed a pair."""
        if hasattr(method, "run_in"):
            return list(method.run_in(self, pairs))
        if isinstance(method, AbstractStacked) and self.transductive:
            return self._stacked(method, pairs, () if seeds is None else (seeds,))
        if isinstance(method, BagClassifier) and not self.believe:
            method = clone(method).set_params(calibration_folds=None)  # decisions do not depend on it
        one: Callable[[Any, Pair], Answer] = self._one_fit
        shared = 0.0
        if isinstance(method, GramClassifier) and self.transductive:
            started = time.perf_counter()
            try:
                one = self._by_slices(self._table(method))
            except Exception:  # whatever it was, it is kept in the table
                return [Outcome(None, traceback.format_exc(), 0.0)] * len(pairs)
            shared = (time.perf_counter() - started) / max(len(pairs), 1)
        return [_attempt(one, method, pair, shared) for pair in pairs]

    # ------------------------------------------------------------------ three ways

    def _stacked(self, method: AbstractStacked, pairs: Sequence[Pair], seeds: tuple[Any, ...]) -> list[Outcome]:
        masks = np.zeros((len(pairs), len(self.bags)), dtype=bool)
        for mask, (visible, _) in zip(masks, pairs, strict=True):
            mask[visible] = True
        started = time.perf_counter()
        try:
            found = clone(method, safe=False).posteriors(self.bags, masks, *seeds)
        except Exception:
            return [Outcome(None, traceback.format_exc(), 0.0)] * len(pairs)
        each = (time.perf_counter() - started) / max(len(pairs), 1)
        answers = (from_posterior(post.take(tested)) for post, (_, tested) in zip(found, pairs, strict=True))
        return [Outcome(answer, None, each) for answer in answers]

    def _by_slices(self, table: Gram) -> Callable[[Any, Pair], Answer]:
        def one(method: Any, pair: Pair) -> Answer:
            visible, tested = pair
            model = clone(method).fit_gram(table.take(visible, visible), self.bags.y[visible])
            asked = table.take(tested, visible)
            proba = model.predict_proba_gram(asked) if model.calibration_folds is not None else None
            return from_classes(model.predict_gram(asked), proba, model.classes_, self.bags.ids[tested])

        return one

    def _table(self, method: GramClassifier) -> Gram:
        settings = {k: v for k, v in method.get_params().items() if k not in ONLY_FOR_LABELS}
        key = digest([type(method), settings])
        if key not in self.tables:
            self.tables[key] = clone(method).gram(self.bags.replace(y=None))
        return self.tables[key]

    def _one_fit(self, method: Any, pair: Pair) -> Answer:
        visible, tested = pair
        model, asked = clone(method, safe=False), self.bags.take(tested).replace(y=None)
        if self.transductive and uses_unlabelled(method):
            mask = np.zeros(len(self.bags), dtype=bool)
            mask[visible] = True
            model.fit(hide_labels(self.bags, mask))
        else:
            training = self.bags.take(visible)
            model.fit(training, training.y)
        return ask(model, asked, classify=self.classify, believe=self.believe)


def uses_unlabelled(method: Any) -> bool:
    """Whether a method is fitted on all bags, those to be answered without a label.

    >>> from baggraph.baselines import MIKernel, NeighborMeanClassifier
    >>> uses_unlabelled(NeighborMeanClassifier()), uses_unlabelled(MIKernel())
    (True, False)
    """
    return isinstance(method, _OnGraph) or bool(getattr(method, "transductive", False))


def _attempt(one: Callable[[Any, Pair], Answer], method: Any, pair: Pair, shared: float) -> Outcome:
    started = time.perf_counter()
    try:
        answer, error = one(method, pair), None
    except Exception:  # a row of the table keeps the traceback, the other methods go on
        answer, error = None, traceback.format_exc()
    return Outcome(answer, error, shared + time.perf_counter() - started)
