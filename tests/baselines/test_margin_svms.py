"""mi-SVM and MI-SVM: objective, labels and witnesses on toys that can be worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC

import baggraph as bg
from baggraph.baselines import BagMarginSVM, InstanceMarginSVM, _svc
from baggraph.baselines._gram import Gram
from baggraph.errors import BagWarning

# Positive bags: a background instance near 0 and a witness near 3.  Negative bags: background.
TOY = bg.Bags.from_list([[[0.0], [3.0]], [[0.2], [2.8]], [[-0.1], [0.1]], [[0.0]]], y=[1, 1, 0, 0])
PLAIN = {"kernel": "linear", "C": 10.0, "scaling": "none", "calibration_folds": None}


def test_mi_svm_finds_labels_and_objective_of_a_worked_toy():
    """The best labels split 0.2 from 2.8: w = 2 / 2.6, no slack, |w|^2 / 2 = 0.2959."""
    model = InstanceMarginSVM(**PLAIN).fit(TOY)
    assert model.instance_signs_[0].tolist() == [-1, 1, -1, 1, -1, -1, -1]
    assert model.objectives_[0][-1] == pytest.approx((2 / 2.6) ** 2 / 2, rel=1e-3)
    assert model.decision_function([[[1.5]], [[0.2]], [[2.8]]]) == pytest.approx([0.0, -1.0, 1.0], abs=2e-3)
    assert model.converged_


def test_mi_svm_is_the_best_of_all_labellings():
    best = np.inf
    x = TOY.instances.astype(float)
    for guess in np.ndindex(3, 3):  # which instances of each positive bag are positive: one, the other, both
        signs = np.full(7, -1.0)
        for start, kind in zip((0, 2), guess, strict=True):
            signs[[[start], [start + 1], [start, start + 1]][kind]] = 1.0
        machine = SVC(kernel="linear", C=10.0, tol=1e-6).fit(x, signs)
        scores = machine.decision_function(x)
        best = min(best, float((machine.coef_**2).sum() / 2 + 10 * np.maximum(0, 1 - signs * scores).sum()))
    assert InstanceMarginSVM(**PLAIN).fit(TOY).objectives_[0][-1] == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_no_round_of_mi_svm_raises_the_objective(seed):
    random = np.random.default_rng(seed)
    arrays = [random.normal(size=(5, 3)) for _ in range(20)]
    arrays[::2] = [a + np.eye(5, 3) * 2 for a in arrays[::2]]
    model = InstanceMarginSVM(C=5.0).fit(bg.Bags.from_list(arrays, y=np.arange(20) % 2 == 0))
    values = np.array(model.objectives_[0])
    assert len(values) > 2
    assert (np.diff(values) <= 1e-3 * values[:-1]).all()  # the solver stops within its tolerance
    positive = model.instance_signs_[0].reshape(20, 5).max(axis=1)
    np.testing.assert_array_equal(positive > 0, np.arange(20) % 2 == 0)  # a positive bag keeps a positive instance


def test_mi_svm_keeps_one_positive_of_equal_instances():
    bags = bg.Bags.from_list([[[1.0], [1.0]], [[1.0], [1.1], [0.9]], [[0.95], [1.05]]], y=[1, 0, 0])
    model = InstanceMarginSVM(**PLAIN).fit(bags)
    assert model.instance_signs_[0][:2].tolist() in ([1, -1], [1, 1])


def test_mi_svm_witnesses_and_margin_of_the_toy():
    """MI-SVM stands on 3.0 and 2.8 against the largest negative, 0.1: w = 2 / 2.7."""
    model = BagMarginSVM(**PLAIN).fit(TOY)
    assert model.witnesses_[0].tolist() == [1, 3]
    assert model.converged_
    assert model.decision_function([[[0.1]], [[2.8], [0.0]]]) == pytest.approx([-1.0, 1.0], abs=2e-3)


def test_mi_svm_with_one_instance_a_bag_is_the_usual_machine():
    random = np.random.default_rng(0)
    x = random.normal(size=(40, 2))
    y = (x[:, 0] + 0.5 * random.normal(size=40) > 0).astype(int)
    plain = {"gamma": 0.5, "C": 2.0, "scaling": "none", "calibration_folds": None}
    theirs = SVC(C=2.0, gamma=0.5).fit(x, y).decision_function(x)
    for model in (InstanceMarginSVM(**plain), BagMarginSVM(class_weight=None, **plain)):
        np.testing.assert_allclose(model.fit(x, y).decision_function(x), theirs, atol=1e-6)
    balanced = SVC(C=2.0, gamma=0.5, class_weight="balanced").fit(x, y).decision_function(x)
    np.testing.assert_allclose(BagMarginSVM(**plain).fit(x, y).decision_function(x), balanced, atol=1e-6)


def test_mean_of_a_bag_stands_for_it_at_first():
    """With one round, the machine is that of kernel means: here the plain means, the kernel being linear."""
    random = np.random.default_rng(1)
    bags = bg.Bags.from_list([random.normal(size=(3, 2)) + b % 2 for b in range(10)], y=np.arange(10) % 2)
    means = [np.asarray(bag).mean(axis=0) for bag in bags[bags.y == 1]]
    x = np.vstack([*means, *map(np.asarray, bags[bags.y == 0])])
    machine = SVC(kernel="linear", class_weight="balanced").fit(x, np.repeat([1, 0], [5, 15]))
    expected = [machine.decision_function(np.asarray(bag)).max() for bag in bags]
    with pytest.warns(BagWarning, match="expected witnesses to settle, got changes in round 1; raise max_iter"):
        model = BagMarginSVM(kernel="linear", max_iter=1, scaling="none", calibration_folds=None).fit(bags)
    assert not model.converged_
    np.testing.assert_allclose(model.decision_function(bags), expected, atol=5e-3)


def test_mi_svm_says_that_it_did_not_settle():
    random = np.random.default_rng(3)
    bags = bg.Bags.from_list([random.normal(size=(5, 3)) for _ in range(20)], y=np.arange(20) % 2)
    with pytest.warns(BagWarning, match="InstanceMarginSVM: expected labels of instances to settle"):
        model = InstanceMarginSVM(max_iter=1, calibration_folds=None).fit(bags)
    assert not model.converged_


@pytest.mark.parametrize("balanced", [False, True])
def test_a_working_set_gives_the_machine_of_all_points(monkeypatch, balanced):
    monkeypatch.setattr(_svc, "FEW", 50)
    monkeypatch.setattr(_svc, "CHUNK", 20)
    random = np.random.default_rng(0)
    x = np.sort(random.normal(size=(400, 2)), axis=0)  # neighbours are alike: where it starts is not what it needs
    sign = np.where(x[:, 0] + 0.3 * random.normal(size=400) > 0.7, 1.0, -1.0)
    table = Gram.of(np.exp(-((x[:, None] - x) ** 2).sum(axis=2)))
    weight = "balanced" if balanced else None
    whole = SVC(kernel="precomputed", C=5.0, class_weight=weight, tol=1e-6).fit(table.values, sign)
    for start in (None, np.array([3, 5, 7])):
        found = table.apply(_svc.fit_svc(table, sign, 5.0, balanced=balanced, start=start))
        np.testing.assert_allclose(found, whole.decision_function(table.values), atol=2e-2)
