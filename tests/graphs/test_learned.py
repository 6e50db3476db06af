"""The learned graph against a conic solver, against itself in other guises, and at its edges."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform

from baggraph import datasets
from baggraph.baselines.summary import summarise
from baggraph.data.graph import BagGraph
from baggraph.errors import BagWarning, InvalidGraphError, ParameterError
from baggraph.graphs import _newton, _solve
from baggraph.graphs.learned import LearnedGraph

ALL = 10**6  # a candidate ratio that lists every pair
TIGHT = {"tol": 1e-13, "precision": "float64"}
PROPERTY = settings(max_examples=25, deadline=None)


def mixture(n: int, d: int = 16, seed: int = 0, centres: int = 6) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(centres, d))[rng.integers(centres, size=n)] * 3 + rng.normal(size=(n, d))


def pair_weights(graph: BagGraph) -> np.ndarray:
    return squareform(graph.adjacency.toarray(), checks=False)


def primal(w: np.ndarray, z: np.ndarray, theta: float) -> float:
    degree = squareform(w).sum(axis=1)
    return float(2 * theta * z @ w - np.log(degree).sum() + w @ w)


def dual(potential: np.ndarray, z: np.ndarray, theta: float) -> float:
    pairs = np.add.outer(potential, potential)[np.triu_indices(len(potential), 1)] - 2 * theta * z
    return float(len(potential) + np.log(potential).sum() - (np.maximum(pairs, 0) ** 2).sum() / 4)


def conic(z: np.ndarray, n: int, theta: float) -> np.ndarray:
    """The optimum by an interior-point solver: t_i <= log d_i as exponential cones."""
    clarabel = pytest.importorskip("clarabel", reason="needs clarabel")
    m = len(z)
    rows, columns = np.triu_indices(n, 1)
    incidence = sp.coo_array((np.ones(2 * m), (np.r_[rows, columns], np.r_[np.arange(m), np.arange(m)])), shape=(n, m))
    quadratic = sp.block_diag([2 * sp.eye_array(m), sp.csc_array((n, n))], format="csc")
    linear = np.r_[2 * theta * z, -np.ones(n)]
    # s = b - A x stacks, for each node, (t_i, 1, d_i) in the exponential cone, and w >= 0.
    select = [
        sp.coo_array((np.ones(n), (3 * np.arange(n) + part, np.arange(n))), shape=(3 * n, n)) for part in range(3)
    ]
    cones = sp.hstack([-(select[2] @ incidence), -select[0]])
    bounds = sp.hstack([-sp.eye_array(m), sp.csc_array((m, n))])
    right = np.r_[select[1] @ np.ones(n), np.zeros(m)]
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-11
    kinds = [clarabel.ExponentialConeT()] * n + [clarabel.NonnegativeConeT(m)]
    stacked = sp.csc_matrix(sp.vstack([cones, bounds]))
    solver = clarabel.DefaultSolver(sp.csc_matrix(quadratic), linear, stacked, right, kinds, options)
    return np.maximum(np.array(solver.solve().x)[:m], 0)


def check_against_conic(Z: np.ndarray, k: int) -> None:
    learned = LearnedGraph(k, ALL, **TIGHT).fit(Z)
    z = pdist(Z, "sqeuclidean")
    ours, theirs = (
        primal(pair_weights(learned.graph_), z, learned.theta_),
        primal(conic(z, len(Z), learned.theta_), z, learned.theta_),
    )
    assert ours <= theirs + 1e-6 * abs(theirs)
    assert abs(ours - theirs) <= 1e-6 * abs(theirs)
    assert learned.kkt_ < 1e-5
    gap = ours - dual(learned.dual_, z, learned.theta_)
    print(
        f"n={len(Z)} k={k}: objective {abs(ours / theirs - 1):.1e} from the conic solver's, KKT residual {learned.kkt_:.1e}"
    )
    assert learned.gap_ == pytest.approx(gap, abs=1e-9 * abs(ours))


@pytest.mark.parametrize("seed", range(20))
def test_objective_equals_that_of_a_conic_solver(seed):
    rng = np.random.default_rng(seed)
    spread = [1.0, 5.0, 0.01][seed % 3]
    check_against_conic(spread * rng.normal(size=(30, 2 + seed % 5)) + 10 * rng.normal(size=2 + seed % 5), 1 + seed % 7)


@pytest.mark.needs("mil_benchmark/raw")
@pytest.mark.usefixtures("real")
@pytest.mark.parametrize("name", ["musk1", "fox", "rental"])
def test_objective_equals_that_of_a_conic_solver_on_real_bags(name):
    Z = summarise(datasets.load(name))[:100]
    check_against_conic((Z - Z.mean(axis=0)) / (Z.std(axis=0) + 1e-9), 3)


def test_the_gap_is_primal_minus_dual_at_any_accuracy():
    Z = mixture(80)
    z = pdist(Z, "sqeuclidean")
    for tol in (1e-1, 1e-3, 1e-5, 1e-9):
        learned = LearnedGraph(5, ALL, tol=tol, precision="float64").fit(Z)
        exact = primal(pair_weights(learned.graph_), z, learned.theta_) - dual(learned.dual_, z, learned.theta_)
        assert learned.gap_ == pytest.approx(exact, rel=1e-6, abs=1e-10)
        assert learned.relative_gap_ <= tol


def test_newton_and_sweeps_reach_the_same_graph(monkeypatch):
    Z = mixture(200)
    swept = LearnedGraph(6, tol=2e-6, precision="float64").fit(Z)
    stepped = LearnedGraph(6, **TIGHT).fit(Z)
    np.testing.assert_allclose(swept.graph_.adjacency.toarray(), stepped.graph_.adjacency.toarray(), atol=5e-3)
    monkeypatch.setattr(_solve, "SWEEP_TOLERANCE", 1e3)
    alone = LearnedGraph(6, **TIGHT).fit(Z)
    np.testing.assert_allclose(alone.graph_.adjacency.toarray(), stepped.graph_.adjacency.toarray(), atol=1e-6)


# ---------------------------------------------------------------------- degree and certificate


@pytest.mark.parametrize("k", [2, 3, 4, 7, 10])
def test_degree_by_rule_is_near_and_by_search_is_right(k):
    Z = mixture(400)
    rule = LearnedGraph(k).fit(Z)
    exact = LearnedGraph(k, degree_match="exact").fit(Z)
    assert 0.8 * k < rule.degree_ < 1.25 * k
    assert abs(exact.degree_ - k) <= 0.1
    assert rule.degree_ == rule.graph_.adjacency.nnz / 400


@pytest.mark.parametrize("ratio", [1, 2, 3, 5])
def test_certified_graphs_are_those_of_all_pairs(ratio):
    Z = mixture(300, centres=10)
    everything = LearnedGraph(10, ALL, **TIGHT).fit(Z)
    certain = LearnedGraph(10, ratio, certify="exact", **TIGHT).fit(Z)
    z = pdist(Z, "sqeuclidean")
    # Theta depends on the 11 nearest alone, so both solve the same problem.
    assert certain.theta_ == pytest.approx(everything.theta_, rel=1e-12)
    ours, theirs = (primal(pair_weights(g.graph_), z, everything.theta_) for g in (certain, everything))
    assert ours == pytest.approx(theirs, rel=1e-9)
    assert certain.certified_fraction_ == 1.0
    assert certain.n_rounds_ <= 3
    checked = LearnedGraph(10, ratio, certify="check", **TIGHT).fit(Z)
    assert checked.certified_fraction_ <= 1.0
    assert (checked.certified_fraction_ == 1.0) <= (certain.n_rounds_ == 0)


def test_certificate_holds_under_local_scaling():
    Z = mixture(150) * np.random.default_rng(1).pareto(2.0, size=(150, 1))
    everything = LearnedGraph(6, ALL, local_scaling=True, **TIGHT).fit(Z)
    certain = LearnedGraph(6, 1, local_scaling=True, certify="exact", **TIGHT).fit(Z)
    certain_at = LearnedGraph(6, 2, local_scaling=True, certify="exact", **TIGHT).fit(Z)
    assert certain.certified_fraction_ == certain_at.certified_fraction_ == 1.0
    assert everything.converged_


# ---------------------------------------------------------------------- hard data


def heavy(kind: str, n: int = 2000) -> np.ndarray:
    rng = np.random.default_rng(0)
    if kind == "t3":
        return rng.normal(size=(n, 64)) / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3)
    Z = rng.normal(size=(n, 64))
    Z[:50] *= 30
    return Z


@pytest.mark.parametrize("kind", ["t3", "outliers"])
@pytest.mark.parametrize("local_scaling", [False, True])
def test_heavy_tails_converge(kind, local_scaling):
    learned = LearnedGraph(10, local_scaling=local_scaling).fit(heavy(kind))
    assert learned.converged_
    assert learned.relative_gap_ <= 1e-4
    assert not len(learned.graph_.isolates)


def with_outliers(*far: float, n: int = 60, seed: int = 0) -> np.ndarray:
    """Bags of which the first lie this many times as far from the origin."""
    Z = np.random.default_rng(seed).normal(size=(n, 6))
    Z[: len(far)] *= np.array(far)[:, None]
    return Z


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("far", [(3e3,), (1e4, 1e2), (1e6,)])
def test_weights_smaller_than_the_rounding_of_potentials_are_found(k, far):
    Z = with_outliers(*far)
    learned = LearnedGraph(k, ALL, precision="float64").fit(Z)
    assert learned.dual_[0] ** 2 * np.finfo(float).eps > 1e-4  # where rounding is felt
    assert learned.converged_
    assert not len(learned.graph_.isolates)
    z = pdist(Z, "sqeuclidean")
    found = primal(pair_weights(learned.graph_), z, learned.theta_)
    assert abs(found - dual(learned.dual_, z, learned.theta_)) <= 1.1e-4 * abs(found)
    coarse = LearnedGraph(k, ALL).fit(Z)  # its costs are rounded, its weights are not
    assert coarse.converged_
    np.testing.assert_allclose(coarse.graph_.adjacency.sum(axis=1) * coarse.dual_, 1, atol=0.15)


@pytest.mark.parametrize("far", [(30.0,), (300.0, 30.0)])
@pytest.mark.parametrize("k", [1, 2])
def test_far_outliers_equal_the_conic_solver(far, k):
    check_against_conic(with_outliers(*far, n=16), k)


def test_a_far_bag_attaches_to_its_nearest():
    learned = LearnedGraph(1, 10, **TIGHT).fit(mixture(60))
    new = mixture(1)[0] * np.array([[1e4], [1e7], [1e12]])
    rows = learned.attach(new)
    assert (np.diff(rows.indptr) > 0).all()
    nearest = ((new[:, None] - mixture(60)[None]) ** 2).sum(axis=2).min(axis=1)
    np.testing.assert_allclose(rows.sum(axis=1) * 2 * learned.theta_ * nearest, 1, rtol=1e-4)


def test_an_edge_lost_to_rounding_is_told_with_its_bag():
    names = [f"bag-{i}" for i in range(60)]
    with pytest.warns(BagWarning, match="got inf .* no edge of 1 bags, such as 'bag-0'"):
        learned = LearnedGraph(1, 10).fit(with_outliers(1e10), ids=names)
    assert not learned.converged_
    assert learned.gap_ == np.inf
    assert learned.graph_.isolates.tolist() == ["bag-0"]


def test_what_is_not_reached_is_told(monkeypatch):
    monkeypatch.setattr(_newton, "MAX_STEPS", 1)
    with pytest.warns(BagWarning, match=r"relative gap of 1e-10, got .* set local_scaling=True"):
        learned = LearnedGraph(10, tol=1e-10).fit(heavy("t3", 500))
    assert not learned.converged_
    assert learned.relative_gap_ > 1e-10


# ---------------------------------------------------------------------- laws

blocks = st.integers(0, 2**32 - 1).map(lambda seed: mixture(40, d=3, seed=seed))


@PROPERTY
@given(Z=blocks, seed=st.integers(0, 1000))
def test_permuted_bags_give_the_permuted_graph(Z, seed):
    order = np.random.default_rng(seed).permutation(len(Z))
    ours = LearnedGraph(4, **TIGHT).fit(Z).graph_.adjacency.toarray()
    permuted = LearnedGraph(4, **TIGHT).fit(Z[order]).graph_.adjacency.toarray()
    np.testing.assert_allclose(permuted, ours[np.ix_(order, order)], atol=1e-7)


@PROPERTY
@given(Z=blocks, factor=st.sampled_from([1e-3, 0.5, 7.0, 1e3]))
def test_scaled_distances_give_the_same_graph(Z, factor):
    ours, scaled = LearnedGraph(4, **TIGHT).fit(Z), LearnedGraph(4, **TIGHT).fit(Z * factor)
    np.testing.assert_allclose(scaled.graph_.adjacency.toarray(), ours.graph_.adjacency.toarray(), atol=1e-6)
    assert scaled.theta_ == pytest.approx(ours.theta_ / factor**2, rel=1e-6)


@PROPERTY
@given(Z=blocks, factor=st.sampled_from([2.0**-70, 2.0**-20, 2.0**20, 2.0**70]), by=st.sampled_from([0.0, 1e3, 1e6]))
def test_neither_unit_nor_origin_matters(Z, factor, by):
    """float32, the default, must not blur embeddings that are tiny, huge, or far from the origin."""
    ours, moved = LearnedGraph(4, tol=1e-8).fit(Z), LearnedGraph(4, tol=1e-8).fit((Z + by) * factor)
    np.testing.assert_allclose(moved.graph_.adjacency.toarray(), ours.graph_.adjacency.toarray(), atol=2e-2)
    assert moved.theta_ * factor**2 == pytest.approx(ours.theta_, rel=1e-3)
    near = LearnedGraph(4).fit_many(np.stack([Z, Z]))[0]
    far = LearnedGraph(4).fit_many(np.stack([Z, Z]) * factor + by * factor)[0]
    np.testing.assert_allclose(far.adjacency.toarray(), near.adjacency.toarray(), atol=5e-2)


@PROPERTY
@given(Z=blocks, times=st.integers(2, 4), ratio=st.integers(1, 3))
def test_duplicates_are_no_trouble(Z, times, ratio):
    learned = LearnedGraph(4, ratio, **TIGHT).fit(np.repeat(Z, times, axis=0))
    assert learned.converged_
    assert not len(learned.graph_.isolates)


@PROPERTY
@given(Z=blocks, far=st.sampled_from([1e3, 1e4, 1e5]))
def test_clusters_far_apart_are_solved_as_if_alone(Z, far):
    """Each has the other's size and shape, so that theta is that of either."""
    both = LearnedGraph(4, certify="exact", **TIGHT).fit(np.concatenate([Z, Z + far]))
    alone = LearnedGraph(4, certify="exact", **TIGHT).fit(Z)
    whole = both.graph_.adjacency.toarray()
    assert not whole[: len(Z), len(Z) :].any()
    np.testing.assert_allclose(whole[: len(Z), : len(Z)], alone.graph_.adjacency.toarray(), atol=1e-6)


