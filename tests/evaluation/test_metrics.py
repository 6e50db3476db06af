"""Scores, held against scikit-learn and against cases worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as oracle

from baggraph.data.posterior import Posterior
from baggraph.errors import InvalidBagsError, ParameterError
from baggraph.evaluation import metrics as own
from baggraph.evaluation.metrics import METRICS, metrics_for


@st.composite
def believed_classes(draw, n_classes=None):
    """Labels among the classes, and a posterior of a few draws; ties happen."""
    count = draw(st.integers(2, 12))
    classes = n_classes or draw(st.integers(2, 4))
    y = np.array(draw(st.lists(st.integers(0, classes - 1), min_size=count, max_size=count)))
    weights = draw(
        st.lists(st.lists(st.integers(1, 5), min_size=classes, max_size=classes), min_size=count, max_size=count)
    )
    p = np.array(weights) / np.sum(weights, axis=1, keepdims=True)
    return y, Posterior(p[None], classes=np.arange(classes))


@st.composite
def believed_targets(draw):
    count, targets = draw(st.integers(2, 9)), draw(st.integers(1, 2))
    numbers = st.floats(-100, 100, width=32)
    block = st.lists(st.lists(numbers, min_size=targets, max_size=targets), min_size=count, max_size=count)
    return np.array(draw(block)), Posterior(np.array(draw(block))[None])


@given(believed_classes())
def test_decisions_as_scikit_learn(case):
    y, posterior = case
    guess = posterior.prediction
    assert own.accuracy(y, posterior) == pytest.approx(oracle.accuracy_score(y, guess))
    recalls = oracle.recall_score(y, guess, average=None, labels=np.unique(y), zero_division=0)
    assert own.balanced_accuracy(y, posterior) == pytest.approx(recalls.mean())
    if len(posterior.classes) > 2:
        expected = oracle.f1_score(y, guess, average="macro", zero_division=0)
        assert own.f1(y, posterior) == pytest.approx(expected)


@given(believed_classes(n_classes=2))
def test_two_classes_as_scikit_learn(case):
    y, posterior = case
    p = posterior.mean[:, 1]
    if y.any() or posterior.prediction.any():
        assert own.f1(y, posterior) == pytest.approx(oracle.f1_score(y, posterior.prediction, zero_division=0))
    else:
        assert math.isnan(own.f1(y, posterior))
    if 0 < y.sum() < len(y):
        assert own.auc(y, posterior) == pytest.approx(oracle.roc_auc_score(y, p))
    else:
        assert math.isnan(own.auc(y, posterior))
    assert own.brier(y, posterior) == pytest.approx(2 * oracle.brier_score_loss(y, p))
    expected = oracle.log_loss(y, posterior.mean, labels=[0, 1])
    assert own.negative_log_likelihood(y, posterior) == pytest.approx(expected)


def test_auc_of_three_classes_is_the_mean_of_each_against_the_rest():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=30)
    y = np.arange(30) % 3
    expected = oracle.roc_auc_score(y, p, multi_class="ovr")
    assert own.auc(y, Posterior(p[None], classes=[0, 1, 2])) == pytest.approx(expected)
    assert math.isnan(own.auc(np.where(y == 2, 1, y), Posterior(p[None], classes=[0, 1, 2])))


@given(believed_targets())
def test_targets_as_scikit_learn(case):
    y, posterior = case
    guess = posterior.mean
    assert own.root_mean_squared_error(y, posterior) ** 2 == pytest.approx(oracle.mean_squared_error(y, guess))
    assert own.mean_absolute_error(y, posterior) == pytest.approx(oracle.mean_absolute_error(y, guess))
    if (np.abs(y) > 1e-3).all():  # nearer to zero, scikit-learn divides by its epsilon
        found = own.mean_absolute_percentage_error(y, posterior)
        assert found == pytest.approx(oracle.mean_absolute_percentage_error(y, guess))
    if (np.ptp(y, axis=0) > 1e-3).all():
        assert own.r2(y, posterior) == pytest.approx(oracle.r2_score(y, guess), rel=1e-5, abs=1e-5)


def test_normalised_deviation_divides_by_labels_and_the_published_one_by_predictions():
    posterior = Posterior([[[1.0], [3.0], [8.0]]])
    y = [2.0, 4.0, 6.0]
    assert own.normalised_deviation(y, posterior) == pytest.approx(4 / 12)
    assert own.normalised_deviation_as_published(y, posterior) == pytest.approx(4 / 12)
    assert own.normalised_deviation([2.0, 4.0, 3.0], posterior) == pytest.approx(7 / 9)
    assert own.normalised_deviation_as_published([2.0, 4.0, 3.0], posterior) == pytest.approx(7 / 12)


def test_reliability_by_hand():
    p = np.array([[0.95, 0.05], [0.91, 0.09], [0.4, 0.6], [0.35, 0.65], [0.5, 0.5]])
    table = own.reliability([0, 1, 1, 0, 0], Posterior(p[None], classes=[0, 1]))
    assert table["bags"].tolist() == [1, 1, 1, 2]  # 0.5 lies in (0.4, 0.5], 0.6 in (0.5, 0.6]
    assert table["accuracy"].tolist() == [1, 1, 0, 0.5]
    assert table["confidence"].tolist() == pytest.approx([0.5, 0.6, 0.65, 0.93])
    expected = (abs(1 - 0.5) + abs(1 - 0.6) + 0.65 + 2 * abs(0.5 - 0.93)) / 5
    found = own.expected_calibration_error([0, 1, 1, 0, 0], Posterior(p[None], classes=[0, 1]))
    assert found == pytest.approx(expected)


def test_calibrated_beliefs_have_little_calibration_error():
    rng = np.random.default_rng(1)
    p = rng.uniform(size=200_000)
    y = (rng.uniform(size=len(p)) < p).astype(int)
    posterior = Posterior(np.stack([1 - p, p], axis=1)[None], classes=[0, 1])
    assert own.expected_calibration_error(y, posterior) < 0.005


def test_intervals_of_normal_noise_cover_what_they_say():
    rng = np.random.default_rng(2)
    mean, deviation = rng.normal(size=5000), rng.uniform(0.5, 2, size=5000)
    y = mean + deviation * rng.normal(size=5000)
    posterior = Posterior(mean.reshape(1, -1, 1), variance=(deviation**2).reshape(1, -1, 1))
    assert own.coverage(y, posterior) == pytest.approx(0.9, abs=0.02)
    assert own.coverage(y, posterior, level=0.5) == pytest.approx(0.5, abs=0.02)
    assert own.width(y, posterior) == pytest.approx(2 * 1.6449 * deviation.mean(), rel=1e-4)


@given(believed_classes(), st.integers(0, 3))
def test_unlabelled_bags_do_not_count(case, position):
    y, posterior = case
    position %= len(y)
    gap = [None if b == position else int(label) for b, label in enumerate(y)]
    rest = np.delete(np.arange(len(y)), position)
    for metric in metrics_for("classification"):
        with_gap, without = metric(gap, posterior), metric(y[rest], posterior.take(rest))
        assert with_gap == pytest.approx(without, nan_ok=True)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_nothing_to_score_is_not_a_number(metric):
    of_classes = Posterior([[[0.5, 0.5]]], classes=[0, 1])
    of_targets = Posterior([[[0.5]]], variance=[[[1.0]]])
    assert math.isnan(metric([None], of_targets if metric.task == "regression" else of_classes))


@pytest.mark.parametrize("name", ["nll", "coverage", "width"])
def test_targets_without_noise_have_no_density(name):
    assert math.isnan(METRICS[name]([1.0], Posterior([[[1.0]]])))


@given(believed_targets())
def test_a_perfect_prediction_is_best(case):
    y, _ = case
    posterior, worse = Posterior(y[None]), Posterior(y[None] + 1)
    for metric in metrics_for("regression", ["rmse", "mae", "mape", "nd", "r2"]):
        best, other = metric(y, posterior), metric(y, worse)
        if not math.isnan(best):
            assert best >= other if metric.larger_is_better else best <= other


def test_wrong_kinds():
    classes, targets = Posterior([[[0.5, 0.5]]], classes=[0, 1]), Posterior([[[0.5]]])
    with pytest.raises(InvalidBagsError, match="a posterior over classes"):
        own.accuracy([1], targets)
    with pytest.raises(InvalidBagsError, match="a posterior over real targets"):
        own.root_mean_squared_error([1], classes)
    with pytest.raises(InvalidBagsError, match="1 targets a bag, got 2"):
        own.mean_absolute_error([[1.0, 2.0]], targets)
    with pytest.raises(InvalidBagsError, match="text such as"):
        own.mean_absolute_error(["a"], targets)
    with pytest.raises(ParameterError, match="did you mean 'rmse'"):
        metrics_for("regression", ["rsme"])
    with pytest.raises(ParameterError, match="a metric of classification"):
        metrics_for("classification", ["rmse"])
    with pytest.raises(ParameterError, match="bins of 1 or more"):
        own.reliability([1], classes, bins=0)
    with pytest.raises(ParameterError, match="a level between 0 and 1"):
        own.coverage([1.0], targets, level=90)
