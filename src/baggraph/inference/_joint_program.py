"""One chunk of members whose networks and covariances are trained by one loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from baggraph.inference._adam import StackedAdam
from baggraph.inference._gp_torch import DOUBLE, Chosen, Covariance, Factor, held_out_densities, log_prior
from baggraph.inference._members import Layout, epoch_keys, forward
from baggraph.inference._program import Settings, keep_freed_memory, product_precision
from baggraph.inference.gp import REACH, Process, Rows
from baggraph.nn.network import Network

LOOK_EVERY = 5  # epochs between looks at bags held out
COVARIANCE_RATE = 0.01  # of Adam, for the logarithms of the parameters of the covariance

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointMember:
    """What one member is trained on: bags by position, their targets (n, t), and where its covariance begins (P,).

    ``held`` bags are looked at every LOOK_EVERY epochs; their labels reach no parameter.
    """

    seed: int
    seen: NDArray[np.int64]
    targets: Array
    theta: Array
    epochs: int
    held: NDArray[np.int64]
    held_targets: Array


class Shared(NamedTuple):
    """What all members have in common."""

    network: Network
    layout: Layout
    instances: Tensor
    offsets: Tensor
    settings: Settings
    process: Process
    rows: Rows
    lr: float
    weight_decay: float


class JointTrained(NamedTuple):
    """Outputs (M, B, t), embeddings, losses (M, epochs), parameters of both, densities of held bags (M, m, looks)."""

    outputs: Tensor
    embedding: Tensor
    losses: Tensor
    rows: Tensor
    log_theta: Tensor
    densities: Tensor


class JointProgram:
    """``-log N(z; g, K) - log prior``, a bag, made small in the network's parameters and the covariance's alike."""

    def __init__(self, shared: Shared, rows: Tensor, members: Sequence[JointMember]) -> None:
        self.shared, self.members = shared, members
        device = shared.settings.device
        self.rows = rows.to(device, copy=True)
        self.leaves = {name: v.detach().requires_grad_() for name, v in shared.layout.views(self.rows).items()}
        parameters = [one for _, one in shared.process.parameters]
        self.center = torch.tensor([one.start for one in parameters], dtype=DOUBLE, device=device).log()
        self.spread = torch.tensor([one.spread for one in parameters], dtype=DOUBLE, device=device)
        self.log_theta = torch.from_numpy(np.log(np.stack([m.theta for m in members]))).to(device).requires_grad_()
        self.seen = Chosen.of([m.seen for m in members], device)
        self.targets = _filled([m.targets for m in members], self.seen)
        self.covariance = Covariance(shared.process, shared.rows, self.seen, self.seen)
        self.limits = torch.tensor([m.epochs for m in members], device=device)
        self.looking = all(len(m.held) for m in members)
        if self.looking:
            self.held = Chosen.of([m.held for m in members], device)
            self.held_targets = _filled([m.held_targets for m in members], self.held)
            self.cross = Covariance(shared.process, shared.rows, self.seen, self.held)
            self.own = Covariance(shared.process, shared.rows, self.held, self.held)
        self.fine = torch.ones(len(members), dtype=torch.bool, device=device)

    def train(self, tell: Callable[[int], None]) -> JointTrained:
        """Every member for its number of epochs; one whose covariance cannot be factored stops where it was."""
        keep_freed_memory()
        epochs = max(member.epochs for member in self.members)
        keys = epoch_keys([member.seed for member in self.members], epochs).to(self.rows.device)
        network, covariance = self._optimisers()
        losses, densities = [], []
        with product_precision(self.shared.settings):
            for epoch in range(epochs):
                if self.looking and epoch % LOOK_EVERY == 0:
                    densities.append(self._look())
                losses.append(self._step(epoch, keys[epoch], network, covariance))
                if (epoch + 1) % LOOK_EVERY == 0:
                    tell(epoch + 1)
            if self.looking:
                densities.append(self._look())
            with torch.no_grad():
                outputs, embedding = self._forward(None)
        columns = torch.stack(losses, 1) if losses else self.log_theta.new_zeros(len(self.members), 0)
        looks = torch.stack(densities, 2) if densities else self.log_theta.new_zeros(len(self.members), 0, 0)
        found = (outputs, embedding, columns, self.rows, self.log_theta.detach(), looks)
        return JointTrained(*(tensor.cpu() for tensor in found))

    def loss(self, key: Tensor | None) -> tuple[Tensor, Tensor]:
        """Of every member (M,), a bag, and which members have a covariance that can be factored (M,)."""
        outputs, _ = self._forward(key)
        residual = self.targets - self.seen.of_rows(outputs)
        factor = self._factor()
        value = factor.log_likelihood(residual) + log_prior(self.log_theta, self.center, self.spread)
        return -value / self.seen.there.sum(1), factor.fine

    def gradients(self, losses: Tensor) -> tuple[Tensor, Tensor]:
        """By the parameters of the networks (M, width) and the logarithms of those of the covariances (M, P)."""
        found = torch.autograd.grad(losses.sum(), [*self.leaves.values(), self.log_theta], materialize_grads=True)
        of_network = torch.zeros_like(self.rows)
        views = self.shared.layout.views(of_network).values()
        for view, gradient in zip(views, found[:-1], strict=True):
            view.copy_(gradient.view_as(view))
        return of_network, torch.where(self.spread > 0, found[-1], 0.0)

    def _step(self, epoch: int, key: Tensor, network: StackedAdam, covariance: StackedAdam) -> Tensor:
        losses, fine = self.loss(key)
        of_network, of_covariance = self.gradients(losses)
        self.fine = self.fine & fine & of_network.isfinite().all(1) & of_covariance.isfinite().all(1)
        live = self.fine & (epoch < self.limits)
        for adam, gradient in ((network, of_network), (covariance, of_covariance)):
            adam.step(torch.where(live.unsqueeze(1), gradient, 0.0), live)
        with torch.no_grad():
            reach = REACH * self.spread
            self.log_theta.copy_(torch.maximum(torch.minimum(self.log_theta, self.center + reach), self.center - reach))
        return torch.where(live, losses.detach(), torch.nan)

    def _optimisers(self) -> tuple[StackedAdam, StackedAdam]:
        shared, rows, theta = self.shared, self.rows, self.log_theta.detach()

        def each(number: float, like: Tensor) -> Tensor:
            return like.new_full((len(like),), number)

        decayed = shared.layout.decayed("weights").to(rows.device, rows.dtype)
        settings = (each(shared.lr, rows), each(shared.weight_decay, rows), decayed)
        nothing = (each(COVARIANCE_RATE, theta), each(0.0, theta), torch.zeros_like(theta[0]))
        return StackedAdam(rows, *settings, "l2"), StackedAdam(theta, *nothing, "l2")

    def _forward(self, key: Tensor | None) -> tuple[Tensor, Tensor]:
        """What the networks say (M, B, t), the mean of their levels, and embeddings (M, B, h)."""
        shared = self.shared
        found = forward(shared.network, self.leaves, shared.instances, shared.offsets, None, key)
        return found.outputs.to(DOUBLE).mean(1), found.embedding

    def _factor(self) -> Factor:
        signal, noise = self.covariance.signal(self.log_theta), self.covariance.noise(self.log_theta)
        return Factor.of(signal, noise, self.seen.there)

    @torch.no_grad()
    def _look(self) -> Tensor:
        """Log densities (M, m) of the targets of bags held out, each on its own."""
        outputs, _ = self._forward(None)
        residual = self.targets - self.seen.of_rows(outputs)
        held = self.held_targets - self.held.of_rows(outputs)
        before = self.own.signal(self.log_theta).diagonal(dim1=1, dim2=2) + self.own.noise(self.log_theta)
        factor, cross = self._factor(), self.cross.signal(self.log_theta)
        return held_out_densities(cross, before, factor, residual, held)


def _filled(targets: Sequence[Any], chosen: Chosen) -> Tensor:
    """Targets (M, n, t), zero where no bag is."""
    found = torch.zeros(*chosen.place.shape, targets[0].shape[1], dtype=DOUBLE)
    for member, values in zip(found, targets, strict=True):
        member[: len(values)] = torch.from_numpy(np.asarray(values, dtype=np.float64))
    return found.to(chosen.place.device)
