"""The sparse process against the exact one: mean, variance, draws, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from baggraph import BagGraph
from baggraph.errors import InvalidBagsError
from baggraph.inference.gp import FittedProcess, Process
from baggraph.inference.gp_graph import laplacian, spectrum
from baggraph.inference.gp_kernels import Constant, Linear, Parameter, Spectral
from baggraph.inference.gp_scale import Scale
from baggraph.inference.gp_sparse import SparseProcess, mean_variance, rough_walk

IDENTITY = Scale("identity", np.zeros(1), np.ones(1))


def world(n: int, seed: int = 0):
    """A graph of neighbours in the plane, features, noises, and targets of every third bag left out."""
    rng = np.random.default_rng(seed)
    graph = BagGraph.from_coordinates(rng.random((n, 2)), range(n), n_neighbors=5)
    features = rng.normal(size=(n, 4))
    noise = 0.1 + 0.2 * rng.random(n)
    visible = np.arange(n) % 3 > 0
    y = 1 + features @ [0.5, 0.0, -0.3, 0.2] + np.sin(np.arange(n) / 50) + np.sqrt(noise) * rng.normal(size=n)
    return graph, features, noise, visible, y


def exact(graph, features, noise, visible, y, variance, kappa, slope):
    values, vectors = spectrum(graph)
    kernels = {"level": Constant(Parameter("level", 2.0, 0.0)), "graph": Spectral(values), "linear": Linear()}
    process = Process(kernels, {"noise": Parameter("noise", 1.0)})
    rows = {"level": features, "graph": vectors, "linear": features, "noise": noise}
    seen = {name: value[visible] for name, value in rows.items()}
    theta = np.array([2.0, variance, kappa, slope, 1.0])
    return FittedProcess(process, theta, seen, y[visible, None], 0.0, 0.0).predict(rows)


@pytest.mark.parametrize(("kappa", "n"), [(0.02, 500), (0.2, 2000)])
def test_same_as_the_exact_process(kappa, n):
    graph, features, noise, visible, y = world(n)
    mean, signal, own_noise = exact(graph, features, noise, visible, y, 0.8, kappa, 0.3)
    normaliser = float(np.diag(np.linalg.inv(np.eye(n) + laplacian(graph).toarray() / kappa)).mean())
    process = SparseProcess(graph, 0.8, kappa, features, np.full(4, 0.3), 2.0, noise)
    found = process.posterior(y, visible, IDENTITY, n_draws=64, normaliser=normaliser)
    np.testing.assert_allclose(found.mean, mean, atol=1e-3)
    np.testing.assert_allclose(found.aleatoric[:, 0], own_noise, atol=1e-9)
    sampled = found.draws.var(axis=0, ddof=1)[:, 0]
    assert sampled.mean() == pytest.approx(signal.mean(), rel=0.05)
    assert np.corrcoef(sampled, signal)[0, 1] > 0.5
    assert process.posterior(y, visible, IDENTITY, n_draws=0).mean == pytest.approx(mean, abs=1e-2)


def test_the_mean_variance_by_random_signs():
    graph = world(1500)[0]
    whole = np.diag(np.linalg.inv(np.eye(1500) + laplacian(graph).toarray() / 0.1)).mean()
    assert mean_variance(graph, 0.1) == pytest.approx(whole, rel=0.01)


def test_rough_walks_have_the_laplacian_as_covariance():
    graph = BagGraph.from_edges([(0, 1, 2.0), (1, 2)], ids=range(4))
    rng = np.random.default_rng(0)
    walks = np.stack([rough_walk(graph, rng) for _ in range(4000)])
    np.testing.assert_allclose(walks.T @ walks / 4000, laplacian(graph).toarray(), atol=0.1)


def test_hidden_targets_change_nothing():
    graph, features, noise, visible, y = world(200)
    process = SparseProcess(graph, 0.8, 0.1, features, np.full(4, 0.3), 2.0, noise)
    one = process.posterior(y, visible, IDENTITY)
    other = process.posterior(np.where(visible, y, 1e9), visible, IDENTITY)
    assert (one.draws == other.draws).all()


def test_what_cannot_be_is_refused():
    graph, features, noise, visible, y = world(50)
    process = SparseProcess(graph, 0.8, 0.1, features, np.full(4, 0.3), 2.0, noise)
    with pytest.raises(InvalidBagsError, match="labelled bags"):
        process.posterior(y, np.zeros(50, bool), IDENTITY)
    with pytest.raises(InvalidBagsError, match="no link"):
        process.posterior(y, visible, Scale("log", np.zeros(1), np.ones(1)))
