"""Network and process under one objective: hidden labels, folds at once, new bags, saving, and what it is good for."""

from __future__ import annotations

import numpy as np
import pytest

from baggraph import BagGraph, BagGraphRegressor, BagProcessRegressor, Bags, load
from baggraph.errors import ParameterError
from baggraph.testing import check_bag_estimator

SMALL = {"phi": (16, 16), "rho": (16,), "pooling": "mean", "activation": "elu"}
FAST = {"encoder": "deep-sets", "encoder_options": SMALL, "head": "gp", "objective": "joint", "graph": None}
FAST |= {"dropout": 0.0, "epochs": 40, "lr": 5e-3, "weight_decay": 1e-3, "device": "cpu"}


def made(seed: int = 0, n: int = 60, most: int = 60, nonlinear: float = 1.0) -> Bags:
    """A smooth field, a mean of the instances, and a mean of their absolute values, which means miss."""
    rng = np.random.default_rng(seed)
    coords = rng.uniform(size=(n, 2))
    field = np.cos(coords @ rng.normal(scale=4, size=(2, 3))).sum(axis=1)
    sizes = rng.integers(most // 3, most, n)
    center = 0.5 * rng.normal(size=(n, 3))
    spread = np.exp(0.4 * rng.normal(size=(n, 3)))
    noise = rng.normal(size=(sizes.sum(), 3))
    instances = np.repeat(center, sizes, axis=0) + np.repeat(spread, sizes, axis=0) * noise
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    bent = np.add.reduceat(np.abs(instances[:, 0]), offsets[:-1]) / sizes
    bent = (bent - bent.mean()) / bent.std()
    y = field + center[:, 1] + nonlinear * bent + 0.1 * rng.normal(size=n)
    graph = BagGraph.from_edges([(i, i + 1) for i in range(n - 1)], ids=range(n))
    return Bags(instances, offsets, y, ids=range(n), coords=coords, graph=graph)


def without(bags: Bags, away: np.ndarray) -> Bags:
    return bags.replace(y=np.where(away, np.nan, bags.y))


@pytest.mark.parametrize("encoder", ["deep-sets", "set-transformer"])
def test_hidden_labels_change_no_bit_and_folds_are_single_fits(encoder):
    bags = made(n=20, most=8)
    options = SMALL if encoder == "deep-sets" else {"width": 8, "heads": 2}
    settings = {**FAST, "encoder": encoder, "encoder_options": options, "epochs": 6, "n_members": 2}
    masks = np.stack([np.arange(20) % 3 != 0, np.arange(20) % 4 != 1])
    at_once = BagGraphRegressor(**settings).posteriors(bags, masks)
    alone = BagGraphRegressor(**settings).fit(without(bags, ~masks[1]))
    np.testing.assert_array_equal(at_once[1].draws, alone.posterior_.draws)
    other = BagGraphRegressor(**settings).posteriors(bags.replace(y=np.where(masks[0], bags.y, 1 - bags.y)), masks[:1])
    np.testing.assert_array_equal(at_once[0].draws, other[0].draws)


def test_without_an_epoch_it_is_the_process():
    """What is a plain function of the mean, with little noise, asks for no network."""
    bags = made(1, n=40, nonlinear=0.0)
    away = np.arange(40) % 4 == 0
    model = BagGraphRegressor(**{**FAST, "lr": 0.3, "epochs": 10}).fit(without(bags, away))
    assert model.n_iter_ == 0
    assert model.shares_["encoder"] == 0
    scaled = model.scaler_.transform(bags)
    process = BagProcessRegressor(parts=("position", "linear"), graph=None).fit(without(scaled, away))
    np.testing.assert_allclose(model.posterior_.mean, process.posterior_.mean, atol=1e-6)
    np.testing.assert_allclose(model.posterior_.std, process.posterior_.std, atol=1e-6)


def test_it_beats_the_process_alone_and_the_process_after_the_network():
    errors = []
    for seed in range(2):
        bags = made(seed, most=30)
        away = np.random.default_rng(seed).permutation(60) < 18
        hidden = without(bags, away)
        separate = {**FAST, "objective": "separate"}
        models = [BagGraphRegressor(**{**FAST, "epochs": 80}), BagGraphRegressor(**{**separate, "epochs": 80})]
        models.append(BagProcessRegressor(parts=("position", "linear"), graph=None))
        errors.append([((m.fit(hidden).transduction_ - bags.y)[away] ** 2).mean() ** 0.5 for m in models])
    joint, separate, process = np.mean(errors, axis=0)
    assert joint < 0.8 * process
    assert joint < 0.9 * separate


@pytest.mark.parametrize("graph", [None, "given"])
def test_new_bags_saving_and_shares(graph, tmp_path):
    bags, new = made(), made(1).replace(ids=[f"new {i}" for i in range(60)], graph=None)
    model = BagGraphRegressor(**{**FAST, "graph": graph, "n_members": 2}).fit(without(bags, np.arange(60) % 3 == 0))
    assert sum(model.shares_.values()) == pytest.approx(1.0)
    assert ("graph" in model.shares_) == (graph is not None)
    assert model.shares_["encoder"] > 0
    assert 0 < model.n_iter_ <= 40
    found = model.predict_posterior(new)
    assert np.corrcoef(model.predict(bags.replace(graph=None)), bags.y)[0, 1] > 0.8
    again = load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict_posterior(new).draws, found.draws)
    np.testing.assert_array_equal(again.posterior_.draws, model.posterior_.draws)
    apart = model.predict_posterior(new.take(np.arange(7)))
    np.testing.assert_allclose(apart.mean, found.mean[:7], rtol=1e-5)
    seen = model.predict_posterior(bags.replace(graph=None))
    if graph is None:
        np.testing.assert_allclose(seen.mean, model.posterior_.mean, atol=1e-5)


def test_several_targets_and_calibration():
    bags = made(n=40)
    both = bags.replace(y=np.column_stack([bags.y, -2 * bags.y]))
    model = BagGraphRegressor(**{**FAST, "epochs": 10, "calibration": 0.2}).fit(both)
    assert model.posterior_.mean.shape == (40, 2)
    assert model.predict_interval(both).shape == (40, 2, 2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"objective": "joined"}, "did you mean 'joint'"),
        ({"head": "gcn"}, "head='gp'"),
        ({"loss": "gaussian"}, "loss='squared'"),
        ({"graph": "learned"}, "needs no embedding"),
        ({"n_graph_draws": 2}, "n_graph_draws"),
        ({"encoder": "mi-net", "encoder_options": None}, "linear layer behind"),
        ({"precision": "bfloat16"}, "precision"),
    ],
)
def test_what_it_refuses(change, said):
    with pytest.raises(ParameterError, match=said):
        BagGraphRegressor(**{**FAST, **change}).fit(made(n=12, most=9))


def test_bags_of_weights_are_refused():
    with pytest.raises(ParameterError, match="equal weight"):
        BagGraphRegressor(**FAST).fit(made(n=12, most=9), sample_weight=np.arange(12) + 1.0)


def test_it_keeps_the_laws_of_estimators_of_bags():
    assert check_bag_estimator(BagGraphRegressor(**{**FAST, "epochs": 5}))
