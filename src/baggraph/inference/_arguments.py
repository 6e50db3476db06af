"""Arguments of a training by batches: checked, and in a form by which they are known again."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from baggraph.data._split_checks import is_count
from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.errors import InvalidGraphError, ParameterError
from baggraph.inference._hop import Hop
from baggraph.inference._inputs import check_settings
from baggraph.inference._members import refuse_other_bags
from baggraph.inference._program import Settings
from baggraph.nn.network import Network

SAMPLED_INSTANCES = 256  # by which data are known again


@dataclass(frozen=True)
class Batching:
    """How bags are put into batches; see :func:`~baggraph.inference.minibatch.fit_minibatch`."""

    batch_instances: int
    accumulate: int
    n_neighbors_sampled: int | None
    checkpoint_every: int


def check(settings: Settings, seed: int, batching: Batching, graph: BagGraph | None, n_processes: int) -> None:
    """Raise at the first number or name that cannot be."""
    check_settings(settings, [seed])
    if not is_count(seed) or seed < 0:
        raise _parameter("a seed, an integer from 0", f"seed={seed!r}", "pass seed=0")
    for name, value in asdict(batching).items():
        if value is not None and (not is_count(value) or value < 1):
            raise _parameter(f"{name} a whole number from 1", repr(value), "change it")
    if batching.n_neighbors_sampled is not None and graph is None:
        raise _parameter("a graph to sample neighbours from", "none", "pass one, or leave out n_neighbors_sampled")
    if batching.accumulate < n_processes:
        got = f"accumulate={batching.accumulate} for {n_processes}"
        raise _parameter("at least one batch of a step for every process", got, f"pass accumulate={n_processes}")


def bag_weights(mask: Any, bags: Bags) -> Tensor:
    """Weights (B,) of bags in the loss."""
    weights = np.array(mask, dtype=np.float64)
    if weights.shape != (len(bags),):
        raise _parameter(f"a mask of shape ({len(bags)},)", f"shape {weights.shape}", "pass a number a bag")
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        bag = int(bad.argmax())
        got = f"{weights[bag]} (bag {str(bags.ids[bag])!r})"
        raise _parameter("a mask that is finite and not negative", got, "use 0 to hide a bag")
    if not weights.any():
        raise _parameter("a labelled bag", "a mask of zeros", "set some of it to 1")
    return torch.from_numpy(weights)


def hop_of(graph: BagGraph, bags: Bags, weights: Tensor, batching: Batching, seed: int, settings: Settings) -> Hop:
    """The graph, to be cut out for batches."""
    if len(graph) != len(bags):
        got = f"one over {len(graph)}"
        raise InvalidGraphError("minibatch", expected=f"a graph over {len(bags)} bags", got=got, remedy="align them")
    refuse_other_bags(graph, bags, "minibatch")
    place = {"device": settings.device, "dtype": settings.compute_dtype}
    return Hop.of(graph, weights.numpy() > 0, batching.n_neighbors_sampled, seed, **place)


def facts_of(
    network: Network,
    row: Tensor,
    bags: Bags,
    labels: Tensor,
    weights: Tensor,
    hop: Hop | None,
    settings: Settings,
    batching: Batching,
    seed: int,
    rates: dict[str, float],
) -> dict[str, Any]:
    """What the result follows from, by names of arguments; data as digests.  Where it is computed is left out."""
    loss = settings.loss
    graph = None if hop is None else (hop.matrix.indptr, hop.matrix.indices, hop.matrix.data)
    facts = {
        "network": str(network),
        "start": _digest(row.numpy(), *(buffer.cpu().numpy() for buffer in network.buffers())),
        "bags": _digest(bags.offsets, _some_instances(bags)),
        "targets": _digest(labels.numpy()),
        "mask": _digest(weights.numpy()),
        "graph": None if graph is None else _digest(*graph),
        "loss": f"{type(loss).__name__}({vars(loss)})",
        "seed": int(seed),
        **{name: float(rate) for name, rate in rates.items()},
        **{name: getattr(settings, name) for name in ("epochs", "decay", "decay_on", "clip", "precision")},
        **asdict(batching),
    }
    del facts["checkpoint_every"]
    return facts


def _some_instances(bags: Bags) -> NDArray[Any]:
    """A few instances of the whole set: reading all of them could take as long as an epoch."""
    rows = np.unique(np.linspace(0, bags.n_instances - 1, SAMPLED_INSTANCES).astype(np.int64))
    found = bags.instances[rows]
    return np.asarray(found.toarray() if bags.is_sparse else found)


def _digest(*arrays: NDArray[Any]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
    return digest.hexdigest()[:16]


def _parameter(expected: str, got: str, remedy: str) -> ParameterError:
    return ParameterError("minibatch", expected=expected, got=got, remedy=remedy)
