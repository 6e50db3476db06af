"""From a number of neighbours to the one parameter of the problem, and starting points for the dual."""

from __future__ import annotations

import torch

from baggraph.errors import InvalidGraphError

K1_FACTOR = 1.1  # for one neighbour the upper bound is infinite; Kalofolias and Perraudin take the lower one times this


def theta_from_neighbors(distances: torch.Tensor, n_neighbors: int) -> torch.Tensor:
    r"""Theta (M,) for which nodes of M graphs keep about k neighbours, from sorted distances (M, n, K).

    With z sorted and b_k the sum of the k smallest, a node on its own keeps k neighbours for theta between
    1 / sqrt(k z_{k+1}^2 - b_k z_{k+1}) and 1 / sqrt(k z_k^2 - b_k z_k).  Both bounds are averaged over the nodes
    where they are finite, and theta is their geometric mean (Kalofolias & Perraudin 2019, section 4).

    >>> theta_from_neighbors(torch.tensor([[[1.0, 4.0, 9.0]]]), 2).tolist()
    [0.163364701...]
    """
    return theta_from_bounds(bounds_of_nodes(distances, n_neighbors))


def bounds_of_nodes(distances: torch.Tensor, n_neighbors: int) -> torch.Tensor:
    """Both bounds of every node, infinite where there is none, and the mean of its distances: (3, M, n)."""
    z = distances.to(torch.float64)
    k = min(n_neighbors, z.shape[-1])
    b = z[..., :k].sum(dim=-1)
    upper = _bound(k, z[..., k - 1], b)
    # Where all others are neighbours, any theta below the upper bound does.
    lower = upper if k == z.shape[-1] else _bound(k, z[..., k], b)
    return torch.stack([lower, upper, z.mean(dim=-1)])


def theta_from_bounds(bounds: torch.Tensor) -> torch.Tensor:
    """Theta (M,) from the bounds (3, M, n) of all nodes."""
    lower, upper = _mean_finite(bounds[0]), _mean_finite(bounds[1])
    theta = torch.where(torch.isfinite(upper), torch.sqrt(lower * upper), K1_FACTOR * lower)
    theta = torch.where(torch.isfinite(theta), theta, 1 / bounds[2].mean(dim=-1))
    if not bool(torch.isfinite(theta).all()):
        raise InvalidGraphError(
            "learned graph",
            expected="embeddings that differ",
            got="distances that are all zero",
            remedy="look at the embeddings; equal bags carry no graph",
        )
    return theta


def _bound(k: int, z: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    squared = k * z * z - b * z
    # Rounding may leave a tiny positive rest where the bound is infinite.
    return torch.where(squared > 1e-12 * k * z * z, squared, 0.0).rsqrt()


def _mean_finite(bounds: torch.Tensor) -> torch.Tensor:
    finite = torch.isfinite(bounds)
    total = torch.where(finite, bounds, 0.0).sum(dim=-1)
    return total / finite.sum(dim=-1)  # NaN where no node has a finite bound


def starting_potential(costs: torch.Tensor) -> torch.Tensor:
    r"""One-node solutions min_k (b_k + sqrt(b_k^2 + 4 k)) / (2 k) from sorted theta z (n, K).

    >>> starting_potential(torch.tensor([[0.0, 100.0]])).tolist()
    [1.0]
    """
    b = costs.to(torch.float64).cumsum(dim=-1)
    k = torch.arange(1, b.shape[-1] + 1, device=b.device, dtype=b.dtype)
    return ((b + torch.sqrt(b * b + 4 * k)) / (2 * k)).amin(dim=-1)
