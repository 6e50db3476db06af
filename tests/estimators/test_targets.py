"""Kinds of targets, weights of bags and classes, and what hidden labels must not change."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import baggraph as bg
from baggraph.data.splits import hide_labels
from baggraph.errors import BagError

B = 30
FAST = {"epochs": 30, "n_draws": 4, "lr": 1e-2, "device": "cpu", "encoder_options": {"hidden": (16, 8)}}
IDS = [f"bag {i}" for i in range(B)]
KNOWN = bg.BagGraph.from_edges([(IDS[i], IDS[(i + 3) % B], 1.0) for i in range(B)], IDS)
GRAPHS = {"none": None, "knn": "knn", "given": KNOWN, "learned": "learned"}


def bags_at(places, seed: int = 0, y=None) -> bg.Bags:
    rng = np.random.default_rng(seed)
    places = np.asarray(places, dtype=float).reshape(len(places), -1)
    arrays = [rng.normal(np.resize(place, 3), 0.7, size=(rng.integers(2, 6), 3)) for place in places]
    return bg.Bags.from_list(arrays, y=y, ids=[f"bag {i}" for i in range(len(places))])


CODES = np.arange(B) % 2
SHARES = np.random.default_rng(1).permutation(np.linspace(0, 1, B))


def classifier(**more):
    return bg.BagGraphClassifier(**FAST | more)


def regressor(**more):
    return bg.BagGraphRegressor(**FAST | more)


# ---------------------------------------------------------------------- classes


@pytest.mark.parametrize("graph", [None, "learned"])
def test_three_classes_of_text(graph):
    names = np.array(["low", "middle", "high"], dtype=object)[np.arange(B) % 3]
    bags = bags_at(3.0 * (np.arange(B) % 3), y=names)
    model = classifier(graph=graph, epochs=80).fit(hide_labels(bags, np.arange(B) < 21))
    assert model.classes_.tolist() == ["high", "low", "middle"]
    assert (model.transduction_[21:] == names[21:]).mean() >= 0.8
    new = bags_at(3.0 * (np.arange(B) % 3), seed=5)
    assert model.score(new, names) >= 0.8
    assert model.predict_proba(new).shape == (B, 3)
    assert model.posterior_.classes.tolist() == ["high", "low", "middle"]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [([False, True], [False, True]), ([7, 3], [3, 7]), ([2.0, -1.0], [-1, 2]), (["b", "a"], ["a", "b"])],
)
def test_labels_of_any_kind_come_back(labels, classes):
    y = np.array(labels)[CODES]
    model = classifier(epochs=3).fit(bags_at(CODES), y)
    assert model.classes_.tolist() == classes
    assert set(model.predict(bags_at(CODES, seed=2)).tolist()) <= set(classes)


def test_whole_numbers_stay_so_beside_missing_labels():
    y = [None if i > 20 else int(code) for i, code in enumerate(CODES)]
    model = classifier(epochs=3).fit(bags_at(CODES), y)
    assert model.classes_.dtype == np.int64
    assert model.transduction_.dtype == np.int64


def test_weights_of_classes_are_weights_of_bags():
    rare = (np.arange(B) % 5 == 0).astype(int)  # 6 against 24
    bags = bags_at(rare)
    for class_weight, weights in (("balanced", np.where(rare, 2.5, 0.625)), ({1: 4.0}, np.where(rare, 4.0, 1.0))):
        one = classifier(class_weight=class_weight).fit(bags, rare)
        other = classifier().fit(bags, rare, sample_weight=weights)
        np.testing.assert_allclose(one.posterior_.draws, other.posterior_.draws, atol=1e-6)
        assert not np.allclose(one.posterior_.draws, classifier().fit(bags, rare).posterior_.draws, atol=1e-3)


def test_balance_is_that_of_visible_labels():
    """What a mask hides does not count among the classes."""
    rare = (np.arange(B) % 5 == 0).astype(int)
    bags, mask = bags_at(rare, y=rare), np.arange(B) < 15
    one = classifier(class_weight="balanced").posteriors(bags, mask[None])[0]
    other = classifier().fit(hide_labels(bags, mask), sample_weight=np.where(rare, 2.5, 0.625)).posterior_
    np.testing.assert_allclose(one.draws, other.draws, atol=1e-6)


@pytest.mark.parametrize("graph", sorted(GRAPHS))
def test_a_weight_of_zero_hides_a_label(graph):
    bags, weights = bags_at(CODES, y=CODES), (np.arange(B) < 20).astype(float)
    weighted = classifier(graph=GRAPHS[graph]).fit(bags, sample_weight=weights)
    hidden = classifier(graph=GRAPHS[graph]).fit(hide_labels(bags, weights > 0))
    np.testing.assert_array_equal(weighted.posterior_.draws, hidden.posterior_.draws)


def test_only_the_ratio_of_weights_matters():
    bags, weights = bags_at(CODES, y=CODES), np.random.default_rng(0).random(B) + 0.5
    one, other = (classifier().fit(bags, sample_weight=factor * weights).posterior_.draws for factor in (1, 4))
    np.testing.assert_allclose(one, other, atol=1e-6)


# ---------------------------------------------------------------------- real targets


def test_several_targets():
    y = np.stack([SHARES, 100 * (1 - SHARES) ** 2], axis=1)
    bags = bags_at(np.stack([SHARES, 1 - SHARES], axis=1) * 4, y=y)
    model = regressor(epochs=200).fit(hide_labels(bags, np.arange(B) < 24))
    assert model.predict(bags).shape == model.transduction_.shape == (B, 2)
    assert model.posterior_.variance.shape == (4, B, 2)
    assert model.score(bags, y) > 0.7
    one = regressor().fit(bags, y[:, :1])
    assert one.predict(bags).shape == (B,)  # as scikit-learn's own
    assert regressor().fit(bags, y[:, 0]).predict(bags).tolist() == one.predict(bags).tolist()


@pytest.mark.parametrize("loss", ["squared", "gaussian"])
def test_units_of_targets_do_not_matter(loss):
    bags = bags_at(4 * SHARES)
    one, other = (regressor(loss=loss, precision="float64").fit(bags, y) for y in (SHARES, 1000 * SHARES - 7))
    np.testing.assert_allclose(other.posterior_.draws, 1000 * one.posterior_.draws - 7, rtol=1e-6)
    np.testing.assert_allclose(other.posterior_.variance, 1e6 * one.posterior_.variance, rtol=1e-5)
    np.testing.assert_allclose(other.predict(bags), 1000 * one.predict(bags) - 7, rtol=1e-6)


def test_shares_stay_between_zero_and_one():
    bags = bags_at(6 * SHARES)
    model = regressor(loss="bce", epochs=200).fit(bags, SHARES)
    draws = model.predict_posterior(bags_at(20 * SHARES - 7)).draws
    assert draws.min() >= 0
    assert draws.max() <= 1
    assert model.score(bags, SHARES) > 0.7
    with pytest.raises(BagError, match=r"expected shares from 0 to 1, got 1.5 \(bag 'bag 3'\); use loss='squared'"):
        model.fit(bags, np.where(np.arange(B) == 3, 1.5, SHARES))


def test_constant_targets_are_learned():
    bags = bags_at(SHARES)
    model = regressor(epochs=200).fit(bags, np.full(B, 5.0))
    np.testing.assert_allclose(model.predict(bags), 5.0, atol=0.5)
    assert (model.posterior_.variance > 0).all()


def test_noise_of_its_own_for_every_bag():
    """Where the scatter of targets grows with the place of a bag, so does the variance that is found."""
    rng = np.random.default_rng(0)
    places = rng.random(300)
    y = rng.normal(scale=0.05 + places)
    bags = bags_at(6 * places)
    own = regressor(loss="gaussian", graph=None, epochs=150, n_draws=10).fit(bags, y)
    noise = np.sqrt(own.posterior_.aleatoric[:, 0])
    assert np.corrcoef(noise, places)[0, 1] > 0.7
    same = regressor(graph=None, n_draws=10).fit(bags, y)
    assert np.ptp(same.posterior_.aleatoric) < 1e-12
    assert same.noise_.shape == (1,)


def test_noise_without_calibration_is_the_mean_squared_residual():
    bags, seen = bags_at(SHARES, y=SHARES), np.arange(B) < 20
    model = regressor().fit(hide_labels(bags, seen))
    residual = SHARES[seen] - model.posterior_.mean[seen, 0]
    np.testing.assert_allclose(model.noise_, [(residual**2).mean()], rtol=1e-9)
    np.testing.assert_allclose(model.posterior_.variance, model.noise_[0])


# ---------------------------------------------------------------------- hidden labels


@pytest.mark.parametrize("graph", sorted(GRAPHS))
@pytest.mark.parametrize("kind", ["classes", "shares", "gaussian"])
def test_hidden_labels_change_no_bit(kind, graph):
    """Two members that hide different labels: what one hides, the other may see, but not so both."""
    given = {"graph": GRAPHS[graph], "epochs": 2, "calibration": 0.2}
    model = (
        classifier(**given)
        if kind == "classes"
        else regressor(loss="gaussian" if kind == "gaussian" else "bce", **given)
    )
    y = CODES.astype(float) if kind == "classes" else SHARES
    for case in range(4):
        rng = np.random.default_rng(case)
        masks = rng.random((2, B)) < 0.6
        masks[:, :4] = True
        other = np.where(masks[0], y, rng.permutation(y) if kind != "gaussian" else rng.normal(scale=1e6, size=B))
        gone = np.where(masks.any(axis=0), other, np.nan)
        found = [model.posteriors(bags_at(SHARES, y=labels), masks)[0] for labels in (y, other, gone)]
        for changed in found[1:]:
            np.testing.assert_array_equal(changed.draws, found[0].draws)
            assert kind == "classes" or np.array_equal(changed.variance, found[0].variance)


@pytest.mark.parametrize("graph", sorted(GRAPHS))
@pytest.mark.parametrize(
    "changes", [{}, {"calibration": 0.25, "n_members": 2}, {"setting": "disconnected", "hidden": (4,)}]
)
@pytest.mark.parametrize("make", [classifier, regressor])
def test_a_stack_of_masks_is_single_fits(make, changes, graph):
    model = make(graph=GRAPHS[graph], epochs=5, **changes)
    bags = bags_at(SHARES, y=CODES if make is classifier else SHARES)
    masks = np.stack([np.arange(B) < 20, np.arange(B) > 8])
    for found, mask in zip(model.posteriors(bags, masks), masks, strict=True):
        alone = clone(model).fit(hide_labels(bags, mask)).posterior_
        np.testing.assert_allclose(found.draws, alone.draws, atol=2e-5)
        np.testing.assert_array_equal(found.ids, alone.ids)


def test_the_estimator_is_not_fitted_by_a_stack():
    model = classifier(epochs=2)
    model.posteriors(bags_at(CODES, y=CODES), np.ones((2, B), dtype=bool))
    assert not hasattr(model, "posterior_")
    assert not hasattr(model, "classes_")
