"""Heads that hear neighbours, labels as inputs, reweighted graphs: laws, new bags by hand, saved and explained."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import baggraph as bg
from baggraph.errors import InvalidGraphError, ParameterError
from baggraph.estimators._saving import load
from baggraph.graphs.reweighted import ReweightedWiring
from baggraph.inference._label_inputs import label_inputs, masked, out_of_fold
from baggraph.inference.sampling import described
from baggraph.nn import Head, OwnNeighbors, Propagation, SquaredError
from baggraph.testing import check_bag_estimator

B, NEW = 24, 4
IDS = [f"bag {i}" for i in range(B)]
FAST = {"epochs": 8, "n_draws": 2, "lr": 1e-2, "device": "cpu", "encoder_options": {"hidden": (6, 4)}}
HEADS = [
    {"head": "sage"},
    {"head": "restart", "steps": 3},
    {"head": "restart", "steps": 3, "label_inputs": True},
    {"head": "sage", "label_inputs": True, "hidden": (4,), "n_members": 2},
    {"smoothing": "auto", "graph": "knn"},
]


def some_bags(n: int, seed: int, prefix: str) -> bg.Bags:
    rng = np.random.default_rng(seed)
    y = rng.random(n)
    return bg.Bags.from_list(
        [rng.normal(3 * place, 1, size=(rng.integers(2, 6), 3)) for place in y],
        y=y,
        ids=[f"{prefix} {i}" for i in range(n)],
    )


RING = [(IDS[i], IDS[(i + 5) % B], 1.0 + i % 3) for i in range(B)]
KNOWN = bg.BagGraph.from_edges(RING, IDS)
BAGS, ASKED = some_bags(B, 0, "bag").replace(graph=KNOWN), some_bags(NEW, 1, "new").replace(y=None)
UNION = bg.BagGraph.from_edges(
    [*RING, *((f"new {i}", IDS[3 * i + k], 1.0 + k) for i in range(NEW) for k in range(2))],
    [*IDS, *ASKED.ids],
)
LINKS = sp.csr_array(UNION.adjacency[B:][:, :B])
MASKS = np.random.default_rng(3).random((3, B)) < 0.6


@pytest.mark.parametrize("more", HEADS)
@pytest.mark.parametrize("kind", [bg.BagGraphClassifier, bg.BagGraphRegressor])
def test_heads_keep_all_laws(kind, more):
    own = {"epochs": 5, "n_draws": 3, "lr": 5e-3, "device": "cpu", "encoder_options": {"hidden": (16, 8)}}
    assert len(check_bag_estimator(kind(**own | more))) == (16 if kind is bg.BagGraphClassifier else 13)


# ---------------------------------------------------------------------- labels as inputs


def test_a_bag_that_is_shown_does_not_count_in_the_loss():
    weights = torch.rand(2, B, generator=torch.Generator().manual_seed(0))
    weights[:, ::3] = 0
    weights = weights / weights.sum(1, keepdim=True)
    labels = label_inputs(torch.arange(B, dtype=torch.float32).unsqueeze(1) + 1, weights)
    for key in range(20):
        shown, counted = masked(labels, weights.unsqueeze(1), torch.tensor([key, key + 99], dtype=torch.int32))
        assert not ((shown[..., 1] > 0) & (counted[:, 0] > 0)).any()
        assert not (shown[:, ::3]).any()
        assert not (counted[:, 0, ::3]).any()
        assert (((shown[..., 1] > 0) | (counted[:, 0] > 0)) == (weights > 0)).all()
        torch.testing.assert_close(counted.sum(-1), torch.ones(2, 1))


def test_no_bag_is_answered_from_its_own_label_however_long_the_walk():
    head = Head((4,), 1, layer=lambda i, o: OwnNeighbors(i, o, steps=5, restart=0.1), n_labels=2).double().eval()
    paths = Propagation.of(KNOWN, dtype=torch.float64)
    Z = torch.randn(1, B, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weights = torch.ones(1, B)
    weights[:, ::4] = 0

    def asked(targets: torch.Tensor) -> torch.Tensor:
        def answer(given):
            return described(head(given[0], paths)[None, None], SquaredError())

        return out_of_fold(answer, Z, label_inputs(targets, weights).double(), [7]).mean[0, 0, :, 0]

    targets = torch.zeros(B, 1)
    before = asked(targets)
    for bag in range(B):
        changed = targets.clone()
        changed[bag] = 10.0
        moved = (asked(changed) != before).tolist()
        assert not moved[bag]
        assert any(moved) == (bag % 4 != 0)  # others do hear it, if it is seen at all


def of_kind(kind: str) -> tuple[bg.BagGraphClassifier | bg.BagGraphRegressor, bg.Bags]:
    rng = np.random.default_rng(5)
    more = FAST | {"head": "restart", "steps": 3, "label_inputs": True, "graph": "reweighted"}
    if kind == "binary":
        return bg.BagGraphClassifier(**more), BAGS.replace(y=np.array(["no", "yes"] * (B // 2), dtype=object))
    if kind == "three classes":
        return bg.BagGraphClassifier(**more), BAGS.replace(y=np.array(["a", "b", "c"] * (B // 3), dtype=object))
    if kind == "two targets":
        return bg.BagGraphRegressor(**more), BAGS.replace(y=rng.normal(size=(B, 2)))
    return bg.BagGraphRegressor(loss={"shares": "bce"}.get(kind, kind), **more), BAGS


KINDS = ["binary", "three classes", "two targets", "shares", "squared", "gaussian"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_is_its_members_and_sees_no_hidden_label(kind):
    model, bags = of_kind(kind)
    stacked = model.posteriors(bags, MASKS)
    other = bags.replace(y=np.where(MASKS[0].reshape((B,) + (1,) * (bags.y.ndim - 1)), bags.y, bags.y[::-1]))
    np.testing.assert_array_equal(model.posteriors(other, MASKS)[0].draws, stacked[0].draws)
    for mask, found in zip(MASKS, stacked, strict=True):
        np.testing.assert_allclose(model.fit(hidden(bags, mask)).posterior_.draws, found.draws, rtol=1e-5, atol=1e-6)


def hidden(bags, mask):
    from baggraph.data.splits import hide_labels

    return hide_labels(bags, mask)


def test_labels_of_neighbours_are_worth_something_where_they_are_all_there_is():
    rng = np.random.default_rng(0)
    names = [str(i) for i in range(60)]
    y = np.sin(np.arange(60) / 5)
    chain = bg.BagGraph.from_edges(list(pairwise(names)), names)
    bags = bg.Bags.from_list([rng.normal(size=(3, 2)) for _ in y], y=y, ids=names).replace(graph=chain)
    mask = rng.random(60) < 0.8
    more = FAST | {"epochs": 200, "graph": "given", "n_draws": 0, "dropout": 0.0, "head": "sage"}
    errors = {}
    for labels in (False, True):
        found = bg.BagGraphRegressor(**more, label_inputs=labels).posteriors(bags, mask[None])[0]
        errors[labels] = float(np.sqrt(np.mean((found.mean[~mask, 0] - y[~mask]) ** 2)))
    assert errors[True] < 0.4 < 0.45 < errors[False]


def test_without_a_graph_nothing_is_shown():
    plain, asked = (bg.BagGraphRegressor(**FAST, graph=None, label_inputs=labels).fit(BAGS) for labels in (False, True))
    np.testing.assert_array_equal(plain.posterior_.draws, asked.posterior_.draws)


# ---------------------------------------------------------------------- new bags


def test_new_bags_by_hand():
    more = FAST | {"n_draws": 0, "precision": "float64", "head": "restart", "steps": 3, "label_inputs": True}
    model = bg.BagGraphRegressor(**more, graph=KNOWN).fit(BAGS)
    fitted = model._fitted
    A = KNOWN.adjacency.toarray() / KNOWN.adjacency.max()
    old = A + np.eye(B)
    degree = old.sum(0)
    old /= np.sqrt(np.outer(degree, degree))
    Z_new = fitted.embed(model.scaler_.transform(ASKED)).numpy()[0]
    weights = {name: value[0].numpy() for name, value in fitted.parameters.items()}
    labels = fitted.labels[0].numpy()
    center, scale = (float(part[0, 0, 0]) for part in model._scales)
    np.testing.assert_allclose(labels[:, 0] * scale + center, BAGS.y)
    wanted = []
    for b in range(NEW):
        own = LINKS.toarray()[b] / KNOWN.adjacency.max()
        whole = np.zeros((B + 1, B + 1))
        whole[:B, :B], whole[B, B] = old, 1 / (1 + own.sum())
        whole[B, :B] = own / np.sqrt((1 + own.sum()) * (degree + own))
        levels, start = [], 0
        for level, width in enumerate((6, 4)):
            z = np.vstack([fitted.embedding[0].numpy(), Z_new[b : b + 1]])[:, start : start + width]
            start += width
            h = np.hstack([z, np.vstack([labels, np.zeros((1, 2))])])
            name = f"head.levels.{level}.0."
            first = walked = h @ weights[name + "near.weight"].T
            for _ in range(3):
                walked = 0.9 * whole @ walked + 0.1 * first
            levels.append((h @ weights[name + "own.weight"].T + walked + weights[name + "bias"])[-1, 0])
        wanted.append(np.mean(levels) * scale + center)
    np.testing.assert_allclose(model.predict_posterior(ASKED, links=LINKS).mean[:, 0], wanted, rtol=1e-9)


def test_reweighted_edges_by_hand_and_new_bags_alike():
    model = bg.BagGraphRegressor(**FAST | {"graph": ReweightedWiring(UNION), "precision": "float64"}).fit(BAGS)
    fitted = model._fitted
    source = fitted.embed(model.scaler_.transform(BAGS), fitted.sources)[0].numpy()
    apart = np.linalg.norm(source[:, None] - source[None], axis=2)
    A = KNOWN.adjacency.toarray()
    scale = np.median(apart[A > 0])
    np.testing.assert_allclose(model.graph_.adjacency.toarray(), A * np.exp(-apart / scale), rtol=1e-10)
    near = fitted.embed(model.scaler_.transform(ASKED), fitted.sources)[0].numpy()
    factors = np.exp(-np.linalg.norm(near[:, None] - source[None], axis=2) / scale)
    joined = fitted.links(model.scaler_.transform(ASKED))[0].toarray()
    np.testing.assert_allclose(joined, LINKS.toarray() * factors, rtol=1e-10)
    known, given = model.predict(ASKED), model.predict_posterior(ASKED, links=LINKS).mean[:, 0]
    np.testing.assert_allclose(known, given)


def test_reweighted_graph_needs_links_of_unknown_bags():
    model = bg.BagGraphRegressor(**FAST, graph="reweighted").fit(BAGS)
    with pytest.raises(InvalidGraphError, match="pass links="):
        model.predict(ASKED)
    assert np.isfinite(model.predict_posterior(ASKED, links=LINKS).mean).all()
    assert np.isfinite(model.predict_posterior(ASKED, joint=True).mean).all()
    with pytest.raises(InvalidGraphError, match="a graph of their own"):
        bg.BagGraphRegressor(**FAST, graph="reweighted").fit(BAGS.replace(graph=None))


# ---------------------------------------------------------------------- kept, explained, refused


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_to_the_last_bit(kind, tmp_path):
    model, bags = of_kind(kind)
    model.fit(hidden(bags, MASKS[0]))
    again = load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.posterior_.draws, model.posterior_.draws)
    for links in (LINKS, 0 * LINKS):
        one, other = (own.predict_posterior(ASKED, links=links).draws for own in (model, again))
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("more", HEADS[:-1])
def test_contributions_add_up_to_the_score_and_leave_the_own_label_out(more):
    model = bg.BagGraphRegressor(**FAST | more | {"graph": "given", "n_draws": 0}).fit(BAGS)
    about = model.explain(ASKED, links=LINKS)
    wanted = model.predict_posterior(ASKED, links=LINKS).mean[:, 0]
    np.testing.assert_allclose([one.score for one in about], wanted, rtol=1e-4)
    seen = model.explain(BAGS[:2], seen=True)
    changed = model._fitted
    if changed.labels is not None:
        changed.labels[:, :2] += 5.0
        for one, other in zip(seen, model.explain(BAGS[:2], seen=True), strict=True):
            own = one.neighbors.index == one.bag
            np.testing.assert_allclose(one.neighbors[own], other.neighbors[own])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"head": "sags"}, "did you mean 'sage'"),
        ({"head": "restart", "steps": 0}, "steps a whole number from 1"),
        ({"head": "restart", "restart": 0.0}, "restart above 0"),
        ({"label_inputs": 0.5}, "label_inputs True or False"),
        ({"smoothing": "best"}, "smoothing None or 'auto'"),
        ({"smoothing": "auto", "head": "gp"}, "a head of layers for smoothing"),
        ({"label_inputs": True, "head": "linear"}, "a head that hears neighbours"),
        ({"label_inputs": True, "head": "gp"}, "a head that hears neighbours"),
        ({"label_inputs": True, "encoder": "mi-net", "encoder_options": None}, "mi-net-bag"),
        ({"head": "sage", "encoder": "mi-net", "encoder_options": None}, "mi-net-bag"),
    ],
)
def test_what_cannot_be_is_refused(more, said):
    kind = bg.BagGraphClassifier if "encoder" in more else bg.BagGraphRegressor
    bags = BAGS.replace(y=np.arange(B) % 2) if "encoder" in more else BAGS
    with pytest.raises(ParameterError, match=said):
        kind(**FAST | more).fit(bags)