@PROPERTY
@given(Z=blocks)
def test_no_bag_is_isolated_and_zeros_are_exact(Z):
    learned = LearnedGraph(3).fit(Z)
    assert not len(learned.graph_.isolates)
    assert (learned.graph_.adjacency.data > 0).all()
    assert abs(learned.graph_.adjacency - learned.graph_.adjacency.T).max() == 0


def test_duplicates_share_their_neighbours():
    Z = np.repeat(mixture(20), 3, axis=0)
    learned = LearnedGraph(4, ALL, **TIGHT).fit(Z)
    rows = learned.graph_.adjacency.toarray()
    np.testing.assert_allclose(np.sort(rows[0]), np.sort(rows[1]), atol=1e-8)
    assert learned.converged_


def test_far_clusters_stay_apart():
    Z = np.concatenate([mixture(30, centres=1), 1e3 + mixture(30, centres=1, seed=1)])
    graph = LearnedGraph(4).fit(Z).graph_
    assert graph.n_components == 2
    assert graph.adjacency[:30, 30:].nnz == 0


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("k", [1, 2, 10])
def test_two_and_three_bags(n, k):
    Z = np.array([[0.0], [1.0], [10.0]])[:n]
    learned = LearnedGraph(k, **TIGHT).fit(Z)
    assert learned.converged_
    if n == 2:  # one pair: 2 theta z w - 2 log w + w^2 has its minimum where theta z + w = 1 / w
        weight, c = learned.graph_.adjacency[0, 1], learned.theta_ * 1.0
        assert weight == pytest.approx((-c + np.sqrt(c * c + 4)) / 2)


