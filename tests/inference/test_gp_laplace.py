"""Laplace's approximation against scikit-learn's, against differences, and under the law of hidden labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from baggraph import Bags
from baggraph.errors import InvalidBagsError
from baggraph.inference.gp import Process
from baggraph.inference.gp_bags import Settings, describe
from baggraph.inference.gp_kernels import Linear, Parameter, Stationary
from baggraph.inference.gp_laplace import FittedClasses, FittedSide, LaplaceEvidence, classify, fit_side


def spirals(n: int = 60, classes: int = 2, seed: int = 0) -> Bags:
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % classes
    sizes = rng.integers(2, 6, n)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    angle = 2 * np.pi * codes / classes
    centers = 1.2 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    instances = np.repeat(centers, sizes, axis=0) + rng.normal(size=(sizes.sum(), 2))
    return Bags(instances, offsets, [f"c{code}" for code in codes], ids=range(n))


def problem(n: int = 50, seed: int = 0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, np.where(np.sin(2 * x[:, 0]) + 0.4 * rng.normal(size=n) > 0, 1.0, -1.0), rng.normal(size=(20, 2))


@pytest.mark.parametrize("variance", [0.3, 4.0, 100.0])
def test_same_as_scikit_learn(variance):
    x, sign, new = problem()
    theirs = GaussianProcessClassifier(ConstantKernel(variance) * RBF(0.8), optimizer=None).fit(x, sign)
    process, theta = Process({"x": Stationary("rbf")}, {}), np.array([variance, 0.8])
    value, slopes = LaplaceEvidence(process, {"x": x}, sign).log_likelihood(theta)
    expected, their_slopes = theirs.log_marginal_likelihood(theirs.kernel_.theta, eval_gradient=True)
    assert value == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(slopes, their_slopes, rtol=1e-4, atol=1e-4)
    side = FittedSide(process, theta, {"x": x}, sign, value, value)
    mean, spread = side.predict({"x": new})
    their_mean, their_variance = (
        theirs.latent_mean_and_variance(new) if hasattr(theirs, "latent_mean_and_variance") else (None, None)
    )
    if their_mean is not None:
        np.testing.assert_allclose(mean, their_mean, atol=1e-4)
        np.testing.assert_allclose(spread, their_variance, atol=1e-4)
    posterior = FittedClasses(None, [side], np.array([-1, 1])).posterior({"x": new}, None)  # type: ignore[arg-type]
    np.testing.assert_allclose(posterior.mean, theirs.predict_proba(new), atol=5e-3)


def test_the_search_finds_what_scikit_learn_finds():
    x, sign, _ = problem(80)
    theirs = GaussianProcessClassifier(ConstantKernel(1.0) * RBF(1.0), n_restarts_optimizer=2, random_state=0).fit(
        x, sign
    )
    own = Stationary("rbf", Parameter("variance", 1.0, 1e6), Parameter("length", 1.0, 1e6))
    side = fit_side(Process({"x": own}, {}), {"x": x}, sign)
    assert side.log_likelihood == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-3)


def test_slopes_are_those_of_differences():
    x, sign, _ = problem()
    evidence = LaplaceEvidence(Process({"x": Stationary("matern32"), "line": Linear()}, {}), {"x": x, "line": x}, sign)
    point = np.array([0.4, -0.2, 0.3])
    numeric = [(evidence.loss(point + step)[0] - evidence.loss(point - step)[0]) / 2e-5 for step in 1e-5 * np.eye(3)]
    np.testing.assert_allclose(evidence.loss(point)[1], numeric, atol=1e-4)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.floats(1e-3, 1e5))
def test_the_mode_is_one_at_any_scale(seed, variance):
    x, sign, _ = problem(20, seed)
    side = FittedSide(Process({"x": Stationary("rbf")}, {}), np.array([variance, 0.7]), {"x": x}, sign, 0.0, 0.0)
    mode = side._mode
    np.testing.assert_allclose(mode.dual, mode.residual, atol=1e-4)  # the gradient of the log posterior is zero


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_of_bags_and_hidden_labels(classes):
    bags = spirals(classes=classes)
    names, codes = np.unique(bags.y.astype(str), return_inverse=True)
    visible = np.arange(60) % 5 > 1
    description = describe(bags, Settings(parts=("linear", "rbf")), total=4.0)
    found = []
    for hidden in (0, 1):
        fitted = classify(description, np.where(visible, codes, hidden), visible, names)
        found.append(fitted.posterior(description.rows, bags.ids))
    assert (found[0].draws == found[1].draws).all()
    assert (found[0].prediction == bags.y)[~visible].mean() > 0.8
    assert sum(fitted.shares().values()) == pytest.approx(1.0)
    with pytest.raises(InvalidBagsError, match="none of"):
        classify(description, np.zeros(60), visible, names)
