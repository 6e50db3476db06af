"""A stack of members against each alone, against torch's own Adam, and at its edges."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.errors import BagWarning, InvalidBagsError, InvalidGraphError, ParameterError
from baggraph.inference import stack
from baggraph.inference._adam import StackedAdam
from baggraph.inference.stack import StackFit, fit_stack
from baggraph.nn import encoders
from baggraph.nn.gcn import Propagation
from baggraph.nn.heads import Head, PassHead
from baggraph.nn.losses import BinaryCrossEntropy, CrossEntropy, Gaussian, SquaredError
from baggraph.nn.network import Network
from baggraph.nn.ragged import segment_mean

M = 12


def some_bags(n: int = 20, d: int = 5, seed: int = 0) -> Bags:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, size=n)
    y = (rng.random(n) < 0.5).astype(int)
    parts = [rng.normal(size=(size, d)) + label for size, label in zip(sizes, y, strict=True)]
    return Bags.from_list(parts, y)


def some_graphs(n: int, count: int = M) -> list[BagGraph]:
    graphs = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        upper = np.triu((rng.random((n, n)) < 0.15) * rng.random((n, n)), 1)
        graphs.append(BagGraph(upper + upper.T, [str(i) for i in range(n)]))
    return graphs


BAGS = some_bags()
Y = np.array([int(v) for v in BAGS.y])
MASKS = np.random.default_rng(1).random((M, len(BAGS))) < 0.7
SETTINGS = {
    "seeds": [100 + m for m in range(M)],
    "lr": [1e-3 * (1 + m % 3) for m in range(M)],
    "weight_decay": [1e-2 * (m % 4) for m in range(M)],
}


def net(name: str = "rff-pool", **options) -> Network:
    encoder = encoders.encoder(name, BAGS.n_features, **options)
    head = PassHead() if name == "mi-net" else Head(encoder.level_widths, 1)
    return Network(encoder, head)


def fit(network: Network, members=slice(None), graphs=None, **options) -> StackFit:
    own = {key: value[members] for key, value in SETTINGS.items()}
    own |= {"loss": BinaryCrossEntropy(), "epochs": 50, "device": "cpu"} | options
    own_graphs = graphs if graphs is None or isinstance(graphs, BagGraph) else graphs[members]
    return fit_stack(network, BAGS, Y, MASKS[members], own_graphs, **own)


# ---------------------------------------------------------------------- a stack is its members


@pytest.mark.parametrize("name", sorted(encoders.ENCODERS))
@pytest.mark.parametrize("wired", [False, True])
def test_a_stack_equals_single_fits(name, wired):
    graphs = some_graphs(len(BAGS)) if wired else None
    together = fit(net(name), graphs=graphs)
    for m in range(M):
        alone = fit(net(name), slice(m, m + 1), graphs=graphs)
        assert torch.equal(together.outputs[m], alone.outputs[0])
        assert torch.equal(together.embedding[m], alone.embedding[0])
        assert torch.equal(together.losses[m], alone.losses[0])


@pytest.mark.parametrize("name", sorted(encoders.ENCODERS))
def test_members_together_equal_members_one_by_one(name, monkeypatch):
    """As on a GPU, where a chunk is one tensor program; in float64, since Adam magnifies rounding."""
    graphs, found = some_graphs(len(BAGS)), []
    for size in (1, 5, 12):
        monkeypatch.setattr(stack, "chunk_size", lambda *_, size=size: size)
        found.append(fit(net(name), graphs=graphs, precision="float64"))
    for other in found[1:]:
        torch.testing.assert_close(other.outputs, found[0].outputs, atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(other.losses, found[0].losses, atol=1e-6, rtol=1e-6)


def test_progress_counts_epochs_of_members():
    counted: list[tuple[int, int]] = []
    fit(net(), epochs=40, progress=lambda done, total: counted.append((done, total)))
    assert counted[-1] == (40 * M, 40 * M)
    assert [done for done, _ in counted] == sorted({done for done, _ in counted})
    assert len(counted) == 20 * M


def test_one_member_is_plain_torch():
    """The same network, trained by a plain loop with torch.optim.Adam on weights and biases apart: levels add up."""
    network = net()
    network.head.dropout.p = 0.0
    ours = fit(network, slice(3, 4))
    torch.default_generator.manual_seed(SETTINGS["seeds"][3])
    network.reset_parameters()
    weights = [p for p in network.parameters() if p.ndim > 1]
    biases = [p for p in network.parameters() if p.ndim == 1]
    groups = [{"params": weights, "weight_decay": SETTINGS["weight_decay"][3]}, {"params": biases}]
    optimiser = torch.optim.Adam(groups, lr=SETTINGS["lr"][3])
    bags = BAGS.to_torch()
    seen = torch.from_numpy(MASKS[3])
    for epoch in range(50):
        out = network(bags.instances.float(), bags.offsets).outputs
        target = torch.from_numpy(Y).float()[None, :, None].expand_as(out)
        loss = len(out) * nn.functional.binary_cross_entropy_with_logits(out[:, seen], target[:, seen])
        assert float(loss.detach()) == pytest.approx(float(ours.losses[0, epoch]), abs=1e-5)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


@pytest.mark.parametrize("kind", ["l2", "decoupled"])
def test_all_rows_at_once_as_row_by_row(kind, monkeypatch):
    """What stands in on a GPU without Triton or in float64, tried where it runs as well."""
    generator = torch.Generator().manual_seed(0)
    start, gradient = torch.randn(2, 3, 50, generator=generator, dtype=torch.float64)
    lr, decay = torch.tensor([[1e-2, 0.0, 1e-3], [0.1, 0.2, 0.0]], dtype=torch.float64)
    one, all_ = (StackedAdam(start.clone(), lr, decay, torch.arange(50) % 3 > 0, kind) for _ in range(2))
    monkeypatch.setattr(all_, "_step_by_member", lambda g, lr: all_._step(g, lr.unsqueeze(1), all_._corrections()))
    for _ in range(5):
        one.step(gradient)
        all_.step(gradient)
    torch.testing.assert_close(one.rows, all_.rows, rtol=1e-12, atol=1e-12)
    assert torch.equal(one.rows[1], start[1]), "a rate of 0 moves nothing"


def test_decoupled_decay_is_that_of_adamw_and_may_sit_on_biases():
    for on in ("weights", "biases"):
        network = net()
        network.head.dropout.p = 0.0
        ours = fit(network, slice(2, 3), decay="decoupled", decay_on=on, epochs=10)
        torch.default_generator.manual_seed(SETTINGS["seeds"][2])
        network.reset_parameters()
        groups = [
            {"params": [p], "weight_decay": SETTINGS["weight_decay"][2] * ((p.ndim == 1) == (on == "biases"))}
            for p in network.parameters()
        ]
        optimiser = torch.optim.AdamW(groups, lr=SETTINGS["lr"][2])
        bags = BAGS.to_torch()
        for _ in range(10):
            out = network(bags.instances.float(), bags.offsets).outputs[:, MASKS[2]]
            target = torch.from_numpy(Y[MASKS[2]]).float()[None, :, None].expand_as(out)
            loss = len(out) * nn.functional.binary_cross_entropy_with_logits(out, target)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        for name, parameter in network.named_parameters():
            torch.testing.assert_close(ours.parameters[name][0], parameter.detach(), atol=1e-6, rtol=1e-5)


def test_the_own_network_of_a_user_is_stacked_unknowing():
    class Mine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.drop = nn.Linear(BAGS.n_features, 7), nn.Dropout(0.3)

        def forward(self, instances, offsets):
            rows = torch.tanh(self.drop(self.layer(instances)))
            totals = torch.cat([rows.new_zeros(1, 7), rows.cumsum(0)])
            return totals[offsets[1:]] - totals[offsets[:-1]]

    network = Network(Mine(), Head([7], 1))
    together = fit(network)
    for m in (0, 5):
        alone = fit(Network(Mine(), Head([7], 1)), slice(m, m + 1))
        torch.testing.assert_close(together.outputs[m], alone.outputs[0], atol=1e-5, rtol=1e-5)


def test_tied_weights_stay_tied_and_the_network_given_stays_as_it_was(monkeypatch):
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(BAGS.n_features, BAGS.n_features)
            self.second = nn.Linear(BAGS.n_features, BAGS.n_features)
            self.second.weight = self.first.weight

        def forward(self, instances, offsets):
            return segment_mean(torch.tanh(self.second(torch.tanh(self.first(instances)))), offsets)

    network = Network(Tied(), Head([BAGS.n_features], 1))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    alone = fit(network, epochs=20, precision="float64")
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    monkeypatch.setattr(stack, "chunk_size", lambda *_: M)
    together = fit(network, epochs=20, precision="float64")
    torch.testing.assert_close(together.outputs, alone.outputs, atol=1e-9, rtol=1e-9)
    assert "encoder.second.weight" not in alone.parameters


def test_a_member_is_a_network_of_its_own():
    together = fit(net(), graphs=some_graphs(len(BAGS)))
    bags = BAGS.to_torch()
    for m in (0, 7):
        with torch.no_grad():
            path = Propagation.of(some_graphs(len(BAGS))[m])
            out = together.member(m)(bags.instances.float(), bags.offsets, path)
        torch.testing.assert_close(out.outputs, together.outputs[m], atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(out.embedding, together.embedding[m], atol=1e-6, rtol=1e-5)


# ---------------------------------------------------------------------- what is hidden stays hidden


@pytest.mark.parametrize("wired", [False, True])
def test_hidden_labels_change_no_digit(wired):
    graphs = some_graphs(len(BAGS)) if wired else None
    plain = fit(net(), slice(0, 1), graphs=graphs)
    other = np.where(MASKS[0], Y, np.nan)
    options = {key: value[:1] for key, value in SETTINGS.items()}
    path = None if graphs is None else graphs[:1]
    for hidden in (other, np.where(MASKS[0], Y, 1 - Y)):
        again = fit_stack(
            net(), BAGS, hidden, MASKS[:1], path, loss=BinaryCrossEntropy(), epochs=50, device="cpu", **options
        )
        assert torch.equal(again.outputs, plain.outputs)


def test_the_same_seed_gives_the_same_member_wherever_it_stands():
    options = {"loss": BinaryCrossEntropy(), "epochs": 10, "device": "cpu"}
    fits = fit_stack(net(), BAGS, Y, MASKS[[0, 1, 0]], seeds=[5, 5, 5], **options)
    assert torch.equal(fits.outputs[0], fits.outputs[2])
    assert not torch.equal(fits.outputs[0], fits.outputs[1])
    network = net()
    before = torch.get_rng_state()
    fit(network, epochs=2)
    assert torch.equal(torch.get_rng_state(), before)


# ---------------------------------------------------------------------- targets and losses


def test_every_loss_falls_on_what_it_is_for():
    classes = np.arange(len(BAGS)) % 3
    shares = np.clip(np.array([bag.mean() for bag in BAGS.to_list()]), 0.05, 0.95)
    values = np.stack([shares, -shares], axis=1)
    for loss, targets in (
        (CrossEntropy(3), classes),
        (CrossEntropy(3), np.eye(3)[classes]),
        (BinaryCrossEntropy(), shares),
        (SquaredError(2), values),
        (Gaussian(2), values),
    ):
        encoder = encoders.encoder("rff-pool", BAGS.n_features)
        network = Network(encoder, Head(encoder.level_widths, loss.n_outputs, dropout=0.0))
        found = fit_stack(network, BAGS, targets, MASKS[:2], loss=loss, seeds=[0, 1], epochs=60, device="cpu")
        assert (found.losses[:, -1] < found.losses[:, 0]).all()
        assert found.mean.shape == (2, len(BAGS), loss.n_targets)
    one_hot, codes = (
        fit_stack(
            Network(encoder, Head(encoder.level_widths, 3)),
            BAGS,
            targets,
            MASKS[:1],
            loss=CrossEntropy(3),
            seeds=[0],
            epochs=5,
            device="cpu",
        )
        for targets in (np.eye(3)[classes], classes)
    )
    assert torch.equal(one_hot.outputs, codes.outputs)


def test_members_may_have_targets_of_their_own():
    targets = np.stack([Y, 1 - Y])[:, :, None]
    options = {"loss": BinaryCrossEntropy(), "epochs": 20, "device": "cpu"}
    both = fit_stack(net(), BAGS, targets, MASKS[[0, 0]], seeds=[3, 3], **options)
    second = fit_stack(net(), BAGS, 1 - Y, MASKS[:1], seeds=[3], **options)
    torch.testing.assert_close(both.outputs[1], second.outputs[0], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(both.outputs[0], both.outputs[1])


def test_weights_weigh():
    options = {"loss": SquaredError(), "epochs": 5, "seeds": [0], "device": "cpu"}
    twice = fit_stack(net(), BAGS, Y, 2.0 * MASKS[:1], **options)
    once = fit_stack(net(), BAGS, Y, MASKS[:1], **options)
    assert torch.equal(twice.outputs, once.outputs)  # only proportions matter
    tilted = fit_stack(net(), BAGS, Y, MASKS[:1] * (1 + 9 * Y), **options)
    assert tilted.mean.mean() > once.mean.mean()


# ---------------------------------------------------------------------- clipping, stopping, diverging


def test_clipping_binds_each_member_by_its_own_norm():
    wild = np.stack([1e4 * Y, Y])[:, :, None]
    options = {"loss": SquaredError(), "epochs": 30, "seeds": [0, 0], "device": "cpu", "clip": 1.0}
    both = fit_stack(net(), BAGS, wild, MASKS[[0, 0]], **options)
    alone = fit_stack(net(), BAGS, Y, MASKS[:1], **options | {"seeds": [0]})
    torch.testing.assert_close(both.outputs[1], alone.outputs[0], atol=1e-5, rtol=1e-5)
    free = fit_stack(net(), BAGS, Y, MASKS[:1], **options | {"seeds": [0], "clip": 0.01})
    assert not torch.allclose(free.outputs, alone.outputs)


def test_a_member_that_no_longer_learns_stops_and_stays():
    options = {"loss": BinaryCrossEntropy(), "epochs": 60, "device": "cpu", "lr": [0.0, 1e-3], "seeds": [0, 1]}
    found = fit_stack(net(), BAGS, Y, MASKS[:2], patience=8, **options)
    assert found.epochs[0] < 60
    assert torch.isnan(found.losses[0, found.epochs[0] :]).all()
    alone = fit_stack(net(), BAGS, Y, MASKS[:2], **options | {"epochs": int(found.epochs[1])})
    torch.testing.assert_close(found.outputs[1], alone.outputs[1], atol=1e-5, rtol=1e-5)


def test_a_member_that_diverges_is_told_and_disturbs_nobody():
    options = {"loss": SquaredError(), "epochs": 40, "device": "cpu", "seeds": [0, 1, 2]}
    targets = np.where(Y == 0, -1.0, 1.0)
    with pytest.warns(BagWarning, match=r"got NaN in members 1; lower lr"):
        found = fit_stack(net(), BAGS, targets, MASKS[:3], lr=[1e-3, 1e30, 1e-3], **options)
    assert found.diverged.tolist() == [False, True, False]
    calm = fit_stack(net(), BAGS, targets, MASKS[:3], lr=1e-3, **options)
    for m in (0, 2):
        torch.testing.assert_close(found.outputs[m], calm.outputs[m], atol=1e-5, rtol=1e-5)


# ---------------------------------------------------------------------- precision and errors


def test_bfloat16_is_near_and_float64_is_nearer():
    exact, plain, low = (fit(net(), epochs=15, precision=p) for p in ("float64", "float32", "bfloat16"))
    assert (plain.outputs - exact.outputs).abs().max() < 1e-3
    assert 0 < (low.outputs - exact.outputs).abs().max() < 0.3
    assert exact.parameters["encoder.layers.0.0.weight"].dtype == torch.float64
    assert low.parameters["encoder.layers.0.0.weight"].dtype == torch.float32


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"decay": "l1"}, "decay to be one of ('decoupled', 'l2'), got 'l1'"),
        ({"precision": "bf16"}, "got 'bf16'; did you mean 'bfloat16'?"),
        ({"masks": MASKS[:2, :3]}, "masks of shape (seeds, bags) (2, 20), got shape (2, 3)"),
        ({"masks": np.zeros((2, 20))}, "a labelled bag for every member, got none for member 0"),
        ({"masks": -MASKS[:2].astype(float)}, "masks that are finite and not negative"),
        ({"targets": Y[:5]}, "targets of shape (20, 1), got shape (5, 1)"),
        ({"targets": np.where(np.arange(20) == 7, np.nan, Y), "masks": np.ones((2, 20))}, "NaN or infinity (bag '7')"),
        ({"lr": [1e-3]}, "lr from 0, one for all or 2"),
        ({"lr": -1.0}, "lr from 0, one for all or 2, got -1.0"),
        ({"graphs": some_graphs(20, 3)}, "one graph, or 2, over 20 bags, got 3 over 20"),
        ({"graphs": some_graphs(4, 1)}, "got 1 over 4"),
        (
            {"graphs": some_graphs(20, 1)[0].take(np.arange(20)[::-1])},
            "a graph of these bags in their order, got bag '19' of the graph in the place of '0'; use graph.take",
        ),
        ({"graphs": BagGraph(np.zeros((20, 20)), [f"s{i}" for i in range(20)])}, "got bag 's0' of the graph"),
        (
            {"graphs": [*some_graphs(4, 1), *some_graphs(5, 1)]},
            "graphs over the same bags, got graphs over [4, 5] bags",
        ),
        ({"epochs": 0}, "epochs a whole number from 1, got 0"),
        ({"patience": 0}, "patience None or a whole number from 1, got 0"),
        ({"clip": 0.0}, "clip None or positive, got 0.0"),
        ({"seeds": []}, "a seed a member, got none"),
    ],
)
def test_errors(change, text):
    given = {"targets": Y, "masks": MASKS[:2], "graphs": None, "seeds": [0, 1], "epochs": 1} | change
    targets, masks, graphs = given.pop("targets"), given.pop("masks"), given.pop("graphs")
    with pytest.raises((ParameterError, InvalidBagsError, InvalidGraphError)) as caught:
        fit_stack(net(), BAGS, targets, masks, graphs, loss=BinaryCrossEntropy(), device="cpu", **given)
    assert text in str(caught.value)


def test_a_graph_without_names_of_its_own_is_believed():
    named = BAGS.replace(ids=[f"s{i}" for i in range(len(BAGS))])
    options = {"loss": BinaryCrossEntropy(), "epochs": 2, "seeds": [0], "device": "cpu"}
    graph = some_graphs(len(BAGS))[0]
    numbered, again = (
        fit_stack(net(), named, Y, MASKS[:1], each, **options) for each in (graph, BagGraph(graph.adjacency, named.ids))
    )
    assert torch.equal(numbered.outputs, again.outputs)


def test_networks_that_cannot_be_stacked_are_refused_by_name():
    class Fixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(3))

    class Normed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(3)

    for encoder, text in ((Fixed(), "none on Fixed (encoder)"), (Normed(), "BatchNorm1d (encoder.norm)")):
        with pytest.raises(ParameterError) as caught:
            fit(Network(encoder, Head([3], 1)))
        assert text in str(caught.value)