@PROPERTY
@given(seed=st.integers(0, 1000), n=st.integers(2, 5), k=st.integers(1, 6))
def test_few_bags_equal_the_conic_solver(seed, n, k):
    check_against_conic(np.random.default_rng(seed).normal(size=(n, 2)), k)


def test_too_many_duplicates_for_local_scaling_are_told():
    with pytest.raises(
        InvalidGraphError, match="whose k-th neighbour is no duplicate of it, got none; drop duplicates"
    ):
        LearnedGraph(2, local_scaling=True).fit(np.repeat(np.eye(3), 4, axis=0))


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_squares_that_no_number_holds_are_refused(factor):
    with pytest.raises(InvalidGraphError, match="embeddings of ordinary size, got differences of about"):
        LearnedGraph(2).fit(factor * mixture(10))


def test_equal_embeddings_are_refused():
    for options in ({}, {"local_scaling": True}):
        with pytest.raises(InvalidGraphError, match="got distances that are all zero; look at the embeddings"):
            LearnedGraph(2, **options).fit(np.ones((5, 3)))


@pytest.mark.parametrize(
    ("options", "Z", "text"),
    [
        ({"n_neighbors": 0}, np.eye(3), "expected n_neighbors a whole number from 1, got 0"),
        ({"trust": 2.0}, np.eye(3), "expected trust from 0 to 1, got 2.0"),
        ({"trust": 0.5}, np.eye(3), "expected an observed graph to trust, got observed=None"),
        ({"degree_match": "exakt"}, np.eye(3), "got 'exakt'; did you mean 'exact'?"),
        ({"tol": 0}, np.eye(3), "expected tol positive, got 0"),
        ({}, np.eye(3)[:1], "of at least two bags, got shape (1, 3)"),
        ({}, np.ones(3), "expected an array (bags, features)"),
        ({}, np.array([[0.0], [np.nan], [1.0]]), "NaN or infinity in row 1"),
        ({"observed": BagGraph(np.zeros((2, 2)), ["a", "b"])}, np.eye(3), "one over 2 bags"),
    ],
)
def test_errors(options, Z, text):
    with pytest.raises((ParameterError, InvalidGraphError)) as caught:
        LearnedGraph(**options).fit(Z)
    assert text in str(caught.value)


