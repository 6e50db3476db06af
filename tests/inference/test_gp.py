"""Gaussian processes over bags against scikit-learn's, against differences, and under the law of hidden labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import lognorm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from baggraph import BagGraph, Bags
from baggraph.errors import InvalidBagsError, ParameterError
from baggraph.inference.gp import Evidence, FittedProcess, Process, fit_process
from baggraph.inference.gp_bags import PARTS, Settings, describe
from baggraph.inference.gp_graph import attached_rows, laplacian, spectrum
from baggraph.inference.gp_kernels import SHAPES, SPECTRA, Constant, Linear, Parameter, Spectral, Stationary
from baggraph.inference.gp_regression import regress
from baggraph.inference.gp_scale import Scale, fitting_links, to_posterior

NU = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}


def ring(n: int) -> BagGraph:
    return BagGraph.from_edges([(i, (i + 1) % n) for i in range(n)], ids=range(n))


def places(n: int = 24, seed: int = 0) -> Bags:
    """Bags along a ring whose target depends on where they lie and on what is in them."""
    rng = np.random.default_rng(seed)
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    content = rng.normal(size=n)
    sizes = rng.integers(2, 9, n)
    instances = np.repeat(content, sizes)[:, None] + 0.1 * rng.normal(size=(sizes.sum(), 1))
    y = np.exp(0.5 * np.sin(angle) + 0.2 * content + 0.02 * rng.normal(size=n))
    where = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Bags(np.hstack([instances, instances**2]), offsets, y, ids=range(n), coords=where, graph=ring(n))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_targets", [1, 2])
def test_same_as_scikit_learn(shape, n_targets):
    rng = np.random.default_rng(1)
    x, new = rng.normal(size=(40, 3)), rng.normal(size=(15, 3))
    y = np.stack([np.sin(x[:, 0]) + 0.3 * x[:, 1], np.cos(x[:, 2])], axis=1)[:, :n_targets]
    y = y + 0.1 * rng.normal(size=y.shape)
    base = RBF(1.3) if shape == "rbf" else Matern(1.3, nu=NU[shape])
    kernel = ConstantKernel(0.7) * base + ConstantKernel(0.4) * DotProduct(0.0, "fixed") + WhiteKernel(0.05)
    theirs = GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-300).fit(x, y)
    process = Process({"x": Stationary(shape), "line": Linear()}, {"noise": Parameter("noise", 0.05)})
    rows = {"x": x, "line": x, "noise": np.ones(40)}
    theta = np.array([0.7, 1.3, 0.4, 0.05])
    value, slopes = Evidence(process, rows, y).log_likelihood(theta)
    expected, their_slopes = theirs.log_marginal_likelihood(theirs.kernel_.theta, eval_gradient=True)
    assert value == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(slopes, their_slopes, rtol=1e-6, atol=1e-5)
    ours = FittedProcess(process, theta, rows, y, value, value)
    mean, signal, noise = ours.predict({"x": new, "line": new, "noise": np.ones(15)})
    their_mean, their_std = theirs.predict(new, return_std=True)
    np.testing.assert_allclose(mean, their_mean.reshape(15, -1), atol=1e-6)
    np.testing.assert_allclose(signal + noise, their_std.reshape(15, -1)[:, 0] ** 2, atol=1e-6)
    parts = ours.parts({"x": new, "line": new})
    np.testing.assert_allclose(parts["x"] + parts["line"], mean, atol=1e-10)


def test_leaving_one_out_in_closed_form():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 2)), rng.normal(size=(12, 1))
    process, theta = Process({"x": Stationary("rbf")}, {"noise": Parameter("noise", 0.1)}), np.array([0.9, 1.1, 0.2])
    rows = {"x": x, "noise": 0.5 + rng.random(12)}
    means, variances = FittedProcess(process, theta, rows, y, 0.0, 0.0).leave_one_out()
    for i in range(12):
        rest = {name: np.delete(values, i, axis=0) for name, values in rows.items()}
        alone = FittedProcess(process, theta, rest, np.delete(y, i, axis=0), 0.0, 0.0)
        mean, signal, noise = alone.predict({name: values[[i]] for name, values in rows.items()})
        np.testing.assert_allclose((means[i, 0], variances[i]), (mean[0, 0], signal[0] + noise[0]), atol=1e-8)


def test_the_search_finds_what_scikit_learn_finds():
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 4, size=(50, 1))
    y = np.sin(2 * x) + 0.2 * rng.normal(size=x.shape)
    kernel = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1)
    theirs = GaussianProcessRegressor(kernel, alpha=1e-300, n_restarts_optimizer=3, random_state=0).fit(x, y)
    flat = {"spread": 1e6}
    own = Stationary("rbf", Parameter("variance", 1.0, **flat), Parameter("length", 1.0, **flat))
    process = Process({"x": own}, {"noise": Parameter("noise", 0.1, **flat)})
    fitted = fit_process(process, {"x": x, "noise": np.ones(50)}, y)
    np.testing.assert_allclose(np.log(fitted.theta), theirs.kernel_.theta, atol=1e-2)
    assert fitted.log_likelihood == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", SPECTRA)
def test_slopes_are_those_of_differences(shape, kind):
    rng = np.random.default_rng(0)
    values, vectors = spectrum(ring(20))
    x = rng.normal(size=(20, 3))
    kernels = {"level": Constant(), "x": Stationary(shape), "line": Linear(), "graph": Spectral(values, kind, 2.0)}
    process = Process(kernels, {"noise": Parameter("noise", 0.1), "more": Parameter("noise", 0.2)})
    rows = {"level": x, "x": x, "line": x, "graph": vectors, "noise": np.ones(20), "more": rng.random(20)}
    evidence = Evidence(process, rows, rng.normal(size=(20, 2)))
    point = evidence.center[evidence.free] + 0.1
    slopes = evidence.loss(point)[1]
    steps = 1e-6 * np.eye(len(point))
    numeric = [(evidence.loss(point + step)[0] - evidence.loss(point - step)[0]) / 2e-6 for step in steps]
    np.testing.assert_allclose(slopes, numeric, atol=1e-5)


def test_graph_matern_is_the_inverse_of_a_sparse_precision():
    graph = BagGraph.from_edges([(0, 1, 2.0), (1, 2), (2, 3, 0.5), (0, 3)], ids=range(6))
    values, vectors = spectrum(graph)
    for order in (1.0, 2.0):
        kernel = Spectral(values, "matern", order)
        found = kernel.value(kernel.pairs(vectors, vectors), np.array([1.7, 0.3]))
        precision = np.linalg.matrix_power(np.eye(6) + laplacian(graph).toarray() / 0.3, int(order))
        expected = np.linalg.inv(precision)
        np.testing.assert_allclose(found, 1.7 * expected * 6 / np.trace(expected), atol=1e-12)
        np.testing.assert_allclose(np.diag(found), kernel.diagonal(vectors, np.array([1.7, 0.3])), atol=1e-12)
    assert np.diag(found).mean() == pytest.approx(1.7)


def test_new_bags_hear_the_mean_of_their_neighbours():
    values, vectors = spectrum(ring(8))
    kernel = Spectral(values)
    theta = np.array([1.0, 0.2])
    rows = attached_rows(vectors, [[1.0, 3.0, 0, 0, 0, 0, 0, 0], [0] * 8])
    found = kernel.value(kernel.pairs(rows, vectors), theta)
    among = kernel.value(kernel.pairs(vectors, vectors), theta)
    np.testing.assert_allclose(found[0], (among[0] + 3 * among[1]) / 4, atol=1e-12)
    assert not found[1].any()
    own = kernel.diagonal(rows, theta)
    assert own[1] == theta[0]
    assert own[0] > kernel.value(kernel.pairs(rows, rows), theta)[0, 0]


# ---------------------------------------------------------------------- scales


@settings(max_examples=15, deadline=None)
@given(st.floats(-2, 2), st.floats(0.01, 0.3), st.floats(0.001, 0.1))
def test_moments_through_the_logarithm(mean, signal, noise):
    scale = Scale("log", np.zeros(1), np.ones(1))
    found = to_posterior(np.array([[mean]]), np.array([signal]), np.array([noise]), scale, None)
    law = lognorm(np.sqrt(signal + noise), scale=np.exp(mean))
    assert found.mean[0, 0] == pytest.approx(law.mean(), rel=5e-3)
    assert found.std[0, 0] == pytest.approx(law.std(), rel=6e-2)
    # A mixture of normal laws has no skew of its own within a draw: 0.072 at the widest noise, by a grid.
    assert found.log_density([law.median()])[0] == pytest.approx(law.logpdf(law.median()), abs=0.08)


def test_moments_without_a_link_are_exact():
    scale = Scale("identity", np.array([3.0, 1.0]), np.array([2.0, 0.5]))
    found = to_posterior(np.array([[0.5, -1.0]]), np.array([0.3]), np.array([0.2]), scale, ["a"])
    np.testing.assert_allclose(found.mean, [[4.0, 0.5]], atol=1e-12)
    np.testing.assert_allclose(found.std, np.sqrt(0.5) * np.array([[2.0, 0.5]]), atol=1e-12)


@pytest.mark.parametrize("link", ["identity", "log", "logit"])
def test_the_jacobian_makes_densities_of_targets(link):
    targets = np.array([[0.2], [0.4], [0.7]])
    scale = Scale.of(link, targets)
    step = 1e-6
    numeric = (scale.forward(targets + step) - scale.forward(targets - step)) / (2 * step)
    assert scale.log_jacobian(targets) == pytest.approx(float(np.log(numeric).sum()), abs=1e-6)


def test_the_link_is_chosen_by_evidence():
    rng = np.random.default_rng(0)
    bags = places(40)
    description = describe(bags, Settings(parts=("position", "linear")))
    heavy = np.exp(3 * rng.normal(size=(40, 1)))
    assert regress(description, heavy, np.ones(40)).scale.link == "log"
    assert regress(description, heavy - 5, np.ones(40)).scale.link == "identity"
    assert fitting_links("auto", heavy) == ("identity", "log")
    with pytest.raises(InvalidBagsError, match="targets above 0"):
        regress(description, heavy - 5, np.ones(40), link="log")
    with pytest.raises(ParameterError, match="did you mean 'log'"):
        regress(description, heavy, np.ones(40), link="lag")


# ---------------------------------------------------------------------- bags


def test_hidden_labels_change_nothing():
    bags = places()
    visible = np.arange(24) % 3 > 0
    description = describe(bags, Settings())
    found = []
    for hidden in (np.nan, 1e9):
        y = np.where(visible, bags.y, hidden)[:, None]
        fitted = regress(description, y, visible)
        found.append(fitted.posterior(description.rows, bags.ids))
    assert (found[0].draws == found[1].draws).all()
    assert (found[0].variance == found[1].variance).all()


def test_it_learns_from_position_and_content():
    bags = places(60)
    visible = np.arange(60) % 2 > 0
    description = describe(bags, Settings(parts=("position", "graph", "linear")))
    fitted = regress(description, bags.y[:, None], visible)
    mean = fitted.posterior(description.rows, bags.ids).mean[:, 0]
    error = np.abs(mean - bags.y)[~visible].mean()
    assert error < 0.2 * np.abs(bags.y - bags.y[visible].mean())[~visible].mean()
    shares = fitted.shares()
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["noise"] < 0.1
    assert shares["linear"] > 0.02


def test_new_bags_are_described_as_if_they_had_been_there():
    bags = places()
    parts = tuple(name for name in PARTS if name not in ("graph", "encoder"))
    description = describe(bags, Settings(parts=parts))
    again = description.of_new(bags.take([3, 5]))
    for name, rows in description.rows.items():
        np.testing.assert_allclose(again[name], rows[[3, 5]], atol=1e-12)
    silent = describe(bags, Settings(parts=("graph",))).of_new(bags.take([1]))
    assert not silent["graph"].any()


def test_views_are_parts_of_their_own():
    bags, others = places(), places(seed=1)
    description = describe(bags, Settings(parts=("position", "linear")), views={"shops": others})
    assert description.parts == ["position", "linear", "linear of shops"]
    alone = describe(others, Settings(parts=("linear",)))
    np.testing.assert_array_equal(description.rows["linear of shops"], alone.rows["linear"])
    with pytest.raises(InvalidBagsError, match="view 'shops'"):
        describe(bags, Settings(), views={"shops": others.take([1, 0])})


def test_weights_and_blocks_of_instances():
    bags = places()
    weights = np.arange(bags.n_instances, dtype=np.float64)
    weighted = bags.replace(instance_info={"people": weights})
    rows = describe(weighted, Settings(parts=("rbf",), weights="people")).rows["rbf"]
    means = np.stack(
        [
            np.average(bag.instances, axis=0, weights=w)
            for bag, w in zip(bags, np.split(weights, bags.offsets[1:-1]), strict=True)
        ]
    )
    np.testing.assert_allclose(rows, (means - means.mean(0)) / means.std(0), atol=1e-10)
    with pytest.raises(InvalidBagsError, match="did you mean 'people'"):
        describe(weighted, Settings(parts=("linear",), weights="peeple"))


@pytest.mark.parametrize("part", ["position", "graph", "encoder"])
def test_what_is_missing_is_named(part):
    bags = Bags(np.zeros((3, 1)), [0, 1, 2, 3], [1.0, 2.0, 3.0])
    with pytest.raises(InvalidBagsError, match="expected"):
        describe(bags, Settings(parts=(part,)))
    with pytest.raises(ParameterError, match="did you mean"):
        Settings(parts=(part + "x",))
