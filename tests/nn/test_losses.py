"""Losses against those of torch, and what they make of outputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from baggraph.nn.losses import LEAST_LOG_VARIANCE, BinaryCrossEntropy, CrossEntropy, Gaussian, SquaredError

LOSSES = [BinaryCrossEntropy(), BinaryCrossEntropy(3), CrossEntropy(4), SquaredError(2), Gaussian(), Gaussian(3)]


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def test_as_torch_has_them():
    outputs, values, codes = numbers(9, 4), numbers(9, 4, seed=1), torch.arange(9) % 4
    shares, hot = values.sigmoid(), functional.one_hot(codes, 4).double()
    own = functional.binary_cross_entropy_with_logits(outputs, shares, reduction="none").sum(1)
    torch.testing.assert_close(BinaryCrossEntropy(4).of_bags(outputs, shares), own)
    own = functional.cross_entropy(outputs, codes, reduction="none")
    torch.testing.assert_close(CrossEntropy(4).of_bags(outputs, hot), own)
    soft = values.softmax(1)
    own = functional.cross_entropy(outputs, soft, reduction="none")
    torch.testing.assert_close(CrossEntropy(4).of_bags(outputs, soft), own)
    own = functional.mse_loss(outputs, values, reduction="none").mean(1)
    torch.testing.assert_close(SquaredError(4).of_bags(outputs, values), own)
    both = numbers(9, 8, seed=2)
    own = functional.gaussian_nll_loss(both[:, :4], values, both[:, 4:].exp(), reduction="none").sum(1)
    torch.testing.assert_close(Gaussian(4).of_bags(both, values), own)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_gradients_members_and_shapes(loss):
    outputs = numbers(2, 3, 5, loss.n_outputs).requires_grad_()
    targets = numbers(2, 1, 5, loss.n_targets, seed=1).softmax(-1)
    found = loss.of_bags(outputs, targets)
    assert found.shape == (2, 3, 5)
    torch.testing.assert_close(found[1, 2], loss.of_bags(outputs[1, 2], targets[1, 0]))
    assert torch.autograd.gradcheck(lambda o: loss.of_bags(o, targets), outputs)
    assert loss.mean(outputs).shape == (2, 3, 5, loss.n_targets)
    variance = loss.variance(outputs)
    assert variance is None or (variance.shape == (2, 3, 5, loss.n_targets) and (variance > 0).all())


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_truth_costs_least(loss):
    """The expected loss under the model's own labels is least at its own mean."""
    outputs = numbers(6, loss.n_outputs)
    best = loss.of_bags(outputs, loss.mean(outputs))
    for seed in range(1, 5):
        other = outputs.clone()
        other[:, : loss.n_targets] += 0.5 * numbers(6, loss.n_targets, seed=seed)
        assert (loss.of_bags(other, loss.mean(outputs)) >= best - 1e-12).all()


@pytest.mark.parametrize("size", [1e2, 1e4, 1e30])
def test_far_outputs_have_finite_losses_and_gradients(size):
    outputs = torch.tensor([[size], [-size]], requires_grad=True)
    loss = BinaryCrossEntropy().of_bags(outputs, torch.tensor([[0.0], [1.0]])).sum()
    loss.backward()
    assert loss.isfinite()
    assert outputs.grad.tolist() == [[1.0], [-1.0]]
    classes = torch.tensor([[size, -size]], requires_grad=True)
    (loss := CrossEntropy(2).of_bags(classes, torch.eye(2)[1:]).sum()).backward()
    assert loss.isfinite()
    assert classes.grad.tolist() == [[1.0, -1.0]]


def test_variances_have_a_floor():
    outputs = torch.tensor([[0.0, -1e6]], requires_grad=True)
    assert Gaussian().variance(outputs).item() == pytest.approx(np.exp(LEAST_LOG_VARIANCE))
    Gaussian().of_bags(outputs, torch.zeros(1, 1)).sum().backward()
    assert outputs.grad.isfinite().all()
