"""The Gaussian process as a head: hidden labels, folds at once, new bags, and what it has no answer to."""

from __future__ import annotations

import numpy as np
import pytest

from baggraph import BagGraph, BagGraphClassifier, BagGraphRegressor, Bags, load
from baggraph.errors import ParameterError

FAST = {"epochs": 20, "lr": 5e-3, "device": "cpu", "encoder_options": {"hidden": (16, 8)}, "head": "gp"}


def chain(n: int = 36, seed: int = 0) -> Bags:
    rng = np.random.default_rng(seed)
    content = rng.normal(size=n)
    sizes = rng.integers(2, 5, n)
    instances = np.repeat(content, sizes)[:, None] + 0.1 * rng.normal(size=(sizes.sum(), 2))
    y = 5 + np.sin(np.arange(n) / 4) + 0.2 * content
    graph = BagGraph.from_edges([(i, i + 1) for i in range(n - 1)], ids=range(n))
    return Bags(instances, np.concatenate([[0], np.cumsum(sizes)]), y, ids=range(n), graph=graph)


@pytest.mark.parametrize("kind", ["regression", "classes"])
def test_hidden_labels_change_nothing_and_folds_are_single_fits(kind):
    bags = chain()
    if kind == "classes":
        bags = bags.replace(y=(bags.y > np.median(bags.y)).astype(int))
    made = BagGraphRegressor if kind == "regression" else BagGraphClassifier
    masks = np.stack([np.arange(36) % 3 != k for k in range(2)])
    at_once = made(graph="given", **FAST).posteriors(bags, masks)
    for mask, found in zip(masks, at_once, strict=True):
        other = bags.replace(y=np.where(mask, bags.y, 1 - bags.y))
        changed = made(graph="given", **FAST).posteriors(other, mask[None])[0]
        alone = made(graph="given", **FAST).fit(bags.replace(y=np.where(mask, bags.y, np.nan)))
        np.testing.assert_allclose(found.mean, changed.mean, atol=1e-4)
        np.testing.assert_allclose(found.mean, alone.posterior_.mean, atol=1e-4)
        assert alone.shares_["graph"] > 0
    (exact,) = made(graph="given", **FAST).posteriors(bags, masks[:1])
    (again,) = made(graph="given", **FAST).posteriors(bags.replace(y=np.where(masks[0], bags.y, 1 - bags.y)), masks[:1])
    assert (exact.draws == again.draws).all()


@pytest.mark.parametrize("graph", [None, "given", "knn", "learned"])
def test_any_graph_or_none(graph):
    bags = chain()
    hidden = bags.replace(y=np.where(np.arange(36) % 3 == 0, np.nan, bags.y))
    model = BagGraphRegressor(graph=graph, n_members=2, **FAST).fit(hidden)
    assert (model.graph_ is None) == (graph is None)
    assert ("graph" in model.shares_) == (graph is not None)
    assert sum(model.shares_.values()) == pytest.approx(1.0)
    assert model.posterior_.has_noise
    new = model.predict(chain(seed=1).replace(ids=[f"new {i}" for i in range(36)], graph=None))
    assert new.shape == (36,)
    assert np.isfinite(new).all()


def test_it_beats_the_linear_head_where_the_graph_matters():
    bags = chain(60)
    away = np.arange(60) % 3 == 0
    hidden = bags.replace(y=np.where(away, np.nan, bags.y))
    process = BagGraphRegressor(graph="given", **FAST).fit(hidden)
    linear = BagGraphRegressor(**{**FAST, "head": "linear"}).fit(hidden)
    errors = [np.abs(model.transduction_ - bags.y)[away].mean() for model in (process, linear)]
    assert errors[0] < 0.5 * errors[1]


def test_what_it_has_no_answer_to(tmp_path):
    bags = chain()
    with pytest.raises(ParameterError, match="equal weight"):
        BagGraphRegressor(graph=None, **FAST).fit(bags, sample_weight=np.arange(36) + 1.0)
    model = BagGraphRegressor(graph=None, **FAST).fit(bags)
    for ask in (lambda: model.explain(bags), lambda: model.to_onnx(tmp_path / "m.onnx")):
        with pytest.raises(ParameterError, match="head of layers"):
            ask()
    with pytest.raises(ParameterError, match="joint=True"):
        model.predict_posterior(bags, joint=True)


def test_saving(tmp_path):
    bags = chain()
    model = BagGraphRegressor(graph="learned", **FAST).fit(bags)
    again = load(model.save(tmp_path / "model"))
    new = chain(seed=1).replace(graph=None)
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    assert (again.graph_.adjacency != model.graph_.adjacency).nnz == 0
