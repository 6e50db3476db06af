"""The committee: the laws of all estimators, what it says of its members, when graphs have a say, and its budgets."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.base import clone

from baggraph import BagGraph, Bags
from baggraph.errors import InvalidBagsError, ParameterError
from baggraph.estimators._auto_committee import convene
from baggraph.estimators._auto_members import Instances
from baggraph.estimators._auto_roster import MEMBERS, STANDARD
from baggraph.estimators._auto_tables import Maker, largest_bag, thinned
from baggraph.estimators.auto import AutoBagClassifier
from baggraph.testing import check_bag_estimator

QUICK = ["average kernel", "instances", "neighbours", "known graph"]


def blocks(n: int = 40, shift: float = 1.0, seed: int = 0) -> Bags:
    """Bags of two classes, each a community of the graph; what is in them tells a little."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    sizes = rng.integers(2, 7, n)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    instances = rng.normal(size=(sizes.sum(), 3)) + shift * np.repeat(y, sizes)[:, None]
    edges = [(i, j) for i in range(n) for j in range(i) if y[i] == y[j] and rng.random() < 0.3]
    return Bags(instances, offsets, y, ids=range(n), graph=BagGraph.from_edges(edges, ids=range(n)))


def hidden(bags: Bags, every: int = 3) -> Bags:
    return bags.replace(y=np.where(np.arange(len(bags)) % every == 0, np.nan, bags.y))


def test_it_keeps_the_laws_of_bags():
    check_bag_estimator(AutoBagClassifier(members=QUICK))


def test_many_instances_are_thinned_whatever_their_order():
    rng = np.random.default_rng(0)
    block = rng.normal(size=(300, 3))
    bags = Bags(block, [0, 10, 300])
    again = Bags(np.concatenate([block[:10], block[10:][::-1]]), [0, 10, 300])
    assert largest_bag(bags.sizes, total=110) == 100
    one, other = thinned(bags, 100), thinned(again, 100)
    np.testing.assert_array_equal(one.instances, other.instances)
    assert one.sizes.tolist() == [10, 100]
    assert abs(one.instances[10:].mean() - block[10:].mean()) < 0.1


@pytest.mark.parametrize("name", list(MEMBERS))
def test_every_member_learns(name):
    bags = blocks(60, 1.2)
    tables = Maker.of(bags, bags.graph, "standard", 0).tables()
    visible, held = np.flatnonzero(np.arange(60) % 3), np.flatnonzero(np.arange(60) % 3 == 0)
    scores = MEMBERS[name].fit(tables, visible, 2.0 * bags.y[visible] - 1, 0)(tables)
    assert ((scores[held] > np.median(scores)) == bags.y[held]).mean() > 0.75


@pytest.mark.parametrize("bag", [0, 5])
def test_scores_without_a_bag_are_those_of_a_fit_without_it(bag):
    bags = blocks(12)
    large = np.concatenate([bags.instances, np.random.default_rng(0).normal(size=(30, 3))])  # more than features
    bags = Bags(large, [*bags.offsets, len(large)], [*bags.y, 0])
    tables = Maker.of(bags, None, "standard", 0).tables()
    kept = np.flatnonzero(np.arange(13) != (12 if bag else 0))
    rest = tables.take(kept)
    sizes = np.diff(rest.offsets)
    rows = np.hstack([rest.instances, np.ones((len(rest.instances), 1))])
    weighted = rows * np.repeat(1 / sizes, sizes)[:, None]
    sign = 2.0 * bags.y - 1
    coefficients = np.linalg.solve(weighted.T @ rows + np.eye(4), weighted.T @ np.repeat(sign[kept], sizes))
    left = 12 if bag else 0
    own = tables.take([left]).instances
    found, _ = Instances.scores_without(tables, sign)
    np.testing.assert_allclose(found[left], own @ coefficients[:-1] + coefficients[-1], atol=1e-9)


def test_the_known_graph_is_used_where_it_helps():
    clear, noisy = blocks(60, 0.0), blocks(60, 2.5)
    helped = AutoBagClassifier(members=QUICK).fit(hidden(clear))
    assert helped.graph_gain()[1] > 0
    assert (helped.transduction_ == clear.y)[::3].mean() == 1.0
    shuffled = np.random.default_rng(0).permutation(60)
    wrong = BagGraph(noisy.graph.adjacency[shuffled][:, shuffled], noisy.graph.ids)
    misled = AutoBagClassifier(members=["average kernel", "known graph"], graph=wrong).fit(hidden(noisy))
    assert (misled.transduction_ == noisy.y)[::3].mean() > 0.9
    assert misled.graph_gain()[0] < helped.graph_gain()[0]


def test_it_says_what_members_brought():
    model = AutoBagClassifier().fit(hidden(blocks()))
    told = model.contributions()
    assert set(told.index) <= set(AutoBagClassifier.member_names())
    assert told["weight"].sum() == pytest.approx(1.0)
    assert (told["log_loss"] < np.log(2)).any()
    mean, low, high = model.graph_gain()
    assert low <= mean <= high


def test_folds_at_once_are_single_fits_and_hidden_labels_change_nothing():
    bags = blocks()
    mask = np.arange(40) % 3 > 0
    model = AutoBagClassifier(members=QUICK)
    (at_once,) = model.posteriors(bags, mask[None])
    flipped = bags.replace(y=np.where(mask, bags.y, 1 - bags.y))
    (other,) = model.posteriors(flipped, mask[None])
    alone = AutoBagClassifier(members=QUICK).fit(bags.replace(y=np.where(mask, bags.y, np.nan)))
    np.testing.assert_array_equal(at_once.draws, other.draws)
    np.testing.assert_array_equal(at_once.draws, alone.posterior_.draws)


