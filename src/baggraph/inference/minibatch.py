"""Train one network on bags that do not fit in memory: by batches, with checkpoints, on one process or several."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.inference._arguments import Batching, bag_weights, check, facts_of, hop_of
from baggraph.inference._batches import Reader, Schedule
from baggraph.inference._checkpoint import Checkpoint
from baggraph.inference._device import chosen_device
from baggraph.inference._hop import refuse_deep_head
from baggraph.inference._inputs import member_targets, one_each
from baggraph.inference._large import Task, Trainer
from baggraph.inference._members import Layout, refuse_running_statistics, start
from baggraph.inference._peers import Peers
from baggraph.inference._program import Settings, product_precision
from baggraph.nn.gcn import Propagation
from baggraph.nn.losses import AbstractLoss
from baggraph.nn.network import Network

__all__ = ["MinibatchFit", "fit_minibatch"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class MinibatchFit:
    """A fitted member; tensors on the CPU, as one member of a :class:`~baggraph.inference.stack.StackFit`.

    Parameters
    ----------
    network
        The network that was given.
    parameters
        By name.
    embedding : (B, h)
        Embeddings of all bags at the fitted parameters, without dropout.
    outputs : (levels, B, C)
        Outputs, likewise; with a graph, the whole of it.
    mean : (B, n_targets)
        Expected labels: ``loss.mean(outputs)``, averaged over levels.
    losses : (epochs,)
        Mean training loss of the steps of every epoch.

    """

    network: Network
    parameters: dict[str, Tensor]
    embedding: Tensor
    outputs: Tensor
    mean: Tensor
    losses: Tensor

    def member(self) -> Network:
        """The fitted network, ready to use."""
        network = copy.deepcopy(self.network)
        network.load_state_dict({name: value.clone() for name, value in self.parameters.items()}, strict=False)
        return network.eval()


def fit_minibatch(
    network: Network,
    bags: Bags,
    targets: Any,
    mask: Any,
    graph: BagGraph | None = None,
    *,
    loss: AbstractLoss,
    seed: int = 0,
    lr: float = 1e-3,
    weight_decay: float = 0.0,
    epochs: int = 200,
    batch_instances: int = 65_536,
    accumulate: int = 1,
    n_neighbors_sampled: int | None = None,
    decay: str = "l2",
    decay_on: str = "weights",
    clip: float | None = None,
    precision: str = "float32",
    device: str = "auto",
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 100,
    progress: Progress | None = None,
) -> MinibatchFit:
    """Fit one member with Adam on batches of bags, which are read from disk when they are needed.

    Start, dropout and optimiser are those of :func:`~baggraph.inference.stack.fit_stack`: with all bags in one step and
    without a graph, or in one batch and with one, it gives the same to rounding.  Called again after it was killed,
    with the same arguments and folder, it goes on from its last checkpoint; on a CPU the result is then that of an
    uninterrupted run, bit for bit.

    Parameters
    ----------
    network, targets, loss, lr, weight_decay, decay, decay_on, clip, precision
        As for ``fit_stack``, for one member.
    mask : (B,)
        Weights of bags in the loss: 0 or False hides the label of a bag.  A step averages over its labelled bags.
    graph
        None, or a graph over these bags; the head must then be one graph convolution.  Neighbours outside of a batch
        enter as they last passed the encoder, without gradient.
    seed
        Of start, dropout, and the order of bags.
    epochs
        How often every bag is seen that is labelled or, with a graph, the neighbour of one that is.
    batch_instances
        Most instances of a batch; a larger bag is a batch of its own.
    accumulate
        Batches of a step of the optimiser, of all processes together.
    n_neighbors_sampled
        None, or how many neighbours of a bag are drawn for a batch, weighted so that the expectation stays.
    checkpoint
        A folder for the state, or None.
    checkpoint_every
        Steps between checkpoints; one more is written at the end.
    progress
        Called as ``progress(done, total)`` in batches, those that are only embedded included.

    """
    settings = Settings(loss, epochs, decay, decay_on, clip, None, precision, chosen_device(device))
    peers = Peers()
    batching = Batching(batch_instances, accumulate, n_neighbors_sampled, checkpoint_every)
    check(settings, seed, batching, graph, peers.size)
    refuse_running_statistics(network)
    dtype = torch.float64 if precision == "float64" else torch.float32
    weights = bag_weights(mask, bags)
    labels = member_targets(targets, loss, weights.unsqueeze(0), bags).view(len(bags), loss.n_targets)
    rates = {"lr": lr, "weight_decay": weight_decay}
    own_rates = {name: one_each(rate, 1, name).to(dtype) for name, rate in rates.items()}
    hop = None if graph is None else hop_of(graph, bags, weights, batching, seed, settings)
    used = np.flatnonzero(weights.numpy() > 0) if hop is None else hop.near
    layout = Layout.of(network)
    row = start(network, layout, [seed]).to(dtype)
    facts = facts_of(network, row, bags, labels, weights, hop, settings, batching, seed, rates)
    peers.refuse_disagreement(facts)
    task = Task(
        network=copy.deepcopy(network).to(settings.device),
        layout=layout,
        settings=settings,
        reader=Reader(bags, batch_instances, dtype, settings.device),
        schedule=Schedule(used, bags.sizes, seed, batch_instances, accumulate),
        targets=labels.to(settings.device, dtype),
        masses=weights.numpy(),
        weights=weights.to(settings.device, dtype),
        hop=hop,
        peers=peers,
        checkpoint=None if checkpoint is None else Checkpoint(Path(checkpoint), facts),
        checkpoint_every=checkpoint_every,
    )
    with product_precision(settings):
        trainer = Trainer(task, row, **own_rates)
        if hop is not None:
            refuse_deep_head(copy.deepcopy(network.head).float().cpu(), trainer.cache.shape[1])
        outputs = _run(trainer, graph, progress)
    parameters = {name: leaf[0].cpu() for name, leaf in layout.views(trainer.rows).items()}
    return MinibatchFit(
        network, parameters, trainer.cache.cpu(), outputs, loss.mean(outputs).mean(0), trainer.losses.to(dtype)
    )


def _run(trainer: Trainer, graph: BagGraph | None, progress: Progress | None) -> Tensor:
    """Train, or finish what was begun, and embed all bags; their outputs."""
    task, settings = trainer.task, trainer.settings
    resumed = trainer.resume()
    tell = _counted(trainer, resumed, progress)
    if task.hop is not None and not resumed:
        trainer.embed(task.schedule.bags, tell)
    trainer.train(tell)
    trainer.embed(np.arange(len(task.reader.bags)), tell)
    dtype, device = settings.compute_dtype, settings.device
    return trainer.outputs(None if graph is None else Propagation.of(graph, device=device, dtype=dtype))


def _counted(trainer: Trainer, resumed: bool, progress: Progress | None) -> Callable[[int], None]:
    if progress is None:
        return lambda _: None
    schedule, place = trainer.task.schedule, trainer.place
    counts = [len(schedule.batches(epoch)) for epoch in range(trainer.settings.epochs)]
    before, after = (len(schedule.packed(bags)) for bags in (schedule.bags, np.arange(len(schedule.sizes))))
    before = 0 if trainer.task.hop is None else before
    total = before + sum(counts) + after
    done = before + sum(counts[: place["epoch"]]) + place["position"] * schedule.accumulate if resumed else 0

    def tell(batches: int) -> None:
        nonlocal done
        done += batches
        progress(done, total)

    return tell
