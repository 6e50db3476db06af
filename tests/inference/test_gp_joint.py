"""The joint objective against a dense computation, and the process that it begins with."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

from baggraph import BagGraph, Bags
from baggraph.inference import gp_joint
from baggraph.inference._gp_torch import Chosen, Covariance, Factor, held_out_densities
from baggraph.inference._joint_program import JointMember, JointProgram, Shared
from baggraph.inference._members import Layout, start
from baggraph.inference._program import Settings as Training
from baggraph.inference.gp import JITTER, AbstractEvidence, Evidence, fit_process
from baggraph.inference.gp_bags import Settings, describe
from baggraph.inference.gp_joint import fit_joint, zeroed
from baggraph.inference.gp_regression import regress
from baggraph.inference.stack import dense
from baggraph.nn.encoders import DeepSets
from baggraph.nn.heads import Head
from baggraph.nn.losses import SquaredError
from baggraph.nn.network import Network

B = 20
CPU = torch.device("cpu")


def made(seed: int = 0) -> Bags:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, B)
    graph = BagGraph.from_edges([(i, (i + 1) % B) for i in range(B)], ids=range(B))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    instances = rng.normal(size=(sizes.sum(), 3))
    return Bags(instances, offsets, rng.normal(size=B), ids=range(B), coords=rng.normal(size=(B, 2)), graph=graph)


def network() -> Network:
    return Network(DeepSets(3, (6,), (5,), pooling="mean", activation="tanh"), Head((5,), 1, dropout=0.0))


def description(shape: str = "rbf", kind: str = "matern"):
    return describe(made(), Settings(parts=("position", "graph", "linear"), position=shape, graph_kind=kind))


def a_theta(process, seed: int = 0) -> np.ndarray:
    center = np.log([one.start for _, one in process.parameters])
    free = np.array([one.spread > 0 for _, one in process.parameters])
    return np.exp(center + free * np.random.default_rng(seed).normal(scale=0.5, size=len(center)))


@pytest.mark.parametrize(
    ("shape", "kind"), [("rbf", "matern"), ("matern12", "diffusion"), ("matern32", "matern"), ("matern52", "matern")]
)
def test_covariances_are_those_of_the_process(shape, kind):
    own = description(shape, kind)
    left, right = [np.arange(7), np.arange(3, 12)], [np.arange(4, 20, 3), np.array([1, 0])]
    thetas = [a_theta(own.process, seed) for seed in range(2)]
    chosen = [Chosen.of(side, CPU) for side in (left, right)]
    covariance = Covariance(own.process, own.rows, *chosen)
    log_theta = torch.from_numpy(np.log(np.stack(thetas)))
    signal, noise = covariance.signal(log_theta), covariance.noise(log_theta)
    for m, theta in enumerate(thetas):
        rows, columns = own.take(left[m]), own.take(right[m])
        expected = sum(own.process.signal(own.process.pairs(rows, columns), theta).values())
        found = signal[m, : len(left[m]), : len(right[m])].numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(noise[m, : len(left[m])].numpy(), own.process.noise(rows, theta), rtol=1e-12)


def program(seeds=(0, 1), counts=(12, 9)) -> JointProgram:
    bags, own = made(), description()
    net = network()
    layout = Layout.of(net)
    settings = Training(SquaredError(1), 10, "l2", "weights", None, None, "float64", CPU)
    tensors = dense(bags, torch.float64, CPU)
    shared = Shared(net.to(torch.float64), layout, *tensors, settings, own.process, own.rows, 0.01, 0.0)
    members = [
        JointMember(
            seed, np.arange(n), bags.y[:n, None], a_theta(own.process, seed), 10, np.arange(n, B), bags.y[n:, None]
        )
        for seed, n in zip(seeds, counts, strict=True)
    ]
    return JointProgram(shared, start(net, layout, seeds).to(torch.float64), members)


def dense_loss(made_program: JointProgram, m: int, log_theta: np.ndarray) -> float:
    """By scipy, from the network of one member and its covariance in full."""
    shared, member = made_program.shared, made_program.members[m]
    leaves = {name: value[m : m + 1] for name, value in made_program.leaves.items()}
    with torch.no_grad():
        values = {name: value[0] for name, value in leaves.items()}
        outputs = torch.func.functional_call(shared.network, values, (shared.instances, shared.offsets, None)).outputs
    g = outputs.mean(0).numpy()[member.seen, 0]
    evidence = Evidence(shared.process, {k: v[member.seen] for k, v in shared.rows.items()}, member.targets)
    theta = np.exp(log_theta)
    parts = shared.process.signal(evidence.pairs, theta)
    signal = np.asarray(sum(parts.values()))
    covariance = signal + np.diag(shared.process.noise(evidence.rows, theta) + JITTER * np.diag(signal).mean())
    likelihood = multivariate_normal(g, covariance).logpdf(member.targets[:, 0])
    return -(likelihood + AbstractEvidence.log_prior(evidence, theta)[0]) / len(member.seen)


def test_loss_and_gradients_against_a_dense_computation():
    made_program = program()
    losses, fine = made_program.loss(None)
    assert bool(fine.all())
    of_network, of_covariance = made_program.gradients(losses)
    losses = losses.detach()
    step = 1e-5
    for m in range(2):
        log_theta = made_program.log_theta.detach()[m].numpy().copy()
        assert float(losses[m]) == pytest.approx(dense_loss(made_program, m, log_theta), abs=1e-8)
        for p, (_, one) in enumerate(made_program.shared.process.parameters):
            away = np.eye(len(log_theta))[p] * step
            ends = [dense_loss(made_program, m, log_theta + sign * away) for sign in (1, -1)]
            slope = (ends[0] - ends[1]) / (2 * step) if one.spread else 0.0
            assert float(of_covariance[m, p]) == pytest.approx(slope, abs=1e-6)
        for place in (0, 7, made_program.shared.layout.places[-1].start):
            ends = []
            for sign in (1, -1):
                with torch.no_grad():
                    made_program.rows[m, place] += sign * step
                    ends.append(dense_loss(made_program, m, log_theta))
                    made_program.rows[m, place] -= sign * step
            assert float(of_network[m, place]) == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-6)


def test_densities_of_bags_left_out_are_those_of_the_process():
    bags, own = made(), description()
    seen, held = np.arange(13), np.arange(13, B)
    theta = a_theta(own.process)
    evidence = Evidence(own.process, own.take(seen), bags.y[seen, None])
    fitted = fit_process(own.process, own.take(seen), bags.y[seen, None], starts=1)
    fitted = type(fitted)(own.process, theta, evidence.rows, evidence.targets, 0.0, 0.0)
    mean, signal, noise = fitted.predict(own.take(held))
    expected = norm(mean[:, 0], np.sqrt(signal + noise)).logpdf(bags.y[held])
    left, right = Chosen.of([seen], CPU), Chosen.of([held], CPU)
    log_theta = torch.from_numpy(np.log(theta))[None]
    among, cross, alone = (
        Covariance(own.process, own.rows, *pair) for pair in ((left, left), (left, right), (right, right))
    )
    before = alone.signal(log_theta).diagonal(dim1=1, dim2=2) + alone.noise(log_theta)
    factor = Factor.of(among.signal(log_theta), among.noise(log_theta), left.there)
    targets = [torch.from_numpy(bags.y[which, None])[None] for which in (seen, held)]
    found = held_out_densities(cross.signal(log_theta), before, factor, *targets)
    np.testing.assert_allclose(found[0].numpy(), expected, atol=1e-8)


def test_a_network_that_says_nothing_is_the_process():
    bags, own = made(), description()
    visible = np.arange(B) < 14
    plain = regress(own, bags.y[:, None], visible, link="identity")
    made_program = program(counts=(14, 14))
    zeroed(made_program.shared.network, made_program.shared.layout, made_program.rows)
    with torch.no_grad():
        made_program.log_theta.copy_(torch.from_numpy(np.log(plain.fitted.theta)))
        made_program.targets.copy_(torch.from_numpy(plain.fitted.targets))
    losses, _ = made_program.loss(None)
    np.testing.assert_allclose(losses.detach().numpy(), -plain.fitted.log_posterior / 14, atol=1e-6)


def fit(masks, seeds, **more):
    bags, own = made(), description()
    plain = [regress(own, bags.y[:, None], mask, link="identity") for mask in masks]
    return fit_joint(network(), bags, plain, masks, seeds, **{"epochs": 12, "lr": 0.02, "device": "cpu"} | more)


def test_members_together_are_members_alone(monkeypatch):
    """In one batch, as on a GPU, and of different numbers of training bags."""
    masks = np.stack([np.arange(B) < 15, np.arange(B) % 3 > 0, np.arange(B) > 9])
    monkeypatch.setattr(gp_joint, "_chosen", always(10))
    alone = [fit(masks[m : m + 1], [m], precision="float64") for m in range(3)]
    monkeypatch.setattr(gp_joint, "chunk_size", lambda *_: 100)
    together = fit(masks, range(3), precision="float64")
    for own, found in zip(alone, together.regressions, strict=True):
        (single,) = own.regressions
        assert found.epochs == single.epochs == 10
        np.testing.assert_allclose(found.densities, single.densities, atol=1e-8)
        np.testing.assert_allclose(found.rest.fitted.theta, single.rest.fitted.theta, rtol=1e-7)
        np.testing.assert_allclose(found.outputs, single.outputs, atol=1e-8)


def always(epochs: int):
    chosen = gp_joint._chosen
    return lambda inner, densities: ([epochs] * len(inner), chosen(inner, densities)[1])


def test_the_loss_falls_and_epochs_differ_by_member(monkeypatch):
    masks = np.stack([np.arange(B) < 15, np.arange(B) % 3 > 0])
    monkeypatch.setattr(gp_joint, "_chosen", lambda inner, _: ([5, 20][: len(inner)], [np.zeros(1)] * len(inner)))
    found = fit(masks, range(2), epochs=20)
    np.testing.assert_array_equal(found.stack.epochs, [5, 20])
    rest = found.regressions[1].rest
    plain = regress(description(), made().y[:, None], masks[1], link="identity")
    assert float(found.stack.losses[1, 0]) * masks[1].sum() == pytest.approx(-plain.fitted.log_posterior, abs=1e-6)
    assert rest.fitted.log_posterior > plain.fitted.log_posterior + 1
    assert rest.log_evidence - plain.log_evidence == pytest.approx(
        rest.fitted.log_posterior - plain.fitted.log_posterior
    )


def test_a_covariance_that_cannot_be_factored_stops_its_member_alone():
    made_program = program()
    before = made_program.rows.clone()
    made_program.targets[0] = torch.nan
    trained = made_program.train(lambda _: None)
    assert torch.equal(trained.rows[0], before[0])
    assert not torch.equal(trained.rows[1], before[1])
    assert bool(torch.isfinite(trained.rows).all())


def test_one_training_bag_chooses_nothing():
    (found,) = fit(np.eye(B)[:1] > 0, [0]).regressions
    assert found.epochs == 0
    assert not found.outputs.any()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("precision", "close"), [("float64", 1e-6), ("float32", 1e-2)])
def test_a_gpu_finds_the_same(precision, close, monkeypatch):
    masks = np.stack([np.arange(B) < 15, np.arange(B) % 3 > 0, np.arange(B) > 9])
    monkeypatch.setattr(gp_joint, "_chosen", always(10))
    there, here = (fit(masks, range(3), precision=precision, device=device) for device in ("cuda", "cpu"))
    for found, expected in zip(there.regressions, here.regressions, strict=True):
        np.testing.assert_allclose(found.outputs, expected.outputs, atol=close)
        np.testing.assert_allclose(found.rest.fitted.theta, expected.rest.fitted.theta, rtol=10 * close)
