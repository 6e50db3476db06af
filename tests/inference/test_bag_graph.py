"""Algorithm 1 against its steps done by hand, its settings, and what must change nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.errors import InvalidGraphError, ParameterError
from baggraph.graphs.knn import knn_graph
from baggraph.graphs.learned import LearnedGraph
from baggraph.graphs.wiring import GivenWiring, LearnedWiring, NearestWiring
from baggraph.inference._members import epoch_keys
from baggraph.inference.bag_graph import Plan, infer
from baggraph.inference.sampling import draw_keys, head_outputs, sample
from baggraph.inference.stack import fit_stack
from baggraph.nn.dropout import Dropout, keyed
from baggraph.nn.encoders import encoder
from baggraph.nn.gcn import Propagation
from baggraph.nn.heads import Head, PassHead
from baggraph.nn.losses import BinaryCrossEntropy, CrossEntropy, Gaussian, SquaredError
from baggraph.nn.network import Network

B, D = 20, 3
IDS = [f"bag {i}" for i in range(B)]
KNOWN = BagGraph.from_edges([(IDS[i], IDS[(i + 2) % B], 1.0 + i) for i in range(B)], IDS)
SETTINGS = {"epochs": 8, "lr": 1e-2, "device": "cpu", "precision": "float64"}
SEEDS = [3, 4]


def some_bags(seed: int = 0) -> tuple[Bags, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = (np.arange(B) % 2).astype(float)
    arrays = [rng.normal(label, 1, size=(rng.integers(1, 5), D)) for label in y]
    return Bags.from_list(arrays, ids=IDS), y


BAGS, Y = some_bags()
MASKS = np.stack([np.arange(B) < 14, np.arange(B) >= 5])


def learned(**options) -> LearnedGraph:
    return LearnedGraph(2, 2, device="cpu", precision="float64", **options)


WIRINGS = {
    "none": None,
    "nearest": NearestWiring(2),
    "given": GivenWiring(KNOWN),
    "learned": LearnedWiring(learned()),
    "observed": LearnedWiring(learned(observed=KNOWN, trust=0.5)),
}


def network(n_outputs: int = 1, *, dropout: float = 0.5, hidden: tuple[int, ...] = ()) -> Network:
    made = encoder("rff-pool", D, hidden=(6, 4))
    return Network(made, Head(made.level_widths, n_outputs, dropout=dropout, hidden=hidden))


def plan(wiring: str = "learned", **changes) -> Plan:
    given = {"network": network(), "loss": BinaryCrossEntropy(), "wiring": WIRINGS[wiring], "n_draws": 4}
    given["observed"] = KNOWN if wiring == "observed" else None
    return Plan(**(given | {"training": SETTINGS} | changes))


def train(graphs, *, targets=Y, net=None, masks=MASKS, seeds=SEEDS):
    return fit_stack(net or network(), BAGS, targets, masks, graphs, loss=BinaryCrossEntropy(), seeds=seeds, **SETTINGS)


# ---------------------------------------------------------------------- the steps by hand


def test_the_bayesian_model_is_the_steps_of_the_paper_one_by_one():
    found = infer(plan("learned"), BAGS, Y, MASKS, SEEDS)
    base = train(None)  # 3
    graphs = [learned().fit(Z, ids=IDS).graph_ for Z in base.embedding]  # 4
    joint = train(graphs)  # 5
    for m, graph in enumerate(graphs):
        np.testing.assert_array_equal(found.wired[m].graph.adjacency.toarray(), graph.adjacency.toarray())
        for s, key in enumerate(draw_keys(SEEDS, 4)):  # 7 to 9, from the embeddings of 6
            by_hand = one_draw(joint, m, graph, key)
            np.testing.assert_allclose(found.draws.mean[m, s, :, 0], by_hand, rtol=1e-10)


def one_draw(fit, m, graph, key):
    """sigmoid(A diag(mask) z W + b), averaged over levels; masks are read off the dropout of ones."""
    with keyed(key[m], [torch.zeros(B, dtype=torch.int64)]):
        mask = Dropout(0.5).train()(torch.ones(B, 10, dtype=torch.float64)).numpy()
    assert (mask == mask[0]).all()
    assert set(mask.ravel()) <= {0.0, 2.0}
    A = graph.adjacency.toarray() / graph.adjacency.max() + np.eye(B)
    A /= np.sqrt(np.outer(A.sum(0), A.sum(1)))
    shares, start = [], 0
    for level, width in enumerate((6, 4)):
        part = slice(start, start + width)
        start += width
        weight, bias = (
            fit.parameters[f"head.levels.{level}.0.{name}"][m].numpy() for name in ("linear.weight", "bias")
        )
        logits = A @ (fit.embedding[m].numpy()[:, part] * mask[:, part]) @ weight.T + bias
        shares.append(1 / (1 + np.exp(-logits[:, 0])))
    return np.mean(shares, axis=0)


def test_without_a_graph_it_is_the_base_model():
    found, base = infer(plan("none", n_draws=0), BAGS, Y, MASKS, SEEDS), train(None)
    assert found.wired is None
    assert torch.equal(found.fit.outputs, base.outputs)
    torch.testing.assert_close(found.draws.mean[:, 0], base.mean)


def test_the_gcn_variant_is_a_training_on_nearest_neighbours_of_the_base_model():
    found, base = infer(plan("nearest", n_draws=0), BAGS, Y, MASKS, SEEDS), train(None)
    graphs = [knn_graph(Z, 2, ids=IDS) for Z in base.embedding]
    torch.testing.assert_close(found.draws.mean[:, 0], train(graphs).mean, rtol=1e-12, atol=1e-12)


def test_a_given_graph_needs_no_base_model():
    found = infer(plan("given", n_draws=0), BAGS, Y, MASKS, SEEDS)
    assert found.base is None
    torch.testing.assert_close(found.draws.mean[:, 0], train(KNOWN).mean)


def test_the_base_model_is_trained_on_the_observed_graph():
    found, base = infer(plan("observed"), BAGS, Y, MASKS, SEEDS), train(KNOWN)
    assert torch.equal(found.base.outputs, base.outputs)
    expected = learned(observed=KNOWN, trust=0.5).fit(base.embedding[1], ids=IDS).graph_
    assert found.wired[1].graph == expected


def test_rounds_learn_the_graph_again_from_the_new_embedding():
    once, twice = (infer(plan(rounds=rounds), BAGS, Y, MASKS, SEEDS) for rounds in (1, 2))
    graphs = [learned().fit(Z, ids=IDS).graph_ for Z in once.fit.embedding]
    assert [wired.graph for wired in twice.wired] == graphs
    assert torch.equal(twice.fit.outputs, train(graphs).outputs)


def test_the_last_level_alone_may_make_the_graph():
    found = infer(plan(embedding="last"), BAGS, Y, MASKS, SEEDS)
    last = found.base.embedding[0][:, 6:]
    assert found.wired[0].graph == learned().fit(last, ids=IDS).graph_
    assert found.wired[0].graph != infer(plan(), BAGS, Y, MASKS, SEEDS).wired[0].graph


def test_graphs_learned_in_one_call_are_those_learned_one_by_one():
    one, other = (infer(plan(), BAGS, Y, MASKS, SEEDS, attachable=way) for way in (True, False))
    for a, b in zip(one.wired, other.wired, strict=True):
        assert a.rule is not None
        assert b.rule is None
        np.testing.assert_allclose(b.graph.adjacency.toarray(), a.graph.adjacency.toarray(), atol=1e-9)


# ---------------------------------------------------------------------- laws


@pytest.mark.parametrize("wiring", sorted(WIRINGS))
def test_hidden_labels_change_no_bit(wiring):
    """50 random cases: which labels are hidden, and what is written in their place."""
    short = SETTINGS | {"epochs": 2, "precision": "float32"}
    for case in range(50):
        rng = np.random.default_rng(case)
        masks = rng.random((1, B)) < 0.5
        masks[0, :2] = True
        other = np.where(masks[0], Y, rng.choice([0.0, 1.0, np.nan, 1 - Y[0]], size=B))
        one, two = (infer(plan(wiring, training=short), BAGS, y, masks, [case]) for y in (Y, other))
        assert torch.equal(one.draws.mean, two.draws.mean)
        assert torch.equal(one.fit.embedding, two.fit.embedding)


@pytest.mark.parametrize("wiring", sorted(WIRINGS))
def test_members_are_what_each_is_alone(wiring):
    together = infer(plan(wiring), BAGS, Y, MASKS, SEEDS)
    for m in range(2):
        alone = infer(plan(wiring), BAGS, Y, MASKS[m : m + 1], SEEDS[m : m + 1])
        torch.testing.assert_close(together.draws.mean[m], alone.draws.mean[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("wiring", sorted(WIRINGS))
def test_order_of_bags_does_not_matter(wiring):
    """Without dropout, whose masks in training go by the place of a bag."""
    order = np.random.default_rng(5).permutation(B)
    made = plan(wiring, network=network(dropout=0.0))
    one = infer(made, BAGS, Y, MASKS, SEEDS)
    other = infer(made, BAGS.take(order), Y[order], MASKS[:, order], SEEDS)
    torch.testing.assert_close(other.draws.mean, one.draws.mean[:, :, order], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("wiring", sorted(WIRINGS))
def test_order_of_instances_does_not_matter(wiring):
    rng = np.random.default_rng(6)
    shuffled = Bags.from_list([rng.permutation(np.asarray(bag)) for bag in BAGS], ids=IDS)
    one, other = (infer(plan(wiring), bags, Y, MASKS, SEEDS) for bags in (BAGS, shuffled))
    torch.testing.assert_close(other.draws.mean, one.draws.mean, rtol=1e-6, atol=1e-6)


# ---------------------------------------------------------------------- the ablation


def setting(name: str, bags: Bags = BAGS, wiring: str = "learned"):
    return infer(plan(wiring, setting=name), bags, Y, MASKS[:1], SEEDS[:1])


def with_other_unlabelled(mask: np.ndarray) -> Bags:
    rng = np.random.default_rng(9)
    arrays = [np.asarray(bag) if seen else rng.normal(9, 3, size=(2, D)) for bag, seen in zip(BAGS, mask, strict=True)]
    return Bags.from_list(arrays, ids=IDS)


def test_disconnected_bags_have_no_edge_and_are_answered_alone():
    found = setting("disconnected")
    graph = found.wired[0].graph
    assert graph.isolates.tolist() == IDS[14:]
    among = learned().fit(found.base.embedding[0, :14], ids=IDS[:14]).graph_
    np.testing.assert_array_equal(graph.adjacency.toarray()[:14, :14], among.adjacency.toarray())
    by_head = head_outputs(plan().network.double(), found.fit.parameters, found.fit.embedding[:, 14:], None, None)
    torch.testing.assert_close(found.fit.outputs[:, :, 14:], by_head)


def test_disconnected_in_training_differs_in_prediction_alone():
    alone, later = setting("disconnected"), setting("disconnected in training")
    assert torch.equal(later.fit.losses, alone.fit.losses)
    assert all(torch.equal(later.fit.parameters[name], value) for name, value in alone.fit.parameters.items())
    assert later.wired[0].graph == learned().fit(later.base.embedding[0], ids=IDS).graph_
    assert not torch.equal(later.draws.mean[:, :, 14:], alone.draws.mean[:, :, 14:])


@pytest.mark.parametrize("wiring", ["nearest", "given", "learned", "observed"])
@pytest.mark.parametrize("name", ["disconnected", "disconnected in training", "transductive"])
def test_training_hears_of_unlabelled_bags_only_when_transductive(name, wiring):
    other = with_other_unlabelled(MASKS[0])
    losses = [setting(name, bags, wiring).fit.losses for bags in (BAGS, other)]
    heard = name == "transductive" or wiring == "observed"  # whose base model is trained on the whole known graph
    assert torch.equal(*losses) != heard


def test_one_labelled_bag_has_no_graph():
    made = plan(setting="disconnected")
    with pytest.raises(ParameterError, match=r"expected 2 labelled bags or more .* got 1"):
        infer(made, BAGS, Y, np.arange(B)[None] == 3, [0])


# ---------------------------------------------------------------------- draws


def test_draws_of_a_linear_head_average_to_the_head_as_fitted():
    """E over masks of A diag(mask) z W is A z W; 1,000 draws are within five standard errors of it."""
    made = plan("given", loss=SquaredError(), n_draws=1000, training=SETTINGS | {"epochs": 3})
    found = infer(made, BAGS, Y, MASKS[:1], SEEDS[:1])
    values = found.draws.mean[0, :, :, 0]
    error = values.std(0) / 1000**0.5
    assert float(((values.mean(0) - found.fit.mean[0, :, 0]).abs() / error).max()) < 5
    assert float(values.std(0).min()) > 0


def test_draws_differ_and_do_not_repeat_the_masks_of_training():
    keys = draw_keys(SEEDS, 50)
    assert len(set(keys.ravel().tolist())) == 100
    assert not set(keys.ravel().tolist()) & set(epoch_keys(SEEDS, 1000).ravel().tolist())


def test_a_draw_is_one_function_for_all_bags():
    """Bags with the same embedding get the same answer in every draw, wherever they stand."""
    net = network(2).double()
    parameters = {name: value.detach()[None] for name, value in net.named_parameters()}
    Z = torch.randn(1, 1, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).expand(1, 5, 10)
    values = sample(net, parameters, Z, None, draw_keys([1], 6), CrossEntropy(2)).mean[0]
    assert torch.equal(values, values[:, :1].expand_as(values))
    assert len({tuple(row) for row in values[:, 0].tolist()}) == 6


def test_hidden_layers_are_sampled_as_well():
    made = plan("given", network=network(hidden=(5,)), n_draws=30)
    found = infer(made, BAGS, Y, MASKS[:1], SEEDS[:1])
    assert found.draws.mean.shape == (1, 30, B, 1)
    assert float(found.draws.mean.std(1).min()) > 0


@pytest.mark.parametrize(("n_draws", "n_graph_draws"), [(7, 3), (4, 4), (2, 5)])
def test_graph_draws_answer_on_graphs_of_their_own(n_draws, n_graph_draws):
    plain, many = (infer(plan(n_draws=n_draws, n_graph_draws=n), BAGS, Y, MASKS, SEEDS) for n in (0, n_graph_draws))
    assert many.draws.mean.shape == plain.draws.mean.shape == (2, n_draws, B, 1)
    assert torch.equal(many.fit.outputs, plain.fit.outputs)
    assert not torch.equal(many.draws.mean, plain.draws.mean)
    again = infer(plan(n_draws=n_draws, n_graph_draws=n_graph_draws), BAGS, Y, MASKS, SEEDS)
    assert torch.equal(many.draws.mean, again.draws.mean)


def test_gaussian_draws_carry_the_noise_of_every_bag_and_the_spread_between_levels():
    made = plan("given", network=network(2), loss=Gaussian(), n_draws=3)
    found = infer(made, BAGS, Y, MASKS[:1], SEEDS[:1])
    net = made.network.double()
    paths = Propagation.of(KNOWN, dtype=torch.float64)
    for s, key in enumerate(draw_keys(SEEDS[:1], 3)):
        outputs = head_outputs(net, found.fit.parameters, found.fit.embedding, paths, key)[0]
        means, noise = outputs[..., 0], outputs[..., 1].clamp_min(-12).exp()
        torch.testing.assert_close(found.draws.mean[0, s, :, 0], means.mean(0))
        torch.testing.assert_close(found.draws.variance[0, s, :, 0], noise.mean(0) + means.var(0, correction=0))


# ---------------------------------------------------------------------- edges


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"setting": "transductiv"}, "did you mean 'transductive'"),
        ({"embedding": "first"}, "expected embedding to be one of"),
        ({"rounds": 0}, "expected rounds a whole number from 1, got 0"),
        ({"n_draws": 2.5}, "expected n_draws a whole number from 0, got 2.5"),
        ({"n_draws": True}, "expected n_draws a whole number from 0, got True"),
        ({"n_draws": 0, "n_graph_draws": 2}, "set n_graph_draws=0"),
        ({"wiring": "none", "n_graph_draws": 2}, "set n_graph_draws=0"),
        ({"wiring": "given", "n_graph_draws": 2}, "set n_graph_draws=0"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        plan(**changes)


def test_graph_draws_need_a_head_with_dropout():
    made = Network(encoder("mi-net", D, hidden=(4,)), PassHead())
    with pytest.raises(ParameterError, match="expected a head with dropout for draws of graphs, got PassHead"):
        infer(plan(network=made, n_graph_draws=1), BAGS, Y, MASKS, SEEDS)


def test_a_given_graph_must_know_all_bags():
    with pytest.raises(InvalidGraphError, match="expected a node for every bag, got none for 'bag 19'"):
        infer(replace(plan("given"), wiring=GivenWiring(KNOWN.take(IDS[:-1]))), BAGS, Y, MASKS, SEEDS)


def test_progress_names_both_trainings():
    heard = []
    infer(plan(), BAGS, Y, MASKS, SEEDS, progress=lambda phase, done, total: heard.append((phase, done, total)))
    assert [phase for phase, done, total in heard if done == total == 16] == ["base model", "bag graph"]
