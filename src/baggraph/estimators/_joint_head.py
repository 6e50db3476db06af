"""Network and Gaussian process trained by one objective, as the head of an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.data.posterior import Posterior
from baggraph.estimators._building import build_wiring, wrong
from baggraph.estimators._gp_head import AbstractHead, described, refuse_draws_and_weights
from baggraph.graphs.wiring import Wired
from baggraph.inference.bag_graph import Inference, Plan
from baggraph.inference.gp_joint import JointRegression, fit_joint
from baggraph.inference.gp_regression import regress
from baggraph.inference.sampling import Draws

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointHead(AbstractHead):
    """One member: what its network says, and a process over places, graph and means for the rest."""

    fitted: JointRegression
    wired: Wired | None

    def posterior(self, ids: Any) -> Posterior:
        """Of the bags in fit."""
        return self.fitted.posterior(self.fitted.rest.description.rows, ids, self.fitted.outputs)

    def of_new(self, bags: Bags, said: Any, links: Any) -> Posterior:
        """Of new bags for which the network says outputs (m, t)."""
        rows = self.fitted.rest.description.of_new(bags, links=links)
        return self.fitted.posterior(rows, bags.ids, said)


def fit_jointly(
    estimator: Any,
    bags: Bags,
    scaled: Bags,
    targets: Array,
    masks: Any,
    plan: Plan,
    seeds: Sequence[Sequence[int]],
    tell: Any,
) -> tuple[list[list[JointHead]], Inference]:
    """Heads of every row of ``masks`` (M, B), one a seed of its row of ``seeds``, and the networks of all."""
    refuse_draws_and_weights(estimator, masks)
    wiring = build_wiring(estimator, bags)
    if wiring is not None and wiring.needs_embeddings:
        got = f"graph={estimator.graph!r}"
        remedy = "pass graph=None, 'given' or a BagGraph, or leave objective out"
        raise wrong(estimator, "a graph that needs no embedding, with objective='joint'", got, remedy)
    wired = None if wiring is None else wiring.wire([None], bags.ids)[0]
    description = described(estimator, bags, wired, None)
    plain = [regress(description, np.nan_to_num(targets), mask > 0) for mask in masks]
    members = len(seeds[0])
    found = fit_joint(
        plan.network,
        scaled,
        [one for one in plain for _ in range(members)],
        np.repeat(masks > 0, members, axis=0),
        [seed for row in seeds for seed in row],
        progress=tell,
        **plan.training,
    )
    heads = [JointHead(one, wired) for one in found.regressions]
    by_mask = [heads[m * members : (m + 1) * members] for m in range(len(masks))]
    return by_mask, Inference(None, found.stack, None, Draws(found.stack.mean.unsqueeze(1), None))
