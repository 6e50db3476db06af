"""Methods that look at graph and labels alone: against scikit-learn, by walks written out, and on islands."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.semi_supervised import LabelPropagation

import baggraph as bg
from baggraph.baselines import (
    LabelPropagationClassifier,
    LabelPropagationRegressor,
    NeighborMeanClassifier,
    NeighborMeanRegressor,
)
from baggraph.errors import InvalidBagsError


def wired(adjacency, y):
    graph = bg.BagGraph(adjacency, ids=range(len(y)))
    return bg.Bags(np.zeros((len(y), 1)), range(len(y) + 1), y, graph=graph)


def random_graph(seed, n=12, share=0.4):
    random = np.random.default_rng(seed)
    weights = np.triu(random.random((n, n)) * (random.random((n, n)) < share), 1)
    return weights + weights.T


def labels(values, known):
    return [value if is_known else None for value, is_known in zip(values, known, strict=True)]


def test_label_propagation_is_the_limit_of_scikit_learns():
    adjacency = random_graph(0) + 0.05 * (1 - np.eye(12))
    known = np.arange(12) < 5
    classes = np.array([0, 1, 2, 0, 1] + [-1] * 7)
    theirs = LabelPropagation(kernel=lambda *_: adjacency.copy(), max_iter=100_000, tol=1e-12).fit(
        np.zeros((12, 1)), classes
    )
    found = LabelPropagationClassifier().fit(wired(adjacency, labels(classes.tolist(), known)))
    np.testing.assert_allclose(found.label_distributions_, theirs.label_distributions_, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 11))
def test_unknown_values_are_means_of_their_neighbours(seed, n_known):
    """Where a labelled bag can be reached; the mean of all labelled ones where none can."""
    adjacency = random_graph(seed, share=0.15)
    random = np.random.default_rng(seed)
    known = random.permutation(12) < n_known
    targets = random.normal(size=12)
    found = LabelPropagationRegressor().fit(wired(adjacency, labels(targets, known))).transduction_
    reach = np.linalg.matrix_power(np.eye(12) + (adjacency > 0), 12)[:, known].any(axis=1)
    np.testing.assert_array_equal(found[known], targets[known])
    np.testing.assert_allclose(found[~reach], targets[known].mean())
    inner = reach & ~known
    np.testing.assert_allclose((adjacency @ found)[inner], (adjacency.sum(axis=1) * found)[inner], atol=1e-9)


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_mean_of_neighbours_by_walks(hops):
    adjacency = random_graph(3, share=0.15)
    known = np.arange(12) % 4 == 0
    targets = np.arange(12.0)
    expected = np.full(12, targets[known].mean())
    for i in range(12):
        for length in range(1, hops + 1):
            walks = np.linalg.matrix_power(adjacency, length)[i, known]
            if walks.sum() > 0:
                expected[i] = walks @ targets[known] / walks.sum()
                break
    expected[known] = targets[known]
    found = NeighborMeanRegressor(hops=hops).fit(wired(adjacency, labels(targets, known))).transduction_
    np.testing.assert_allclose(found, expected)


def test_shares_of_classes_are_those_of_neighbours():
    """The centre of a star sees a, a and b, with weights 1, 2 and 1."""
    adjacency = np.zeros((4, 4))
    adjacency[0, 1:] = adjacency[1:, 0] = [1.0, 2.0, 1.0]
    model = NeighborMeanClassifier().fit(wired(adjacency, [None, "a", "a", "b"]))
    assert model.label_distributions_[0].tolist() == [0.75, 0.25]
    assert model.transduction_.tolist() == ["a", "a", "a", "b"]


@pytest.mark.parametrize("method", [LabelPropagationRegressor(), NeighborMeanRegressor()])
def test_several_targets_are_spread_as_one_each(method):
    adjacency, known = random_graph(1), np.arange(12) < 6
    targets = np.random.default_rng(1).normal(size=(12, 2))
    hidden = np.where(known[:, None], targets, np.nan)
    both = method.fit(wired(adjacency, hidden)).transduction_
    each = [method.fit(wired(adjacency, column)).transduction_ for column in hidden.T]
    np.testing.assert_allclose(both, np.stack(each, axis=1))


def test_bags_that_fit_did_not_see_are_refused():
    bags = wired(random_graph(0), labels("aabbaabbaabb", np.arange(12) < 6))
    model = LabelPropagationClassifier().fit(bags)
    assert model.predict(bags.take([7, 2])).tolist() == model.transduction_[[7, 2]].tolist()
    with pytest.raises(InvalidBagsError, match=r"expected bags seen in fit, got .*; pass all bags to fit"):
        model.predict(bg.Bags(np.zeros((1, 1)), [0, 1], ids=["new"]))
