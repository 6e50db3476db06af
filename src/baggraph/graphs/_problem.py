"""From embeddings to the problem that is solved: neighbours, scaling, known edges, theta, candidates, a start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from baggraph.data.graph import BagGraph
from baggraph.errors import InvalidGraphError
from baggraph.graphs._candidates import Candidates, from_half, union
from baggraph.graphs._certify import pair_distances
from baggraph.graphs._theta import starting_potential, theta_from_neighbors

DTYPES = {"float32": torch.float32, "float64": torch.float64}
# Differences of embeddings whose squares, and theirs, are told apart in either type.
WIDTHS = {"float32": (1e-12, 1e15), "float64": (1e-60, 1e70)}
BLUR = 1e-5  # by which float32 may move a bag, in units of the deviation of all bags


@dataclass(frozen=True)
class Problem:
    """M graphs of n nodes each as one: node i of graph m is node m n + i.

    ``lists`` (M, n, K) hold the sorted distances to the listed neighbours, infinite beyond the last; ``radius`` (M n,)
    the distance beyond which pairs are unlisted; ``scale`` (M n,) the local scales or None.
    """

    candidates: Candidates
    theta: torch.Tensor
    lists: torch.Tensor
    radius: torch.Tensor
    scale: torch.Tensor | None

    @property
    def n_graphs(self) -> int:
        """Number of graphs."""
        return len(self.theta)

    @property
    def costs(self) -> torch.Tensor:
        """Costs c = 2 theta z of the candidates."""
        n = self.candidates.n_nodes // self.n_graphs
        if self.n_graphs == 1:
            return (2 * self.theta[0] * self.candidates.distances).to(self.candidates.distances.dtype)
        theta = self.theta.repeat_interleave(n)[self.candidates.rows()]
        return (2 * theta * self.candidates.distances).to(self.candidates.distances.dtype)

    @property
    def start(self) -> torch.Tensor:
        """One-node potentials (M n,)."""
        return starting_potential(self.theta[:, None, None] * self.lists).flatten()

    def with_theta(self, theta: torch.Tensor) -> Problem:
        """The same pairs under another theta."""
        return replace(self, theta=theta)

    def with_distances(self, low: torch.Tensor, high: torch.Tensor, z: torch.Tensor) -> Problem:
        """The same pairs, low < high in the order of the candidates, at other distances."""
        return replace(self, candidates=from_half(low, high, z, self.candidates.n_nodes))

    def with_pairs(self, low: torch.Tensor, high: torch.Tensor, z: torch.Tensor) -> Problem:
        """The problem with more candidate pairs."""
        old = self.candidates
        sources, targets = torch.cat([old.rows(), low]), torch.cat([old.columns, high])
        more = union(sources, targets, torch.cat([old.distances, z.to(old.distances.dtype)]), old.n_nodes)
        return replace(self, candidates=more)


def embeddings(Z: Any, device: str, precision: str, *, n_dims: int = 2) -> torch.Tensor:
    """Embeddings as a tensor of the chosen place and type, or an error that names the bag.

    Where float32 would blur distances (far from the origin, or out of its range), float64 is taken instead.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    tensor = Z.detach() if isinstance(Z, torch.Tensor) else torch.from_numpy(_copied(Z))
    expected = "an array (bags, features)" if n_dims == 2 else "an array (graphs, bags, features)"
    if tensor.ndim != n_dims or tensor.shape[-2] < 2:
        raise _wrong(f"{expected} of at least two bags", f"shape {tuple(tensor.shape)}", "stack the embeddings")
    tensor = tensor.to(device)
    bad = ~torch.isfinite(tensor).all(dim=-1).reshape(-1)
    if bool(bad.any()):
        raise _wrong("finite embeddings", f"NaN or infinity in row {int(bad.int().argmax())}", "look at that bag")
    if not _in_range(tensor, "float64"):
        width = float(_width(tensor).max())
        raise _wrong("embeddings of ordinary size", f"differences of about {width:.1g}", "rescale them")
    return tensor.to(torch.float64 if blurred(tensor) else DTYPES[precision])


def blurred(tensor: torch.Tensor) -> bool:
    """Whether float32 would not tell the distances of these embeddings; who looks for NaN does so elsewhere.

    >>> blurred(torch.tensor([[0.0], [1.0]])), blurred(1e6 + torch.tensor([[0.0], [1.0]], dtype=torch.float64))
    (False, True)
    """
    return not (_in_range(tensor, "float32") and _near_origin(tensor))


def _copied(Z: Any) -> NDArray[Any]:
    array = np.asarray(Z)
    return np.array(array, dtype=np.float32 if array.dtype == np.float32 else np.float64)


def _width(tensor: torch.Tensor) -> torch.Tensor:
    """The widest column of every graph, or zero where all bags are equal."""
    low, high = torch.aminmax(tensor, dim=-2) if tensor.shape[-1] else (tensor.new_zeros(1), tensor.new_zeros(1))
    return (high.to(torch.float64) - low).amax(dim=-1)


def _in_range(tensor: torch.Tensor, precision: str) -> bool:
    width, (least, most) = _width(tensor), WIDTHS[precision]
    return bool(((width == 0) | ((width >= least) & (width <= most)) | ~width.isfinite()).all())


