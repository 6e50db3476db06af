"""The head that is a Gaussian process: embeddings, graph, places and labels in, a posterior out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.data.posterior import Posterior
from baggraph.estimators._building import build_wiring, wrong
from baggraph.estimators._known import known_links
from baggraph.graphs.wiring import Wired, aligned
from baggraph.inference.bag_graph import Inference, Plan, graph_embedding
from baggraph.inference.gp_bags import Settings, describe
from baggraph.inference.gp_laplace import FittedClasses, classify
from baggraph.inference.gp_regression import FittedRegression, regress

Array = NDArray[np.float64]
CLASSES_VARY = 4.0  # latent functions that reach from doubt to near certainty


@dataclass(frozen=True, eq=False)
class ProcessHead:
    """One member: a process over the embeddings of its encoder, places and graph."""

    fitted: FittedRegression | FittedClasses
    wired: Wired | None

    def posterior(self, ids: Any) -> Posterior:
        """Of the bags in fit."""
        return self.fitted.posterior(self.fitted.description.rows, ids)

    def of_new(self, bags: Bags, embedding: Any, links: Any) -> Posterior:
        """Of new bags with embeddings (m, h)."""
        if links is None and self.wired is not None and self.wired.rule is not None:
            links = self.wired.rule.attach(embedding)
        rows = self.fitted.description.of_new(bags, links=links, embedding=embedding)
        return self.fitted.posterior(rows, bags.ids)


def fit_heads(
    estimator: Any, bags: Bags, targets: Array, masks: Any, found: Inference, plan: Plan
) -> list[list[ProcessHead]]:
    """Heads of every row of ``masks`` (M, B), one a member each, on what the base models say of all bags."""
    if int(estimator.n_graph_draws):
        raise wrong(estimator, "n_graph_draws=0 with head='gp'", repr(estimator.n_graph_draws), "leave it out")
    if not (masks.max(axis=1, keepdims=True) * (masks > 0) == masks).all():
        raise wrong(estimator, "labelled bags of equal weight with head='gp'", "sample_weight", "leave it out")
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


def _fit(estimator: Any, bags: Bags, targets: Array, visible: Any, embedding: Any, wired: Wired | None) -> ProcessHead:
    places = [("position", bags.coords), ("graph", wired)]
    parts = (*(name for name, there in places if there is not None), "linear", "encoder")
    classes = getattr(estimator, "classes_", None)
    several = classes is None and len(np.unique(bags.sizes)) > 1
    graph = None if wired is None else aligned(wired.graph, bags.ids)
    total = 1.0 if classes is None else CLASSES_VARY
    settings = Settings(parts=parts, by_size=several)
    description = describe(bags, settings, graph=graph, embedding=embedding, total=total)
    if classes is None:
        return ProcessHead(regress(description, np.nan_to_num(targets), visible), wired)
    codes = np.nan_to_num(targets).astype(np.int64)
    return ProcessHead(classify(description, codes, visible, classes), wired)


def pooled(heads: list[ProcessHead], ids: Any) -> Posterior:
    """One posterior of all members."""
    return Posterior.pooled([head.posterior(ids) for head in heads])


def pooled_of_new(
    heads: list[ProcessHead], bags: Bags, embeddings: Any, graph: Any, old_ids: Any, links: Any
) -> Posterior:
    """The same of new bags with embeddings (M, m, h)."""
    if links is None:
        links = known_links(graph, bags.ids, old_ids)
    parts = [head.of_new(bags, own.numpy(), links) for head, own in zip(heads, embeddings, strict=True)]
    return Posterior.pooled(parts)


def mean_shares(heads: list[ProcessHead]) -> dict[str, float]:
    """How much of the variance between bags every part carries, the mean over members."""
    each = [head.fitted.shares() for head in heads]
    return {name: float(np.mean([one[name] for one in each])) for name in each[0]}