# ---------------------------------------------------------------------- known edges


def test_trust_shrinks_distances_along_known_edges():
    Z = mixture(60)
    far = BagGraph.from_edges([(str(i), str((i + 31) % 60)) for i in range(29)], [str(i) for i in range(60)])
    weight = {t: LearnedGraph(4, observed=far, trust=t).fit(Z).graph_.adjacency[0, 31] for t in (0.0, 0.5, 1.0)}
    assert weight[0.0] == LearnedGraph(4).fit(Z).graph_.adjacency[0, 31]
    assert weight[1.0] > weight[0.5] >= weight[0.0]


def test_trust_equals_solving_with_shrunken_distances():
    Z = mixture(25, d=3)
    known = BagGraph.from_edges([("0", "1"), ("2", "3"), ("0", "24")], [str(i) for i in range(25)])
    learned = LearnedGraph(3, ALL, observed=known, trust=0.7, **TIGHT).fit(Z)
    z = squareform(pdist(Z, "sqeuclidean"))
    z[known.adjacency.toarray() > 0] *= 0.3
    theirs = conic(squareform(z, checks=False), 25, learned.theta_)
    np.testing.assert_allclose(pair_weights(learned.graph_), theirs, atol=1e-5)


# ---------------------------------------------------------------------- again, new bags, samples, many


