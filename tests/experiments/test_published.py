"""What the published rental code does, checked against slow and plain forms of it."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch

from baggraph import BagGraph, Bags, Posterior, datasets
from baggraph.experiments import _published as published
from baggraph.experiments import _published_networks as networks
from baggraph.experiments._material import load
from baggraph.experiments._published import PublishedRents, published_draw
from baggraph.experiments._scores import pairwise_percentage_error, winner
from baggraph.experiments.recipe import recipes


@pytest.fixture(autouse=True)
def _forget() -> None:
    published._known.clear()


def rents(n_bags: int = 12, size: int = 4) -> Bags:
    generator = np.random.default_rng(0)
    graph = BagGraph.from_edges(
        [(str(i), str((i + 1) % n_bags)) for i in range(n_bags)], ids=[str(i) for i in range(n_bags)]
    )
    return Bags(
        generator.normal(size=(n_bags * size, 3)),
        np.arange(n_bags + 1) * size,
        generator.normal(3000, 500, size=n_bags),
        ids=graph.ids,
        graph=graph,
        bag_info={"shipped_self_loop": np.array([1.0, 2.0] * (n_bags // 2))},
        metadata={"clipped_price_mean": 3000.0, "clipped_price_std": 500.0},
    )


def predictions(bags: Bags, **parameters: object) -> np.ndarray:
    seen = np.arange(len(bags)) < 8
    model = PublishedRents(epochs=25, n_neighbors=3, **parameters)
    return model.posteriors(bags, [seen])[0].mean[:, 0]


def test_draws_are_those_of_pandas() -> None:
    bags = Bags(np.arange(60.0)[:, None], [0, 25, 60], [0.0, 1.0])
    frame = pd.DataFrame({"group": np.repeat([0, 1], bags.sizes), "value": np.arange(60.0)})
    groups = [part.sample(20, replace=False, random_state=7) for _, part in frame.groupby("group")]  # each anew
    expected = pd.concat(groups)["value"]
    assert published_draw(bags, 20, 7).instances[:, 0].tolist() == expected.tolist()


@pytest.mark.parametrize("encoder", ["deep-sets", "set-transformer"])
@pytest.mark.parametrize("variant", ["base", "gcn", "bayesian"])
def test_labels_of_tested_bags_change_nothing(encoder: str, variant: str) -> None:
    bags = rents()
    other = bags.replace(y=np.where(np.arange(12) < 8, bags.y, 0.0))
    first = predictions(bags, encoder=encoder, variant=variant)
    published._known.clear()
    assert np.array_equal(first, predictions(other, encoder=encoder, variant=variant))


def test_a_fit_is_taken_again_without_a_difference() -> None:
    bags = rents()
    fresh = {}
    for variant in ("base", "gcn", "bayesian"):
        published._known.clear()
        fresh[variant] = predictions(bags, variant=variant)
    published._known.clear()
    for variant, expected in fresh.items():
        assert np.array_equal(predictions(bags, variant=variant), expected)
    assert len(published._known) == 3


def test_only_bayesian_rows_are_averaged() -> None:
    bags = rents()
    assert not np.array_equal(predictions(bags, variant="gcn"), predictions(bags, variant="gcn", averaged=True))
    assert np.array_equal(predictions(bags, variant="bayesian"), predictions(bags, variant="bayesian", averaged=True))


def test_settings_differ_in_the_graph() -> None:
    bags = rents()
    found = [
        predictions(bags, variant="bayesian", setting=setting)
        for setting in ("transductive", "disconnected in training", "disconnected")
    ]
    assert not np.array_equal(found[0], found[1])
    assert not np.array_equal(found[1][8:], found[2][8:])


def test_set_transformer_has_no_dropout() -> None:
    bags = rents()
    one = predictions(bags, encoder="set-transformer")
    assert np.array_equal(one, predictions(bags, encoder="set-transformer"))
    network = networks.Rents("set-transformer", 3)
    values = torch.ones(5, networks.WIDTH)
    assert torch.equal(network.drop(values), values)
    assert not torch.equal(networks.Rents("deep-sets", 3).drop(values), values)


def test_adam_is_that_of_torch() -> None:
    torch.manual_seed(0)
    weight, bias = torch.randn(4, 3, requires_grad=True), torch.randn(4, requires_grad=True)
    w, b = weight.detach().numpy().copy(), bias.detach().numpy().copy()
    adam = networks.Adam([weight], [bias], 0.01, 0.1)
    state = {id(p): [np.zeros_like(p), np.zeros_like(p)] for p in (w, b)}
    for step in range(1, 6):
        loss = (weight.sum(1) + bias).pow(2).sum()
        gradients = torch.autograd.grad(loss, [weight, bias])
        adam.step(gradients)
        for own, gradient in ((w, gradients[0].numpy() + 0.1 * w), (b, gradients[1].numpy())):
            first, second = state[id(own)]
            first[:] = 0.9 * first + 0.1 * gradient
            second[:] = 0.999 * second + 0.001 * gradient**2
            own -= 0.01 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        assert np.allclose(weight.detach().numpy(), w, atol=1e-5)
        assert np.allclose(bias.detach().numpy(), b, atol=1e-5)


def test_attention_is_that_of_a_loop() -> None:
    torch.manual_seed(0)
    layer = networks._Attention(6)
    x = torch.randn(2, 5, 6)
    query, key, value = layer.query(x), layer.key(x), layer.value(x)
    width = networks.WIDTH // networks.HEADS
    parts = []
    for head in range(networks.HEADS):
        own = slice(head * width, (head + 1) * width)
        scores = query[:, :, own] @ key[:, :, own].transpose(1, 2) / math.sqrt(networks.WIDTH)
        parts.append(query[:, :, own] + scores.softmax(2) @ value[:, :, own])
    joined = layer.norms[0](torch.cat(parts, 2))
    expected = layer.norms[1](joined + torch.relu(layer.feed(joined)))
    assert torch.allclose(layer(x, x), expected, atol=1e-5)


def test_inferred_graph_is_that_of_nearest_embeddings() -> None:
    embedding = torch.tensor([[0.0], [1.0], [3.0], [10.0]])
    known = torch.tensor([True, True, True, False])
    adjacency = published._nearest(embedding, known, 1).numpy() > 0
    assert adjacency.tolist() == [
        [True, True, False, False],
        [True, True, True, False],
        [False, True, True, False],
        [False, False, False, True],
    ]


def test_normalised_rows_of_a_regular_graph_sum_to_one() -> None:
    ring = np.eye(6) + np.roll(np.eye(6), 1, 0) + np.roll(np.eye(6), -1, 0)
    assert np.allclose(published._normalised(ring).sum(1), 1)


def test_scores() -> None:
    posterior = Posterior([[[0.7], [0.4], [0.5]]])
    assert winner([0.6, 0.6, 0.5], posterior) == pytest.approx(2 / 3)
    y, m = np.array([1.0, 2.0, 4.0]), np.array([1.5, 2.0, 3.0])
    slow = np.mean([abs(a - b) / a for a in y for b in m])
    assert pairwise_percentage_error(y, Posterior(m.reshape(1, 3, 1))) == pytest.approx(slow)


@pytest.mark.skipif(datasets.state(datasets.card("rental")) != "here", reason="no files of rental")
def test_published_units_are_sixteen_times_smaller_than_dollars() -> None:
    bags = load(recipes()["rental-as-published"], "rental").bags
    dollars = datasets.load("rental", as_published=True)
    assert np.ptp(dollars.y) / np.ptp(bags.y) == pytest.approx(16.22, abs=0.01)
    assert bags.n_features == 10
