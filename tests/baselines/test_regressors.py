"""Regressors against closed forms; thresholds against all that there are; links there and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel

import baggraph as bg
from baggraph.baselines import DistributionRegression, MeanRegressor, OneNumberRegressor, SummaryRidge
from baggraph.baselines._calibration import fit_sigmoid
from baggraph.baselines._regressor import linked, unlinked
from baggraph.baselines._stump import best_threshold


def some_bags(n_bags=20, d=3, seed=0):
    random = np.random.default_rng(seed)
    arrays = [random.normal(size=(random.integers(1, 7), d)) + b / n_bags for b in range(n_bags)]
    return bg.Bags.from_list(arrays, y=random.random(n_bags))


def test_products_of_mean_embeddings_are_means_of_the_kernel():
    bags = some_bags()
    model = DistributionRegression(n_components=20_000, gamma=0.2, scaling="none").fit(bags)
    embedding = model._embedding(bags)
    expected = [[rbf_kernel(np.asarray(a), np.asarray(b), gamma=0.2).mean() for b in bags] for a in bags]
    np.testing.assert_allclose(embedding @ embedding.T, expected, atol=0.03)


@pytest.mark.parametrize("method", [DistributionRegression(n_components=30), SummaryRidge()])
def test_the_penalty_is_that_of_the_least_leave_one_out_error(method):
    """Every bag is left out for every penalty, with vectors as the method has them."""
    bags = some_bags()
    model = method.fit(bags)
    vectors = (
        model._embedding(bags)
        if hasattr(model, "_embedding")
        else model.scaler_.transform(model._summaries(bags)).instances
    )
    errors = {}
    for alpha in model.alphas:
        left = [np.arange(20) != b for b in range(20)]
        guesses = [Ridge(alpha).fit(vectors[k], bags.y[k]).predict(vectors[~k])[0] for k in left]
        errors[alpha] = np.mean((np.array(guesses) - bags.y) ** 2)
    assert errors[model.alpha_] == pytest.approx(min(errors.values()), rel=1e-6)
    np.testing.assert_allclose(model.predict(bags), Ridge(model.alpha_).fit(vectors, bags.y).predict(vectors))


def test_size_is_regressed_on_its_logarithm():
    bags = some_bags()
    slope, offset = np.polyfit(np.log1p(bags.sizes), bags.y, 1)
    found = OneNumberRegressor(number="size").fit(bags).predict(bags)
    np.testing.assert_allclose(found, slope * np.log1p(bags.sizes) + offset)


@pytest.mark.parametrize(("link", "mean"), [("identity", 0.34), ("log", 0.08 ** (1 / 3)), ("logit", None)])
def test_means_on_the_scale_of_a_link(link, mean):
    y = (
        np.array([0.2, 0.5, 0.8])
        if link == "logit"
        else np.array([0.02, 0.5, 8.0])
        if link == "log"
        else [0.2, 0.3, 0.52]
    )
    mean = 0.5 if mean is None else mean
    bags = bg.Bags(np.zeros((3, 1)), range(4), y)
    assert MeanRegressor(link=link).fit(bags).predict(bags) == pytest.approx(mean)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(1e-6, 1 - 1e-6), min_size=1), st.sampled_from(["identity", "log", "logit"]))
def test_links_go_there_and_back(values, link):
    targets = np.array(values)[:, None]
    np.testing.assert_allclose(unlinked(linked(targets, link, "test"), link), targets, rtol=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=1, max_size=12))
def test_no_threshold_errs_less(points):
    values = np.array([value for value, _ in points], dtype=float)
    sign = np.where([positive for _, positive in points], 1.0, -1.0)
    threshold, errors = best_threshold(values, sign)
    assert errors == ((values > threshold) != (sign > 0)).sum()
    assert errors == min(((values > t) != (sign > 0)).sum() for t in np.arange(-5, 5.5, 0.5))


def test_sigmoids_are_those_of_logistic_regression():
    """With as many of both signs, the targets of Platt shrink towards one half as a few invented bags would."""
    random = np.random.default_rng(0)
    sign = np.repeat([-1.0, 1.0], 40)
    scores = 3 * sign + random.normal(scale=4, size=80) + 1.0
    slope, offset = fit_sigmoid(scores, sign)
    target = np.where(sign > 0, 41 / 42, 1 / 42)
    chances = 1 / (1 + np.exp(-(slope * scores + offset)))
    assert (chances - target).sum() == pytest.approx(0.0, abs=1e-3)  # the conditions of a maximum
    assert ((chances - target) * scores).sum() == pytest.approx(0.0, abs=1e-2)
    assert fit_sigmoid(-scores, sign)[0] == 0.0  # probabilities never order bags against their scores
