"""The head that is a Gaussian process: embeddings, graph, places and labels in, a posterior out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.data.posterior import Posterior
from baggraph.estimators._building import build_wiring, wrong
from baggraph.estimators._known import known_links
from baggraph.graphs.wiring import Wired, aligned
from baggraph.inference.bag_graph import Inference, Plan, graph_embedding
from baggraph.inference.gp_bags import Description, Settings, describe
from baggraph.inference.gp_laplace import FittedClasses, classify
from baggraph.inference.gp_regression import FittedRegression, regress

Array = NDArray[np.float64]
CLASSES_VARY = 4.0  # latent functions that reach from doubt to near certainty


class AbstractHead(ABC):
    """One member, fitted."""

    fitted: Any
    wired: Wired | None

    @abstractmethod
    def posterior(self, ids: Any) -> Posterior:
        """Of the bags in fit."""

    @abstractmethod
    def of_new(self, bags: Bags, said: Any, links: Any) -> Posterior:
        """Of new bags, of which the network says an embedding (m, h), or outputs (m, t)."""


@dataclass(frozen=True, eq=False)
class ProcessHead(AbstractHead):
    """One member: a process over the embeddings of its encoder, places and graph."""

    fitted: FittedRegression | FittedClasses
    wired: Wired | None

    def posterior(self, ids: Any) -> Posterior:
        """Of the bags in fit."""
        return self.fitted.posterior(self.fitted.description.rows, ids)

    def of_new(self, bags: Bags, said: Any, links: Any) -> Posterior:
        """Of new bags with embeddings (m, h)."""
        if links is None and self.wired is not None and self.wired.rule is not None:
            links = self.wired.rule.attach(said)
        rows = self.fitted.description.of_new(bags, links=links, embedding=said)
        return self.fitted.posterior(rows, bags.ids)


def fit_heads(
    estimator: Any, bags: Bags, targets: Array, masks: Any, found: Inference, plan: Plan
) -> list[list[ProcessHead]]:
    """Heads of every row of ``masks`` (M, B), one a member each, on what the base models say of all bags."""
    refuse_draws_and_weights(estimator, masks)
    wiring = build_wiring(estimator, bags)
    stack = found.fit.embedding
    wired: list[Wired | None] = [None] * len(stack)
    if wiring is not None:
        wired = list(wiring.wire(graph_embedding(plan, stack), bags.ids))
    members = len(stack) // len(masks)
    heads = []
    for m, mask in enumerate(masks):
        own = range(m * members, (m + 1) * members)
        heads.append([_fit(estimator, bags, targets, mask > 0, stack[i].numpy(), wired[i]) for i in own])
    return heads


def refuse_draws_and_weights(estimator: Any, masks: Any) -> None:
    """A process has a posterior in closed form, of bags that count alike."""
    if int(estimator.n_graph_draws):
        raise wrong(estimator, "n_graph_draws=0 with head='gp'", repr(estimator.n_graph_draws), "leave it out")
    if not (masks.max(axis=1, keepdims=True) * (masks > 0) == masks).all():
        raise wrong(estimator, "labelled bags of equal weight with head='gp'", "sample_weight", "leave it out")


def described(estimator: Any, bags: Bags, wired: Wired | None, embedding: Array | None) -> Description:
    """Places and graph where there are any, means of the instances, and an embedding if it is a part."""
    places = [("position", bags.coords), ("graph", wired)]
    parts = (*(name for name, there in places if there is not None), "linear")
    classes = getattr(estimator, "classes_", None)
    several = classes is None and len(np.unique(bags.sizes)) > 1
    graph = None if wired is None else aligned(wired.graph, bags.ids)
    total = 1.0 if classes is None else CLASSES_VARY
    settings = Settings(parts=parts if embedding is None else (*parts, "encoder"), by_size=several)
    return describe(bags, settings, graph=graph, embedding=embedding, total=total)


def _fit(
    estimator: Any, bags: Bags, targets: Array, visible: Any, embedding: Array, wired: Wired | None
) -> ProcessHead:
    description = described(estimator, bags, wired, embedding)
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return ProcessHead(regress(description, np.nan_to_num(targets), visible), wired)
    codes = np.nan_to_num(targets).astype(np.int64)
    return ProcessHead(classify(description, codes, visible, classes), wired)


def pooled(heads: Sequence[AbstractHead], ids: Any) -> Posterior:
    """One posterior of all members."""
    return Posterior.pooled([head.posterior(ids) for head in heads])


def pooled_of_new(
    heads: Sequence[AbstractHead], bags: Bags, said: Any, graph: Any, old_ids: Any, links: Any
) -> Posterior:
    """The same of new bags of which the networks say embeddings (M, m, h), or outputs (M, m, t)."""
    if links is None:
        links = known_links(graph, bags.ids, old_ids)
    parts = [head.of_new(bags, own.numpy(), links) for head, own in zip(heads, said, strict=True)]
    return Posterior.pooled(parts)


def graphs_of(heads: Sequence[AbstractHead]) -> list[BagGraph] | None:
    """The graphs of the members, or None where there is none."""
    return [one.wired.graph for one in heads if one.wired is not None] or None


def mean_shares(heads: Sequence[AbstractHead]) -> dict[str, float]:
    """How much of the variance between bags every part carries, the mean over members."""
    each = [head.fitted.shares() for head in heads]
    return {name: float(np.mean([one[name] for one in each])) for name in each[0]}
