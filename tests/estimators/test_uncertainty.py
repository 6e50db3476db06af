"""Calibration inside the estimators: what is held out, and whether promises are kept."""

from __future__ import annotations

import numpy as np
import pytest

import baggraph as bg
from baggraph.data.splits import hide_labels, label_mask
from baggraph.errors import ParameterError
from baggraph.inference.calibration import Conformal, fit_noise, fit_temperature, temper, with_noise

FAST = {"epochs": 10, "n_draws": 5, "lr": 1e-2, "device": "cpu", "encoder_options": {"hidden": (16, 8)}}


def some_bags(n: int = 80, seed: int = 0, *, classify: bool = True) -> bg.Bags:
    rng = np.random.default_rng(seed)
    place = rng.random(n)
    y = (rng.random(n) < place).astype(int) if classify else place + rng.normal(scale=0.3, size=n)
    return bg.Bags.from_list([rng.normal(4 * p, 1, size=(rng.integers(2, 6), 3)) for p in place], y=y)


def held_out(model, bags):
    return bags.labelled & ~label_mask(bags.y, labelled=1.0 - model.calibration, random_state=model._seeds[0])


def test_classes_are_tempered_by_bags_that_were_not_trained_on():
    bags = some_bags()
    model = bg.BagGraphClassifier(**FAST, calibration=0.25).fit(bags)
    held = held_out(model, bags)
    assert held.sum() == 20
    raw = bg.BagGraphClassifier(**FAST).fit(hide_labels(bags, ~held)).posterior_  # the same training without them
    assert model.temperature_ == pytest.approx(fit_temperature(raw.take(held), bags.y[held]))
    np.testing.assert_allclose(model.posterior_.draws, temper(raw, model.temperature_).draws, atol=1e-9)
    by_hand = Conformal.of(model.posterior_.take(held), bags.y[held])
    np.testing.assert_allclose(model.conformal_.scores, by_hand.scores)
    np.testing.assert_array_equal(model.predict_set(coverage=0.8), by_hand.sets(model.posterior_, 0.8))


@pytest.mark.parametrize("loss", ["squared", "gaussian", "bce"])
def test_noise_is_that_of_bags_that_were_not_trained_on(loss):
    bags = some_bags(classify=False)
    bags = bags.replace(y=np.clip(bags.y, 0, 1)) if loss == "bce" else bags
    model = bg.BagGraphRegressor(**FAST, calibration=0.25, loss=loss).fit(bags)
    held = held_out(model, bags)
    plain = bg.BagGraphRegressor(**FAST, loss=loss).fit(hide_labels(bags, ~held))
    raw = plain.posterior_ if loss == "gaussian" else bg.Posterior(plain.posterior_.draws, bags.ids)
    noise = fit_noise(raw.take(held), bags.y[held])
    np.testing.assert_allclose(model.noise_, noise, rtol=1e-6)
    np.testing.assert_allclose(model.posterior_.variance, with_noise(raw, noise).variance, rtol=1e-6)
    ends = model.predict_interval(coverage=0.7)
    np.testing.assert_allclose(
        ends, Conformal.of(model.posterior_.take(held), bags.y[held]).intervals(model.posterior_, 0.7)[:, 0]
    )


def test_sets_and_intervals_of_new_bags():
    asked = some_bags(7, seed=9).replace(y=None)
    model = bg.BagGraphClassifier(**FAST, calibration=0.25).fit(some_bags())
    small, large = (model.predict_set(asked, coverage=c) for c in (0.5, 0.95))
    assert small.shape == large.shape == (7, 2)
    assert small.dtype == bool
    assert (small <= large).all()
    assert large.sum() > small.sum()
    bags = some_bags(classify=False)
    one = bg.BagGraphRegressor(**FAST, calibration=0.25).fit(bags)
    two = bg.BagGraphRegressor(**FAST, calibration=0.25).fit(bags, np.stack([bags.y, -2 * bags.y], axis=1))
    assert one.predict_interval(asked).shape == (7, 2)
    assert two.predict_interval(asked).shape == (7, 2, 2)
    narrow, wide = (one.predict_interval(asked, coverage=c) for c in (0.5, 0.9))
    assert (wide[:, 0] < narrow[:, 0]).all()
    assert (narrow[:, 1] < wide[:, 1]).all()


