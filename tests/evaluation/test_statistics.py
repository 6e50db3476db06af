"""Tests of differences against SciPy, and against the worked examples of Demšar (2006)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from baggraph.errors import InvalidBagsError, ParameterError
from baggraph.evaluation.paired import corrected_t, holm, signed_ranks
from baggraph.evaluation.ranks import critical_difference, friedman, nemenyi, ranks

# Demšar (2006), table 6: AUC of C4.5, with tuned m, with tuned cf, with both, on 14 data sets.  The last two on
# "voting" are printed equal, and ranked 2 and 3.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)
SCORES = arrays(np.float64, st.tuples(st.integers(3, 12), st.integers(3, 6)), elements=st.integers(0, 8).map(float))


# ---------------------------------------------------------------------- the worked examples


def test_mean_ranks_are_those_of_demsar():
    np.testing.assert_allclose(ranks(DEMSAR).mean(axis=0), [3.143, 2.000, 2.893, 1.964], atol=5e-4)


def test_friedman_is_that_of_demsar_but_for_the_correction_for_ties():
    """He prints 9.28 and F = 3.69, without a correction for ties."""
    found = friedman(DEMSAR)
    n, k = DEMSAR.shape
    ties = sum((counts**3 - counts).sum() for row in DEMSAR for counts in [np.unique(row, return_counts=True)[1]])
    uncorrected = found.statistic * (1 - ties / (n * (k**3 - k)))
    assert uncorrected == pytest.approx(9.28, abs=0.005)
    assert (n - 1) * uncorrected / (n * (k - 1) - uncorrected) == pytest.approx(3.69, abs=0.005)


@pytest.mark.parametrize(("alpha", "printed"), [(0.05, 1.25), (0.10, 1.12)])
def test_critical_difference_is_that_of_demsar(alpha, printed):
    assert critical_difference(4, 14, alpha) == pytest.approx(printed, abs=0.006)


@pytest.mark.parametrize(
    ("k", "at_5", "at_10"),
    [(2, 1.960, 1.645), (3, 2.343, 2.052), (4, 2.569, 2.291), (5, 2.728, 2.459), (6, 2.850, 2.589), (10, 3.164, 2.920)],
)
def test_quantiles_are_those_of_demsars_table_5(k, at_5, at_10):
    sets = 6
    unit = np.sqrt(k * (k + 1) / (6 * sets))
    assert critical_difference(k, sets, 0.05) / unit == pytest.approx(at_5, abs=2e-3)
    assert critical_difference(k, sets, 0.10) / unit == pytest.approx(at_10, abs=2e-3)


def test_nemenyi_rejects_where_the_critical_difference_does():
    """Of mean ranks 3.143, 2, 2.893, 1.964, none is 1.25 apart, and the first and last are 1.12 apart."""
    p = nemenyi(ranks(DEMSAR).mean(axis=0), len(DEMSAR))
    assert (p > 0.05).all()
    assert p[0, 3] < 0.10
    assert p[0, 1] < 0.10
    assert p[0, 2] > 0.10


def test_wilcoxon_is_that_of_demsar():
    """Table 2: T = 12 of C4.5 and C4.5+m, z = -2.54; two differences are zero and are split."""
    difference = DEMSAR[:, 1] - DEMSAR[:, 0]
    assert stats.wilcoxon(difference, zero_method="zsplit", method="approx").statistic == 12
    z = stats.norm.isf(signed_ranks(np.round(difference, 6)) / 2)
    assert z == pytest.approx(2.54, abs=0.02)  # ties shorten the variance by a little


def test_holm_is_that_of_demsar():
    """Section 3.2.2: p = 0.016, 0.019, 0.607 against the control; at 5 %, the first two hypotheses fall."""
    adjusted = holm([0.607, 0.019, 0.016])
    np.testing.assert_allclose(np.sort(adjusted), [0.048, 0.048, 0.607], atol=1e-12)
    assert (adjusted <= 0.05).tolist() == [False, True, True]


# ---------------------------------------------------------------------- scipy as an oracle


@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_friedman_is_that_of_scipy(scores):
    if all(len(set(row)) == 1 for row in scores.tolist()):
        assert friedman(scores).p == 1.0
        return
    known = stats.friedmanchisquare(*scores.T)
    found = friedman(scores)
    assert found.statistic == pytest.approx(known.statistic)
    assert found.p == pytest.approx(known.pvalue)
    assert 0 <= found.p_f <= 1


@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_ranks_are_a_share_of_the_same_sum_and_turn_with_the_direction(scores):
    k = scores.shape[1]
    found = ranks(scores)
    np.testing.assert_allclose(found.sum(axis=1), k * (k + 1) / 2)
    np.testing.assert_allclose(found + ranks(scores, larger_is_better=False), k + 1)
    np.testing.assert_allclose(found, ranks(3 * scores + 7))


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, st.integers(2, 30), elements=st.floats(-5, 5)))
def test_without_shared_bags_the_corrected_test_is_students(differences):
    if np.std(differences) < 1e-6:
        return
    found = corrected_t(differences, test_to_train=0.0)
    known = stats.ttest_1samp(differences, 0.0)
    assert found.p == pytest.approx(known.pvalue, abs=1e-9)
    interval = known.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert corrected_t(differences, test_to_train=0.3).p >= found.p - 1e-12


def test_the_corrected_test_by_hand():
    """J = 4, n_test / n_train = 1/9: t = 0.03 / sqrt((1/4 + 1/9) (0.0002))."""
    differences = [0.02, 0.04, 0.015, 0.045]
    variance = np.var(differences, ddof=1)
    t = 0.03 / np.sqrt((1 / 4 + 1 / 9) * variance)
    assert corrected_t(differences, test_to_train=1 / 9).p == pytest.approx(2 * stats.t.sf(t, 3))


def test_the_corrected_test_keeps_its_level_where_students_does_not():
    """Two equally good methods on 10 x 10 folds of 100 bags: the differences of folds hang together."""
    rng = np.random.default_rng(0)
    corrected, student = [], []
    for _ in range(120):
        one, other = rng.random((2, 100)) < 0.7  # each method is right about the same bags in all repeats
        folds = [np.array_split(rng.permutation(100), 10) for _ in range(10)]
        gaps = [one[fold].mean() - other[fold].mean() for repeat in folds for fold in repeat]
        corrected.append(corrected_t(gaps, test_to_train=1 / 9).p)
        student.append(stats.ttest_1samp(gaps, 0.0).pvalue)
    assert np.mean(np.array(corrected) <= 0.05) <= 0.12
    assert np.mean(np.array(student) <= 0.05) > 0.3


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, st.integers(5, 25), elements=st.floats(-5, 5), unique=True))
def test_signed_ranks_are_exact_as_scipys(differences):
    if (differences == 0).any() or len(np.unique(np.abs(differences))) < len(differences):
        return
    assert signed_ranks(differences) == pytest.approx(stats.wilcoxon(differences, method="exact").pvalue)
    assert signed_ranks(differences) == pytest.approx(signed_ranks(-differences))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_by_its_definition(p):
    adjusted = holm(p)
    order = np.argsort(p, kind="stable")
    expected = 0.0
    for step, place in enumerate(order):
        expected = max(expected, min(1.0, (len(p) - step) * p[place]))
        assert adjusted[place] == pytest.approx(expected)


def test_nemenyi_of_two_methods_is_the_normal_law():
    p = nemenyi([1.2, 1.8], 10)[0, 1]
    assert p == pytest.approx(2 * stats.norm.sf(0.6 / np.sqrt(2 * 3 / 60)), abs=1e-6)


# ---------------------------------------------------------------------- doors


@pytest.mark.parametrize("scores", [[1.0, 2.0], [[1.0], [2.0]], [[1.0, np.nan], [1.0, 2.0]]])
def test_scores_that_cannot_be_ranked_are_refused(scores):
    with pytest.raises(InvalidBagsError, match="scores of at least 2 methods"):
        friedman(scores)


def test_differences_that_cannot_be_tested_are_refused():
    with pytest.raises(InvalidBagsError, match="at least 2 finite differences"):
        corrected_t([1.0], test_to_train=0.1)
    with pytest.raises(InvalidBagsError, match="at least 2 finite differences"):
        corrected_t([1.0, np.nan], test_to_train=0.1)
    with pytest.raises(ParameterError, match="a ratio from 0"):
        corrected_t([1.0, 2.0], test_to_train=-1)
    with pytest.raises(InvalidBagsError, match="finite differences"):
        signed_ranks([1.0, np.inf])


def test_equal_methods_are_not_told_apart():
    assert corrected_t([0.0, 0.0, 0.0], test_to_train=0.1).p == 1.0
    assert corrected_t([0.1, 0.1], test_to_train=0.1).p == 0.0
    assert signed_ranks([0.0, 0.0]) == 1.0
    assert friedman(np.ones((4, 3))).p == 1.0
