"""Train M members of one network over the same bags at once: folds, seeds, graphs and grids as one tensor program."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.errors import NotConvergedWarning, name_some
from baggraph.inference._device import chosen_device
from baggraph.inference._inputs import check_settings, member_targets, member_weights, one_each, refused
from baggraph.inference._label_inputs import label_inputs
from baggraph.inference._members import Layout, refuse_other_bags, refuse_running_statistics, start
from baggraph.inference._program import Program, Settings, member_bytes
from baggraph.nn.gcn import Propagation
from baggraph.nn.losses import AbstractLoss
from baggraph.nn.network import Network

__all__ = ["StackFit", "fit_stack"]

GPU_SHARE = 0.5

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class StackFit:
    """M fitted members; tensors on the CPU, members first.

    Parameters
    ----------
    network
        The network for one member.
    parameters
        By name, (M, ...).
    embedding : (M, B, h)
        Embeddings of all bags at the fitted parameters, without dropout.
    outputs : (M, levels, B, C)
        Outputs, likewise.
    losses : (M, epochs)
        Training loss at the start of every epoch; NaN after a member stopped.
    mean : (M, B, n_targets)
        Expected labels: ``loss.mean(outputs)``, averaged over levels.
    labels : (M, B, n_targets + 1)
        What heads were shown of labels, all at once, for ``embedding`` and ``outputs``; None without a graph, or where
        the head takes none.

    """

    network: Network
    parameters: dict[str, Tensor]
    embedding: Tensor
    outputs: Tensor
    losses: Tensor
    mean: Tensor
    labels: Tensor | None = None

    def __len__(self) -> int:
        return len(self.losses)

    def __repr__(self) -> str:
        members, bags, width = self.embedding.shape
        return f"StackFit: {members:,} members, {bags:,} bags, embeddings of {width}, {self.losses.shape[1]:,} epochs"

    @property
    def epochs(self) -> np.ndarray:
        """Epochs that every member was trained for (M,)."""
        return (~torch.isnan(self.losses)).sum(1).numpy()

    @property
    def diverged(self) -> np.ndarray:
        """Members (M,) with parameters that are not finite."""
        finite = [torch.isfinite(value).flatten(1).all(1) for value in self.parameters.values()]
        return ~torch.stack(finite).all(0).numpy()

    def member(self, m: int) -> Network:
        """The network of one member, ready to use."""
        network = copy.deepcopy(self.network)
        network.load_state_dict({name: value[m].clone() for name, value in self.parameters.items()}, strict=False)
        return network.eval()


def fit_stack(
    network: Network,
    bags: Bags,
    targets: Any,
    masks: Any,
    graphs: BagGraph | Sequence[BagGraph] | None = None,
    *,
    loss: AbstractLoss,
    seeds: Sequence[int],
    lr: float | Sequence[float] = 1e-3,
    weight_decay: float | Sequence[float] = 0.0,
    epochs: int = 200,
    decay: str = "l2",
    decay_on: str = "weights",
    clip: float | None = None,
    patience: int | None = None,
    precision: str = "float32",
    device: str = "auto",
    memory_bytes: int | None = None,
    progress: Progress | None = None,
) -> StackFit:
    """Fit M members with Adam on full batches; nothing of a member depends on the others.

    Parameters
    ----------
    network
        A network for one member; its layers draw their start with ``reset_parameters``.
    targets
        (B,) or (B, n_targets), or (M, B, n_targets) where members differ; classes as codes or one-hot.  What is hidden
        by the masks may be anything, NaN included.
    masks : (M, B)
        Weights of bags in the loss of a member: 0 or False hides the label of a bag.
    graphs
        None, one graph for all members, or one a member, over these bags.  With one, a head that takes labels is shown
        those of half of the labelled bags in every step, and the loss is that of the others.
    loss
        How outputs are compared with targets: averaged over labelled bags, and added up over levels of supervision
        (Wang et al. 2018).
    seeds, lr, weight_decay
        One a member; the last two may be one number for all.
    epochs
        Steps of the optimiser; each sees all bags.
    decay, decay_on
        ``"l2"`` adds to the gradient, ``"decoupled"`` does not; on ``"weights"``, or on ``"biases"`` as published.
    clip
        Largest norm of a member's gradient.
    patience
        Stop a member whose training loss has not fallen by a thousandth in that many epochs.
    precision
        ``"float32"``, ``"tf32"`` or ``"bfloat16"`` products on a GPU, or ``"float64"``.
    memory_bytes
        On a GPU, members are trained together in chunks that need about so much; by default half of what is free.
    progress
        Called as ``progress(done, total)`` in epochs of members.

    Returns
    -------
    StackFit
        A member whose loss became NaN is told by a warning, and by ``diverged``.

    """
    settings = Settings(loss, epochs, decay, decay_on, clip, patience, precision, chosen_device(device))
    check_settings(settings, seeds)
    refuse_running_statistics(network)
    count = len(seeds)
    dtype = torch.float64 if precision == "float64" else torch.float32
    weights = member_weights(masks, count, bags).to(dtype)
    labels = member_targets(targets, loss, weights, bags).to(dtype)
    rates = (one_each(lr, count, "lr").to(dtype), one_each(weight_decay, count, "weight_decay").to(dtype))
    paths = None if graphs is None else _propagation(graphs, count, bags, settings)
    takes_labels = paths is not None and getattr(network.head, "n_labels", 0) > 0
    shown = label_inputs(labels, weights) if takes_labels else None
    instances, offsets = dense(bags, settings.compute_dtype, settings.device)
    layout = Layout.of(network)
    rows = start(network, layout, seeds).to(dtype)
    shared = (copy.deepcopy(network).to(settings.device), layout, instances, offsets, settings)
    chunk = chunk_size(shared, rows, paths, memory_bytes)
    parts = []
    for first in range(0, count, chunk):
        some = slice(first, min(first + chunk, count))
        own_labels = labels if labels.ndim == 2 else labels[some]
        own_paths = None if paths is None else paths.members(some.start, some.stop)
        own_rates = tuple(rate[some] for rate in rates)
        own_shown = None if shown is None else shown[some]
        program = Program(*shared, rows[some], seeds[some], own_labels, weights[some], own_paths, own_rates, own_shown)
        parts.append(program.train(_counted(progress, first, some.stop - first, count, epochs)))
    outputs, embedding, losses, rows = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    fit = StackFit(network, layout.views(rows), embedding, outputs, losses, loss.mean(outputs).mean(1), shown)
    _tell_diverged(fit)
    return fit


def dense(bags: Bags, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Instances (N, d) and offsets (B + 1) of bags as tensors."""
    tensors = bags.to_torch(copy=False)
    instances = tensors.instances.to_dense() if bags.is_sparse else tensors.instances
    return instances.to(device, dtype), tensors.offsets.to(device)


