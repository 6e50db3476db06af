"""Correct and smooth: chosen inside, never by a hidden label, or left alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import baggraph as bg
from baggraph.data.posterior import Posterior
from baggraph.data.splits import hide_labels
from baggraph.errors import ParameterError
from baggraph.estimators._saving import load
from baggraph.estimators._smoothing import inner_masks, mended, smoother
from baggraph.graphs.wiring import Wired

N = 80
IDS = [f"b{i}" for i in range(N)]
CHAIN = bg.BagGraph.from_edges(list(pairwise(IDS)), IDS)
FAST = {"epochs": 15, "n_draws": 2, "lr": 1e-2, "device": "cpu", "encoder_options": {"hidden": (6, 4)}}
SEEN = np.random.default_rng(1).random(N) < 0.7


def made(kind: str) -> tuple[bg.BagGraphClassifier | bg.BagGraphRegressor, bg.Bags]:
    """Labels that are smooth along a chain, and instances that do not tell them."""
    rng = np.random.default_rng(0)
    wave = np.sin(np.arange(N) / 6)
    y = {
        "classes": np.where(wave > 0.5, "high", np.where(wave < -0.5, "low", "middle")).astype(object),
        "two targets": np.stack([wave, 3 - wave], axis=1),
        "shares": 0.5 + 0.5 * wave,
        "one target": 100 * wave,
    }[kind]
    bags = bg.Bags.from_list([rng.normal(size=(4, 3)) for _ in IDS], y=y, ids=IDS).replace(graph=CHAIN)
    more = FAST | {"graph": "given", "smoothing": "auto"}
    if kind == "classes":
        return bg.BagGraphClassifier(**more), bags
    return bg.BagGraphRegressor(**more, loss="bce" if kind == "shares" else "squared"), bags


KINDS = ["classes", "two targets", "shares", "one target"]


def test_inner_masks_hide_every_label_once():
    masks = inner_masks(SEEN, 3)
    hidden = SEEN & ~masks
    assert (hidden.sum(axis=0) == SEEN).all()
    assert not (masks & ~SEEN).any()
    assert np.ptp(hidden.sum(axis=1)) <= 1
    assert len(inner_masks(np.arange(N) == 3, 3)) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_labels_that_are_smooth_are_smoothed(kind):
    model, bags = made(kind)
    plain = model.__class__(**{**model.get_params(), "smoothing": None}).posteriors(bags, SEEN[None])[0]
    model.fit(hide_labels(bags, SEEN))
    assert model.smoothing_["correct"] > 0 or model.smoothing_["smooth"] > 0
    hidden = ~SEEN
    if kind == "classes":
        codes = np.searchsorted(model.classes_, bags.y[hidden].astype(str))
        before, after = (
            -np.log(p.mean[hidden][np.arange(len(codes)), codes]).mean() for p in (plain, model.posterior_)
        )
    else:
        truth = bags.y.reshape(N, -1)[hidden]
        before, after = (np.mean((p.mean[hidden] - truth) ** 2) for p in (plain, model.posterior_))
    assert after < 0.8 * before
    np.testing.assert_allclose(model.posterior_.mean[SEEN], plain.mean[SEEN], rtol=1e-5, atol=1e-6)
    if kind == "shares":
        assert model.posterior_.mean.min() >= 0
        assert model.posterior_.mean.max() <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_is_its_members_and_sees_no_hidden_label(kind):
    model, bags = made(kind)
    masks = np.stack([SEEN, np.random.default_rng(2).random(N) < 0.5])
    stacked = model.posteriors(bags, masks)
    other = bags.replace(y=np.where(masks[0].reshape((N,) + (1,) * (bags.y.ndim - 1)), bags.y, bags.y[::-1]))
    np.testing.assert_array_equal(model.posteriors(other, masks)[0].draws, stacked[0].draws)
    for mask, found in zip(masks, stacked, strict=True):
        alone = model.fit(hide_labels(bags, mask)).posterior_
        np.testing.assert_allclose(alone.draws, found.draws, rtol=1e-5, atol=1e-5 * np.abs(found.draws).max())


def test_labels_that_are_noise_are_left_alone():
    rng = np.random.default_rng(3)
    truth = rng.normal(size=(N, 1))
    posterior = Posterior(np.zeros((1, N, 1)), np.array(IDS, dtype=object))
    masks = inner_masks(SEEN, 0)
    own = smoother(posterior, [(posterior, [Wired(CHAIN)], mask) for mask in masks], SEEN, truth, [Wired(CHAIN)])
    assert not own.acts
    assert mended(posterior, own, SEEN, truth, [Wired(CHAIN)]) is posterior
    assert own.of_new(posterior, []) is posterior


@pytest.mark.parametrize("kind", KINDS)
def test_new_bags_are_mended_alike_and_all_of_it_is_saved(kind, tmp_path):
    model, bags = made(kind)
    model.fit(hide_labels(bags, SEEN))
    asked = bg.Bags.from_list([np.zeros((2, 3))] * N, ids=[f"new {i}" for i in range(N)])
    links = sp.csr_array(CHAIN.adjacency)  # each where a bag of the fit stands
    found = model.predict_posterior(asked, links=links)
    raw = model._smoother
    rows = links.toarray() / links.toarray().sum(axis=1, keepdims=True)
    model._smoother = None
    plain = model.predict_posterior(asked, links=links)
    model._smoother = raw
    wanted = (1 - raw.smooth) * (plain.mean + raw.correct * rows @ raw.residuals) + raw.smooth * rows @ raw.values
    if kind in ("two targets", "one target"):
        np.testing.assert_allclose(found.mean, wanted)
    else:
        assert np.abs(found.mean - wanted).max() < 0.1  # but for the bounds
    np.testing.assert_array_equal(model.predict_posterior(asked, links=0 * links).mean.shape, plain.mean.shape)
    again = load(model.save(tmp_path / "model"))
    assert again.smoothing_ == model.smoothing_
    np.testing.assert_array_equal(again.predict_posterior(asked, links=links).draws, found.draws)
    with pytest.raises(ParameterError, match="smoothing=None"):
        model.explain(asked[:1], links=links[:1])


@pytest.mark.parametrize("more", [{}, {"label_inputs": True, "head": "restart"}])
def test_a_weight_of_zero_hides_a_label(more):
    model, bags = made("one target")
    model.set_params(**more)
    hidden = model.fit(hide_labels(bags, SEEN)).posterior_
    weighed = model.fit(bags, sample_weight=SEEN.astype(float)).posterior_
    np.testing.assert_array_equal(weighed.draws, hidden.draws)


def test_without_a_graph_there_is_nothing_to_smooth_by():
    model, bags = made("one target")
    model.set_params(graph=None).fit(hide_labels(bags, SEEN))
    assert model.smoothing_ == {"correct": 0.0, "smooth": 0.0}
