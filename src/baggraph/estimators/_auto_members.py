"""The members of the committee: each sees a table that was made once, without labels, and scores bags for one class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
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

from baggraph.estimators._auto_tables import Tables
from baggraph.estimators._forest import Forest
from baggraph.inference.gp import Process
from baggraph.inference.gp_kernels import Constant, Linear, Parameter
from baggraph.inference.gp_laplace import FittedSide, fit_side

Array = NDArray[np.float64]
Fold = tuple[Any, Any]  # positions among the visible bags: those to learn from, those held out
TREES = 100
PRICE = 10.0  # of errors, as the machine on the average kernel has it
RIDGE = 1.0  # a standard normal prior on coefficients of standardised features, noise of one a bag
CLIQUE = 5  # nearest bags that a bag hears of
SPREAD = 0.9  # how much of a bag's score its neighbours decide
LATENT = 4.0  # variance of a latent function that reaches from doubt to near certainty


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

    @abstractmethod
    def held_out(self, tables: Tables, visible: Any, sign: Array, folds: Sequence[Fold], seed: int) -> Array:
        """Scores (n,) of the visible bags, each from a fit without its inner fold."""


class AbstractFoldMember(AbstractMember):
    """Learns fold by fold."""

    def held_out(self, tables: Tables, visible: Any, sign: Array, folds: Sequence[Fold], seed: int) -> Array:
        """See :class:`AbstractMember`."""
        scores = np.empty(len(sign))
        for train, test in folds:
            scores[test] = self.fit(tables, visible[train], sign[train], seed)(tables)[visible[test]]
        return scores


@dataclass(frozen=True)
class KernelMachine(AbstractFoldMember):
    """A support vector machine on one of the tables of pairs."""

    table: str

    def fit(self, tables: Tables, visible: Any, sign: Array, seed: int) -> AbstractScorer:  # noqa: ARG002
        """See :class:`AbstractMember`."""
        kernel = getattr(tables, self.table)
        machine = SVC(kernel="precomputed", C=PRICE).fit(kernel[np.ix_(visible, visible)], sign)
        columns, coef = np.asarray(visible)[machine.support_], machine.dual_coef_[0]
        return Expansion(self.table, columns, coef, float(machine.intercept_[0]))


@dataclass(frozen=True, eq=False)
class Expansion(AbstractScorer):
    table: str
    columns: Any
    coef: Array
    intercept: float

    def __call__(self, asked: Tables) -> Array:
        return np.asarray(getattr(asked, self.table)[:, self.columns] @ self.coef + self.intercept)


class Trees(AbstractFoldMember):
    """Extremely randomised trees on statistics of the instances (Geurts, Ernst & Wehenkel 2006)."""

    def fit(self, tables: Tables, visible: Any, sign: Array, seed: int) -> AbstractScorer:
        """See :class:`AbstractMember`."""
        forest = ExtraTreesClassifier(TREES, min_samples_leaf=2, random_state=seed)
        forest.fit(tables.summaries[visible], sign > 0)
        return ForestScorer(Forest.of(forest))


@dataclass(frozen=True, eq=False)
class ForestScorer(AbstractScorer):
    forest: Forest

    def __call__(self, asked: Tables) -> Array:
        least = 0.5 / TREES
        return np.asarray(logit(np.clip(self.forest(asked.summaries), least, 1 - least)))


class Instances(AbstractFoldMember):
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
        slopes = last.coef_[0] / spread
        return Told(coefficients, slopes, float(last.intercept_[0] - slopes @ center))

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
class Told(AbstractScorer):
    coefficients: Array
    slopes: Array
    offset: float

    def __call__(self, asked: Tables) -> Array:
        values = asked.instances @ self.coefficients[:-1] + self.coefficients[-1]
        told = np.array([_told(values[start:stop]) for start, stop in pairwise(asked.offsets)])
        return np.asarray(told @ self.slopes + self.offset)


def _told(scores: Array) -> tuple[float, float]:
    """What a bag's instances say together."""
    return float(scores.mean()), float(scores.max())


