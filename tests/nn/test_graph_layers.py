"""Layers that tell a bag from its neighbours: against dense matrices, and the coins that show labels."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from baggraph import BagGraph
from baggraph.nn import Head, OwnNeighbors, Propagation
from baggraph.nn.dropout import coins

GRAPH = BagGraph.from_edges([("a", "b", 2.0), ("b", "c", 1.0), ("d", "e", 0.5)], ids=list("abcdef"))
PATHS = Propagation.of(GRAPH, dtype=torch.float64)
H = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def dense() -> torch.Tensor:
    whole = GRAPH.adjacency.toarray() / GRAPH.adjacency.max() + np.eye(6)
    return torch.from_numpy(whole / np.sqrt(np.outer(whole.sum(0), whole.sum(0))))


def test_own_and_neighbors_have_weights_of_their_own():
    layer = OwnNeighbors(3, 2).double()
    wanted = H @ layer.own.weight.T + dense() @ H @ layer.near.weight.T + layer.bias
    torch.testing.assert_close(layer(H, PATHS), wanted)
    torch.testing.assert_close(layer(H), H @ layer.own.weight.T + layer.bias)


@pytest.mark.parametrize("restart", [0.1, 0.5])
def test_restart_is_the_power_series_of_personalised_pagerank(restart):
    layer = OwnNeighbors(3, 2, steps=4, restart=restart).double()
    A, walk = dense(), torch.zeros(6, 6, dtype=torch.float64)
    for power in range(4):
        walk += restart * (1 - restart) ** power * torch.linalg.matrix_power(A, power)
    walk += (1 - restart) ** 4 * torch.linalg.matrix_power(A, 4)
    wanted = H @ layer.own.weight.T + walk @ H @ layer.near.weight.T + layer.bias
    torch.testing.assert_close(layer(H, PATHS), wanted)
    torch.testing.assert_close(layer(H), H @ layer.own.weight.T + layer.bias)


def test_a_walk_reaches_as_far_as_its_steps_and_no_further():
    chain = BagGraph.from_edges(list(pairwise("abcdef")), ids=list("abcdef"))
    head = Head((3,), 1, layer=lambda i, o: OwnNeighbors(i, o, steps=2, restart=0.1), hidden=(4,)).double().eval()
    for parameter in head.parameters():
        torch.nn.init.constant_(parameter, 0.1)  # so that no unit is dead
    given = H.abs().requires_grad_()
    (slope,) = torch.autograd.grad(head(given, Propagation.of(chain, dtype=torch.float64))[0, 0, 0], given)
    assert head.n_hops == 4
    assert (slope[: head.n_hops + 1] != 0).any(dim=1).all()
    assert not slope[head.n_hops + 1 :].any()


def test_labels_left_out_are_zeros_and_are_never_dropped():
    head = Head((2, 1), 1, n_labels=2, dropout=0.9).double()
    shown = torch.cat([H, torch.zeros(6, 2, dtype=torch.float64)], dim=1)
    head.eval()
    assert torch.equal(head(H, PATHS), head(shown, PATHS))
    head.train()
    nothing = torch.cat([torch.zeros_like(H), torch.ones(6, 2, dtype=torch.float64)], dim=1)
    assert torch.equal(head(nothing, PATHS), head(nothing, PATHS))


def test_coins_are_fair_and_a_function_of_the_key_alone():
    keys = torch.arange(200, dtype=torch.int32)
    tossed = coins(keys, 50, torch.float32)
    assert set(tossed.unique().tolist()) == {0.0, 1.0}
    assert abs(float(tossed.mean()) - 0.5) < 0.02
    assert float((tossed.mean(0) - 0.5).abs().max()) < 0.15  # no bag is favoured
    assert torch.equal(coins(keys[7], 50, torch.float32), tossed[7])
