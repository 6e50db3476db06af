"""The members of the committee: each sees a table that was made once, without labels, and scores bags for one class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from baggraph.baselines._families import Anchor, View, families
from baggraph.baselines._kernels import Rows
from baggraph.baselines.average_kernel import normalised
from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph

Array = NDArray[np.float64]
MOST_INSTANCES = 12_000  # compared in pairs: minutes beyond
FEWEST_KEPT = 10
TREES = 100
PRICE = 10.0  # of errors, as the machine on the average kernel has it
RIDGE = 1.0  # a standard normal prior on coefficients of standardised features, noise of one a bag
CLIQUE = 5  # nearest bags that a bag hears of
SPREAD = 0.9  # how much of a bag's score its neighbours decide


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

    bags: Bags
    anchor: Anchor
    graph: BagGraph | None
    largest: int

    @classmethod
    def of(cls, bags: Bags, graph: BagGraph | None, scaling: str, seed: int) -> Maker:
        """Learned without labels; of many instances, so many a bag that they can be compared in pairs."""
        largest = largest_bag(bags.sizes)
        return cls(bags, Anchor.of(thinned(bags, largest), scaling, seed), graph, largest)

    def tables(self, bags: Bags | None = None, links: Any = None) -> Tables:
        """Of these bags or, without, of those it was made of."""
        own = self.anchor.view
        view = own if bags is None else View(self._rows(bags))
        sums: dict[str, list[Array]] = {}
        for family, left, right in families(self.anchor, view):
            centred = normalised(left, right)
            if centred is not None:
                sums.setdefault(family, []).append(centred)
        nothing = np.zeros((len(view.offsets) - 1, len(self.bags)))
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
    kept = []
    for start, stop in pairwise(bags.offsets):
        rows = np.arange(start, stop)
        if stop - start > largest:
            block = bags.instances[start:stop]
            order = np.lexsort(np.asarray(block.toarray() if bags.is_sparse else block).T[::-1])
            rows = rows[order[np.round(np.linspace(0, stop - start - 1, largest)).astype(np.int64)]]
        kept.append(rows)
    offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in kept])])
    return Bags(bags.instances[np.concatenate(kept)], offsets, ids=bags.ids)


class AbstractScorer(ABC):
    """What a member learned."""

    @abstractmethod
    def __call__(self, asked: Tables) -> Array:
        """Scores (m,) of bags: the larger, the more likely they are of the class."""


class AbstractMember(ABC):
    """Learns one class from the rest, and scores bags: the larger, the more likely they are of it."""

    uses_graph = False

    @abstractmethod
    def fit(self, tables: Tables, visible: Any, sign: Array, seed: int) -> AbstractScorer:
        """From signs -1 and +1 of the visible bags (positions), a function from tables of bags to scores."""


@dataclass(frozen=True)
class KernelMachine(AbstractMember):
    """A support vector machine on one of the tables of pairs."""

    table: str

    def fit(self, tables: Tables, visible: Any, sign: Array, seed: int) -> AbstractScorer:  # noqa: ARG002
        """See :class:`AbstractMember`."""
        kernel = getattr(tables, self.table)
        machine = SVC(kernel="precomputed", C=PRICE).fit(kernel[np.ix_(visible, visible)], sign)
        columns, coef = np.asarray(visible)[machine.support_], machine.dual_coef_[0]
        return _Expansion(self.table, columns, coef, float(machine.intercept_[0]))


@dataclass(frozen=True, eq=False)
class _Expansion(AbstractScorer):
    table: str
    columns: Any
    coef: Array
    intercept: float

    def __call__(self, asked: Tables) -> Array:
        return np.asarray(getattr(asked, self.table)[:, self.columns] @ self.coef + self.intercept)


class Trees(AbstractMember):
    """Extremely randomised trees on statistics of the instances (Geurts, Ernst & Wehenkel 2006)."""

    def fit(self, tables: Tables, visible: Any, sign: Array, seed: int) -> AbstractScorer:
        """See :class:`AbstractMember`."""
        forest = ExtraTreesClassifier(TREES, min_samples_leaf=2, random_state=seed)
        forest.fit(tables.summaries[visible], sign > 0)
        return _Forest(forest)


@dataclass(frozen=True, eq=False)
class _Forest(AbstractScorer):
    forest: Any

    def __call__(self, asked: Tables) -> Array:
        least = 0.5 / TREES
        return np.asarray(logit(np.clip(self.forest.predict_proba(asked.summaries)[:, 1], least, 1 - least)))


class Instances(AbstractMember):
    """Ridge regression of the bag's sign on its instances, every bag weighing one; bags by their instances' scores.

    Scores of the training bags come from fits without that bag, in closed form; how their mean and largest make the
    score of a bag is then learned by logistic regression.
    """

    def fit(self, tables: Tables, visible: Any, sign: Array, seed: int) -> AbstractScorer:  # noqa: ARG002
        """See :class:`AbstractMember`."""
        part = tables.take(visible)
        without, coefficients = self.scores_without(part, sign)
        told = np.array([_told(scores) for scores in without])
        center, spread = told.mean(axis=0), np.maximum(told.std(axis=0), 1e-9)
        last = LogisticRegression().fit((told - center) / spread, sign)
        return _Told(coefficients, center, spread, last)

    @staticmethod
    def scores_without(part: Tables, sign: Array) -> tuple[list[Array], Array]:
        """Scores of every bag's instances from a fit without that bag, and coefficients (d + 1,) of the fit to all.

        ``y_b - (I - H_bb)^-1 (y_b - f_b)``, with f the scores of the fit to all and H what makes them of the labels.
        """
        sizes = np.diff(part.offsets)
        rows = np.hstack([part.instances, np.ones((len(part.instances), 1))])
        weighted = rows * np.repeat(1 / sizes, sizes)[:, None]
        gram = weighted.T @ rows
        gram[np.diag_indices(len(gram))] += RIDGE
        inverse = np.linalg.inv(gram)
        coefficients = inverse @ (weighted.T @ np.repeat(sign, sizes))
        found = []
        for b, (start, stop) in enumerate(pairwise(part.offsets)):
            own = rows[start:stop]
            residual = sign[b] - own @ coefficients
            if stop - start > len(gram):  # a system in the features is the smaller one
                pull = np.linalg.solve(gram - weighted[start:stop].T @ own, weighted[start:stop].T @ residual)
                found.append(sign[b] - residual - own @ pull)
            else:
                share = own @ inverse @ weighted[start:stop].T
                found.append(sign[b] - np.linalg.solve(np.eye(stop - start) - share, residual))
        return found, coefficients


@dataclass(frozen=True, eq=False)
class _Told(AbstractScorer):
    coefficients: Array
    center: Array
    spread: Array
    last: Any

    def __call__(self, asked: Tables) -> Array:
        values = asked.instances @ self.coefficients[:-1] + self.coefficients[-1]
        told = np.array([_told(values[start:stop]) for start, stop in pairwise(asked.offsets)])
        return np.asarray(self.last.decision_function((told - self.center) / self.spread))


def _told(scores: Array) -> tuple[float, float]:
    """What a bag's instances say together."""
    return float(scores.mean()), float(scores.max())


