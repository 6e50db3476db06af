"""Kernels of sets against sums written out, and against other packages where they are installed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

import baggraph as bg
from baggraph.baselines import MIGraph, MIKernel, SummarySVM
from baggraph.baselines import _kernels as kernels


def some_bags(seed=0, n_bags=7, d=3):
    random = np.random.default_rng(seed)
    return bg.Bags.from_list([random.normal(size=(random.integers(1, 6), d)) for _ in range(n_bags)])


def arrays(bags):
    return [np.asarray(bag) for bag in bags]


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_mi_kernel_is_the_normalised_sum_over_pairs(kernel, power):
    bags, others = some_bags(), some_bags(1, 4)
    between = {"rbf": lambda a, b: np.exp(-0.3 * ((a - b) ** 2).sum()), "linear": np.dot}[kernel]

    def sums(A, B):
        return sum(between(a, b) ** power for a in A for b in B)

    expected = [
        [sums(A, B) / np.sqrt(sums(A, A) * sums(B, B)) for B in arrays(bags)] for A in arrays(others)
    ]  # fmt: skip
    model = MIKernel(kernel=kernel, gamma=0.3, power=power, scaling="none")
    np.testing.assert_allclose(model.gram(others, bags), expected, atol=1e-12)
    np.testing.assert_allclose(np.diag(model.gram(bags)), 1.0)


def test_mi_kernel_is_that_of_sawmil():
    sawmil = pytest.importorskip("sawmil")
    from sawmil.bag_kernels import WeightedMeanBagKernel
    from sawmil.kernels import RBF

    bags = some_bags()
    theirs = [sawmil.Bag(array, 1.0) for array in arrays(bags)]
    expected = WeightedMeanBagKernel(RBF(gamma=0.3), normalizer="featurespace")(theirs, theirs)
    np.testing.assert_allclose(MIKernel(gamma=0.3, scaling="none").gram(bags), expected, atol=1e-12)


def test_bags_whose_products_cancel_resemble_none():
    bags = bg.Bags.from_list([[[1.0], [-1.0]], [[1.0]]])
    assert MIKernel(kernel="linear", scaling="none").gram(bags).values.tolist() == [[0.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("radius", [0.5, 1.0, 2.0])
def test_mi_graph_by_a_double_loop(radius):
    bags = some_bags(n_bags=6)

    def weights(A):
        distances = np.array([[np.linalg.norm(a - b) for b in A] for a in A])
        n = len(A)
        mean = distances.sum() / max(n * (n - 1), 1)
        return 1 / (distances <= radius * mean).sum(axis=1) if n > 1 else np.ones(1)

    def similarity(A, B):
        total = 0.0
        for u, a in zip(weights(A), A, strict=True):
            for v, b in zip(weights(B), B, strict=True):
                total += u * v * np.exp(-0.3 * ((a - b) ** 2).sum())
        return total / (weights(A).sum() * weights(B).sum())

    # The mean distance of two instances is theirs, and whether it is within itself is left to rounding above.
    chosen = [array for array in arrays(bags) if len(array) != 2]
    expected = [[similarity(A, B) for B in chosen] for A in chosen]
    model = MIGraph(radius=radius, gamma=0.3, scaling="none")
    np.testing.assert_allclose(model.gram(bg.Bags.from_list(chosen)), expected, atol=1e-12)


def test_cliques_do_not_hang_on_rounding():
    pair, thrice = np.array([[0.1, 0.7], [0.3, 0.9]]), np.tile([[0.1, 0.2, 0.3]], (3, 1))
    for scale in (1e-3, 1.0, 1e5):
        for block in (pair, thrice, np.eye(3)):
            bags = bg.Bags(scale * block + 0.1, [0, len(block)])
            weights = MIGraph(scaling="none")._anchor(bags).weights
            np.testing.assert_allclose(weights, 1 / len(block), rtol=1e-12)


def test_a_clique_counts_about_once():
    bags = bg.Bags.from_list([[[0.0]] * 9 + [[5.0]], [[0.0], [5.0]]])
    table = MIGraph(scaling="none", gamma=1.0).gram(bags).values
    np.testing.assert_allclose(table, table[0, 0])  # nine copies weigh what one does


def test_summary_svm_is_that_of_scikit_learn():
    random = np.random.default_rng(0)
    bags = bg.Bags.from_list([random.normal(size=(4, 2)) + b % 2 for b in range(20)], y=np.arange(20) % 2)
    rows = np.array([np.hstack([a.mean(0), a.min(0), a.max(0)]) for a in arrays(bags)])
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    theirs = SVC(C=10.0, gamma=1 / 6, tol=1e-3).fit(rows, bags.y)
    model = SummarySVM(gamma=1 / 6).fit(bags)
    np.testing.assert_allclose(SummarySVM(gamma=1 / 6).gram(bags), rbf_kernel(rows, gamma=1 / 6), atol=1e-12)
    np.testing.assert_allclose(model.decision_function(bags), theirs.decision_function(rows), atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 7))
def test_sums_do_not_depend_on_blocks(sizes, length):
    random = np.random.default_rng(sum(sizes))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rows = kernels.Rows.of(bg.Bags(random.normal(size=(offsets[-1], 2)), offsets), "none", "rbf", 0.5)
    weights = random.random(offsets[-1])
    table = rbf_kernel(rows.values, gamma=0.5)
    before, kernels.BLOCK = kernels.BLOCK, length
    try:
        sums = kernels.segment_sums(rows, rows, rows.kernel, weights, weights)
        own = kernels.self_sums(rows, rows.kernel)
        pairs = kernels.all_pairs(rows, rows)
        nearest = kernels.nearest_in_bag(rows, rows)
    finally:
        kernels.BLOCK = before
    weighed = weights[:, None] * table * weights
    cut = [slice(a, b) for a, b in pairwise(offsets)]
    np.testing.assert_allclose(sums, [[weighed[a, b].sum() for b in cut] for a in cut], atol=1e-12)
    np.testing.assert_allclose(own, [table[a, a].sum() for a in cut], atol=1e-12)
    np.testing.assert_allclose(pairs, table, atol=1e-12)
    np.testing.assert_allclose(np.exp(-0.5 * nearest), [table[a].max(axis=0) for a in cut], atol=1e-9)
