"""The committee for real targets: laws, members, the graph or none, intervals that hold."""

from __future__ import annotations

import numpy as np
import pytest

from baggraph import BagGraph, Bags
from baggraph.errors import InvalidBagsError
from baggraph.estimators.auto_regressor import AutoBagRegressor
from baggraph.evaluation.metrics import coverage
from baggraph.testing import check_bag_estimator


def chain(n: int = 48, seed: int = 0, wave: float = 1.0) -> Bags:
    rng = np.random.default_rng(seed)
    content = rng.normal(size=n)
    sizes = rng.integers(2, 5, n)
    instances = np.repeat(content, sizes)[:, None] + 0.1 * rng.normal(size=(sizes.sum(), 2))
    y = 5 + wave * np.sin(np.arange(n) / 4) + 0.4 * content + 0.1 * rng.normal(size=n)
    graph = BagGraph.from_edges([(i, i + 1) for i in range(n - 1)], ids=range(n))
    return Bags(instances, np.concatenate([[0], np.cumsum(sizes)]), y, ids=range(n), graph=graph)


def hidden(bags: Bags) -> Bags:
    return bags.replace(y=np.where(np.arange(len(bags)) % 3 == 0, np.nan, bags.y))


@pytest.mark.slow
def test_it_keeps_the_laws_of_bags():
    check_bag_estimator(AutoBagRegressor())


def test_the_graph_has_a_say_where_it_helps():
    bags, away = chain(), np.arange(48) % 3 == 0
    model = AutoBagRegressor().fit(hidden(bags))
    alone = AutoBagRegressor(graph=None).fit(hidden(bags))
    errors = [np.abs(one.transduction_ - bags.y)[away].mean() for one in (model, alone)]
    assert errors[0] < 0.7 * errors[1]
    assert model.graph_gain()[0] > 0
    assert alone.graph_gain() == (0.0, 0.0, 0.0)
    told = model.contributions()
    assert told["weight"].sum() == pytest.approx(1.0)
    assert told.loc["process with graph", "weight"] > told.loc["trees", "weight"]


def test_intervals_hold():
    shares = []
    for seed in range(4):
        bags, away = chain(seed=seed), np.arange(48) % 3 == 0
        posterior = AutoBagRegressor().fit(hidden(bags)).posterior_
        shares.append(coverage(bags.y[away], posterior.take(away)))
    assert 0.75 < np.mean(shares) <= 1.0


def test_hidden_labels_change_nothing_and_folds_are_single_fits():
    bags, mask = chain(), np.arange(48) % 3 > 0
    model = AutoBagRegressor()
    (one,) = model.posteriors(bags, mask[None])
    (other,) = model.posteriors(bags.replace(y=np.where(mask, bags.y, 1e6)), mask[None])
    alone = AutoBagRegressor().fit(bags.replace(y=np.where(mask, bags.y, np.nan)))
    assert (one.draws == other.draws).all()
    assert (one.draws == alone.posterior_.draws).all()


def test_several_targets_and_few_bags():
    bags = chain()
    model = AutoBagRegressor().fit(bags, np.stack([bags.y, bags.y**2], axis=1))
    assert model.transduction_.shape == (48, 2)
    with pytest.raises(InvalidBagsError, match="at least 5"):
        AutoBagRegressor().fit(bags.take(range(4)))
