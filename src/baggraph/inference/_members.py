"""Parameters of M members of one network as rows of one block, each started by its own seed."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from baggraph.data._columns import canonical_ids
from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.errors import InvalidGraphError, ParameterError
from baggraph.nn.dropout import keyed, scrambled
from baggraph.nn.gcn import Propagation
from baggraph.nn.network import Forward, Network

ALIGNMENT = 8  # parameters begin at multiples of this, so that fast kernels can read them


@dataclass(frozen=True)
class Place:
    """Where a parameter of a member lies in its row."""

    name: str
    start: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of entries."""
        return prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """The parameters of a network in one row of ``width`` numbers."""

    places: tuple[Place, ...]
    width: int

    @classmethod
    def of(cls, network: nn.Module) -> Layout:
        """Places of all parameters, one after the other."""
        places, start = [], 0
        for name, parameter in network.named_parameters():
            places.append(Place(name, start, tuple(parameter.shape)))
            start += -(-parameter.numel() // ALIGNMENT) * ALIGNMENT
        return cls(tuple(places), start)

    def views(self, block: Tensor) -> dict[str, Tensor]:
        """Parameters (M, ...) by name, as views of rows (M, width)."""
        return {p.name: block[:, p.start : p.start + p.size].unflatten(1, p.shape or (1,)) for p in self.places}

    def decayed(self, on: str) -> Tensor:
        """Which numbers (width,) are decayed: those of "weights", or of "biases" as in the published code."""
        mask = torch.zeros(self.width, dtype=torch.bool)
        for place in self.places:
            is_bias = len(place.shape) < 2
            mask[place.start : place.start + place.size] = is_bias == (on == "biases")
        return mask


def start(network: Network, layout: Layout, seeds: Sequence[int]) -> Tensor:
    """Rows (M, width) of fresh parameters; a row depends on its seed alone."""
    fresh = copy.deepcopy(network).cpu()
    reset = fresh.resetters()
    rows = torch.zeros(len(seeds), layout.width)
    views = layout.views(rows)
    with torch.random.fork_rng(devices=[]):
        for member, seed in enumerate(seeds):
            for name, parameter in fresh.named_parameters():
                parameter.data = views[name][member]  # so that layers write where the numbers belong
            torch.default_generator.manual_seed(seed)  # the generators of GPUs are left alone
            for layer in reset:
                layer()
    return rows


def adopted(network: nn.Module, layout: Layout, row: Tensor) -> dict[str, nn.Parameter]:
    """Let the parameters of a network lie in a row (width,), so that it runs as one member with nothing exchanged."""
    views = layout.views(row.unsqueeze(0))
    for name, parameter in network.named_parameters():
        parameter.data = views[name].detach().view(parameter.shape)
    return dict(network.named_parameters())


def keys(seeds: Sequence[int]) -> Tensor:
    """A number (M,) int32 a seed, from which all masks of dropout follow."""
    states = [np.random.SeedSequence(seed).generate_state(1) for seed in seeds]
    return torch.from_numpy(np.concatenate(states).astype(np.uint32).view(np.int32))


def epoch_keys(seeds: Sequence[int], epochs: int) -> Tensor:
    """The same for every epoch (epochs, M)."""
    return scrambled(keys(seeds) ^ scrambled(torch.arange(epochs, dtype=torch.int32)).unsqueeze(1))


def set_training(network: nn.Module, on: bool) -> None:
    """Switch dropout on or off; walking over all layers in every epoch would take longer than a small layer."""
    if network.training != on:
        network.train(on)


def forward(
    network: Network,
    parameters: dict[str, Tensor],
    instances: Tensor,
    offsets: Tensor,
    graph: Propagation | None,
    key: Tensor | None = None,
    rows: Sequence[Tensor] = (),
    labels: Tensor | None = None,
) -> Forward:
    """Outputs (M, levels, B, C) and embeddings (M, B, h) of all members; with keys (M,), under dropout.

    ``labels`` (M, B, n_labels) are what the heads are shown of labels.
    """

    def one(own: dict[str, Tensor], own_key: Tensor | None, shown: Tensor | None) -> Forward:
        inputs = (instances, offsets, graph) if shown is None else (instances, offsets, graph, shown)
        if own_key is None:
            return functional_call(network, own, inputs)
        with keyed(own_key, rows):
            return functional_call(network, own, inputs)

    set_training(network, key is not None)
    if all(value.shape[0] == 1 for value in parameters.values()):
        own = {name: value.squeeze(0) for name, value in parameters.items()}
        found = one(own, None if key is None else key.squeeze(0), None if labels is None else labels.squeeze(0))
        return Forward(*(tensor.unsqueeze(0) for tensor in found))
    in_dims = (0, None if key is None else 0, None if labels is None else 0)
    return torch.vmap(one, in_dims=in_dims, randomness="error")(parameters, key, labels)


def refuse_running_statistics(network: nn.Module) -> None:
    """Batch normalisation tells bags of each other, and its running averages cannot be stacked."""
    for name, module in network.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            raise ParameterError(
                "stack",
                expected="layers without running statistics",
                got=f"{type(module).__name__} ({name})",
                remedy="use nn.LayerNorm, which looks at one row at a time",
            )


def refuse_other_bags(graph: BagGraph, bags: Bags, stage: str) -> None:
    """Raise where a graph names other bags, or these in another order; one without names of its own is believed."""
    if graph.ids is bags.ids or np.array_equal(graph.ids, bags.ids):
        return
    numbered = np.array_equal(graph.ids, canonical_ids(None, len(graph)))  # as of embeddings without ids
    if numbered and set(graph.ids) != set(bags.ids):
        return
    place = int(np.argmax(np.asarray(graph.ids) != np.asarray(bags.ids)))
    raise InvalidGraphError(
        stage,
        expected="a graph of these bags in their order",
        got=f"bag {str(graph.ids[place])!r} of the graph in the place of {str(bags.ids[place])!r}",
        remedy="use graph.take(bags.ids), or learn it with ids=bags.ids",
    )