def test_links_are_heard():
    bags = some_bags()
    known = bg.BagGraph.from_edges([(bags.ids[i], bags.ids[i + 1]) for i in range(79)], bags.ids)
    model = bg.BagGraphClassifier(**FAST, calibration=0.25, graph=known).fit(bags)
    links = np.zeros((1, 80))
    links[0, 3] = 1.0
    assert model.predict_set(some_bags(1, seed=3).replace(y=None), links=links).shape == (1, 2)


def test_without_calibration_nothing_is_promised():
    model = bg.BagGraphClassifier(**FAST).fit(some_bags())
    assert model.temperature_ == 1.0
    assert model.conformal_ is None
    with pytest.raises(ParameterError, match=r"bags held out of training for sets, got none with calibration=0\.0"):
        model.predict_set()
    few = bg.BagGraphRegressor(**FAST, calibration=0.01).fit(some_bags(12, classify=False))
    with pytest.raises(ParameterError, match=r"held out of training for intervals, got none with calibration=0\.01"):
        few.predict_interval()


@pytest.mark.parametrize("n_members", [1, 3])
def test_draws_of_members_are_pooled(n_members):
    model = bg.BagGraphClassifier(**FAST, n_members=n_members).fit(some_bags())
    assert model.posterior_.draws.shape == (5 * n_members, 80, 2)
    assert len(model.graphs_) == n_members
    assert model.predict_posterior(some_bags(3, seed=2)).draws.shape == (5 * n_members, 3, 2)
    if n_members > 1:
        alone = [
            bg.BagGraphClassifier(**FAST).set_params(n_members=1, random_state=0).fit(some_bags()).posterior_.draws
        ]
        np.testing.assert_allclose(model.posterior_.draws[:5], alone[0], atol=1e-5)  # the first member is that of one
        assert np.ptp(model.posterior_.draws.reshape(n_members, 5, 80, 2).mean(axis=1), axis=0).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("graph", [None, "learned"])
def test_sets_and_intervals_cover_what_they_promise(graph):
    """60 random splits of 600 made bags: transductive and new bags, marginal and by class, 90 % asked."""
    rows = {}
    bags = bg.datasets.load("synthetic", n_bags=600)
    classes = bags.replace(y=(bags.y > 0.5).astype(int))
    for split in range(60):
        seen = label_mask(classes.y, labelled=0.6, random_state=split)
        apart = np.random.default_rng([split, 1])  # not the stream that chose the labels
        later = ~seen & (apart.random(600) < 0.5)  # joins after the fit
        rest, given = ~seen & ~later, {**FAST, "calibration": 0.3, "graph": graph, "random_state": split}
        code = classes.y.astype(int)
        model = bg.BagGraphClassifier(**given).fit(hide_labels(classes, seen)[~later])
        for conditional in (False, True):
            among = model.predict_set(conditional=conditional)[rest[~later]]
            new = model.predict_set(classes[later], conditional=conditional)
            rows.setdefault(("set", conditional), []).append(among[np.arange(rest.sum()), code[rest]].mean())
            rows.setdefault(("new set", conditional), []).append(new[np.arange(later.sum()), code[later]].mean())
            rare = code[rest] == 1
            rows.setdefault(("rare set", conditional), []).append(among[np.arange(rest.sum()), code[rest]][rare].mean())
        model = bg.BagGraphRegressor(**given).fit(hide_labels(bags, seen)[~later])
        for name, some, ends in (
            ("interval", rest, model.predict_interval()[rest[~later]]),
            ("new interval", later, model.predict_interval(bags[later])),
        ):
            rows.setdefault((name, False), []).append(
                ((ends[:, 0] <= bags.y[some]) & (bags.y[some] <= ends[:, 1])).mean()
            )
    means = {name: float(np.mean(row)) for name, row in rows.items()}
    assert means.pop(("rare set", False)) < 0.85  # which is why there are sets by class
    assert all(0.885 < mean < 0.93 for mean in means.values()), means