@dataclass(frozen=True)
class Spreading(AbstractFoldMember):
    """Label spreading (Zhou et al. 2004) over the known graph, or over nearest bags by the average kernel."""

    known: bool
    uses_graph = True

    def fit(self, tables: Tables, visible: Any, sign: Array, seed: int) -> AbstractScorer:  # noqa: ARG002
        """See :class:`AbstractMember`."""
        start = np.zeros(len(tables))
        counts = {side: max(int((sign == side).sum()), 1) for side in (-1.0, 1.0)}
        start[visible] = np.where(sign > 0, 1 / counts[1.0], -1 / counts[-1.0]) * len(sign) / 2
        found = np.asarray(np.linalg.solve(spreading(tables, known=self.known), start), dtype=np.float64)
        return SpreadScorer(self.known, found, np.diag(tables.kernel))


@dataclass(frozen=True, eq=False)
class SpreadScorer(AbstractScorer):
    known: bool
    found: Array
    diagonal: Array

    def __call__(self, asked: Tables) -> Array:
        if asked.own:
            return self.found
        links = self.links(asked)
        if links is None:
            return np.zeros(len(asked))
        return np.asarray(links @ self.found) / np.maximum(np.asarray(links.sum(axis=1)), 1e-12)

    def links(self, asked: Tables) -> sp.csr_array | None:
        """Weights of the bags that new ones hear of (m, B)."""
        return asked.links if self.known else nearest_links(asked.kernel, self.diagonal, skip_self=False)


def spreading(tables: Tables, *, known: bool) -> Array:
    """``I - SPREAD D^-1/2 W D^-1/2`` (B, B), whose inverse spreads labels over the bags of the anchor."""
    weights = tables.links if known else nearest_links(tables.kernel, np.diag(tables.kernel), skip_self=True)
    weights = sp.csr_array(weights).maximum(sp.csr_array(weights).T)
    degree = np.maximum(np.asarray(weights.sum(axis=1)), 1e-12)
    scaled = sp.diags_array(degree**-0.5) @ weights @ sp.diags_array(degree**-0.5)
    return np.asarray(np.eye(len(tables)) - SPREAD * scaled.toarray())


def nearest_links(kernel: Array, diagonal: Array, *, skip_self: bool) -> sp.csr_array:
    """Weight 1 from every bag to its nearest by ``k(a, a) - 2 k(a, b) + k(b, b)``."""
    squares = diagonal - 2 * kernel  # k(a, a) is the same for all columns
    if skip_self:
        squares = squares + np.diag(np.full(len(kernel), np.inf))
    count = min(CLIQUE, kernel.shape[1] - 1)
    near = np.argsort(squares, axis=1, kind="stable")[:, :count]
    rows = np.repeat(np.arange(len(kernel)), count)
    return sp.csr_array((np.ones(rows.size), (rows, near.ravel())), shape=kernel.shape)


class KernelProcess(AbstractFoldMember):
    """A Gaussian process on the average kernel, with a logistic link and Laplace's approximation."""

    def fit(self, tables: Tables, visible: Any, sign: Array, seed: int) -> AbstractScorer:  # noqa: ARG002
        """See :class:`AbstractMember`."""
        process = Process(
            {"level": Constant(Parameter("level", LATENT, 0.0)), "kernel": Linear(Parameter("variance", LATENT, 2.0))},
            {},
        )
        rows = {"level": np.ones((len(visible), 1)), "kernel": (tables.kernel @ tables.roots)[visible]}
        return LatentScorer(fit_side(process, rows, sign), tables.roots)


@dataclass(frozen=True, eq=False)
class LatentScorer(AbstractScorer):
    """The latent mean, drawn towards zero where it is not known (MacKay 1992)."""

    side: FittedSide
    roots: Array

    def __call__(self, asked: Tables) -> Array:
        rows = {"level": np.ones((len(asked), 1)), "kernel": asked.kernel @ self.roots}
        mean, variance = self.side.predict(rows)
        return np.asarray(mean / np.sqrt(1 + np.pi / 8 * variance))
