"""Graph convolution against torch-geometric, dense products and finite differences; heads and their levels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from baggraph.data.graph import BagGraph
from baggraph.errors import InvalidGraphError
from baggraph.nn.gcn import GraphConvolution, Propagation
from baggraph.nn.heads import Head, PassHead

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch-geometric scripts classes, which torch advises against
    from torch_geometric.nn import GCNConv

PROPERTY = settings(max_examples=30, deadline=None)
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


def wired(n: int, seed: int = 0, share: float = 0.2) -> BagGraph:
    """Weights from 0 to 9, and some bags without neighbours."""
    rng = np.random.default_rng(seed)
    upper = np.triu((rng.random((n, n)) < share) * rng.random((n, n)) * 9, 1)
    return BagGraph(upper + upper.T, [str(i) for i in range(n)])


def dense(graph: BagGraph) -> torch.Tensor:
    adjacency = graph.adjacency.toarray()
    looped = adjacency / max(adjacency.max(), 1e-300) + np.eye(len(graph))
    root = looped.sum(1) ** -0.5
    return torch.from_numpy(root[:, None] * looped * root)


# ---------------------------------------------------------------------- against others


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("n_outputs", [1, 7])
def test_as_the_layer_of_torch_geometric(share, n_outputs):
    graph, theirs = wired(40, share=share), GCNConv(12, n_outputs)
    ours = GraphConvolution(12, n_outputs)
    torch.nn.init.normal_(theirs.bias)  # it starts at zero, and would hide a mistake
    ours.load_state_dict({"linear.weight": theirs.lin.weight, "bias": theirs.bias})
    edges = graph.adjacency.tocoo()
    pairs = torch.from_numpy(np.stack(edges.coords).astype(np.int64))
    weights = torch.from_numpy(edges.data / max(edges.data.max(initial=0), 1e-300)).float()
    x = torch.from_numpy(np.random.default_rng(1).normal(size=(40, 12))).float()
    torch.testing.assert_close(ours(x, Propagation.of(graph)), theirs(x, pairs, weights), **CLOSE)


def test_without_a_graph_it_is_the_linear_layer():
    layer, x = GraphConvolution(3, 2), torch.randn(5, 3)
    torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, layer.linear.weight, layer.bias))
    apart = BagGraph(np.zeros((5, 5)), list("abcde"))
    torch.testing.assert_close(layer(x, Propagation.of(apart)), layer(x))


# ---------------------------------------------------------------------- the product


@PROPERTY
@given(n=st.integers(1, 20), seed=st.integers(0, 99), width=st.integers(1, 4))
def test_mixing_is_the_dense_product(n, seed, width):
    graph, h = wired(n, seed), torch.from_numpy(np.random.default_rng(seed).normal(size=(n, width)))
    torch.testing.assert_close(Propagation.of(graph, dtype=torch.float64).mix(h), dense(graph) @ h)


@pytest.mark.parametrize("several", [False, True])
def test_members_have_graphs_of_their_own_or_one(several):
    graphs = [wired(9, seed) for seed in range(3)] if several else [wired(9)]
    paths = Propagation.of(graphs, dtype=torch.float64)
    h = torch.randn(3, 9, 2, dtype=torch.float64)
    expected = torch.stack([dense(graphs[m if several else 0]) @ h[m] for m in range(3)])
    torch.testing.assert_close(torch.vmap(paths.mix)(h), expected)
    torch.testing.assert_close(torch.vmap(paths.mix, in_dims=2)(h.movedim(0, 2)), expected)
    torch.testing.assert_close(torch.vmap(paths.members(1, 3).mix)(h[1:]), expected[1:])


def test_gradients_by_finite_differences():
    paths = Propagation.of(wired(7, share=0.5), dtype=torch.float64)
    h = torch.randn(7, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(paths.mix, h)
    assert torch.autograd.gradgradcheck(paths.mix, h)
    several = Propagation.of([wired(7, seed, 0.5) for seed in range(2)], dtype=torch.float64)
    stack = torch.randn(2, 7, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch.vmap(several.mix), stack)


def test_rectangles_know_their_transpose():
    """As cut out for a batch: the gradient is that of the matrix, not of its transpose."""
    matrix = sp.csr_array(np.triu(np.random.default_rng(0).random((3, 5))))
    there, back = (Propagation.of_matrices([each], dtype=torch.float64) for each in (matrix, matrix.T.tocsr()))
    cut = Propagation(there.columns, there.offsets, there.weights, transposed=back)
    h = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(cut.mix(h), torch.from_numpy(matrix.toarray()) @ h)
    assert torch.autograd.gradcheck(cut.mix, h)
    assert cut.to(torch.float32).transposed.weights.dtype == torch.float32


def test_half_precision_is_near():
    graph, h = wired(50, share=0.5), torch.rand(50, 4)
    low = Propagation.of(graph).mix(h.bfloat16())
    assert low.dtype == torch.bfloat16
    torch.testing.assert_close(low.double(), dense(graph) @ h.double(), rtol=0.02, atol=0.01)


def test_graphs_that_do_not_fit_are_refused():
    with pytest.raises(InvalidGraphError, match=r"over the same bags, got graphs over \[4, 5\] bags"):
        Propagation.of([wired(4), wired(5)])
    with pytest.raises(InvalidGraphError, match="over the same bags, got no graph"):
        Propagation.of([])
    with pytest.raises(InvalidGraphError, match="a graph a member, or one, got 2 graphs for 3 members"):
        torch.vmap(Propagation.of([wired(4), wired(4)]).mix)(torch.ones(3, 4, 1))


# ---------------------------------------------------------------------- heads


def test_levels_have_layers_of_their_own():
    head, z, graph = Head((3, 2), 4).double().eval(), torch.randn(6, 5).double(), wired(6, share=0.6)
    parts = [z[:, :3], z[:, 3:]]
    plain = [part @ layer[0].linear.weight.T + layer[0].bias for part, layer in zip(parts, head.levels, strict=True)]
    torch.testing.assert_close(head(z), torch.stack(plain))
    mixed = [
        dense(graph) @ part @ layer[0].linear.weight.T + layer[0].bias
        for part, layer in zip(parts, head.levels, strict=True)
    ]
    torch.testing.assert_close(head(z, Propagation.of(graph, dtype=torch.float64)), torch.stack(mixed))


def test_hidden_layers_mix_once_more():
    head, z, graph = Head((5,), 2, hidden=(3,)).double().eval(), torch.randn(6, 5).double(), wired(6, share=0.6)
    first, second = head.levels[0]
    hidden = torch.relu(dense(graph) @ z @ first.linear.weight.T + first.bias)
    expected = dense(graph) @ hidden @ second.linear.weight.T + second.bias
    torch.testing.assert_close(head(z, Propagation.of(graph, dtype=torch.float64))[0], expected)


def test_inputs_of_a_head_are_dropped_in_training_alone():
    head, z = Head((400,), 1, dropout=0.5), torch.ones(3, 400)
    head.levels[0][0].linear.weight.data.fill_(1.0)
    head.levels[0][0].bias.data.zero_()
    assert head.eval()(z).flatten().tolist() == [400.0] * 3
    assert len(head.train()(z).unique()) > 1


def test_a_head_that_passes_on():
    z, graph = torch.randn(6, 2).double(), wired(6, share=0.6)
    assert torch.equal(PassHead()(z), z[None])
    torch.testing.assert_close(PassHead()(z, Propagation.of(graph, dtype=torch.float64)), (dense(graph) @ z)[None])