def test_refit_equals_a_fresh_fit_and_starts_warm():
    Z = mixture(300)
    learned = LearnedGraph(5, tol=1e-5, precision="float64").fit(Z)
    moved = Z + 0.01 * np.random.default_rng(0).normal(size=Z.shape)
    fresh = LearnedGraph(5, tol=1e-5, precision="float64").fit(moved)
    again = learned.refit(moved)
    np.testing.assert_allclose(again.graph_.adjacency.toarray(), fresh.graph_.adjacency.toarray(), atol=2e-2)
    assert again.n_iter_ <= fresh.n_iter_
    with pytest.raises(InvalidGraphError, match="same 300 bags"):
        learned.refit(moved[:10])


@PROPERTY
@given(seed=st.integers(0, 1000))
def test_attachment_ignores_order_and_company(seed):
    learned = LearnedGraph(4).fit(mixture(60))
    new = mixture(12, seed=seed + 1)
    order = np.random.default_rng(seed).permutation(12)
    together = learned.attach(new).toarray()
    np.testing.assert_array_equal(learned.attach(new[order]).toarray(), together[order])
    np.testing.assert_array_equal(np.vstack([learned.attach(row[None]).toarray() for row in new]), together)


def test_an_attached_bag_solves_its_own_equation():
    for scaling in (False, True):
        learned = LearnedGraph(4, ALL, local_scaling=scaling, **TIGHT).fit(mixture(60))
        rows = learned.attach(mixture(5, seed=9))
        assert rows.shape == (5, 60)
        for row in rows.toarray():
            level = 1 / row.sum()
            active = row > 0
            assert active.any()
            terms = 2 * row[active] - learned.dual_[active] - level  # = -c of the active pairs
            assert (terms <= 1e-9).all()
    with pytest.raises(InvalidGraphError, match="shape"):
        learned.attach(np.zeros((2, 3)))
    with pytest.raises(InvalidGraphError, match="NaN"):
        learned.attach(np.full((2, 16), np.nan))


