"""One member in training on batches: what is kept between steps, and the step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import tee
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from baggraph.errors import BagError, ParameterError
from baggraph.inference._adam import StackedAdam
from baggraph.inference._batches import Index, Loaded, Reader, Schedule, Step, told_apart
from baggraph.inference._checkpoint import Checkpoint, Saved
from baggraph.inference._hop import Around, Hop
from baggraph.inference._members import Layout, adopted, keys
from baggraph.inference._peers import Peers
from baggraph.inference._program import Settings, keep_freed_memory
from baggraph.nn.dropout import keyed, scrambled
from baggraph.nn.gcn import Propagation
from baggraph.nn.network import Network

Tell = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Task:
    """What is trained on what; ``weights`` (B,) are ``masses`` on the device."""

    network: Network
    layout: Layout
    settings: Settings
    reader: Reader
    schedule: Schedule
    targets: Tensor
    masses: NDArray[np.float64]
    weights: Tensor
    hop: Hop | None
    peers: Peers
    checkpoint: Checkpoint | None
    checkpoint_every: int


class Trainer:
    """The member: its row, the optimiser, the cache of embeddings, and how far it has come."""

    def __init__(self, task: Task, row: Tensor, lr: Tensor, weight_decay: Tensor) -> None:
        self.task, self.settings = task, task.settings
        device = self.settings.device
        self.rows = row.to(device, copy=True)
        self.low = self.rows.to(self.settings.compute_dtype)  # the same tensor where the type is the same
        self.leaves = adopted(task.network, task.layout, self.low[0])
        decayed = task.layout.decayed(self.settings.decay_on).to(device, row.dtype)
        self.adam = StackedAdam(self.rows, lr.to(device), weight_decay.to(device), decayed, self.settings.decay)
        self.key = keys([task.schedule.seed]).squeeze(0).to(device)
        self.losses = torch.full((self.settings.epochs,), torch.nan, dtype=torch.float64)
        self.place: dict[str, Any] = {"epoch": 0, "position": 0, "steps": 0, "updates": 0, "loss": 0.0, "weight": 0.0}
        blank = torch.zeros(1, task.reader.bags.n_features, dtype=self.settings.compute_dtype, device=device)
        task.network.eval()
        with torch.no_grad():
            width = self._encode(blank, torch.tensor([0, 1], device=device)).shape[1]
        self.cache = self.rows.new_zeros(len(task.reader.bags), width)

    # ------------------------------------------------------------------ from beginning to end

    def resume(self) -> bool:
        """Take up the state on disk, if there is one."""
        task = self.task
        if task.checkpoint is None:
            return False
        saved = task.peers.ask_first(task.checkpoint.load)
        if saved is None:
            return False
        for name, tensor in self._tensors().items():
            tensor.copy_(saved.tensors[name])
        self.place = saved.place
        self.low.copy_(self.rows)
        return True

    def train(self, tell: Tell) -> None:
        """All steps that are left; ``tell`` hears of every batch."""
        keep_freed_memory()
        task, place = self.task, self.place
        todo, again = tee(task.schedule.steps_from(place["epoch"], place["position"], self.settings.epochs))
        own = (batch for step in again for _, batch in task.peers.own(step.batches))
        with closing(task.reader.read(own)) as reading:
            for step in todo:
                self._step(step, reading, tell)
                self._save_if_due()

    def embed(self, bags: Index, tell: Tell) -> None:
        """Fill the cache for these bags as they are without dropout."""
        task = self.task
        batches = task.schedule.packed(bags)
        task.network.eval()
        with torch.no_grad(), closing(task.reader.read(batch for _, batch in task.peers.own(batches))) as reading:
            for number, batch in enumerate(batches):
                if task.peers.owner(number) == task.peers.rank:
                    loaded = next(reading)
                    found = self._encode(loaded.instances, loaded.offsets)
                    self.cache.index_copy_(0, loaded.bags, found.to(self.cache.dtype))
                self._hand_round(batch, number)
                tell(1)

    def outputs(self, paths: Propagation | None) -> Tensor:
        """Outputs (levels, B, C) of all bags at the embeddings in the cache."""
        self.task.network.eval()
        with torch.no_grad():
            found = self._part("head", self.cache.to(self.settings.compute_dtype), paths)
        return found.to("cpu", self.rows.dtype)

    # ------------------------------------------------------------------ a step

    def _step(self, step: Step, reading: Iterator[Loaded], tell: Tell) -> None:
        task, place = self.task, self.place
        weight = float(task.masses[step.bags].sum())
        sums = self.rows.new_zeros(1, task.layout.width + 1)  # the gradient, and the loss as its last number
        updates = torch.tensor(place["updates"], dtype=torch.int32, device=self.key.device)
        key = scrambled(self.key ^ scrambled(updates))
        fresh = []
        task.network.train()
        own = task.peers.own(step.batches)
        for number, batch in own:
            loaded = next(reading)
            around = None if task.hop is None else task.hop.around(batch, step.epoch, step.first + number)
            embedding = self._add_batch(sums, loaded, around, key, weight)
            if task.hop is not None:
                fresh.append((loaded.bags, embedding.detach().to(self.cache.dtype, copy=True)))
            tell(1)
        task.peers.add(sums)
        if task.peers.size > 1:
            tell(len(step.batches) - len(own))
        if weight > 0:
            self._move(sums, weight)
        if task.hop is not None:
            self._refresh(step, fresh)
        self._note(step)

    def _add_batch(self, sums: Tensor, loaded: Loaded, around: Around | None, key: Tensor, weight: float) -> Tensor:
        """Add gradient and loss of a batch, where any of its bags is labelled; its embeddings."""
        task = self.task
        unlabelled = task.hop is not None and around is None
        several = told_apart(loaded)
        names = [several.rows, several.bags]
        with keyed(key, names), torch.set_grad_enabled(not unlabelled):
            own = embedding = self._encode(several.instances, several.offsets)[: len(loaded.bags)]
            bags, paths = loaded.bags, None
            if unlabelled:
                return embedding
            if around is not None:
                beside = torch.cat([own, self.cache[around.outside].to(own.dtype)])
                bags, own, paths = bags[around.labelled], beside.index_select(0, around.places), around.graph
            # The head sees no instances, and of bags those of the hop.
            names[:] = [loaded.bags if around is None else around.columns]
            outputs = self._part("head", own, paths)
        if outputs.shape[-2] != len(bags):
            got = f"{outputs.shape[-2]} rows for {len(bags)} bags among {len(own)}"
            remedy = "let it use the graph by graph.mix alone"
            raise ParameterError("minibatch", expected="a head that gives a row a bag", got=got, remedy=remedy)
        of_bags = self.settings.loss.of_bags(outputs.to(self.rows.dtype), task.targets[bags])
        loss = (of_bags * (task.weights[bags] / weight)).sum((-2, -1))
        gradients = torch.autograd.grad(loss, list(self.leaves.values()), materialize_grads=True)
        for view, gradient in zip(task.layout.views(sums).values(), gradients, strict=True):
            view.add_(gradient)
        sums[0, -1] += loss.detach()
        return embedding

    def _move(self, sums: Tensor, weight: float) -> None:
        gradient, loss = sums[:, :-1], float(sums[0, -1])
        if not math.isfinite(loss):
            self._stop(f"{loss}")
        clip = self.settings.clip
        if clip is not None:
            norm = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
            gradient = gradient * (clip / norm.clamp_min(clip))
        self.adam.step(gradient)
        if self.low is not self.rows:
            self.low.copy_(self.rows)
        self.place["updates"] += 1
        self.place["loss"] += loss * weight
        self.place["weight"] += weight

    def _refresh(self, step: Step, fresh: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Put what passed the encoder into the cache, only now: no batch of a step sees another."""
        for bags, embedding in fresh:
            self.cache.index_copy_(0, bags, embedding)
        for number, batch in enumerate(step.batches):
            self._hand_round(batch, number)

    def _note(self, step: Step) -> None:
        place = self.place
        place.update(epoch=step.epoch, position=step.position + 1, steps=place["steps"] + 1)
        if step.ends_epoch:
            self.losses[step.epoch] = place["loss"] / place["weight"]
            place.update(epoch=step.epoch + 1, position=0, loss=0.0, weight=0.0)

    # ------------------------------------------------------------------ pieces

    def _encode(self, instances: Tensor, offsets: Tensor) -> Tensor:
        return self._part("encoder", instances.to(self.settings.compute_dtype), offsets)

    def _part(self, name: str, *inputs: Any) -> Tensor:
        """The encoder or the head, with the parameters as they are now."""
        found: Tensor = getattr(self.task.network, name)(*inputs)
        return found

    def _hand_round(self, batch: Index, number: int) -> None:
        if self.task.peers.size > 1:
            bags = torch.from_numpy(batch).to(self.cache.device)
            values = self.cache[bags]
            self.task.peers.hand_round(values, self.task.peers.owner(number))
            self.cache.index_copy_(0, bags, values)

    def _tensors(self) -> dict[str, Tensor]:
        adam = self.adam
        state = {"row": self.rows, "first": adam.first, "second": adam.second, "adam_steps": adam.steps}
        state |= {"losses": self.losses}
        return state if self.task.hop is None else state | {"cache": self.cache}

    def _save_if_due(self) -> None:
        task, place = self.task, self.place
        done = place["epoch"] == self.settings.epochs
        if not done and place["steps"] % task.checkpoint_every:
            return
        if not bool(torch.isfinite(self.rows).all()):
            self._stop("parameters that are not finite")
        if task.checkpoint is not None and task.peers.rank == 0:
            task.checkpoint.save(Saved({name: t.cpu() for name, t in self._tensors().items()}, place))

    def _stop(self, got: str) -> None:
        place, checkpoint = self.place, self.task.checkpoint
        last = "there is no checkpoint" if checkpoint is None else f"of checkpoints, {checkpoint.last}"
        where = f"in epoch {place['epoch'] + 1} after {place['steps']} steps"
        raise BagError(
            "minibatch", expected="a finite loss", got=f"{got} {where}", remedy=f"lower lr, or set clip; {last}"
        )