def _propagation(graphs: Any, count: int, bags: Bags, settings: Settings) -> Propagation:
    paths = Propagation.of(graphs, device=settings.device, dtype=settings.compute_dtype)
    n = (len(paths.offsets) - 1) // paths.n_graphs
    if n != len(bags) or paths.n_graphs not in (1, count):
        expected = f"one graph, or {count}, over {len(bags)} bags"
        raise refused(expected, f"{paths.n_graphs} over {n}", "pass graphs of these bags")
    for graph in [graphs] if isinstance(graphs, BagGraph) else graphs:
        refuse_other_bags(graph, bags, "stack")
    return paths


def chunk_size(shared: Any, rows: Tensor, paths: Propagation | None, memory_bytes: int | None, extra: int = 0) -> int:
    """How many members are trained together; each needs ``extra`` bytes beside its network."""
    device = shared[-1].device
    if device.type == "cpu":
        return 1  # one after the other is as fast as together, needs less memory, and is each alone to the last digit
    if memory_bytes is None:
        memory_bytes = int(GPU_SHARE * torch.cuda.mem_get_info(device)[0])
    network, layout, instances, offsets, settings = shared
    path = None if paths is None else paths.members(0, 1)
    one = extra + member_bytes(network, layout, instances, offsets, settings, rows[:1], path)
    return int(min(len(rows), max(1, memory_bytes // one)))


def _counted(progress: Progress | None, before: int, members: int, count: int, epochs: int) -> Callable[[int], None]:
    def tell(epoch: int) -> None:
        if progress is not None:
            progress(before * epochs + members * epoch, count * epochs)

    return tell


def _tell_diverged(fit: StackFit) -> None:
    if fit.diverged.any():
        members = name_some(np.flatnonzero(fit.diverged).tolist())
        text = f"stack: expected finite parameters, got NaN in members {members}; lower lr, or set clip, for these"
        warnings.warn(text, NotConvergedWarning, stacklevel=3)