def test_samples_differ_keep_the_degree_and_repeat():
    learned = LearnedGraph(5, random_state=3).fit(mixture(200))
    first, second = learned.sample(2)
    assert first != second
    assert first == learned.sample(1)[0]
    for graph in (first, second):
        assert graph.adjacency.nnz / 200 == pytest.approx(learned.degree_, abs=0.15)
    assert learned.sample(1, noise=0.0)[0].n_edges == pytest.approx(learned.graph_.n_edges, rel=0.02)


@pytest.mark.parametrize("local_scaling", [False, True])
def test_many_graphs_equal_each_alone(local_scaling):
    stack = np.stack([mixture(50, seed=s) * (1 + s) for s in range(6)])
    ks, ratios = [2, 3, 4, 2, 6, 3], [3, 2, 1, 5, 2, 30]
    maker = LearnedGraph(tol=1e-9, precision="float64", local_scaling=local_scaling)
    many = maker.fit_many(stack, n_neighbors=ks, candidate_ratio=ratios)
    assert len(many) == 6
    assert many.converged.all()
    for m in range(6):
        alone = LearnedGraph(ks[m], ratios[m], tol=1e-9, precision="float64", local_scaling=local_scaling).fit(stack[m])
        assert many.theta[m] == pytest.approx(alone.theta_, rel=1e-9)
        np.testing.assert_allclose(many[m].adjacency.toarray(), alone.graph_.adjacency.toarray(), atol=1e-6)
        assert many.degree[m] == pytest.approx(alone.degree_)
    overruled = maker.fit_many(stack, theta=many.theta * 2)
    np.testing.assert_allclose(overruled.theta, many.theta * 2)
    with pytest.raises(ParameterError, match="expected 6 values of n_neighbors, got 2"):
        maker.fit_many(stack, n_neighbors=[1, 2])
    with pytest.raises(ParameterError, match="for many graphs"):
        LearnedGraph(certify="check").fit_many(stack)
    with pytest.raises(ParameterError, match="for many graphs"):
        LearnedGraph(degree_match="exact").fit_many(stack)


def test_the_published_outcome_has_equal_weights_on_the_nearest():
    Z = mixture(30)
    graph = LearnedGraph.as_published(Z, 3, 2)
    z = squareform(pdist(Z, "sqeuclidean")) + np.diag([np.inf] * 30)
    nearest = np.argsort(z, axis=1)[:, :6]
    expected = np.zeros((30, 30))
    np.put_along_axis(expected, nearest, 1, axis=1)
    np.testing.assert_array_equal(graph.adjacency.toarray(), np.maximum(expected, expected.T))


def test_tensors_and_arrays_give_the_same_graph():
    Z = mixture(60).astype(np.float32)
    assert LearnedGraph(4).fit(Z).graph_ == LearnedGraph(4).fit(torch.from_numpy(Z)).graph_


def test_ids_name_the_bags_and_progress_is_told():
    told = []
    names = [f"s{i}" for i in range(10)]
    learned = LearnedGraph(2).fit(mixture(10), ids=names, progress=lambda phase, gap: told.append((phase, gap)))
    assert learned.graph_.ids.tolist() == names
    assert told[0] == ("neighbours", 1.0)
    assert told[-1][0] == "solve"
    assert told[-1][1] <= 1e-4
    assert set(learned.timings_) == {"neighbours", "candidates", "solve", "graph"}


def test_nothing_warns_on_ordinary_data():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LearnedGraph(5).fit(mixture(200))
