"""Networks as members of the committee: all inner folds are one stack of trainings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from baggraph.data.bags import Bags
from baggraph.data.posterior import Posterior
from baggraph.estimators._auto_members import AbstractMember, AbstractScorer, Fold
from baggraph.estimators._auto_tables import Tables
from baggraph.estimators.classifier import BagGraphClassifier

Array = NDArray[np.float64]
LEAST = 1e-4  # probabilities nearer to 0 or 1 are cut


@dataclass(frozen=True)
class NetworkMember(AbstractMember):
    """The network of the paper at its defaults, on the instances of the tables; ``head`` as in the estimator."""

    head: str
    uses_graph: bool

    def fit(self, tables: Tables, visible: Any, sign: Array, seed: int) -> AbstractScorer:
        """See :class:`AbstractMember`."""
        return NetworkScorer(self._network(seed).fit(_labelled(tables, visible, sign)))

    def held_out(self, tables: Tables, visible: Any, sign: Array, folds: Sequence[Fold], seed: int) -> Array:
        """See :class:`AbstractMember`."""
        masks = np.zeros((len(folds), len(tables)), dtype=bool)
        for mask, (train, _) in zip(masks, folds, strict=True):
            mask[visible[train]] = True
        found = self._network(seed).posteriors(_labelled(tables, visible, sign), masks)
        scores = np.empty(len(sign))
        for posterior, (_, test) in zip(found, folds, strict=True):
            scores[test] = _scores(posterior)[visible[test]]
        return scores

    def _network(self, seed: int) -> BagGraphClassifier:
        graph = "learned" if self.uses_graph else None
        return BagGraphClassifier(head=self.head, graph=graph, scaling="none", random_state=seed)


@dataclass(frozen=True, eq=False)
class NetworkScorer(AbstractScorer):
    """A fitted network, which has seen the bags of the anchor."""

    model: BagGraphClassifier

    def __call__(self, asked: Tables) -> Array:
        posterior = self.model.posterior_ if asked.own else self.model.predict_posterior(_bags(asked))
        return _scores(posterior)


def _bags(tables: Tables) -> Bags:
    return Bags(tables.instances, tables.offsets)


def _labelled(tables: Tables, visible: Any, sign: Array) -> Bags:
    labels = np.full(len(tables), np.nan)
    labels[visible] = sign
    return _bags(tables).replace(y=labels)


def _scores(posterior: Posterior) -> Array:
    return np.asarray(logit(np.clip(posterior.mean[:, 1], LEAST, 1 - LEAST)))
