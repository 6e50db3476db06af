"""EM-DD recovers what was planted, and descends by the gradient that it claims."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import baggraph as bg
from baggraph.baselines import EMDD, em_dd
from baggraph.baselines._batched import descend


def planted(seed=0, n_bags=60, d=4):
    """Positive bags have one instance near (1, -1) in the first two features; the others say nothing."""
    random = np.random.default_rng(seed)
    y = np.arange(n_bags) % 2
    arrays = [random.uniform(-3, 3, size=(6, d)) for _ in y]
    for bag, label in zip(arrays, y, strict=True):
        near = np.abs(bag[:, :2] - [1.0, -1.0]).max(axis=1) < 0.8
        bag[near, :2] += 2.0
        if label:
            bag[0, :2] = np.array([1.0, -1.0]) + random.normal(scale=0.1, size=2)
    return bg.Bags.from_list(arrays, y=y)


def test_a_planted_concept_is_recovered():
    model = EMDD(scaling="none", n_starts=60, n_kept=1, max_iter=20, steps=50).fit(planted())
    np.testing.assert_allclose(model.concepts_[0][0, :2], [1.0, -1.0], atol=0.1)
    scales = np.abs(model.scales_[0][0])
    assert scales[:2].min() > 4 * scales[2:].max()  # features that say nothing are switched off
    test = planted(seed=1)
    assert model.score(test, test.y) >= 0.95


def test_several_concepts_do_no_worse_here():
    test = planted(seed=1)
    assert EMDD(scaling="none", n_starts=60, n_kept=3, steps=50).fit(planted()).score(test, test.y) >= 0.95


def test_score_is_the_mean_log_probability_less_the_threshold():
    bags = planted()
    model = EMDD(scaling="none", n_kept=3).fit(bags)
    concepts, scales = model.concepts_[0], model.scales_[0]
    logs = [
        np.mean([max(-((s * (a - t)) ** 2).sum() for a in np.asarray(bag)) for t, s in zip(concepts, scales, strict=True)])
        for bag in bags
    ]  # fmt: skip
    np.testing.assert_allclose(model.decision_function(bags), np.array(logs) - model.models_[0].threshold, atol=1e-9)


def test_losses_are_those_of_the_likelihood():
    bags = planted()
    model = EMDD(scaling="none", max_iter=30, steps=100, n_kept=5).fit(bags)
    for t, s, loss in zip(model.concepts_[0], model.scales_[0], model.models_[0].losses, strict=True):
        distances = np.array([min(((s * (a - t)) ** 2).sum() for a in np.asarray(bag)) for bag in bags])
        terms = np.where(bags.y == 1, distances, -np.log(-np.expm1(-distances - em_dd.SMALLEST)))
        assert loss == pytest.approx(terms.sum(), abs=1e-3)
    assert (np.diff(model.models_[0].losses) >= 0).all()


def test_gradient_is_the_derivative(monkeypatch):
    random = np.random.default_rng(0)
    chosen, sign = random.normal(size=(2, 5, 3)), np.array([1.0, -1, 1, -1, -1])
    seen = []
    monkeypatch.setattr(em_dd, "descend", lambda function, start, steps: seen.append(function) or (start, start[:, 0]))
    em_dd._maximise(chosen, sign, random.normal(size=(2, 3)), random.normal(size=(2, 3)), 1)
    point = random.normal(size=(2, 6))
    gradients = seen[0](point)[1]
    for row in range(2):

        def loss(values, row=row):
            moved = point.copy()
            moved[row] = values
            return seen[0](moved)[0][row]

        np.testing.assert_allclose(gradients[row], approx_fprime(point[row], loss, 1e-7), rtol=1e-4, atol=1e-5)


def test_starts_do_not_disturb_each_other(monkeypatch):
    bags = planted()
    together = EMDD(n_starts=12, n_kept=12).fit(bags)
    monkeypatch.setattr(em_dd, "MEMORY", 1)  # one at a time
    alone = EMDD(n_starts=12, n_kept=12).fit(bags)
    np.testing.assert_allclose(together.models_[0].losses[:3], alone.models_[0].losses[:3], rtol=1e-4)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_descent_never_rises_and_arrives(scale):
    widths = scale * np.array([[1.0, 10.0], [3.0, 0.5]])
    losses = []

    def bowls(x):
        losses.append((widths * x**2).sum(axis=1))
        return losses[-1], 2 * widths * x

    points, values = descend(bowls, np.ones((2, 2)), steps=200, tolerance=1e-12)
    assert np.abs(points).max() < 1e-3
    assert (values <= losses[0]).all()
