"""Points, what lower bounds of their distances need, and distances by direct difference."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

GATHER_BYTES = 1 << 21  # on a CPU: what is gathered at a time has to stay in its caches


@dataclass(frozen=True)
class Points:
    """B sets of n points: as given, centred, and squared norms shrunken so that scores are lower bounds."""

    raw: Tensor  # (B, n, d)
    centred: Tensor  # (B, n, d)
    norms: Tensor  # (B, n)

    @classmethod
    def around(cls, raw: Tensor, centre: Tensor) -> Points:
        """Points about a common centre (B, 1, d): far from the origin this keeps the products small."""
        centred = raw - centre
        return cls(raw, centred, centred.square().sum(-1).mul_(1 - _slack(raw)))

    @property
    def fields(self) -> tuple[Tensor, Tensor, Tensor]:
        """The three tensors; the points are their second dimension."""
        return self.raw, self.centred, self.norms

    def rows(self, start: int, stop: int) -> Points:
        """The points ``start:stop`` of every set."""
        return Points(*(part[:, start:stop] for part in self.fields))

    def only(self, member: int, rows: Tensor | slice = slice(None)) -> Points:
        """One of the sets, or some of its points."""
        return Points(*(part[member, rows].unsqueeze(0) for part in self.fields))


def _slack(raw: Tensor) -> float:
    """Bound of the error of |x|² + |y|² - 2 x·y relative to |x|² + |y|², every rounding counted.

    In units of the machine epsilon: d for norms and product, d for the direct distance that it is compared with,
    the rest for centring.  Products that may run in TF32 or bfloat16 carry the rounding of their inputs as well.
    """
    slack = (2 * raw.shape[-1] + 16) * torch.finfo(raw.dtype).eps
    if raw.dtype == torch.float32:
        slack += {"highest": 0.0, "high": 2.0**-8, "medium": 2.0**-5}[torch.get_float32_matmul_precision()]
    return slack


def measured(queries: Points, points: Points, places: Tensor) -> Tensor:
    """Squared distances |x - y|² by direct difference, of every query to the points at its places (B, m, k)."""
    sets, total, kept = places.shape
    _, n, d = points.raw.shape
    flat = points.raw.reshape(sets * n, d)
    rows = (places + n * torch.arange(sets, device=places.device).view(-1, 1, 1)).flatten(0, 1)
    return paired(queries.raw.reshape(-1, 1, d), flat, rows).view(sets, total, kept)


def paired(queries: Tensor, points: Tensor, places: Tensor) -> Tensor:
    """Squared distances of queries (m, 1, d) to rows of ``points`` (n, d) at ``places`` (m, k)."""
    d, kept = points.shape[-1], places.shape[-1]
    out = torch.empty(places.shape, dtype=points.dtype, device=points.device)
    step = max(1, GATHER_BYTES // (kept * d * points.element_size())) if points.is_cpu else len(places)
    for start in range(0, len(places), step):
        part = slice(start, start + step)
        gathered = points.index_select(0, places[part].reshape(-1)).view(-1, kept, d)
        torch.sum(gathered.sub_(queries[part]).square_(), -1, out=out[part])
    return out


def in_order(places: Tensor, distances: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The first ``count`` by distance, ties by place."""
    ordered, order = distances.sort(-1)
    placed = places.gather(-1, order)
    tied = (ordered[..., 1:] == ordered[..., :-1]).any(-1)
    if bool(tied.any()):
        rows, by_place = placed[tied].sort(-1)
        values, order = torch.sort(ordered[tied].gather(-1, by_place), dim=-1, stable=True)
        ordered[tied], placed[tied] = values, rows.gather(-1, order)
    return placed[..., :count].contiguous(), ordered[..., :count].contiguous()
