"""Temperature, noise and conformal prediction against formulas, optimisers and the law that conformal sets must keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize

from baggraph.data.posterior import Posterior
from baggraph.errors import InvalidBagsError, ParameterError
from baggraph.inference.calibration import HOTTEST, Conformal, fit_noise, fit_temperature, temper, with_noise


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def classes(logits) -> Posterior:
    return Posterior(softmax(np.asarray(logits, dtype=float)), classes=range(np.shape(logits)[2]))


LOGITS = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(2, 4)), elements=st.floats(-20, 20)
)

# ---------------------------------------------------------------------- temperature


@given(LOGITS, st.floats(0.1, 10))
@settings(max_examples=40)
def test_tempering_divides_the_logits_of_every_draw(logits, temperature):
    tempered = temper(classes(logits), temperature)
    np.testing.assert_allclose(tempered.draws, softmax(logits / temperature), atol=1e-9)
    np.testing.assert_allclose(temper(tempered, 1 / temperature).draws, classes(logits).draws, atol=1e-6)


def test_tempering_keeps_certainty_and_order():
    post = Posterior([[[1.0, 0.0, 0.0], [0.2, 0.5, 0.3]]], classes=list("abc"))
    for temperature in (0.05, 1.0, 20.0):
        tempered = temper(post, temperature)
        assert tempered.draws[0, 0].tolist() == [1.0, 0.0, 0.0]
        assert tempered.draws[0, 1].argsort().tolist() == [0, 2, 1]
        assert tempered.classes.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(temper(post, 1.0).draws, post.draws)


@pytest.mark.parametrize("truth", [0.5, 1.0, 3.0])
def test_the_temperature_that_made_the_labels_is_found(truth):
    """Labels are drawn from softmax(logits / T), the model says softmax(logits)."""
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=4, size=(1, 20_000, 3))
    y = (rng.random(20_000)[:, None] > softmax(logits[0] / truth).cumsum(axis=1)).sum(axis=1)
    assert fit_temperature(classes(logits), y) == pytest.approx(truth, rel=0.05)


def test_the_temperature_is_the_best_of_a_grid():
    rng = np.random.default_rng(1)
    post, y = classes(rng.normal(scale=3, size=(4, 60, 2))), rng.integers(0, 2, size=60).astype(float)
    y[:5] = np.nan  # not labelled: not looked at

    def loss(temperature):  # 55 labels of two classes: each is 56/57 of its own class
        right, wrong = (temper(post, temperature).log_density(labels)[5:] for labels in (y, 1 - y))
        return -(56 / 57 * right + 1 / 57 * wrong).mean()

    assert loss(fit_temperature(post, y)) <= min(map(loss, np.geomspace(0.05, 20, 300))) + 1e-6


def test_a_few_labels_never_make_certain():
    """Five labels, all right: the share of right ones is believed to be 6/7, and not 1."""
    post = classes([[[1.0, 0.0]] * 5])
    assert temper(post, fit_temperature(post, [0] * 5)).mean[0, 0] == pytest.approx(6 / 7, abs=1e-4)
    assert fit_temperature(post, [1] * 5) == pytest.approx(HOTTEST, rel=1e-3)  # all wrong: as unsure as may be
    with pytest.raises(InvalidBagsError, match="calibration: expected labelled bags, got none; hold some out"):
        fit_temperature(post, [None] * 5)


# ---------------------------------------------------------------------- noise


def test_noise_minimises_the_negative_log_likelihood():
    rng = np.random.default_rng(2)
    means, y = rng.normal(size=(1, 40, 2)), rng.normal(size=(40, 2))
    y[3] = np.nan
    found = fit_noise(Posterior(means), y)

    def loss(log_noise):
        return -np.nanmean(with_noise(Posterior(means), np.exp(log_noise)).log_density(y))

    np.testing.assert_allclose(found, np.exp(minimize(loss, [0.0, 0.0], tol=1e-10).x), rtol=1e-4)


def test_a_factor_on_the_noise_of_every_bag_does_too():
    rng = np.random.default_rng(3)
    means, variance, y = rng.normal(size=(1, 40, 1)), rng.random((1, 40, 1)) + 0.1, rng.normal(size=40)
    post = Posterior(means, variance=variance)
    (factor,) = fit_noise(post, y)

    def loss(log_factor):
        return -with_noise(post, np.exp(log_factor)).log_density(y).mean()

    assert factor == pytest.approx(float(np.exp(minimize(loss, [0.0], tol=1e-10).x[0])), rel=1e-4)
    np.testing.assert_allclose(with_noise(post, np.array([factor])).variance, variance * factor)


def test_noise_is_never_zero():
    exact = Posterior(np.arange(4.0).reshape(1, 4, 1))
    assert 0 < fit_noise(exact, np.arange(4.0))[0] < 1e-5
    constant = Posterior(np.ones((1, 4, 1)))
    assert np.isfinite(with_noise(constant, fit_noise(constant, np.ones(4))).variance).all()
    with pytest.raises(InvalidBagsError, match="calibration: expected labelled bags, got none; hold some out"):
        fit_noise(exact, np.full(4, np.nan))


# ---------------------------------------------------------------------- conformal


@given(hnp.arrays(np.float64, st.integers(2, 40), elements=st.floats(0, 1), unique=True), st.floats(0.05, 0.95))
@settings(max_examples=60)
def test_of_n_plus_one_exchangeable_scores_as_many_are_covered_as_promised(scores, coverage):
    """Each in turn is the new one: exactly ceil(coverage (n + 1)) are covered, or all where that is more than n."""
    n = len(scores) - 1
    covered = sum(score <= Conformal._threshold(np.delete(scores, i), coverage) for i, score in enumerate(scores))
    promised = int(np.ceil(coverage * (n + 1) - 1e-9))
    assert covered == (n + 1 if promised > n else promised)


def test_sets_by_hand():
    held = Posterior([[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]], classes=["no", "yes"])
    conformal = Conformal.of(held, ["no", "no", "yes", "yes"])
    np.testing.assert_allclose(conformal.scores, [0.1, 0.2, 0.3, 0.6])
    new = Posterior([[[0.75, 0.25], [0.5, 0.5], [0.05, 0.95]]], classes=["no", "yes"])
    assert conformal.sets(new, 0.6).tolist() == [[True, False], [False, False], [False, True]]  # third of four: 0.3
    assert conformal.sets(new, 0.8).tolist() == [[True, False], [True, True], [False, True]]  # fourth: 0.6
    assert conformal.sets(new, 0.81).all()  # beyond what four bags can promise
    by_class = conformal.sets(new, 0.5, conditional=True)  # second of two in each class: 0.2 and 0.6
    assert by_class.tolist() == [[False, False], [False, True], [False, True]]
    assert conformal.sets(new, 0.9, conditional=True).all()


def test_intervals_by_hand():
    held = Posterior(np.zeros((1, 4, 2)), variance=np.full((1, 4, 2), 4.0))
    conformal = Conformal.of(held, [[1.0, 10.0], [-2.0, 0.0], [3.0, 4.0], [np.nan, 1.0]])
    np.testing.assert_allclose(np.sort(conformal.scores, axis=0), [[0.5, 0.0], [1.0, 2.0], [1.5, 5.0]])
    new = Posterior([[[1.0, 0.0]]], variance=[[[1.0, 9.0]]])
    np.testing.assert_allclose(conformal.intervals(new, 0.5), [[[0.0, 2.0], [-6.0, 6.0]]])  # second of three
    assert conformal.intervals(new, 0.9)[0].tolist() == [[-np.inf, np.inf]] * 2
    bare = Conformal.of(Posterior(np.zeros((1, 3, 1))), [1.0, -2.0, 3.0])  # without noise, in units of the target
    np.testing.assert_allclose(bare.intervals(Posterior([[[10.0]]]), 0.75), [[[7.0, 13.0]]])


def test_bags_without_labels_are_not_looked_at():
    held = classes(np.random.default_rng(4).normal(size=(2, 6, 2)))
    some = Conformal.of(held, [0, 1, None, 1, None, 0])
    other = Conformal.of(held.take([0, 1, 3, 5]), [0, 1, 1, 0])
    np.testing.assert_array_equal(some.scores, other.scores)
    np.testing.assert_array_equal(some.codes, other.codes)


def test_what_cannot_be_asked():
    conformal = Conformal(np.array([0.1, 0.2]), np.array([0, 1]))
    post = Posterior([[[0.5, 0.5]]], classes=[0, 1])
    for coverage in (0, 1, 1.5, -0.1, float("nan")):
        with pytest.raises(ParameterError, match="expected a coverage between 0 and 1, got coverage="):
            conformal.sets(post, coverage)
    with pytest.raises(InvalidBagsError, match="expected real targets, got classes; use sets"):
        conformal.intervals(post, 0.9)
    with pytest.raises(InvalidBagsError, match="expected classes, got real targets; use intervals"):
        conformal.sets(Posterior([[[0.5]]]), 0.9)
