"""One chunk of a stack: the step that is repeated every epoch, recorded once on a GPU and replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from baggraph.inference._adam import StackedAdam
from baggraph.inference._label_inputs import masked
from baggraph.inference._members import Layout, adopted, epoch_keys, forward, set_training
from baggraph.nn.dropout import keyed
from baggraph.nn.gcn import Propagation
from baggraph.nn.losses import AbstractLoss
from baggraph.nn.network import Forward, Network

PRECISIONS = {
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
    "tf32": torch.float32,
}
REPORTS = 20
EAGER_STEPS = 3  # before recording: libraries make their plans and handles on first use
IMPROVEMENT = 1e-3
LARGEST_KEPT = (32 << 20) - (64 << 10)  # and what the allocator adds is within its limit

Trained = tuple[Tensor, Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class Settings:
    """What all members share; see :func:`~baggraph.inference.stack.fit_stack`."""

    loss: AbstractLoss
    epochs: int
    decay: str
    decay_on: str
    clip: float | None
    patience: int | None
    precision: str
    device: torch.device

    @property
    def compute_dtype(self) -> torch.dtype:
        """Type of the products."""
        return PRECISIONS[self.precision]


class Program:
    """Members of one chunk in training."""

    def __init__(
        self,
        network: Network,
        layout: Layout,
        instances: Tensor,
        offsets: Tensor,
        settings: Settings,
        rows: Tensor,
        seeds: Sequence[int],
        targets: Tensor,
        weights: Tensor,
        paths: Propagation | None,
        rates: tuple[Tensor, ...],
        labels: Tensor | None = None,
    ) -> None:
        self.network, self.layout, self.settings, self.paths = network, layout, settings, paths
        self.instances, self.offsets = instances, offsets
        device = settings.device
        self.rows = rows.to(device, copy=True)
        self.low = self.rows if rows.dtype == settings.compute_dtype else self.rows.to(settings.compute_dtype)
        self.alone = len(rows) == 1
        self.leaves: dict[str, Tensor] = (
            {**adopted(network, layout, self.low[0])}
            if self.alone
            else {name: view.detach().requires_grad_() for name, view in layout.views(self.low).items()}
        )
        self.gradient = torch.zeros_like(self.rows)
        self.gradient_views = list(layout.views(self.gradient).values())
        self.targets = targets.unsqueeze(-3).to(device)  # the same for all levels
        self.weights = weights.unsqueeze(1).to(device)
        self.labels = None if labels is None else labels.to(device, settings.compute_dtype)
        lr, decay = (rate.to(device) for rate in rates)
        decayed = layout.decayed(settings.decay_on).to(device, rows.dtype)
        self.adam = StackedAdam(self.rows, lr, decay, decayed, settings.decay)
        self.keys = epoch_keys(seeds, settings.epochs).to(device)
        self.epoch = torch.zeros(1, dtype=torch.int64, device=device)
        self.losses = torch.full((len(rows), settings.epochs), torch.nan, device=device)
        self.live = torch.ones(len(rows), dtype=torch.bool, device=device)
        self.best = torch.full((len(rows),), torch.inf, device=device)
        self.since = torch.zeros(len(rows), device=device)

    def train(self, tell: Callable[[int], None]) -> Trained:
        """Run all epochs; outputs, embedding, losses and rows on the CPU."""
        keep_freed_memory()
        with product_precision(self.settings):
            advance, done = self._recorded() if self.settings.device.type == "cuda" else (self._step, 0)
            epochs = self.settings.epochs
            every = max(1, epochs // REPORTS)
            for epoch in range(done, epochs):
                advance()
                if (epoch + 1) % every == 0 or epoch + 1 == epochs:
                    if self.settings.patience is not None and not bool(self.live.any()):
                        break
                    self._wait()
                    tell(epoch + 1)
            with torch.no_grad():
                found = self._forward(None, self.labels)
        outputs, embedding = (_to_cpu(tensor.to(self.rows.dtype)) for tensor in found)
        return outputs, embedding, _to_cpu(self.losses), _to_cpu(self.rows)

    def _step(self) -> None:
        """One epoch of every member."""
        key = self.keys.index_select(0, self.epoch).squeeze(0)
        labels, weights = self.labels, self.weights
        if labels is not None:
            labels, weights = masked(labels, weights, key)
        found = self._forward(key, labels)
        of_bags = self.settings.loss.of_bags(found.outputs.to(self.rows.dtype), self.targets)
        losses = (of_bags * weights).sum((-2, -1))
        gradient = self._row_gradient(losses.sum())
        if self.settings.clip is not None:
            norm = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
            gradient = gradient * (self.settings.clip / norm.clamp_min(self.settings.clip))
        live = None if self.settings.patience is None else self.live.clone()
        self._note(losses.detach())
        self.adam.step(gradient, live)
        if self.low is not self.rows:
            self.low.copy_(self.rows)
        self.epoch += 1

    def _forward(self, key: Tensor | None, labels: Tensor | None) -> Forward:
        """Outputs (M, levels, B, C) and embeddings (M, B, h); with keys (M,), under dropout."""
        inputs = (self.instances, self.offsets, self.paths)
        if not self.alone:
            return forward(self.network, self.leaves, *inputs, key, labels=labels)
        set_training(self.network, key is not None)
        more = () if labels is None else (labels[0],)
        with nullcontext() if key is None else keyed(key[0]):
            return Forward(*(part.unsqueeze(0) for part in self.network(*inputs, *more)))

    def _row_gradient(self, total: Tensor) -> Tensor:
        gradients = torch.autograd.grad(total, list(self.leaves.values()), materialize_grads=True)
        for view, gradient in zip(self.gradient_views, gradients, strict=True):
            view.copy_(gradient.view_as(view))
        return self.gradient

    def _note(self, losses: Tensor) -> None:
        """Keep the losses, and stop members whose loss no longer falls."""
        column = losses.to(self.losses.dtype)
        if self.settings.patience is not None:
            column = torch.where(self.live, column, torch.nan)
            better = losses < self.best - IMPROVEMENT * self.best.abs().nan_to_num(posinf=0.0)
            self.best = self._assign(self.best, torch.where(better, losses.to(self.best.dtype), self.best))
            self.since = self._assign(self.since, torch.where(better, 0.0, self.since + 1))
            self.live = self._assign(self.live, self.live & (self.since < self.settings.patience))
        self.losses.index_copy_(1, self.epoch, column.unsqueeze(1))

    @staticmethod
    def _assign(place: Tensor, value: Tensor) -> Tensor:
        return place.copy_(value)  # a recorded step must find its state where it was

    def _recorded(self) -> tuple[Callable[[], None], int]:
        """The step as one replay, and how many epochs were run before it was recorded."""
        eager = min(EAGER_STEPS, self.settings.epochs)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(eager):
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        if eager == self.settings.epochs:
            return self._step, eager
        record = torch.cuda.CUDAGraph()
        with torch.cuda.graph(record):
            self._step()
        return record.replay, eager

    def _wait(self) -> None:
        if self.settings.device.type == "cuda":
            torch.cuda.synchronize()


def member_bytes(
    network: Network,
    layout: Layout,
    instances: Tensor,
    offsets: Tensor,
    settings: Settings,
    row: Tensor,
    paths: Propagation | None,
) -> int:
    """Bytes that training needs for a member: what a forward pass keeps, as much again for gradients, and the rows."""
    low = row.to(settings.device, settings.compute_dtype)
    leaves = {name: view.detach().requires_grad_() for name, view in layout.views(low).items()}
    kept: dict[int, int] = {}
    shared = {tensor.untyped_storage().data_ptr() for tensor in (instances, offsets, low)}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in shared:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    key = epoch_keys([0], 1)[0].to(settings.device)
    with product_precision(settings), torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        forward(network, leaves, instances, offsets, paths, key)
    return 2 * sum(kept.values()) + 7 * row.nbytes


def _to_cpu(tensor: Tensor) -> Tensor:
    """Through pinned memory, which is several times as fast."""
    if not tensor.is_cuda:
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor)


def keep_freed_memory() -> None:
    """Let glibc keep what is freed instead of fetching it anew, page by page, in every step: 4 to 9 % of a fit.

    It keeps twice the size of the largest block that it saw freed, up to 32 MiB; this one is never written to.
    """
    torch.empty(LARGEST_KEPT, dtype=torch.uint8)


@contextmanager
def product_precision(settings: Settings) -> Iterator[None]:
    """Allow TF32 where it is asked for, and only here."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if settings.precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
