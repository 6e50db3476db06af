"""The committee for real targets: laws, members, the graph or none, intervals that hold."""

from __future__ import annotations

import numpy as np
import pytest

from baggraph import BagGraph, Bags
from baggraph.errors import InvalidBagsError, ParameterError
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


def test_conformal_intervals_hold_about_as_often_as_asked():
    inside, widths = [], []
    for seed in range(4):
        bags, away = chain(seed=seed), np.arange(48) % 3 == 0
        model = AutoBagRegressor(graph=None).fit(hidden(bags))
        low, high = model.predict_interval(coverage=0.8).T
        inside.append(((low <= bags.y) & (bags.y <= high))[away].mean())
        widths.append(np.median(high - low))
    assert 0.65 < np.mean(inside) < 0.95
    assert 0.2 < np.mean(widths) < 4
    assert model.predict_interval(bags.take([0, 1])).shape == (2, 2)


def test_budgets_and_progress():
    bags, told = chain(), []
    short = AutoBagRegressor(time_budget=0.0).fit(bags)
    assert list(short.contributions().index) == ["process"]
    assert short.skipped_ == [
        "average kernel", "embedding process", "embedding process with graph", "process with graph", "trees"
    ]  # fmt: skip
    assert short.graph_gain() == (0.0, 0.0, 0.0)
    with pytest.raises(ParameterError, match="memory_budget"):
        AutoBagRegressor(memory_budget=1000.0).fit(bags)
    AutoBagRegressor(graph=None, verbose=lambda *one: told.append(one)).fit(bags)
    assert told == [("members", done, 4) for done in (1, 2, 3, 4)]


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