def _near_origin(tensor: torch.Tensor) -> bool:
    """Whether rounding to float32 moves bags by little, compared with how far they lie apart."""
    if tensor.dtype != torch.float64:
        return True  # nothing is rounded
    variance, mean = torch.var_mean(tensor, dim=-2)
    moved, spread = torch.finfo(torch.float32).eps * mean.norm(dim=-1), variance.sum(dim=-1).sqrt()
    return not bool((moved > BLUR * spread)[spread > 0].any())


def pose(
    Z: torch.Tensor,
    indices: torch.Tensor,
    distances: torch.Tensor,
    n_neighbors: list[int],
    list_lengths: list[int],
    *,
    local_scaling: bool = False,
    observed: BagGraph | None = None,
    trust: float = 0.0,
) -> Problem:
    """The problem of embeddings (M, n, d) whose nearest neighbours (M, n, K), and distances to them, are known.

    The first ``list_lengths[m]`` neighbours are candidates of graph m, which is to keep about ``n_neighbors[m]``; theta
    looks one neighbour further where it must.
    """
    n_graphs, n, width = indices.shape
    nodes = torch.arange(n_graphs * n, device=Z.device)
    sources = nodes[:, None].expand(-1, width)
    targets = (indices + n * torch.arange(n_graphs, device=Z.device)[:, None, None]).view_as(sources)
    z = distances.reshape(sources.shape)
    scale = _local_scales(distances, n_neighbors) if local_scaling else None
    if scale is not None:
        z = (z / (scale[sources] * scale[targets])).to(Z.dtype)
    known = None if observed is None or trust == 0 else _known_pairs(observed, Z.device)
    if known is not None:
        z = torch.where(_is_known(known, sources, targets, n), (1 - trust) * z, z)
    position = torch.arange(width, device=Z.device)[None]
    listed = position < torch.tensor(list_lengths, device=Z.device).repeat_interleave(n)[:, None]
    pairs = [sources[listed], targets[listed], z[listed]]
    if known is not None:
        shrunk = (1 - trust) * pair_distances(Z.reshape(n_graphs * n, -1), *known, scale)
        pairs = [torch.cat(columns) for columns in zip(pairs, (*known, shrunk), strict=True)]
    reach = [max(length, min(k + 1, width)) for k, length in zip(n_neighbors, list_lengths, strict=True)]
    lists = torch.where(position < torch.tensor(reach, device=Z.device).repeat_interleave(n)[:, None], z, torch.inf)
    lists = lists.sort(dim=1).values.view(n_graphs, n, width)
    parts = zip(lists.split(1), n_neighbors, reach, strict=True)
    theta = torch.cat([theta_from_neighbors(part[..., :length], k) for part, k, length in parts])
    radius = torch.where(listed, distances.reshape(sources.shape), -torch.inf).amax(dim=1)
    if scale is not None:
        radius = radius / (scale * scale.max())  # the least that an unlisted pair can have, whatever its other end
    return Problem(union(pairs[0], pairs[1], pairs[2], n_graphs * n), theta, lists, radius, scale)


def _local_scales(distances: torch.Tensor, n_neighbors: list[int]) -> torch.Tensor:
    """Distance to the k-th neighbour, as in self-tuning affinities (Zelnik-Manor & Perona 2004).

    Where that is zero, by duplicates, the smallest positive scale of the graph stands in.
    """
    width = distances.shape[-1]
    picked = [part[..., min(k, width) - 1] for part, k in zip(distances, n_neighbors, strict=True)]
    scale = torch.stack(picked).to(torch.float64).sqrt()
    least = torch.where(scale > 0, scale, torch.inf).amin(dim=1, keepdim=True)
    if bool(torch.isinf(least).any()):
        if not bool((distances > 0).flatten(1).any(dim=1).all()):
            raise _wrong("embeddings that differ", "distances that are all zero", "look at the embeddings")
        remedy = "drop duplicates, raise n_neighbors, or set local_scaling=False"
        raise _wrong("some bag whose k-th neighbour is no duplicate of it", "none", remedy)
    return torch.maximum(scale, least).reshape(-1)


def _known_pairs(observed: BagGraph, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    rows, columns = observed.adjacency.tocoo().coords
    upper = rows < columns
    low, high = (torch.from_numpy(a[upper].astype(np.int64)).to(device) for a in (rows, columns))
    return low, high


def _is_known(
    known: tuple[torch.Tensor, torch.Tensor], sources: torch.Tensor, targets: torch.Tensor, n: int
) -> torch.Tensor:
    keys = torch.sort(known[0] * n + known[1]).values
    if not len(keys):
        return torch.zeros(sources.shape, dtype=torch.bool, device=sources.device)
    asked = torch.minimum(sources, targets) * n + torch.maximum(sources, targets)
    return keys[torch.searchsorted(keys, asked).clamp_max(len(keys) - 1)] == asked


def _wrong(expected: str, got: str, remedy: str) -> InvalidGraphError:
    return InvalidGraphError("learned graph", expected=expected, got=got, remedy=remedy)
