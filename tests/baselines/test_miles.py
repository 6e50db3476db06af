"""MILES: the embedding by a double loop, the linear program against its primal form, instances picked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import baggraph as bg
from baggraph.baselines import MILES, miles


def price(coef, intercept, vectors, sign, C):
    return np.abs(coef).sum() + C * np.maximum(0, 1 - sign * (vectors @ coef + intercept)).sum()


def primal(vectors, sign, C):
    """Least price of the program as the paper states it: w = u - v, b and the slacks are its variables."""
    n, d = vectors.shape
    cost = np.concatenate([np.ones(2 * d), [0.0], np.full(n, C)])
    margin = -sign[:, None] * np.hstack([vectors, -vectors, np.ones((n, 1))])
    bounds = [(0, None)] * (2 * d) + [(None, None)] + [(0, None)] * n
    return linprog(cost, A_ub=np.hstack([margin, -np.eye(n)]), b_ub=-np.ones(n), bounds=bounds).fun


@pytest.mark.parametrize("C", [0.05, 1.0, 100.0])
@pytest.mark.parametrize("shape", [(12, 4), (10, 200)])
def test_the_machine_is_that_of_the_primal_program(shape, C):
    random = np.random.default_rng(shape[1])
    vectors, sign = random.random(shape), np.where(np.arange(shape[0]) % 3, 1.0, -1.0)
    found = miles.sparse_machine(vectors, sign, C)
    assert price(found.coef, found.intercept, vectors, sign, C) == pytest.approx(primal(vectors, sign, C), rel=1e-6)


def test_vectors_that_are_all_zero_leave_the_majority():
    found = miles.sparse_machine(np.zeros((3, 2)), np.array([1.0, -1.0, -1.0]), 1.0)
    assert (found.coef.tolist(), found.intercept) == ([0.0, 0.0], -1.0)


def test_bags_are_similarities_to_instances():
    random = np.random.default_rng(0)
    train, asked = ([random.normal(size=(size, 2)) for size in sizes] for sizes in ((2, 3, 1), (4, 1)))
    expected = [[max(np.exp(-0.3 * ((a - x) ** 2).sum()) for a in A) for x in np.vstack(train)] for A in asked]
    table = MILES(gamma=0.3, scaling="none").gram(bg.Bags.from_list(asked), bg.Bags.from_list(train))
    np.testing.assert_allclose(table.values, expected, atol=1e-12)


def test_a_witness_is_picked_and_background_is_not():
    random = np.random.default_rng(0)
    y = np.arange(30) % 2
    arrays = [random.uniform(-1, 1, size=(5, 2)) for _ in y]
    for bag, label in zip(arrays, y, strict=True):
        bag[0] = bag[0] + 4 * label
    bags = bg.Bags.from_list(arrays, y=y)
    model = MILES(gamma=0.5, C=10.0, scaling="none", calibration_folds=None).fit(bags)
    heavy = model.selected_[0][np.argmax(model.models_[0].coef[model.selected_[0]])]
    assert heavy % 5 == 0
    assert y[heavy // 5] == 1
    assert len(model.selected_[0]) < 10  # of 150
    assert model.score(bags, y) == 1.0
