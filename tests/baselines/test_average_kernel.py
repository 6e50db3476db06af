"""The average of kernels: centring and scale, what it is made of, new bags, and the laws of all baselines."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from baggraph import Bags
from baggraph.baselines import MIGraph, MIKernel
from baggraph.baselines._families import Anchor, View, families
from baggraph.baselines.average_kernel import AverageKernelSVM, normalised
from baggraph.testing import check_bag_estimator

FAMILIES = {
    "summaries": 8,
    "set kernels": 6,
    "mean embeddings": 6,
    "cliques": 3,
    "distances": 3,
    "distance rows": 6,
    "similarities": 4,
    "residuals": 4,
    "Fisher vectors": 4,
}


def witnesses(n: int = 40, seed: int = 0) -> Bags:
    """Bags of noise; positive ones have one instance that lies apart."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 9, n)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    instances = rng.normal(size=(sizes.sum(), 4))
    instances[offsets[:-1][1::2]] += 4
    return Bags(instances, offsets, np.arange(n) % 2)


def test_it_keeps_the_laws_of_bags():
    check_bag_estimator(AverageKernelSVM(calibration_folds=2))


def test_all_families_are_there():
    bags = witnesses()
    anchor = Anchor.of(bags, "standard", 0)
    found = [(family, left, right) for family, left, right in families(anchor, anchor.view)]
    assert Counter(family for family, *_ in found) == FAMILIES
    for family, left, right in found:
        np.testing.assert_allclose(left, right, err_msg=family)
        np.testing.assert_allclose(right, right.T, atol=1e-9, err_msg=family)


def test_new_bags_see_the_kernels_that_the_anchor_saw():
    bags = witnesses()
    anchor = Anchor.of(bags, "standard", 0)
    again = View(anchor.view.rows.others(bags.take([4, 9, 2])))
    for (family, left, _), (_, whole, _) in zip(families(anchor, again), families(anchor, anchor.view), strict=True):
        np.testing.assert_allclose(left, whole[[4, 9, 2]], atol=1e-6, err_msg=family)


def test_single_kernels_are_those_of_their_methods():
    bags = witnesses()
    anchor = Anchor.of(bags, "standard", 0)
    by_family = {}
    for family, left, _ in families(anchor, anchor.view):
        by_family.setdefault(family, []).append(left)
    np.testing.assert_allclose(by_family["set kernels"][2], MIKernel().gram(bags).values, atol=1e-10)
    np.testing.assert_allclose(by_family["cliques"][1], MIGraph().gram(bags).values, atol=1e-10)


def test_the_average_is_centred_with_a_diagonal_of_mean_one():
    values = AverageKernelSVM().gram(witnesses()).values
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-10)
    assert np.diag(values).mean() == pytest.approx(1.0)
    assert normalised(np.ones((2, 3)), np.ones((3, 3))) is None


def test_it_finds_witnesses():
    bags = witnesses()
    model = AverageKernelSVM().fit(bags.take(range(30)))
    assert (model.predict(bags.take(range(30, 40))) == bags.y[30:]).all()
    assert model.predict_proba(bags).shape == (40, 2)


def test_bags_that_are_all_alike_are_answered():
    bags = Bags(np.ones((6, 2)), np.arange(7), [0, 1, 0, 1, 0, 0])
    assert set(AverageKernelSVM(calibration_folds=None).fit(bags).predict(bags)) <= {0, 1}
