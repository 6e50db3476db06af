"""The tables that members see: made once from bags, without labels; rows are bags, columns those of the anchor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.baselines._families import Anchor, View, families
from baggraph.baselines._kernels import Rows
from baggraph.baselines.average_kernel import normalised
from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.errors import ParameterError

Array = NDArray[np.float64]
MOST_INSTANCES = 12_000  # compared in pairs: minutes beyond
FEWEST_KEPT = 10
SMALLEST = 1e-9  # of the largest eigenvalue: directions below it are left out


@dataclass(frozen=True, eq=False)
class Tables:
    """All that members see of bags, rows for these bags and columns for those of the anchor.

    Parameters
    ----------
    kernel, distance_kernel : (m, B)
        The average of all kernels, and that of the family of distance rows.
    summaries : (m, q)
        Statistics of the instances.
    instances, offsets
        Scaled instances.
    links : (m, B) or None
        Of the graph that is known.
    own
        Whether rows and columns are the same bags.

    """

    kernel: Array
    distance_kernel: Array
    summaries: Array
    instances: Array
    offsets: Any
    links: sp.csr_array | None
    own: bool

    def __len__(self) -> int:
        return len(self.kernel)

    @cached_property
    def roots(self) -> Array:
        """(B, r) such that products of rows ``kernel @ roots`` are the kernel; of the bags of the anchor."""
        values, vectors = np.linalg.eigh(self.kernel)
        kept = values > SMALLEST * max(float(values[-1]), 1e-300)
        return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))

    def take(self, which: Any) -> Tables:
        """Of some of the bags."""
        index = np.asarray(which)
        sizes = np.diff(self.offsets)[index]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self.offsets[:-1][index] - offsets[:-1], sizes) + np.arange(offsets[-1])
        links = None if self.links is None else self.links[index]
        tables = (self.kernel[index], self.distance_kernel[index], self.summaries[index], self.instances[rows])
        return Tables(*tables, offsets, links, own=False)


@dataclass(frozen=True, eq=False)
class Maker:
    """Tables of any bags against those it was made of."""

    ids: Any
    anchor: Anchor
    graph: BagGraph | None
    largest: int

    @classmethod
    def of(cls, bags: Bags, graph: BagGraph | None, scaling: str, seed: int) -> Maker:
        """Learned without labels; of many instances, so many a bag that they can be compared in pairs."""
        largest = largest_bag(bags.sizes)
        return cls(bags.ids, Anchor.of(thinned(bags, largest), scaling, seed), graph, largest)

    def tables(self, bags: Bags | None = None, links: Any = None, *, same: Any = None) -> Tables:
        """Of these bags or, without, of those it was made of.

        Instances with the same number in ``same`` are the same, and compared once; such bags are not thinned.
        """
        own = self.anchor.view
        view = own if bags is None else View(self._rows(bags) if same is None else own.rows.others(bags, same))
        sums: dict[str, list[Array]] = {}
        for family, left, right in families(self.anchor, view):
            centred = normalised(left, right)
            if centred is not None:
                sums.setdefault(family, []).append(centred)
        nothing = np.zeros((len(view.offsets) - 1, len(self.ids)))
        means = {family: np.mean(parts, axis=0) for family, parts in sums.items()}
        kernel = np.mean(list(means.values()), axis=0) if means else nothing
        if bags is None:
            links = None if self.graph is None else self.graph.adjacency
        summaries = np.hstack([view.summaries[name] for name in view.summaries])
        return Tables(
            kernel,
            means.get("distance rows", nothing),
            summaries,
            view.rows.values,
            view.offsets,
            None if links is None else sp.csr_array(links),
            own=bags is None,
        )

    def _rows(self, bags: Bags) -> Rows:
        return self.anchor.view.rows.others(thinned(bags, self.largest))


def largest_bag(sizes: Any, *, total: int = MOST_INSTANCES) -> int:
    """The most instances a bag may keep so that all bags keep at most ``total``, or ten each.

    >>> largest_bag(np.array([5, 50, 500]), total=105), largest_bag(np.array([5, 5]), total=105)
    (50, 5)
    """
    low, high = 0, int(sizes.max())
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(sizes, middle).sum() <= total else (low, middle - 1)
    return max(low, min(FEWEST_KEPT, int(sizes.max())))


def thinned(bags: Bags, largest: int) -> Bags:
    """Bags of at most so many instances: of a larger one, every so many-th in the order of the values.

    >>> thinned(Bags(np.arange(6.0)[::-1, None], [0, 1, 6]), 3).instances.ravel().tolist()
    [5.0, 0.0, 2.0, 4.0]
    """
    if int(bags.sizes.max()) <= largest:
        return bags
    kept = kept_rows(bags, largest)
    offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in kept])])
    return Bags(bags.instances[np.concatenate(kept)], offsets, ids=bags.ids)


def kept_rows(bags: Bags, largest: int) -> list[NDArray[np.int64]]:
    """Positions of the instances that :func:`thinned` keeps, bag by bag."""
    kept = []
    for start, stop in pairwise(bags.offsets):
        rows = np.arange(start, stop)
        if stop - start > largest:
            block = bags.instances[start:stop]
            order = np.lexsort(np.asarray(block.toarray() if bags.is_sparse else block).T[::-1])
            rows = rows[order[np.round(np.linspace(0, stop - start - 1, largest)).astype(np.int64)]]
        kept.append(rows)
    return kept


def bytes_of_tables(bags: Bags) -> float:
    """About how much memory tables between these bags and their instances take, thinned as they are."""
    instances = int(np.minimum(bags.sizes, largest_bag(bags.sizes)).sum())
    return 8.0 * len(bags) * (3 * instances + 80 * len(bags)) + 16.0 * instances * bags.n_features


def check_memory(stage: str, bags: Bags, budget: float | None) -> None:
    """Raise where the tables of these bags need more bytes than the budget."""
    need = bytes_of_tables(bags)
    if budget is not None and need > budget:
        got, remedy = f"{budget:.3g}", "raise it, or use the bag graph in batches"
        raise ParameterError(stage, expected=f"a memory_budget of {need:.3g}", got=got, remedy=remedy)
