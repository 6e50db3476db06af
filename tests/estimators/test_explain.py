"""Explanations add up, agree with what the network does when it is asked, and find the instances that matter."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

import baggraph as bg
from baggraph.errors import InvalidBagsError, ParameterError
from baggraph.nn import segment_mean

N = 30


def made(seed=0, count=N, width=4):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, size=count)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = rng.normal(size=(offsets[-1], width)) + (np.repeat(np.arange(count) % 2, sizes) * 1.5)[:, None]
    return bg.Bags(values, offsets, np.arange(count) % 2, ids=[f"{seed}:{i}" for i in range(count)])


BAGS, NEW = made(), made(1, 4)
RING = bg.BagGraph.from_edges([(a, b, 1.0 + k % 3) for k, (a, b) in enumerate(zip(BAGS.ids[:-1], BAGS.ids[1:], strict=True))], BAGS.ids)  # fmt: skip
ONE_LEVEL = {"encoder": "mi-net-bag", "epochs": 5, "n_draws": 0}
LINKS = np.eye(4, N)


def logit(p):
    return np.log(p[:, 1]) - np.log(p[:, 0])


@pytest.mark.parametrize("graph", ["learned", "knn", RING, None], ids=["learned", "knn", "given", "none"])
@pytest.mark.parametrize("encoder", ["mi-net-bag", "attention", "mi-net", "deep-sets"])
def test_contributions_of_bags_add_up_to_the_logit(graph, encoder):
    """The probability is that of the model itself: at the fitted weights, with one level, its logit is the score."""
    model = bg.BagGraphClassifier(**{**ONE_LEVEL, "encoder": encoder, "graph": graph, "precision": "float64"}).fit(BAGS)
    links = {} if graph is not RING else {"links": LINKS}
    for found, wanted in (
        (model.explain(BAGS, seen=True), model.posterior_.mean),
        (model.explain(NEW, **links), model.predict_posterior(NEW, **links).mean),
    ):
        scores = np.array([one.bias + one.neighbors["contribution"].sum() for one in found])
        assert [one.score for one in found] == scores.tolist()
        assert np.allclose(scores, logit(wanted), rtol=1e-6, atol=1e-7)
        counts = {len(one.neighbors) for one in found}
        assert counts == {1} if graph is None else max(counts) > 1


def test_a_neighbour_adds_its_weight_times_its_own_embedding():
    """Against the formula, worked out by hand from the published parts of the model."""
    model = bg.BagGraphClassifier(**ONE_LEVEL, graph=RING).fit(BAGS)
    weights = dict(zip(model._fitted.parameters, model._fitted.parameters.values(), strict=True))
    w = next(v for k, v in weights.items() if k.startswith("head") and k.endswith("weight"))[0, 0].numpy()
    b = next(float(v[0, 0]) for k, v in weights.items() if k.startswith("head") and k.endswith("bias"))
    A = bg.BagGraph(RING.adjacency / RING.adjacency.data.max(), RING.ids).normalised().toarray()
    for row, one in enumerate(model.explain(BAGS, seen=True)):
        heard = np.flatnonzero(A[row])
        assert set(one.neighbors.index) == set(BAGS.ids[heard])
        for place in heard:
            found = one.neighbors.loc[BAGS.ids[place]]
            assert np.isclose(found["weight"], A[row, place], rtol=1e-5)
            assert np.isclose(
                found["contribution"], A[row, place] * (model.embedding_[place] @ w), rtol=1e-4, atol=1e-6
            )
        assert np.isclose(one.bias, b, atol=1e-5)


def test_hidden_layers_members_levels_and_classes():
    three = BAGS.replace(y=np.array(["a", "b", "c"] * (N // 3), dtype=object))
    model = bg.BagGraphClassifier(epochs=5, n_draws=0, n_members=2, hidden=(5,), graph="knn").fit(three)
    for one in model.explain(three[:6], seen=True):
        assert one.score == one.bias + one.neighbors["contribution"].sum()
    scores = {c: model.explain(NEW[:1], of=c)[0] for c in "abc"}
    assert abs(sum(one.score for one in scores.values())) < 1e-5  # each less the mean of all
    assert "'b' less the mean" in scores["b"].about
    top = model.explain(NEW[:1])[0].score
    assert top == max(one.score for one in scores.values())


def test_of_two_classes_one_is_the_negative_of_the_other():
    model = bg.BagGraphClassifier(**ONE_LEVEL).fit(BAGS)
    no, yes = (model.explain(NEW, of=c)[0] for c in (0, 1))
    assert np.isclose(no.score, -yes.score)
    assert np.allclose(no.instances["contribution"], -yes.instances["contribution"])


@pytest.mark.parametrize("loss", ["squared", "gaussian"])
def test_targets_are_explained_in_their_own_units(loss):
    y = np.stack([100 + 10 * np.arange(N), -np.arange(N)], axis=1).astype(float)
    model = bg.BagGraphRegressor(**ONE_LEVEL, loss=loss).fit(BAGS.replace(y=y))
    for target in (0, 1):
        scores = [one.score for one in model.explain(NEW, of=target)]
        assert np.allclose(scores, model.predict(NEW)[:, target], rtol=1e-4)


def test_shares_are_explained_as_log_odds():
    model = bg.BagGraphRegressor(**ONE_LEVEL, loss="bce").fit(BAGS.replace(y=np.linspace(0.1, 0.9, N)))
    p = model.predict(NEW)
    assert np.allclose([one.score for one in model.explain(NEW)], np.log(p / (1 - p)), atol=1e-4)


def test_methods_by_what_they_promise():
    model = bg.BagGraphClassifier(epochs=5, n_draws=0, encoder="attention").fit(BAGS)
    bag, whole = NEW[:1], model.explain(NEW[:1])[0]
    assert whole.method == "attention"
    assert np.isclose(whole.instances["attention"].sum(), 1, atol=1e-5)
    assert np.isclose(whole.instances["contribution"].sum(), whole.neighbors["contribution"][bag.ids[0]], atol=1e-5)
    given = bg.BagGraphClassifier(**ONE_LEVEL, graph=RING).fit(BAGS)
    one = given.explain(NEW, method="leave-one-out", links=LINKS)[0]
    alone = given.explain([np.asarray(bag[0])[1:]], links=LINKS[:1])[0]
    assert np.isclose(one.instances["contribution"][0], one.score - alone.score, atol=1e-5)
    smooth = bg.BagGraphClassifier(epochs=5, n_draws=0, encoder="deep-sets", graph=None).fit(BAGS)
    by_slope = smooth.explain(bag, method="gradients")[0]
    zero = smooth.scaler_.inverse_block(np.zeros((len(bag.instances), 4)))
    rest = smooth.explain([zero])[0]
    assert np.isclose(by_slope.instances["contribution"].sum(), by_slope.score - rest.score, rtol=0.02)


def test_one_bag_is_explained_alone_and_keeps_its_names():
    named = NEW.replace(instance_names=[f"i{k}" for k in range(NEW.n_instances)])
    model = bg.BagGraphClassifier(**ONE_LEVEL).fit(BAGS)
    one = model.explain(named["1:2"])
    assert one.bag == "1:2"
    assert one.instances.index.tolist() == named["1:2"].instance_names.tolist()
    assert one.score == model.explain(named)[2].score
    assert repr(one).startswith("Explanation of bag '1:2': log odds of '1' ")


class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.width, self.level_widths = torch.nn.Linear(4, 3), 3, (3,)

    def forward(self, instances, offsets):
        return segment_mean(self.layer(instances), offsets)


def test_an_encoder_of_ones_own():
    model = bg.BagGraphClassifier(encoder=Own(), epochs=5, n_draws=0, graph=None, precision="float64").fit(BAGS)
    one = model.explain(NEW)[1]
    assert one.method == "leave-one-out"
    linear = model.explain(NEW, method="gradients")[1]
    assert np.isclose(linear.instances["contribution"].sum(), one.neighbors["contribution"].sum() - own_shift(model))


def own_shift(model):
    """What the bias of the encoder adds, which instances of zeros have as well."""
    zeros = model.scaler_.inverse_block(np.zeros((1, 4)))
    return model.explain([zeros])[0].neighbors["contribution"].sum()


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"of": "2"}, ParameterError, "expected one of the classes, got '2'"),
        ({"method": "attentoin"}, ParameterError, "did you mean 'attention'"),
        ({"method": "attention"}, ParameterError, "instance_weights, got RffPool, which has none"),
        ({"seen": True}, InvalidBagsError, "bags of the fit, got no bag '1:0', '1:1'"),
    ],
)
def test_wrong_questions(arguments, error, text):
    model = bg.BagGraphClassifier(**ONE_LEVEL).fit(BAGS)
    with pytest.raises(error, match=text):
        model.explain(NEW, **arguments)


def test_other_instances_under_the_name_of_a_bag_in_the_fit():
    model = bg.BagGraphClassifier(**ONE_LEVEL).fit(BAGS)
    with pytest.raises(InvalidBagsError, match="the instances of the fit, got others in bag '0:0'"):
        model.explain(NEW.replace(ids=BAGS.ids[:4]), seen=True)


# ---------------------------------------------------------------------- do they find what matters?


@pytest.fixture(scope="module")
def digits():
    bags = bg.datasets.load("digits-bags")
    return bags, bg.BagGraphClassifier(epochs=150, n_draws=0, encoder="attention").fit(bags)


def test_instances_that_decide_are_found(digits):
    bags, model = digits
    found = np.concatenate([one.instances["contribution"] for one in model.explain(bags, seen=True)])
    assert roc_auc_score(bags.instance_y, found) > 0.9


def test_deleting_what_counts_most_moves_the_score_more_than_deleting_at_random(digits):
    bags, model = digits
    positive = bags.take((bags.y == 1) & (bags.sizes > 3))[:40]
    rng, moved, before = np.random.default_rng(0), {}, model.explain(positive)
    for name in ("top", "random"):
        left = []
        for bag, one in zip(positive, before, strict=True):
            worst = np.argsort(-one.instances["contribution"].to_numpy())
            left.append(
                np.delete(np.asarray(bag), (worst if name == "top" else rng.permutation(len(worst)))[:2], axis=0)
            )
        moved[name] = np.mean([one.score for one in model.explain(left)]) - np.mean([one.score for one in before])
    assert moved["top"] < 5 * moved["random"] < 0
