"""Rows of candidates whose columns other processes own, and the potentials that these rows need from there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import scipy.sparse as sp
import torch
from torch import Tensor

from baggraph.graphs._candidates import Candidates, _starts
from baggraph.graphs._gap import measure, relative
from baggraph.graphs._rows import Pass
from baggraph.graphs._team import Team


@dataclass(frozen=True)
class Ranges:
    """Who owns what: bags ``bounds[p]`` to ``bounds[p + 1]`` are those of process p."""

    team: Team
    bounds: list[int]

    @classmethod
    def even(cls, team: Team, n: int) -> Ranges:
        """Ranges of n bags whose sizes differ by one at most."""
        return cls(team, [n * p // team.size for p in range(team.size + 1)])

    @property
    def n(self) -> int:
        """Number of bags of all."""
        return self.bounds[-1]

    @property
    def own(self) -> tuple[int, int]:
        """First own bag, and the one after the last."""
        return self.bounds[self.team.rank], self.bounds[self.team.rank + 1]

    @property
    def sizes(self) -> list[int]:
        """Number of bags of every process."""
        return [stop - start for start, stop in zip(self.bounds, self.bounds[1:], strict=False)]

    def counts(self, ordered: Tensor, unit: int = 1) -> list[int]:
        """How many of these rising numbers, bags times ``unit``, belong to every process."""
        counts: list[int] = torch.searchsorted(ordered, torch.tensor(self.bounds) * unit).diff().tolist()
        return counts


def own_candidates(ranges: Ranges, indices: Tensor, distances: Tensor) -> Candidates:
    """Rows of own bags, columns being those of all: whom own bags listed (m, L), and who listed them.

    The second half comes from other processes: one number for a pair, and its distance.
    """
    n, (start, stop) = ranges.n, ranges.own
    sources = torch.arange(start, stop)[:, None].expand_as(indices).reshape(-1)
    targets, z = indices.reshape(-1), distances.reshape(-1)
    back, order = torch.sort(targets * n + sources)
    send = ranges.counts(back, unit=n)
    ones = [1] * ranges.team.size
    receive: list[int] = ranges.team.exchange(torch.tensor(send), ones, ones).tolist()
    pairs = torch.cat([sources * n + targets, ranges.team.exchange(back, send, receive)])
    z = torch.cat([z, ranges.team.exchange(z[order], send, receive)])
    pairs, order = torch.sort(pairs)
    first = torch.ones_like(pairs, dtype=torch.bool)
    first[1:] = pairs[1:] != pairs[:-1]
    pairs = pairs[first]
    return Candidates(_starts(torch.bincount(pairs // n - start, minlength=stop - start)), pairs % n, z[order[first]])


@dataclass(frozen=True, eq=False)
class Halo:
    """Bags of others that own rows point to, and own bags that rows of others point to.

    ``foreign`` (h,) are the former, rising, ``receive`` of them from every process; ``asked`` (s,) are the latter,
    counted from the first own bag, of which ``send`` go to every process.
    """

    ranges: Ranges
    foreign: Tensor
    receive: list[int]
    asked: Tensor
    send: list[int]

    @classmethod
    def around(cls, ranges: Ranges, candidates: Candidates) -> Halo:
        """The halo of own candidates.  Pairs stand in both rows, so a process knows itself who asks for what."""
        columns, rows = candidates.columns, candidates.rows()
        asked, foreign = [], []
        for process, (start, stop) in enumerate(zip(ranges.bounds, ranges.bounds[1:], strict=False)):
            theirs = (columns >= start) & (columns < stop) & (process != ranges.team.rank)
            foreign.append(torch.unique(columns[theirs]))
            asked.append(torch.unique_consecutive(rows[theirs]))
        send, receive = ([len(part) for part in parts] for parts in (asked, foreign))
        return cls(ranges, torch.cat(foreign), receive, torch.cat(asked), send)

    @property
    def n_local(self) -> int:
        """Number of own bags and foreign ones."""
        start, stop = self.ranges.own
        return stop - start + len(self.foreign)

    def localised(self, candidates: Candidates) -> Candidates:
        """The same rows in the same order, with columns that point into :meth:`extended` potentials."""
        start, stop = self.ranges.own
        columns = candidates.columns
        outside = torch.searchsorted(self.foreign, columns) + (stop - start)
        inside = (columns >= start) & (columns < stop)
        return replace(candidates, columns=torch.where(inside, columns - start, outside))

    def extended(self, potential: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
        """Own potentials, then those of the foreign bags, which are fetched."""
        own = potential.to(dtype)
        return torch.cat([own, self.ranges.team.exchange(own[self.asked], self.send, self.receive)])

    def quality(self, found: Pass, potential: Tensor) -> tuple[float, float]:
        """Gap of the whole graph, and the same relative to its objective."""
        gap, objective, _ = measure(found, potential, 1)
        total = self.ranges.team.total(torch.cat([gap, objective]))
        return float(total[0]), float(relative(total[0], total[1], self.ranges.n))

    def globalised(self, weights: sp.csr_array) -> sp.csr_array:
        """Own rows (m, n) of weights between local bags."""
        start, stop = self.ranges.own
        numbers = torch.cat([torch.arange(start, stop), self.foreign]).numpy()
        arrays = (weights.data, numbers[weights.indices], weights.indptr[: stop - start + 1])
        return sp.csr_array(arrays, shape=(stop - start, self.ranges.n))
