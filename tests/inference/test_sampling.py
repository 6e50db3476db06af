"""Draws of heads: what a draw depends on, and what outputs mean."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from baggraph.data.graph import BagGraph
from baggraph.inference.sampling import described, draw_keys, head_outputs, sample
from baggraph.nn.encoders import encoder
from baggraph.nn.gcn import Propagation
from baggraph.nn.heads import Head, PassHead
from baggraph.nn.losses import BinaryCrossEntropy, CrossEntropy, Gaussian, SquaredError
from baggraph.nn.network import Network

M, B, WIDTH = 2, 7, 10
Z = torch.randn(M, B, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def network(n_outputs: int = 1, **options) -> Network:
    return Network(encoder("rff-pool", 3, hidden=(6, 4)), Head((6, 4), n_outputs, **options)).double()


def parameters(net: Network) -> dict[str, torch.Tensor]:
    """Two members with parameters of their own."""
    generator = torch.Generator().manual_seed(1)
    return {n: torch.randn(M, *p.shape, dtype=torch.float64, generator=generator) for n, p in net.named_parameters()}


@pytest.mark.parametrize("hidden", [(), (5,)])
def test_a_draw_of_a_bag_depends_on_no_other_bag(hidden):
    net = network(hidden=hidden)
    own, keys = parameters(net), draw_keys([5, 6], 4)
    together = sample(net, own, Z, None, keys, BinaryCrossEntropy()).mean
    order = [3, 0, 5]
    torch.testing.assert_close(
        sample(net, own, Z[:, order], None, keys, BinaryCrossEntropy()).mean, together[:, :, order]
    )
    alone = sample(net, own, Z[:, [2]], None, keys, BinaryCrossEntropy()).mean
    torch.testing.assert_close(alone, together[:, :, [2]])


def test_draws_of_a_member_do_not_depend_on_the_others():
    net = network()
    own, keys = parameters(net), draw_keys([5, 6], 4)
    together = sample(net, own, Z, None, keys, BinaryCrossEntropy()).mean
    for m in range(M):
        only = {name: value[m : m + 1] for name, value in own.items()}
        alone = sample(net, only, Z[m : m + 1], None, draw_keys([[5, 6][m]], 4), BinaryCrossEntropy()).mean
        torch.testing.assert_close(alone[0], together[m])


def test_the_first_draws_are_the_same_however_many_are_asked():
    assert torch.equal(draw_keys([5, 6], 3), draw_keys([5, 6], 9)[:3])


def test_every_member_has_its_own_graph():
    net, ids = network(), [str(i) for i in range(B)]
    own = parameters(net)
    graphs = [BagGraph.from_edges([(ids[0], ids[m + 1])], ids) for m in range(M)]
    both = head_outputs(net, own, Z, Propagation.of(graphs, dtype=torch.float64), None)
    for m, graph in enumerate(graphs):
        only = {name: value[m : m + 1] for name, value in own.items()}
        alone = head_outputs(net, only, Z[m : m + 1], Propagation.of(graph, dtype=torch.float64), None)
        torch.testing.assert_close(both[m], alone[0])


def test_without_a_key_nothing_is_dropped():
    net = network(dropout=0.9)
    own = parameters(net)
    outputs = head_outputs(net, own, Z, None, None)
    weight, bias = own["head.levels.1.0.linear.weight"], own["head.levels.1.0.bias"]
    torch.testing.assert_close(outputs[:, 1], torch.einsum("mbh,mch->mbc", Z[:, :, 6:], weight) + bias[:, None])


def test_a_head_without_dropout_has_one_answer():
    net = Network(encoder("mi-net", 3, hidden=(4,)), PassHead()).double()
    values = sample(net, {}, Z[:, :, :1], None, draw_keys([1, 2], 3), SquaredError())
    assert torch.equal(values.mean, Z[:, None, :, :1].expand(M, 3, B, 1))
    assert values.variance is None


def test_what_outputs_mean():
    outputs = torch.tensor([[[0.0, 1.0]], [[2.0, -1.0]]], dtype=torch.float64)  # two levels, a bag, two outputs
    shares = described(outputs, CrossEntropy(2))
    torch.testing.assert_close(shares.mean, outputs.softmax(-1).mean(0))
    assert shares.variance is None
    normal = described(outputs, Gaussian())
    torch.testing.assert_close(normal.mean, torch.tensor([[1.0]], dtype=torch.float64))
    wanted = (np.exp(1) + np.exp(-1)) / 2 + 1.0  # noise, and the spread of means 0 and 2
    assert normal.variance.item() == pytest.approx(wanted)
