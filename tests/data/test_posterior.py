"""Posteriors against sums done by hand, against SciPy's laws, and at their edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import integrate, stats

from baggraph.data.posterior import LEAST_PROBABILITY, Posterior
from baggraph.errors import BagError, InvalidBagsError, ParameterError

FINITE = st.floats(-1e3, 1e3)


@st.composite
def shares(draw):
    """Draws (S, B, C) of class probabilities, zeros among them."""
    shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(2, 4)))
    weights = draw(hnp.arrays(np.float64, shape, elements=st.floats(0, 1)))
    weights[..., 0] += weights.sum(axis=2) == 0
    return weights / weights.sum(axis=2, keepdims=True)


@st.composite
def targets(draw, noise=True):
    shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3)))
    means = draw(hnp.arrays(np.float64, shape, elements=FINITE))
    return means, draw(hnp.arrays(np.float64, shape, elements=st.floats(1e-3, 1e3))) if noise else None


# ---------------------------------------------------------------------- laws


@given(shares())
@settings(max_examples=40)
def test_classes_are_averages_over_draws(draws):
    post = Posterior(draws, classes=range(draws.shape[2]))
    np.testing.assert_allclose(post.mean.sum(axis=1), 1)
    np.testing.assert_allclose(post.mean, sum(draws) / len(draws))
    np.testing.assert_allclose(
        post.epistemic + post.aleatoric, post.mean * (1 - post.mean), atol=1e-12
    )  # law of total variance
    np.testing.assert_allclose(post.std**2, post.epistemic, atol=1e-12)
    assert (post.prediction == post.mean.argmax(axis=1)).all()


@given(shares())
@settings(max_examples=40)
def test_information_lies_between_zero_and_entropy(draws):
    post = Posterior(draws, classes=range(draws.shape[2]))
    assert (post.mutual_information >= 0).all()
    assert (post.mutual_information <= post.entropy + 1e-12).all()
    assert (post.entropy <= np.log(draws.shape[2]) + 1e-12).all()
    np.testing.assert_allclose(post.entropy, [stats.entropy(row) for row in post.mean], atol=1e-12)
    same = Posterior(np.repeat(draws[:1], 3, axis=0), classes=range(draws.shape[2]))
    np.testing.assert_allclose(same.mutual_information, 0, atol=1e-12)  # draws that agree tell nothing


@given(targets())
@settings(max_examples=40)
def test_targets_have_the_moments_of_their_mixture(made):
    means, variance = made
    post = Posterior(means, variance=variance)
    second = (means**2 + variance).mean(axis=0)
    np.testing.assert_allclose(post.std**2, second - means.mean(axis=0) ** 2, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(post.aleatoric, variance.mean(axis=0))


@given(shares() | targets().map(lambda made: made))
@settings(max_examples=40)
def test_neither_order_of_draws_nor_of_bags_matters(made):
    parts = made if isinstance(made, tuple) else (made, None)
    classes = None if isinstance(made, tuple) else range(made.shape[2])
    ids = [f"b{i}" for i in range(parts[0].shape[1])]
    post = Posterior(parts[0], ids, classes, parts[1])
    turned = Posterior(parts[0][::-1], ids, classes, None if parts[1] is None else parts[1][::-1])
    np.testing.assert_allclose(turned.mean, post.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(turned.entropy, post.entropy, rtol=1e-7, atol=1e-7)
    back = post.take(ids[::-1])
    assert back.ids.tolist() == ids[::-1]
    np.testing.assert_array_equal(back.std, post.std[::-1])
    np.testing.assert_array_equal(post.take(np.arange(len(ids)) == 0).mean, post.mean[:1])


@given(targets(), st.lists(st.floats(0.001, 0.999), min_size=1, max_size=4))
@settings(max_examples=30)
def test_quantiles_undo_the_distribution(made, levels):
    means, variance = made
    post = Posterior(means, variance=variance)
    found = post.quantile(levels)
    assert found.shape == (*means.shape[1:], len(levels))
    for place, level in enumerate(levels):
        below = stats.norm.cdf(found[..., place], means, np.sqrt(variance)).mean(axis=0)
        np.testing.assert_allclose(below, level, atol=1e-6)
        np.testing.assert_array_equal(post.quantile(level), found[..., place])


# ---------------------------------------------------------------------- by hand


def test_quantiles_of_one_normal_law_are_those_of_scipy():
    post = Posterior([[[2.0, -1.0]]], variance=[[[9.0, 0.25]]])
    wanted = stats.norm.ppf([[0.05, 0.5, 0.95]] * 2, [[2.0], [-1.0]], [[3.0], [0.5]])
    np.testing.assert_allclose(post.quantile([0.05, 0.5, 0.95])[0], wanted, atol=1e-9)
    assert post.quantile(0).tolist() == [[-np.inf, -np.inf]]
    assert post.quantile(1.0).tolist() == [[np.inf, np.inf]]


def test_quantiles_without_noise_are_those_of_the_draws():
    values = np.random.default_rng(0).normal(size=(9, 4, 2))
    np.testing.assert_allclose(
        Posterior(values).quantile([0.1, 0.7]), np.moveaxis(np.quantile(values, [0.1, 0.7], axis=0), 0, -1)
    )


def test_density_of_a_mixture_integrates_to_one_and_is_that_of_scipy():
    post = Posterior([[[0.0]], [[3.0]]], ids=["a"], variance=[[[1.0]], [[0.25]]])
    area, _ = integrate.quad(lambda y: float(np.exp(post.log_density([y])[0])), -8, 8, points=[0, 3])
    assert area == pytest.approx(1, abs=1e-7)
    wanted = np.log((stats.norm.pdf(1.3, 0, 1) + stats.norm.pdf(1.3, 3, 0.5)) / 2)
    assert post.log_density([1.3])[0] == pytest.approx(wanted)


def test_density_of_several_targets_is_joint_within_a_draw():
    means, variance = np.array([[[0.0, 5.0]], [[1.0, 6.0]]]), np.full((2, 1, 2), 0.5)
    wanted = np.log(np.mean([np.prod(stats.norm.pdf([0.2, 5.5], m[0], 0.5**0.5)) for m in means]))
    assert Posterior(means, variance=variance).log_density([[0.2, 5.5]])[0] == pytest.approx(wanted)


def test_far_labels_have_a_finite_density():
    assert Posterior([[[0.0]]], variance=[[[1.0]]]).log_density([100.0])[0] == pytest.approx(
        -0.5 * (1e4 + np.log(2 * np.pi))
    )


def test_certain_errors_cost_much_and_not_infinity():
    post = Posterior([[[1.0, 0.0]]], classes=["a", "b"])
    assert post.log_density(["b"])[0] == pytest.approx(np.log(LEAST_PROBABILITY))
    assert np.isnan(post.log_density([None])).all()
    assert np.isnan(Posterior([[[1.0]], [[2.0]]], variance=np.ones((2, 1, 1))).log_density([np.nan])).all()


def test_labels_find_their_class_whatever_their_type():
    assert Posterior(np.full((1, 3, 2), 0.5), classes=[0, 1]).codes([1.0, np.nan, False]).tolist() == [1, -1, 0]
    assert Posterior(np.full((1, 2, 2), 0.5), classes=np.array([False, True])).codes([True, False]).tolist() == [1, 0]
    with pytest.raises(InvalidBagsError, match="expected labels among the classes, got 'yess'; did you mean 'yes'"):
        Posterior(np.full((1, 1, 2), 0.5), classes=["no", "yes"]).codes(["yess"])


def test_information_of_targets():
    post = Posterior([[[0.0]], [[2.0]]], variance=np.full((2, 1, 1), 0.5))
    assert post.entropy[0] == pytest.approx(stats.norm(scale=1.5**0.5).entropy())  # 0.5 within, 1 between
    assert post.mutual_information[0] == pytest.approx(0.5 * np.log(1.5 / 0.5))


def test_members_are_pooled():
    parts = [
        Posterior(np.full((2, 3, 2), 0.5), ["a", "b", "c"], [0, 1]),
        Posterior([[[1.0, 0.0]] * 3], ["a", "b", "c"], [0, 1]),
    ]
    assert Posterior.pooled(parts).draws.shape == (3, 3, 2)
    assert Posterior.pooled(parts).mean[0].tolist() == pytest.approx([2 / 3, 1 / 3])
    noisy = Posterior([[[1.0]]], variance=[[[2.0]]])
    assert Posterior.pooled([noisy, noisy]).variance.ravel().tolist() == [2.0, 2.0]
    for other in (parts[0].take([0, 1]), Posterior(np.full((1, 3, 2), 0.5), ["a", "b", "c"], [0, 2]), noisy):
        with pytest.raises(InvalidBagsError, match="expected posteriors of the same bags and targets"):
            Posterior.pooled([parts[0], other])
    with pytest.raises(InvalidBagsError, match="expected posteriors of the same bags and targets"):
        Posterior.pooled([noisy, Posterior([[[1.0]]])])


# ---------------------------------------------------------------------- showing


def test_frame_of_targets():
    post = Posterior([[[1.0, 10.0]]], ids=["a"], variance=[[[4.0, 1.0]]])
    table = post.frame(coverage=0.95)
    assert table.columns.tolist() == [
        "prediction_0",
        "std_0",
        "lower_0",
        "upper_0",
        "prediction_1",
        "std_1",
        "lower_1",
        "upper_1",
    ]
    assert table.loc["a", ["lower_0", "upper_0"]].tolist() == pytest.approx([1 - 3.92, 1 + 3.92], abs=1e-3)
    assert Posterior([[[1.0]]], variance=[[[4.0]]]).frame().columns.tolist() == ["prediction", "std", "lower", "upper"]


def test_repr():
    assert repr(Posterior(np.full((2, 3, 7), 1 / 7), classes=range(7))).endswith("classes 0, 1, 2, 3, 4, 5 and 1 more")
    assert repr(Posterior([[[1.0]]], variance=[[[1.0]]])) == "Posterior: 1 bag, 1 draw, 1 target with noise"


def test_nothing_can_be_changed():
    given_draws = np.full((1, 2, 2), 0.5)
    post = Posterior(given_draws, classes=[0, 1])
    given_draws[:] = 7
    assert post.mean.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    for values in (post.draws, post.mean, post.entropy, post.std):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 0


# ---------------------------------------------------------------------- edges


@pytest.mark.parametrize(
    ("given_parts", "message"),
    [
        ({"draws": [[0.5, 0.5]]}, r"expected draws of shape \(draws, bags, classes or targets\), got shape \(1, 2\)"),
        ({"draws": np.zeros((0, 2, 1))}, "expected draws of shape"),
        ({"draws": [[[np.nan]]]}, r"expected finite draws, got NaN or infinity \(bag '0'\); look at the training losses"),
        ({"draws": [[[0.5, 0.4]]], "classes": [0, 1]}, r"expected probabilities that sum to one, got \[0.5, 0.4\] \(bag '0'\)"),
        ({"draws": [[[1.5, -0.5]]], "classes": [0, 1]}, "expected probabilities that sum to one"),
        ({"draws": [[[0.5, 0.5]]], "classes": [0, 1, 2]}, r"expected a class a column \(2\), got shape \(3,\)"),
        ({"draws": [[[0.5, 0.5]]], "classes": [0, 1], "variance": [[[1, 1]]]}, "expected no noise variance beside classes"),
        ({"draws": [[[0.5]]], "variance": [[[0.0]]]}, "expected variances above zero, got 0"),
        ({"draws": [[[0.5]]], "variance": [[[1.0, 1.0]]]}, r"expected variances of the shape of the draws \(1, 1, 1\)"),
        ({"draws": [[[0.5]]], "variance": [[[np.inf]]]}, "expected finite variances"),
        ({"draws": [[[0.5]]], "ids": ["a", "b"]}, "ids|id"),
    ],
)  # fmt: skip
def test_what_is_no_posterior_is_refused(given_parts, message):
    with pytest.raises(BagError, match=message):
        Posterior(**given_parts)


def test_questions_without_an_answer():
    bare = Posterior([[[1.0]], [[2.0]]])
    for ask in (lambda: bare.entropy, lambda: bare.mutual_information, lambda: bare.log_density([1.0])):
        with pytest.raises(ParameterError, match=r"expected a noise variance for .*, got none"):
            ask()
    for q in (1.5, [-0.1], [[0.5]], float("nan")):
        with pytest.raises(ParameterError, match="expected q from 0 to 1"):
            bare.quantile(q)
    with pytest.raises(InvalidBagsError, match="expected 1 targets a bag, got 2"):
        Posterior([[[1.0]]], variance=[[[1.0]]]).log_density([[1.0, 2.0]])
