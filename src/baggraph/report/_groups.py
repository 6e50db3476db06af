"""Groups of bags, for pages of more bags than can be drawn one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data.bags import Bags

GROUPS = 1_500
SAMPLE = 30_000  # bags that centres are fitted on


def grouped(
    bags: Bags, adjacency: sp.csr_array | None, embedding: Any, random_state: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], sp.csr_array | None]:
    """Group (B,) of every bag by k-means, centres (G, h), and the summed weights between groups (G, G)."""
    from sklearn.cluster import MiniBatchKMeans

    space = _space(bags, adjacency, embedding, random_state)
    means = MiniBatchKMeans(GROUPS, random_state=random_state, n_init=1, batch_size=8_192)
    random = np.random.default_rng(random_state)
    sample = np.sort(random.permutation(len(space))[:SAMPLE])
    group = means.fit(space[sample]).predict(space)
    _, group = np.unique(group, return_inverse=True)  # no group is empty
    member = sp.csr_array((np.ones(len(group)), (group, np.arange(len(group)))))
    centres = np.asarray((member @ space) / np.bincount(group)[:, None])
    if adjacency is None:
        return group, centres, None
    between = sp.csr_array(member @ adjacency @ member.T)
    between.setdiag(0)
    between.eliminate_zeros()
    return group, centres, sp.csr_array((between + between.T) / 2)  # sums of rounded numbers differ in the last bit


def _space(bags: Bags, adjacency: sp.csr_array | None, embedding: Any, random_state: int) -> NDArray[np.float64]:
    """Where near bags are alike: the embedding, the map, or random signals smoothed over the graph."""
    if embedding is not None:
        return np.asarray(embedding, dtype=np.float64)
    if bags.coords is not None:
        return np.asarray(bags.coords, dtype=np.float64)
    signals = np.random.default_rng(random_state).normal(size=(len(bags), 8))
    if adjacency is None:
        return signals
    total = np.asarray(adjacency.sum(axis=1)) + 1
    for _ in range(20):
        signals = (adjacency @ signals + signals) / total[:, None]
    return signals
