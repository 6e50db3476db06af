"""Committees explain themselves: parts add up, instances are those that matter, nothing hidden is heard."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import logit
from sklearn.metrics import roc_auc_score

import baggraph as bg
from baggraph.errors import InvalidBagsError, ParameterError
from baggraph.estimators import _auto_explaining, _auto_tables
from baggraph.estimators._auto_explaining import alike
from baggraph.estimators._auto_tables import Maker, largest_bag
from baggraph.report.atlas import Atlas

N = 36
LABELS = np.arange(N) % 2
QUICK = ["average kernel", "trees", "instances", "neighbours", "known graph"]


def made(seed=0, count=N, shift=0.7, largest=6):
    """Bags of two classes, each a community of the graph; what is in them tells a little."""
    rng = np.random.default_rng(seed)
    y, sizes = np.arange(count) % 2, rng.integers(1, largest, size=count)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = rng.normal(size=(offsets[-1], 3)) + shift * np.repeat(y, sizes)[:, None]
    edges = [(f"{seed}:{i}", f"{seed}:{j}") for i in range(count) for j in range(i) if y[i] == y[j] and rng.random() < 0.3]  # fmt: skip
    ids = [f"{seed}:{i}" for i in range(count)]
    return bg.Bags(values, offsets, y, ids=ids, graph=bg.BagGraph.from_edges(edges, ids))


BAGS, NEW = made(), made(1, 5).replace(graph=None)
HIDDEN = BAGS.replace(y=np.where(np.arange(N) % 3 == 0, np.nan, BAGS.y))
LINKS = np.eye(5, N)


def targets(bags=BAGS):
    rng = np.random.default_rng(3)
    return np.exp(bags.y + 0.1 * rng.normal(size=len(bags)))


@pytest.fixture(scope="module")
def model():
    found = bg.AutoBagClassifier(members=QUICK).fit(HIDDEN)
    assert {"neighbours", "known graph"} <= set(found.contributions().index)
    return found


@pytest.fixture(scope="module")
def regressor():
    return bg.AutoBagRegressor().fit(BAGS.replace(y=targets()))


def same(one, other, **given):
    assert one.score == pytest.approx(other.score, abs=1e-9)
    pd.testing.assert_frame_equal(one.instances, other.instances, atol=1e-9, **given)
    pd.testing.assert_frame_equal(one.members, other.members, atol=1e-9)
    assert one.neighbors["contribution"].sum() == pytest.approx(other.neighbors["contribution"].sum(), abs=1e-9)


def test_members_and_bags_add_up_to_the_pooled_logit(model):
    for found, wanted in (
        (model.explain(HIDDEN, seen=True), model.posterior_.mean),
        (model.explain(NEW), model.predict_proba(NEW)),
        (model.explain(NEW, links=LINKS), model.predict_posterior(NEW, links=LINKS).mean),
    ):
        assert np.allclose([one.score for one in found], logit(wanted[:, 1]), atol=1e-9)
        for one in found:
            assert one.score == one.bias + one.neighbors["contribution"].sum()
            assert one.bias + one.members["contribution"].sum() == pytest.approx(one.score, abs=1e-12)
            assert one.members["weight"].sum() == pytest.approx(1)
            assert one.members.index.tolist() == model.contributions().index.tolist()


def test_what_bags_add_is_linear_in_their_labels():
    """Of a committee that spreads labels over the known graph, against the system solved by hand."""
    model = bg.AutoBagClassifier(members=["average kernel", "known graph"]).fit(HIDDEN)
    (committee,) = model.committees_
    seat = next(seat for seat in committee.seats if seat.name == "known graph")
    A = HIDDEN.graph.adjacency.toarray()
    root = np.diag(np.maximum(A.sum(axis=1), 1e-12) ** -0.5)
    inverse = np.linalg.inv(np.eye(N) - 0.9 * root @ A @ root)
    seen = np.arange(N) % 3 > 0
    start = np.where(seen, np.where(LABELS == 1, 1 / LABELS[seen].sum(), -1 / (1 - LABELS[seen]).sum()) * seen.sum() / 2, 0)  # fmt: skip
    factor = committee.sigmoid[0] * seat.weight * seat.sigmoid[0]
    for place, one in enumerate(model.explain(HIDDEN, seen=True)):
        others = one.neighbors.drop(one.bag)
        assert set(others.index) <= set(HIDDEN.ids[seen])
        by_hand = pd.Series(factor * inverse[place] * start, index=HIDDEN.ids)
        assert np.allclose(others["contribution"], by_hand[others.index])
        near = LABELS[[HIDDEN.ids.tolist().index(name) for name in others.index[:3]]]
        assert (np.sign(others["contribution"][:3]) == 2 * near - 1).all()
        if not seen[place]:
            spread = seat.sigmoid[0] * seat.scorer.found[place] + seat.sigmoid[1]
            whole = others["contribution"].sum() / (committee.sigmoid[0] * seat.weight) + seat.sigmoid[1]
            assert whole == pytest.approx(spread)


def test_an_instance_counts_what_the_score_loses_without_it(model):
    for given in ({}, {"links": LINKS}):
        whole = model.explain(NEW, **given)
        for b, one in enumerate(whole):
            block = np.asarray(NEW[b])
            near = {name: value[[b] * len(block)] for name, value in given.items()}
            if len(block) == 1:
                usual = model.committees_[0].held.mean()
                assert one.instances["contribution"][0] == pytest.approx(one.score - usual)
                continue
            left = model.predict_posterior([np.delete(block, i, axis=0) for i in range(len(block))], **near)
            assert np.allclose(one.instances["contribution"], one.score - logit(left.mean[:, 1]), atol=1e-8)
    assert min(NEW.sizes) == 1


def test_order_of_instances_and_other_bags_change_nothing(model, regressor):
    for fitted in (model, regressor):
        together = fitted.explain(NEW)
        for b, one in enumerate(together):
            order = np.random.default_rng(b).permutation(NEW.sizes[b])
            turned = bg.Bags.from_list([np.asarray(NEW[b])[order]], ids=[NEW.ids[b]])
            (other,) = fitted.explain(turned)
            other.instances.index = pd.RangeIndex(len(order), name="instance")[order]
            same(one, type(other)(**{**vars(other), "instances": other.instances.sort_index()}), check_index_type=False)
        same(fitted.explain(NEW[2]), together[2])


def test_hidden_labels_change_nothing():
    seen = np.arange(N) % 3 > 0
    none = HIDDEN.replace(instance_y=np.repeat(LABELS, HIDDEN.sizes))
    one = bg.AutoBagClassifier(members=QUICK).fit(HIDDEN).explain(HIDDEN, seen=True)
    other = bg.AutoBagClassifier(members=QUICK).fit(none).explain(BAGS, seen=True)  # their labels come along
    for a, b in zip(one, other, strict=True):
        assert a.score == b.score
        pd.testing.assert_frame_equal(a.instances, b.instances)
        pd.testing.assert_frame_equal(a.neighbors, b.neighbors)
        assert not set(a.neighbors.index[a.neighbors.index != a.bag]) & set(HIDDEN.ids[~seen])


def test_of_two_classes_one_is_the_negative_of_the_other_and_of_three_the_most_probable_is_told(model):
    no, yes = (model.explain(NEW, of=c)[0] for c in (0, 1))
    assert no.score == pytest.approx(-yes.score)
    for name in ("instances", "members", "neighbors"):
        assert np.allclose(getattr(no, name)["contribution"], -getattr(yes, name)["contribution"])
    three = BAGS.replace(y=np.array(["a", "b", "c"] * (N // 3), dtype=object), graph=None)
    of_three = bg.AutoBagClassifier(members=["average kernel"]).fit(three)
    scores = [of_three.explain(NEW[:1], of=c)[0].score for c in "abc"]
    top = of_three.explain(NEW[:1])[0]
    assert top.score == max(scores)
    assert top.about == f"log odds of {'abc'[int(np.argmax(scores))]!r} against the rest"


@pytest.mark.parametrize("link", ["identity", "log"])
def test_targets_are_explained_on_the_scale_of_the_link(link):
    rng = np.random.default_rng(0)
    y = 5 * LABELS - 2.0 + 0.1 * rng.normal(size=N) if link == "identity" else targets()
    two = np.stack([y, y[::-1]], axis=1)
    seen = BAGS.replace(y=two, coords=rng.normal(size=(N, 2)))
    model = bg.AutoBagRegressor().fit(seen)
    assert model.link_ == link
    new = NEW.replace(coords=rng.normal(size=(5, 2)))
    for target in (0, 1):
        for found, posterior in (
            (model.explain(seen, of=target, seen=True), model.posterior_),
            (model.explain(new, of=target), model.predict_posterior(new)),
        ):
            scores = np.array([one.score for one in found])
            middle = posterior.mean[:, target] if link == "identity" else np.log(posterior.quantile(0.5)[:, target])
            assert np.allclose(scores, middle, atol=1e-6 if link == "identity" else 0.15)
            for one in found:
                assert one.score == one.bias + one.neighbors["contribution"].sum()
                assert one.bias + one.members["contribution"].sum() == pytest.approx(one.score, abs=1e-9)
        assert found[0].about == f"{'target' if link == 'identity' else 'log of the target'} {target}"
        assert len(found[0].neighbors) > N / 2  # targets of bags in fit, through the processes


def test_what_targets_add_is_what_changing_them_does(regressor):
    """Of the processes at their parameters: the mean moves by the share of a target times its change."""
    (council,) = regressor.councils_
    voice = next(one for one in council.voices if one.name == "process")
    rows = regressor._descriptions["process"].take([4])
    moved = voice.model.targets.copy()
    moved[7] += 2.0
    other = type(voice.model)(voice.model.process, voice.model.theta, voice.model.rows, moved, 0.0, 0.0)
    change = float((other.predict(rows)[0] - voice.model.predict(rows)[0])[0, 0])
    assert voice.model.shares(rows)[0, 7] * 2.0 == pytest.approx(change)
    assert voice.model.shares(rows) @ voice.model.targets == pytest.approx(voice.model.predict(rows)[0])


def test_an_instance_of_a_target_counts_what_is_expected_less_without_it():
    y = 5.0 * LABELS - 2 + np.random.default_rng(0).normal(size=N)
    model = bg.AutoBagRegressor().fit(BAGS.replace(y=y))
    assert model.link_ == "identity"
    for b, one in enumerate(model.explain(NEW)):
        block = np.asarray(NEW[b])
        if len(block) == 1:
            assert one.instances["contribution"][0] == pytest.approx(one.score - usual(model))
        else:
            left = model.predict([np.delete(block, i, axis=0) for i in range(len(block))])
            assert np.allclose(one.instances["contribution"], one.score - left, atol=1e-6)


def usual(model):
    """What was expected of labelled bags, each when its label was left out, on average."""
    return model._scale.center[0] + model._scale.spread[0] * model.councils_[0].held_mean.mean()


def test_many_instances_are_left_out_in_groups_of_those_that_are_alike(monkeypatch):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(100, 2))
    labels = alike(values, 3)
    assert set(np.bincount(labels).tolist()) == {12, 13}
    order = rng.permutation(100)
    assert (alike(values[order], 3) == labels[order]).all()
    inside = np.mean([values[labels == g].var(axis=0).sum() for g in range(8)])
    assert inside < 0.5 * values.var(axis=0).sum()
    monkeypatch.setattr(_auto_tables, "largest_bag", lambda sizes: largest_bag(sizes, total=200))
    monkeypatch.setattr(_auto_explaining, "HALVINGS", 3)
    large = made(5, 12, largest=60)
    model = bg.AutoBagClassifier(members=["average kernel", "instances"]).fit(large)
    found = model.explain(large, seen=True)
    sizes = large.sizes
    assert sizes.max() > 2 * model._maker.largest > 16
    for one, size in zip(found, sizes, strict=True):
        assert len(one.instances) == size
        assert one.instances["contribution"].nunique() <= 8
    place = int(sizes.argmax())
    given = found[place].instances["contribution"].to_numpy()
    kept = _auto_tables.kept_rows(large, model._maker.largest)[place]
    seen = large.instances[kept]
    own = given[kept - large.offsets[place]]
    for value in np.unique(own):
        whole, left = logit(model.predict_proba([seen, seen[own != value]])[:, 1])
        assert given[given == value].sum() == pytest.approx(whole - left, abs=1e-8)
    many = bg.AutoBagRegressor().fit(large.replace(y=sizes.astype(float)))
    assert [len(one.instances) for one in many.explain(large, seen=True)] == sizes.tolist()


@pytest.mark.parametrize("kind", ["classes", "targets"])
def test_saved_committees_explain_the_same(kind, model, regressor, tmp_path):
    fitted = model if kind == "classes" else regressor
    again = bg.load(fitted.save(tmp_path / "model"))
    for given in ({"X": NEW}, {"X": HIDDEN[:4], "seen": True}):
        for one, other in zip(fitted.explain(**given), again.explain(**given), strict=True):
            # NumPy adds in an order that depends on where arrays lie in memory, so the last digit may differ.
            assert (one.score, one.bias) == pytest.approx((other.score, other.bias), rel=1e-12, abs=1e-14)
            assert one.about == other.about
            for name in ("instances", "members", "neighbors"):
                pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"of": "2"}, ParameterError, "expected one of the classes, got '2'"),
        ({"method": "gradients"}, ParameterError, "expected method 'auto' or 'leave-one-out', got 'gradients'"),
        ({"seen": True}, InvalidBagsError, "bags of the fit, got no bag '1:0', '1:1'"),
    ],
)
def test_wrong_questions(model, regressor, arguments, error, text):
    with pytest.raises(error, match=text):
        model.explain(NEW, **arguments)
    with pytest.raises(InvalidBagsError, match="the instances of the fit, got others in bag '0:0'"):
        model.explain(NEW.replace(ids=BAGS.ids[:5]), seen=True)
    with pytest.raises(ParameterError, match="the number of a target, below 1, got 1"):
        regressor.explain(NEW, of=1)


def test_names_are_kept_and_members_are_told(model):
    named = NEW.replace(instance_names=[f"i{k}" for k in range(NEW.n_instances)])
    one = model.explain(named["1:2"])
    assert one.instances.index.tolist() == named["1:2"].instance_names.tolist()
    told = repr(one)
    assert told.startswith("Explanation of bag '1:2': log odds of '1' ")
    assert "  members    " in told
    assert "average kernel" in told


def test_sparse_instances_are_left_out_too():
    counts = bg.Bags(np.maximum(BAGS.instances, 0), BAGS.offsets, LABELS)
    sparse = counts.replace(instances=sp.csr_array(counts.instances), offsets=counts.offsets)
    found = [bg.AutoBagClassifier(scaling="maxabs").fit(some).explain(some[:3], seen=True) for some in (counts, sparse)]
    for one, other in zip(*found, strict=True):
        assert np.allclose(one.instances, other.instances, atol=1e-9)
    alone = bg.AutoBagClassifier(members=["instances"]).fit(sparse)
    assert alone.explain(sparse["1"]).score == pytest.approx(alone.explain(sparse[[1]])[0].score)


def test_the_page_is_told_the_loudest_of_very_many_bags():
    heard = pd.DataFrame({"contribution": np.arange(90.0)[::-1]}, index=[str(i) for i in range(90)])
    bags = bg.Bags(np.zeros((90, 1)), np.arange(91))
    told = SimpleNamespace(instances=pd.DataFrame({"contribution": [1.0]}), neighbors=heard, about="score")
    assert list(Atlas.of(bags, explanations={"3": told}).neighbors[3]) == list(range(50))


def test_networks_in_a_committee_are_explained_too():
    model = bg.AutoBagClassifier(members=["average kernel", "network"], graph=None).fit(BAGS)
    for one in model.explain(NEW):
        assert one.bias + one.members["contribution"].sum() == pytest.approx(one.score)


def test_instances_that_decide_are_found():
    bags = bg.datasets.load("digits-bags")
    hidden = bags.replace(y=np.where(np.arange(len(bags)) % 5 == 0, np.nan, bags.y))
    asked = bags.take(np.arange(len(bags)) % 5 == 0)
    found = bg.AutoBagClassifier().fit(hidden).explain(asked, seen=True)
    assert roc_auc_score(asked.instance_y, np.concatenate([one.instances["contribution"] for one in found])) > 0.85


def test_bags_that_share_instances_have_the_tables_of_bags_that_do_not():
    maker = Maker.of(BAGS, BAGS.graph, "standard", 0)
    same = np.array([0, 1, 2, 1, 2, 0, 0, 3])
    asked = bg.Bags(NEW.instances[same], [0, 3, 5, 6, 8])
    plain, shared = maker.tables(asked), maker.tables(asked, same=same)
    for name in ("kernel", "distance_kernel", "summaries"):
        np.testing.assert_allclose(getattr(shared, name), getattr(plain, name), atol=1e-12)
