"""New bags join the fitted graph: against the extended graph worked out by hand, in every setting."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import baggraph as bg
from baggraph.errors import InvalidGraphError, ParameterError

B, NEW = 24, 5
IDS = [f"bag {i}" for i in range(B)]
FAST = {
    "epochs": 20,
    "n_draws": 0,
    "lr": 1e-2,
    "device": "cpu",
    "precision": "float64",
    "encoder_options": {"hidden": (6, 4)},
}


def some_bags(n: int = B, seed: int = 0, prefix: str = "bag") -> bg.Bags:
    rng = np.random.default_rng(seed)
    y = rng.random(n)
    arrays = [rng.normal(3 * place, 1, size=(rng.integers(2, 6), 3)) for place in y]
    return bg.Bags.from_list(arrays, y=y, ids=[f"{prefix} {i}" for i in range(n)])


BAGS, ASKED = some_bags(), some_bags(NEW, seed=1, prefix="new").replace(y=None)
KNOWN = bg.BagGraph.from_edges([(IDS[i], IDS[(i + 5) % B], 1.0 + i % 3) for i in range(B)], IDS)
LINKS = sp.csr_array(np.random.default_rng(2).random((NEW, B)) * (np.random.default_rng(3).random((NEW, B)) < 0.2))


def regressor(**more):
    return bg.BagGraphRegressor(**FAST | more)


def by_hand(model, bags, links, hidden=False):
    """Outputs for new bags, each alone, on D^-1/2 (A / max A + I) D^-1/2 of the graph with it added; in units of y."""
    fitted = model._fitted
    weights = {name.removeprefix("head.levels."): value[0].numpy() for name, value in fitted.parameters.items()}
    Z_old, Z_new = fitted.embedding[0].numpy(), fitted.embed(model.scaler_.transform(bags))[0].numpy()
    A = fitted.wired[0].graph.adjacency.toarray()
    largest = A.max()
    answers = []
    for b in range(len(bags)):
        grown = np.zeros((B + 1, B + 1))
        grown[:B, :B], grown[B, :B], grown[:B, B] = A / largest, links[b] / largest, links[b] / largest
        whole = grown + np.eye(B + 1)
        row = (whole / np.sqrt(np.outer(whole.sum(0), whole.sum(0))))[B]
        old = A / largest + np.eye(B)
        old /= np.sqrt(np.outer(old.sum(0), old.sum(0)))
        levels, start = [], 0
        for level, width in enumerate((6, 4)):
            own = slice(start, start + width)
            start += width
            z_old, z_new = Z_old[:, own], Z_new[b : b + 1, own]
            for layer in range(2 if hidden else 1):
                W, c = weights[f"{level}.{layer}.linear.weight"], weights[f"{level}.{layer}.bias"]
                z_new, z_old = row[None, :B] @ z_old @ W.T + row[B] * z_new @ W.T + c, old @ z_old @ W.T + c
                if hidden and layer == 0:
                    z_new, z_old = np.maximum(z_new, 0), np.maximum(z_old, 0)
            levels.append(z_new[0, 0])
        answers.append(np.mean(levels))
    center, scale = (part.ravel()[0] for part in model._scales)
    return np.array(answers) * scale + center


@pytest.mark.parametrize("hidden", [(), (5,)])
@pytest.mark.parametrize("graph", ["knn", "learned", KNOWN], ids=["knn", "learned", "given"])
def test_links_that_are_known(graph, hidden):
    model = regressor(graph=graph, hidden=hidden).fit(BAGS)
    got = model.predict_posterior(ASKED, links=LINKS).mean[:, 0]
    np.testing.assert_allclose(got, by_hand(model, ASKED, LINKS.toarray(), bool(hidden)), rtol=1e-9)
    np.testing.assert_array_equal(got, model.predict_posterior(ASKED, links=LINKS.toarray()).mean[:, 0])


@pytest.mark.parametrize("rounds", [1, 2])
def test_nearest_neighbours_are_those_of_the_model_that_made_the_graph(rounds):
    """The base model or, of two rounds, that of the first: a network trained anew has an embedding of its own."""
    model = regressor(graph="knn", n_neighbors=2, rounds=rounds).fit(BAGS)
    before = regressor(graph=None if rounds == 1 else "knn", n_neighbors=2).fit(BAGS)
    assert not np.allclose(before.embedding_, model.embedding_)
    fitted = model._fitted.wired[0].rule.fitted.numpy()
    np.testing.assert_allclose(fitted, before.embedding_)
    asked = before._fitted.embed(before.scaler_.transform(ASKED))[0].numpy()
    distance = ((asked[:, None] - fitted[None]) ** 2).sum(axis=2)
    links = np.zeros((NEW, B))
    np.put_along_axis(links, np.argsort(distance, axis=1)[:, :2], 1.0, axis=1)
    np.testing.assert_allclose(model.predict(ASKED), by_hand(model, ASKED, links), rtol=1e-9)


@pytest.mark.parametrize("embedding", ["all", "last"])
def test_the_learned_graph_is_joined_by_its_one_node_rule(embedding):
    model = regressor(embedding=embedding).fit(BAGS)
    base = regressor(graph=None).fit(BAGS)
    columns = slice(None) if embedding == "all" else slice(6, None)
    learned = bg.LearnedGraph(3, 3, device="cpu", precision="float64").fit(base.embedding_[:, columns], ids=IDS)
    assert model.graph_ == learned.graph_
    links = learned.attach(base._fitted.embed(base.scaler_.transform(ASKED))[0].numpy()[:, columns]).toarray()
    assert ((links > 0).sum(axis=1) >= 1).all()
    np.testing.assert_allclose(model.predict(ASKED), by_hand(model, ASKED, links), rtol=1e-9)


def test_without_a_graph_bags_of_the_fit_are_answered_as_in_the_fit():
    model = regressor(graph=None, n_draws=5).fit(BAGS)
    np.testing.assert_allclose(model.predict_posterior(BAGS).draws, model.posterior_.draws, rtol=1e-12)


@pytest.mark.parametrize("graph", [None, "knn", "learned", KNOWN], ids=["none", "knn", "learned", "given"])
@pytest.mark.parametrize("changes", [{}, {"n_members": 2, "n_draws": 3}, {"hidden": (4,)}])
def test_neither_order_nor_company_of_new_bags_matters(graph, changes):
    model, links = regressor(graph=graph, **changes).fit(BAGS), LINKS if graph is KNOWN else None
    together = model.predict_posterior(ASKED, links=links).draws
    for order in ([3], [4, 0, 2]):
        some = model.predict_posterior(ASKED.take(order), links=None if links is None else links[order]).draws
        np.testing.assert_allclose(some, together[:, order], rtol=1e-9)


# ---------------------------------------------------------------------- settings, and other ways to join


@pytest.mark.parametrize("graph", ["knn", "learned", KNOWN], ids=["knn", "learned", "given"])
def test_disconnected_bags_stay_alone_as_in_the_fit(graph):
    half = BAGS.replace(y=np.where(np.arange(B) < 12, BAGS.y, np.nan))
    model = regressor(graph=graph, setting="disconnected").fit(half)
    again = model.predict_posterior(BAGS[12:].replace(y=None)).mean
    np.testing.assert_allclose(again, model.posterior_.mean[12:], rtol=1e-9)
    np.testing.assert_allclose(again[:, 0], by_hand(model, BAGS[12:], np.zeros((12, B))), rtol=1e-9)


def test_disconnected_in_training_bags_join_the_graph_of_all():
    half = BAGS.replace(y=np.where(np.arange(B) < 12, BAGS.y, np.nan))
    model = regressor(graph="knn", n_neighbors=1, setting="disconnected in training").fit(half)
    rule = model._fitted.wired[0].rule
    assert rule.fitted.shape[0] == B
    links = rule.attach(rule.fitted[15:17].numpy()).toarray()  # copies of two unlabelled bags, next to these
    assert links.argmax(axis=1).tolist() == [15, 16]
    np.testing.assert_allclose(model.predict(BAGS[15:17]), by_hand(model, BAGS[15:17], links), rtol=1e-9)


def test_joint_bags_are_in_one_graph_made_anew():
    model = regressor(graph="knn", n_neighbors=1).fit(BAGS)
    twins = bg.Bags.from_list([np.full((2, 3), 50.0), np.full((3, 3), 50.0)])  # far from all others
    alone, joint = (model.predict_posterior(twins, joint=joint).mean[:, 0] for joint in (False, True))
    base = regressor(graph=None).fit(BAGS)
    assert not np.allclose(alone, joint)
    new = model._fitted.embed(model.scaler_.transform(twins))
    graph = bg.BagGraph.from_edges([("a", "b")], ["a", "b"])
    from baggraph.graphs.knn import knn_graph

    whole = knn_graph(np.vstack([base.embedding_, base._fitted.embed(base.scaler_.transform(twins))[0].numpy()]), 1)
    assert whole.adjacency.toarray()[B:, B:].tolist() == graph.adjacency.toarray().tolist()
    assert new.shape == (1, 2, 10)


def test_joint_on_a_known_graph_is_the_transductive_answer():
    """Of a model that is fitted on some bags of a graph and asked for the others, with all edges between them."""
    bags = some_bags()
    model = regressor(graph=KNOWN).fit(bags[:16])
    got = model.predict_posterior(bags[16:].replace(y=None), joint=True).mean[:, 0]
    A = KNOWN.adjacency.toarray() / KNOWN.adjacency.max() + np.eye(B)
    A /= np.sqrt(np.outer(A.sum(0), A.sum(0)))
    Z = model._fitted.embed(model.scaler_.transform(bags))[0].numpy()
    weights = {name.removeprefix("head.levels."): value[0].numpy() for name, value in model._fitted.parameters.items()}
    levels = [
        (A @ Z[:, own] @ weights[f"{i}.0.linear.weight"].T + weights[f"{i}.0.bias"])[16:, 0]
        for i, own in enumerate((slice(0, 6), slice(6, 10)))
    ]
    center, scale = (part.ravel()[0] for part in model._scales)
    np.testing.assert_allclose(got, np.mean(levels, axis=0) * scale + center, rtol=1e-9)
    links = model.predict_posterior(bags[16:].replace(y=None)).mean[:, 0]  # the same graph, each bag as if alone
    assert not np.allclose(links, got)


def test_joint_with_an_observed_graph_leaves_new_bags_out_of_it():
    model = regressor(observed=KNOWN, trust=0.5).fit(BAGS)
    assert np.isfinite(model.predict_posterior(ASKED, joint=True).mean).all()


def test_what_cannot_be_joined_is_refused():
    model = regressor(graph=KNOWN).fit(BAGS)
    with pytest.raises(
        InvalidGraphError, match="expected links from new bags, got a graph that was given, without the new"
    ):
        model.predict(ASKED)
    with pytest.raises(InvalidGraphError, match=r"expected links of shape .* \(5, 24\), got shape \(5, 3\)"):
        model.predict_posterior(ASKED, links=np.ones((5, 3)))
    for value in (-1.0, np.nan):
        with pytest.raises(InvalidGraphError, match="expected finite links from 0, got negative or missing ones"):
            model.predict_posterior(ASKED, links=np.full((5, B), value))
    with pytest.raises(ParameterError, match="expected one way to join new bags, got joint=True with links"):
        model.predict_posterior(ASKED, links=LINKS, joint=True)
    with pytest.raises(ParameterError, match="got joint=True with setting='disconnected'"):
        regressor(setting="disconnected").fit(BAGS).predict_posterior(ASKED, joint=True)
    for more in ({"links": LINKS}, {"joint": True}):
        with pytest.raises(
            ParameterError, match="expected neither, got links or joint=True for a model without a graph"
        ):
            regressor(graph=None).fit(BAGS).predict_posterior(ASKED, **more)


def test_many_instances_are_embedded_in_parts(monkeypatch):
    from baggraph.estimators import _fitted

    model, many = regressor().fit(BAGS), some_bags(40, seed=4)
    whole = model.predict_posterior(many).draws
    monkeypatch.setattr(_fitted, "CHUNK_INSTANCES", 7)
    assert [len(part) > 0 for part in _fitted._chunks(many)] == [True] * len(list(_fitted._chunks(many)))
    assert sum(len(part) for part in _fitted._chunks(many)) == 40
    assert max(part.n_instances for part in _fitted._chunks(many)) <= 7
    np.testing.assert_allclose(model.predict_posterior(many).draws, whole, rtol=1e-9)