@dataclass(frozen=True)
class Spreading(AbstractMember):
    """Label spreading (Zhou et al. 2004) over the known graph, or over nearest bags by the average kernel."""

    known: bool
    uses_graph = True

    def fit(self, tables: Tables, visible: Any, sign: Array, seed: int) -> AbstractScorer:  # noqa: ARG002
        """See :class:`AbstractMember`."""
        kernel = tables.kernel
        own = np.diag(kernel)
        weights = tables.links if self.known else nearest_links(kernel, own, skip_self=True)
        weights = sp.csr_array(weights).maximum(sp.csr_array(weights).T)
        degree = np.maximum(np.asarray(weights.sum(axis=1)), 1e-12)
        scaled = sp.diags_array(degree**-0.5) @ weights @ sp.diags_array(degree**-0.5)
        start = np.zeros(len(kernel))
        counts = {side: max(int((sign == side).sum()), 1) for side in (-1.0, 1.0)}
        start[visible] = np.where(sign > 0, 1 / counts[1.0], -1 / counts[-1.0]) * len(sign) / 2
        system = np.eye(len(kernel)) - SPREAD * scaled.toarray()
        found = np.linalg.solve(system, start)
        return _Spread(self.known, found, own)


@dataclass(frozen=True, eq=False)
class _Spread(AbstractScorer):
    known: bool
    found: Array
    diagonal: Array

    def __call__(self, asked: Tables) -> Array:
        if asked.own:
            return self.found
        links = asked.links if self.known else nearest_links(asked.kernel, self.diagonal, skip_self=False)
        if links is None:
            return np.zeros(len(asked))
        return np.asarray(links @ self.found) / np.maximum(np.asarray(links.sum(axis=1)), 1e-12)


def nearest_links(kernel: Array, diagonal: Array, *, skip_self: bool) -> sp.csr_array:
    """Weight 1 from every bag to its nearest by ``k(a, a) - 2 k(a, b) + k(b, b)``."""
    squares = diagonal - 2 * kernel  # k(a, a) is the same for all columns
    if skip_self:
        squares = squares + np.diag(np.full(len(kernel), np.inf))
    count = min(CLIQUE, kernel.shape[1] - 1)
    near = np.argsort(squares, axis=1, kind="stable")[:, :count]
    rows = np.repeat(np.arange(len(kernel)), count)
    return sp.csr_array((np.ones(rows.size), (rows, near.ravel())), shape=kernel.shape)


MEMBERS: dict[str, AbstractMember] = {
    "average kernel": KernelMachine("kernel"),
    "distance rows": KernelMachine("distance_kernel"),
    "trees": Trees(),
    "instances": Instances(),
    "neighbours": Spreading(known=False),
    "known graph": Spreading(known=True),
}
