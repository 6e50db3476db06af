"""The graph that the embeddings themselves suggest: the MAP estimate of the Bag Graph paper, to a proven gap."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from baggraph.data._columns import canonical_ids
from baggraph.data.graph import BagGraph
from baggraph.errors import InvalidGraphError, NotConvergedWarning, ParameterError, closest
from baggraph.graphs import _certify
from baggraph.graphs._attach import OneNodeRule
from baggraph.graphs._many import GraphStack, fit_stack
from baggraph.graphs._problem import DTYPES, Problem, embeddings, pose
from baggraph.graphs._solve import Progress, Solution, solve
from baggraph.graphs._weights import mean_degree, weights
from baggraph.graphs.knn import knn_graph
from baggraph.graphs.neighbors import Neighbors, nearest

__all__ = ["LearnedGraph"]

DEGREE_TOLERANCE = 0.1
MOST_ROUNDS = 30
CHOICES = {
    "degree_match": ("rule", "exact"),
    "certify": (False, "check", "exact"),
    "knn": ("auto", "exact", "ivf", "hnsw"),
    "precision": tuple(DTYPES),
}


class LearnedGraph:
    """A sparse weighted graph learned from embeddings, provably near the optimum of

    ``2 theta z.w - sum_i log (S w)_i + ||w||^2``  over  ``w >= 0``,

    with z the squared distances of candidate pairs and S w the weighted degrees (Kalofolias 2016, How to learn a
    graph from smooth signals; Kalofolias & Perraudin 2019, Large scale graph learning from smooth signals).

    Parameters
    ----------
    n_neighbors
        About how many neighbours a bag keeps; decides theta.
    candidate_ratio
        Candidates are the ``n_neighbors * candidate_ratio`` nearest of every bag.
    degree_match
        ``"rule"`` takes theta from the closed form; ``"exact"`` adjusts it until the mean number of neighbours is
        within 0.1 of ``n_neighbors``.
    local_scaling
        Divide distances by those to the k-th neighbours of both ends: for heavy tails, and even degrees.
    observed, trust
        A known graph, along whose edges distances are multiplied by ``1 - trust``: D(G_obs, Z, y) of the paper.
    tol
        Largest duality gap, relative to the objective.
    certify
        ``"check"`` reports the share of bags that provably miss no edge for want of candidates; ``"exact"`` adds
        missing pairs and solves again until the graph is that of all pairs.
    knn, device, precision
        How neighbours are searched; ``"auto"``, ``"cpu"`` or ``"cuda"``; type of the large arrays (float64 is taken
        where float32 would blur the distances of these embeddings).
    random_state
        Seed of approximate searches and of :meth:`sample`.

    Attributes
    ----------
    graph_ : BagGraph
        The learned graph; its adjacency holds the weights w of the problem above.
    dual_ : (n,) array
        Potentials; w_ij = (dual_i + dual_j - 2 theta z_ij)_+ / 2, of far outliers computed with twice the digits.
    theta_, gap_, relative_gap_, kkt_ : float
        Theta; primal minus dual objective; the same over the objective; largest distance of dual_i * degree_i from 1.
    degree_ : float
        Mean number of neighbours, reached for the ``n_neighbors`` asked.
    certified_fraction_ : float or None
        Share of certified bags; 1.0 means that no pair at all is missing.
    n_iter_, n_rounds_, converged_, recall_, timings_
        Sweeps and Newton steps, rounds of certification, whether the gap was reached, recall of the neighbours,
        seconds a phase.

    Examples
    --------
    >>> Z = np.random.default_rng(0).normal(size=(50, 3))
    >>> learned = LearnedGraph(n_neighbors=4).fit(Z)
    >>> learned.graph_
    BagGraph: 50 bags, ... edges, mean degree ..., 1 component, 0 isolates
    >>> learned.relative_gap_ < 1e-4
    True
    """

    def __init__(
        self,
        n_neighbors: int = 10,
        candidate_ratio: int = 3,
        *,
        degree_match: str = "rule",
        local_scaling: bool = False,
        observed: BagGraph | None = None,
        trust: float = 0.0,
        tol: float = 1e-4,
        certify: bool | str = False,
        knn: str = "auto",
        device: str = "auto",
        precision: str = "float32",
        random_state: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.candidate_ratio = candidate_ratio
        self.degree_match = degree_match
        self.local_scaling = local_scaling
        self.observed = observed
        self.trust = trust
        self.tol = tol
        self.certify = certify
        self.knn = knn
        self.device = device
        self.precision = precision
        self.random_state = random_state

    # ------------------------------------------------------------------ fitting

    def fit(self, Z: Any, *, ids: Any = None, progress: Progress | None = None) -> LearnedGraph:
        """Learn the graph of embeddings Z (n, d).

        ``ids`` name the bags.  ``progress(phase, number)`` is called with the share of bags whose ``"neighbours"`` are
        found, and with the relative gap after every iteration of ``"solve"`` and ``"newton"``.
        """
        return self._fit(Z, ids, None, progress)

    def refit(self, Z: Any) -> LearnedGraph:
        """Learn the graph of other embeddings of the same bags, starting from the potentials of the last."""
        if len(Z) != len(self.dual_):
            raise _wrong(f"embeddings of the same {len(self.dual_)} bags", f"{len(Z)}", "use fit for other bags")
        return self._fit(Z, self.graph_.ids, self.dual_, None)

    def _fit(self, Z: Any, ids: Any, dual: Any, progress: Progress | None) -> LearnedGraph:
        self._validate()
        clock = _Clock(progress)
        self._Z = embeddings(Z, self.device, self.precision)
        names = canonical_ids(ids, len(self._Z))
        self._refuse_other_bags(names, ids is not None)
        neighbors = self._neighbors(progress)
        clock.lap("neighbours")
        problem = self._pose(neighbors)
        order = None if neighbors.cells is None else torch.argsort(neighbors.cells, stable=True)
        clock.lap("candidates")
        start = problem.start if dual is None else torch.from_numpy(np.array(dual)).to(self._Z.device)
        problem, solution = self._solve(problem, start, order, clock)
        self._problem, self._solution = problem, solution
        self._describe(problem, solution, neighbors, names)
        clock.lap("graph")
        self.timings_ = clock.laps
        if not self.converged_:
            self._warn()
        return self

    def _neighbors(self, progress: Progress | None) -> Neighbors:
        return nearest(
            self._Z,
            max(self.n_neighbors * self.candidate_ratio, self.n_neighbors + 1),
            method=self.knn,
            random_state=self.random_state or 0,
            progress=None if progress is None else lambda done, total: progress("neighbours", done / total),
        )

    def _pose(self, neighbors: Neighbors) -> Problem:
        length = min(neighbors.indices.shape[1], self.n_neighbors * self.candidate_ratio)
        return pose(
            self._Z[None],
            neighbors.indices[None],
            neighbors.distances[None],
            [self.n_neighbors],
            [length],
            local_scaling=self.local_scaling,
            observed=self.observed,
            trust=self.trust,
        )

    def _solve(
        self, problem: Problem, start: torch.Tensor, order: torch.Tensor | None, clock: _Clock
    ) -> tuple[Problem, Solution]:
        self.n_rounds_, self.n_iter_ = 0, 0
        while True:
            problem, solution = self._solve_degree(problem, start, order, clock.progress)
            clock.lap("solve")
            if self.certify != "exact" or self.n_rounds_ == MOST_ROUNDS:
                return problem, solution
            open_nodes = ~_certify.certified(solution.potential, float(problem.theta[0]), problem.radius)
            low, high, z = _certify.missing_pairs(
                self._Z,
                problem.scale,
                solution.potential,
                float(problem.theta[0]),
                problem.candidates,
                open_nodes.nonzero().flatten(),
            )
            clock.lap("certify")
            if not len(low):
                self._complete = True
                return problem, solution
            problem, start = problem.with_pairs(low, high, z), solution.potential
            self.n_rounds_ += 1

    def _solve_degree(
        self, problem: Problem, start: torch.Tensor, order: torch.Tensor | None, progress: Progress | None
    ) -> tuple[Problem, Solution]:
        """Solve, and with ``degree_match="exact"`` adjust theta until the mean number of neighbours is right."""
        self._complete = False
        wanted = min(self.n_neighbors, len(self._Z) - 1)
        low, high = 0.0, np.inf
        for _ in range(MOST_ROUNDS):
            solution = solve(problem.candidates, problem.costs, start, tol=self.tol, order=order, progress=progress)
            self.n_iter_ += solution.n_iter
            degree = float(mean_degree(problem, solution.potential, solution.fine)[0])
            if self.degree_match == "rule" or abs(degree - wanted) <= DEGREE_TOLERANCE:
                break
            theta = float(problem.theta[0])
            low, high = (theta, high) if degree > wanted else (low, theta)
            new = theta * degree / wanted
            if not low < new < high:
                new = np.sqrt(low * high) if low > 0 and np.isfinite(high) else theta * (2 if degree > wanted else 0.5)
            # Costs scale with theta; potentials of a steeper problem start no lower.
            problem, start = problem.with_theta(problem.theta * (new / theta)), solution.potential
        return problem, solution

    def _describe(self, problem: Problem, solution: Solution, neighbors: Neighbors, names: Any) -> None:
        self.graph_ = BagGraph._trusted(weights(problem, solution.potential, solution.fine), names)
        self.dual_ = solution.potential.cpu().numpy()
        self.theta_ = float(problem.theta[0])
        self.gap_, self.relative_gap_ = float(solution.gap[0]), float(solution.relative_gap[0])
        self.kkt_ = float(solution.kkt[0])
        self.converged_ = bool(solution.converged[0])
        self.degree_ = self.graph_.adjacency.nnz / len(names)
        self.recall_ = neighbors.recall
        self.certified_fraction_: float | None = None
        if self.certify is not False:
            sure = _certify.certified(solution.potential, self.theta_, problem.radius)
            self.certified_fraction_ = 1.0 if self._complete else float(sure.to(torch.float64).mean())

    def _warn(self) -> None:
        remedy = "raise tol" if self.local_scaling else "set local_scaling=True, which tames far outliers, or raise tol"
        text = (
            f"learned graph: expected a relative gap of {self.tol:g}, got {self.relative_gap_:.2g} after "
            f"{self.n_iter_} iterations{self._lost()}; {remedy}"
        )
        warnings.warn(text, NotConvergedWarning, stacklevel=4)

    def _lost(self) -> str:
        """Bags that an optimal graph would have joined to others: their weights are beyond the digits of float64."""
        lost = self.graph_.isolates
        if not len(lost):
            return ""
        return f", and no edge of {len(lost)} bags, such as {lost[0]!r}: so far from all others that none is resolved"

    # ------------------------------------------------------------------ using

    def attach(self, Z_new: Any) -> sp.csr_array:
        """Weights (m, n) between new bags and the fitted ones, by the one-node rule with fitted potentials fixed.

        Each new bag is attached as if it came alone, so neither order nor company matters.
        """
        return self.rule.attach(Z_new)

    @property
    def rule(self) -> OneNodeRule:
        """What :meth:`attach` needs of the fitted graph."""
        width = max(self.n_neighbors * self.candidate_ratio, self.n_neighbors + 1)
        return OneNodeRule(self._Z, self._solution.potential, self.theta_, self._problem.scale, self.n_neighbors, width)

    def sample(self, n: int, *, noise: float = 0.1) -> list[BagGraph]:
        """Graphs of perturbed distances (perturb and MAP, Papandreou & Yuille 2011), degree matched anew.

        Every candidate distance is multiplied by exp(noise * N(0, 1)).
        """
        generator = torch.Generator().manual_seed(self.random_state or 0)
        return [self._perturbed(noise, generator) for _ in range(n)]

    def _perturbed(self, noise: float, generator: torch.Generator) -> BagGraph:
        candidates = self._problem.candidates
        rows = candidates.rows()
        upper = rows < candidates.columns
        low, high = rows[upper], candidates.columns[upper]
        factor = torch.exp(noise * torch.randn(len(low), generator=generator, dtype=torch.float64))
        z = candidates.distances[upper] * factor.to(candidates.distances)
        problem = self._problem.with_distances(low, high, z)
        wanted, theta = self.degree_, float(self._problem.theta[0])
        potential = self._solution.potential
        for _ in range(MOST_ROUNDS):
            solution = solve(problem.candidates, problem.costs, potential, tol=self.tol)
            degree = float(mean_degree(problem, solution.potential, solution.fine)[0])
            if abs(degree - wanted) <= DEGREE_TOLERANCE:
                break
            theta *= degree / wanted
            problem, potential = problem.with_theta(problem.theta.new_tensor([theta])), solution.potential
        return BagGraph._trusted(weights(problem, solution.potential, solution.fine), self.graph_.ids)

    def fit_many(
        self,
        Z: Any,
        *,
        n_neighbors: Sequence[int] | None = None,
        candidate_ratio: Sequence[int] | None = None,
        theta: Sequence[float] | None = None,
    ) -> GraphStack:
        """Learn M graphs of embeddings (M, n, d) in one call, each as :meth:`fit` would, alone.

        Graphs may differ in ``n_neighbors``, ``candidate_ratio`` and, where the rule is to be overruled, ``theta``.
        """
        self._validate()
        for name, value in (("observed", self.observed), ("certify", self.certify)):
            if value:
                raise _parameter(f"{name} unset for many graphs", repr(value), "fit these graphs one by one")
        if self.degree_match != "rule":
            raise _parameter("degree_match='rule' for many graphs", self.degree_match, "pass theta for each graph")
        stack = embeddings(Z, self.device, self.precision, n_dims=3)
        count = len(stack)
        ks = list(n_neighbors or [self.n_neighbors] * count)
        ratios = list(candidate_ratio or [self.candidate_ratio] * count)
        return fit_stack(stack, ks, ratios, theta, local_scaling=self.local_scaling, tol=self.tol)

    @staticmethod
    def as_published(Z: Any, n_neighbors: int, candidate_ratio: int, *, ids: Any = None) -> BagGraph:
        """What the published routine gives in effect: the k r nearest neighbours, all of weight one.

        Its unit self-loops are those that :meth:`BagGraph.normalised` adds.  For the ``as-published`` protocol only.
        """
        return knn_graph(Z, n_neighbors * candidate_ratio, ids=ids)

    # ------------------------------------------------------------------ checks

    def _validate(self) -> None:
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                remedy = closest(str(value), [str(choice) for choice in choices])
                raise _parameter(f"{name} to be one of {choices}", repr(value), remedy)
        for name, value, allowed, fine in (
            ("n_neighbors", self.n_neighbors, "a whole number from 1", _whole(self.n_neighbors)),
            ("candidate_ratio", self.candidate_ratio, "a whole number from 1", _whole(self.candidate_ratio)),
            ("trust", self.trust, "from 0 to 1", 0 <= self.trust <= 1),
            ("tol", self.tol, "positive", self.tol > 0),
        ):
            if not fine:
                raise _parameter(f"{name} {allowed}", repr(value), "change it")
        if self.trust > 0 and self.observed is None:
            raise _parameter("an observed graph to trust", "observed=None", "pass observed=..., or trust=0")

    def _refuse_other_bags(self, names: Any, named: bool) -> None:
        if self.observed is None:
            return
        same = np.array_equal(self.observed.ids, names) if named else len(self.observed) == len(names)
        if not same:
            got = f"one over {len(self.observed)} bags"
            raise _wrong("an observed graph over the same bags in the same order", got, "use observed.take")


class _Clock:
    """Wall seconds of every phase, and whom to tell."""

    def __init__(self, progress: Progress | None) -> None:
        self.laps: dict[str, float] = {}
        self.last, self.progress = time.perf_counter(), progress

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self.laps[phase] = self.laps.get(phase, 0.0) + now - self.last
        self.last = now


def _whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 1


def _wrong(expected: str, got: str, remedy: str) -> InvalidGraphError:
    return InvalidGraphError("learned graph", expected=expected, got=got, remedy=remedy)


def _parameter(expected: str, got: str, remedy: str) -> ParameterError:
    return ParameterError("learned graph", expected=expected, got=got, remedy=remedy)
