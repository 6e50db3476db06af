"""Gaussian processes as estimators: the laws of all estimators, what they say of parts, new bags and several views."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from baggraph import BagGraph, Bags
from baggraph.errors import InvalidBagsError, ParameterError
from baggraph.estimators.process import BagProcessClassifier, BagProcessRegressor
from baggraph.testing import check_bag_estimator


def chain(n: int = 40, seed: int = 0) -> Bags:
    """Bags along a chain whose target follows the chain, and a little what is in them."""
    rng = np.random.default_rng(seed)
    content = rng.normal(size=n)
    instances = np.repeat(content, 3)[:, None] + 0.1 * rng.normal(size=(3 * n, 1))
    y = 5 + np.sin(np.arange(n) / 4) + 0.2 * content
    graph = BagGraph.from_edges([(i, i + 1) for i in range(n - 1)], ids=range(n))
    return Bags(instances, np.arange(0, 3 * n + 1, 3), y, ids=range(n), graph=graph)


@pytest.mark.parametrize("estimator", [BagProcessRegressor(parts="linear"), BagProcessClassifier(parts="linear")])
def test_it_keeps_the_laws_of_bags(estimator):
    check_bag_estimator(estimator)


@parametrize_with_checks([BagProcessRegressor(parts="linear"), BagProcessClassifier(parts="linear")])
def test_it_keeps_the_manners_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_graph_carries_what_follows_it():
    bags = chain()
    hidden = bags.replace(y=np.where(np.arange(40) % 3 == 0, np.nan, bags.y))
    model = BagProcessRegressor().fit(hidden)
    assert model.shares_["graph"] > 0.5
    assert sum(model.shares_.values()) == pytest.approx(1.0)
    away = np.arange(40) % 3 == 0
    with_graph = np.abs(model.transduction_ - bags.y)[away].mean()
    without = np.abs(BagProcessRegressor(graph=None).fit(hidden).transduction_ - bags.y)[away].mean()
    assert with_graph < 0.5 * without


def test_all_folds_at_once_are_single_fits():
    bags = chain()
    masks = np.stack([np.arange(40) % 4 != k for k in range(2)])
    model = BagProcessRegressor()
    for mask, found in zip(masks, model.posteriors(bags, masks), strict=True):
        alone = BagProcessRegressor().fit(bags.replace(y=np.where(mask, bags.y, np.nan))).posterior_
        np.testing.assert_array_equal(found.draws, alone.draws)
    assert not hasattr(model, "posterior_")


def test_new_bags_are_joined_by_links_or_by_a_graph_that_knows_them():
    bags = chain()
    some, new = bags.take(np.arange(40) != 20), bags.take([20])
    by_graph = BagProcessRegressor(graph=bags.graph).fit(some).predict_posterior(new)
    links = (np.abs(np.delete(np.arange(40), 20) - 20) == 1)[None].astype(float)
    by_links = BagProcessRegressor(graph=bags.graph).fit(some).predict_posterior(new, links=links)
    np.testing.assert_array_equal(by_graph.draws, by_links.draws)
    stranger = BagProcessRegressor().fit(some).predict_posterior(new.replace(ids=["x"], graph=None))
    assert stranger.std[0, 0] > by_graph.std[0, 0]
    assert abs(by_graph.mean[0, 0] - bags.y[20]) < abs(stranger.mean[0, 0] - bags.y[20])


def test_views_and_evidence():
    bags, rng = chain(), np.random.default_rng(1)
    hidden = rng.normal(size=40)
    other = Bags(hidden[:, None], np.arange(41), ids=bags.ids)
    bags = bags.replace(y=np.exp(hidden + 0.1 * bags.y))
    alone = BagProcessRegressor(parts="linear").fit(bags)
    both = BagProcessRegressor(parts="linear", views={"census": other}).fit(bags)
    assert both.link_ == "log"
    assert both.fitted_.log_evidence > alone.fitted_.log_evidence + 10
    assert both.shares_["linear of census"] > 0.8
    with pytest.raises(InvalidBagsError, match="bags of every view"):
        both.predict(bags)


def test_several_targets_and_wrong_parameters():
    bags = chain()
    y = np.stack([bags.y, -bags.y], axis=1)
    model = BagProcessRegressor(link="identity").fit(bags, y)
    np.testing.assert_allclose(model.transduction_[:, 0], -model.transduction_[:, 1], rtol=1e-6)
    with pytest.raises(ParameterError, match="'given'"):
        BagProcessRegressor(graph="knn").fit(bags)
    with pytest.raises(ParameterError, match="did you mean 'linear'"):
        BagProcessRegressor(parts="liner").fit(bags)