def test_three_classes_and_text():
    rng = np.random.default_rng(0)
    bags = [rng.normal(2 * (i % 3), 1, size=(4, 2)) for i in range(45)]
    y = [["low", "middle", "high"][i % 3] for i in range(45)]
    model = AutoBagClassifier(members=QUICK).fit(bags, y)
    assert model.posterior_.mean.shape == (45, 3)
    assert (model.predict(bags) == np.array(y)).mean() > 0.8


@pytest.mark.slow
def test_with_networks_hidden_labels_change_nothing_and_folds_are_single_fits():
    bags, mask = blocks(20), np.arange(20) % 3 > 0
    model = AutoBagClassifier(members=["average kernel", "kernel process", "network", "bag graph"])
    (at_once,) = model.posteriors(bags, mask[None])
    (other,) = model.posteriors(bags.replace(y=np.where(mask, bags.y, 1 - bags.y)), mask[None])
    alone = clone(model).fit(bags.replace(y=np.where(mask, bags.y, np.nan)))
    np.testing.assert_array_equal(at_once.draws, other.draws)
    np.testing.assert_array_equal(at_once.draws, alone.posterior_.draws)
    told = alone.contributions()
    assert told.loc["network", "weight"] > 0
    assert not told.loc["network", "graph"]


def test_a_kernel_process_is_one_on_the_table_of_pairs():
    bags = blocks(24)
    tables = Maker.of(bags, None, "standard", 0).tables()
    np.testing.assert_allclose(
        (tables.kernel @ tables.roots) @ (tables.kernel @ tables.roots).T, tables.kernel, atol=1e-7
    )
    new = blocks(6, seed=1)
    seen = np.arange(24)
    scorer = MEMBERS["kernel process"].fit(tables, seen, 2.0 * bags.y - 1, 0)
    maker = Maker.of(bags, None, "standard", 0)
    variance = scorer.side.theta[1]
    asked = maker.tables(new)
    cross = asked.kernel @ tables.roots @ (tables.kernel @ tables.roots).T
    by_hand = (4.0 + variance * cross) @ scorer.side._mode.residual
    found, _ = scorer.side.predict({"level": np.ones((6, 1)), "kernel": asked.kernel @ tables.roots})
    np.testing.assert_allclose(found, by_hand, rtol=1e-8)


def test_sets_hold_the_label_about_as_often_as_asked():
    inside, sizes = [], []
    for seed in range(6):
        bags, away = blocks(60, 0.6, seed=seed), np.arange(60) % 3 == 0
        model = AutoBagClassifier(members=["average kernel", "instances"], graph=None).fit(hidden(bags))
        sets = model.predict_set(coverage=0.9)[away]
        inside += sets[np.arange(20), bags.y[away].astype(int)].tolist()
        sizes.append(sets.sum(axis=1).mean())
        assert len(model.conformal_.scores) == 40
    assert 0.82 < np.mean(inside) <= 0.99
    assert 1.0 < np.mean(sizes) < 2.0
    np.testing.assert_array_equal(model.predict_set(bags, coverage=0.9).shape, (60, 2))


def test_progress_counts_every_member_and_bags_have_places():
    told = []
    bags = blocks()
    model = AutoBagClassifier(members=QUICK, verbose=lambda *one: told.append(one)).fit(bags)
    assert told == [("members", done, 4) for done in (1, 2, 3, 4)]
    told.clear()
    model.posteriors(bags, np.arange(40) % 3 != np.array([[0], [1]]))
    assert told[-1] == ("members", 8, 8)
    kernel = model._maker.tables().kernel
    assert model.embedding_.shape == (40, 16)
    assert np.linalg.norm(model.embedding_ @ model.embedding_.T - kernel) < 0.3 * np.linalg.norm(kernel)
    assert model.graph_ == bags.graph


def test_budgets():
    bags = blocks()
    short = AutoBagClassifier(time_budget=0.0).fit(bags)
    assert list(short.contributions().index) == ["average kernel"]
    assert set(short.skipped_) == set(STANDARD) - {"average kernel"}
    with pytest.raises(ParameterError, match="memory_budget"):
        AutoBagClassifier(memory_budget=1000.0).fit(bags)


def test_what_cannot_be_is_refused():
    bags = blocks()
    with pytest.raises(ParameterError, match="did you mean 'trees'"):
        AutoBagClassifier(members=["treees"]).fit(bags)
    with pytest.raises(ParameterError, match="did you mean 'standard'"):
        AutoBagClassifier(members="standart").fit(bags)
    with pytest.raises(ParameterError, match="without a graph"):
        AutoBagClassifier(members=["neighbours"]).fit(bags)
    with pytest.raises(InvalidBagsError, match="2 labelled bags of every class"):
        AutoBagClassifier().fit(bags.take([0, 1, 2]))


def test_a_deadline_that_has_passed_keeps_the_first_member():
    bags = blocks()
    tables = Maker.of(bags, None, "standard", 0).tables()
    names = {name: MEMBERS[name] for name in ("instances", "trees")}
    found = convene(names, tables, np.arange(40), 2.0 * bags.y - 1, deadline=time.monotonic() - 1)
    assert [seat.name for seat in found.seats] == ["instances"]
