"""BagGraph: a symmetric weighted graph whose nodes are bags."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from baggraph.data._columns import canonical_ids
from baggraph.data._instances import freeze_csr
from baggraph.errors import InvalidGraphError, name_some

__all__ = ["BagGraph"]


@dataclass(frozen=True, eq=False, repr=False)
class BagGraph:
    """A symmetric weighted graph over bags: ``adjacency[i, j]`` is the weight between bags i and j.

    Parameters
    ----------
    adjacency
        Sparse or dense (B, B) weights: finite, not negative, symmetric, nothing on the diagonal.
    ids
        One id a bag, as in :class:`Bags`.

    Examples
    --------
    >>> graph = BagGraph.from_edges([("a", "b"), ("b", "c")], ids=["a", "b", "c", "d"])
    >>> graph
    BagGraph: 4 bags, 2 edges, mean degree 1.0, 2 components, 1 isolate

    """

    adjacency: Any
    ids: Any

    def __post_init__(self) -> None:
        matrix = sp.csr_array(self.adjacency, dtype=np.float64, copy=True)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise _wrong("a square adjacency matrix", f"shape {matrix.shape}", "pass one row and one column a bag")
        object.__setattr__(self, "ids", canonical_ids(self.ids, matrix.shape[0]))
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        self._refuse(matrix)
        object.__setattr__(self, "adjacency", freeze_csr(matrix))

    def _refuse(self, matrix: sp.csr_array) -> None:
        bad = ~np.isfinite(matrix.data) | (matrix.data < 0)
        if bad.any():
            row, column = (axis[bad][0] for axis in matrix.tocoo().coords)
            got = f"{matrix.data[bad][0]} between {self.ids[row]!r} and {self.ids[column]!r}"
            raise _wrong("finite weights that are not negative", got, "correct or drop that edge")
        loops = np.flatnonzero(matrix.diagonal())
        if len(loops):
            got = f"self-loops at {name_some(self.ids[loops])}"
            raise _wrong("no weight on the diagonal", got, "drop the self-loops; models add their own")
        difference = abs(matrix - matrix.T).tocoo()
        if difference.nnz and difference.data.max() > 0:
            row, column = (axis[difference.data.argmax()] for axis in difference.coords)
            got = f"another weight from {self.ids[row]!r} to {self.ids[column]!r} than back"
            raise _wrong("a symmetric adjacency matrix", got, "symmetrise it, for example with (A + A.T) / 2")

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[Any, ...]], ids: Any) -> BagGraph:
        """Undirected edges ``(id, id)`` or ``(id, id, weight)``; each pair once, in either order.

        >>> BagGraph.from_edges([(0, 1, 0.5)], ids=[0, 1]).adjacency.toarray().tolist()
        [[0.0, 0.5], [0.5, 0.0]]
        """
        names = canonical_ids(ids, len(ids))
        place = {name: i for i, name in enumerate(names)}
        weights: dict[tuple[int, int], float] = {}
        for first, second, *weight in edges:
            unknown = [str(end) for end in (first, second) if str(end) not in place]
            if unknown:
                raise _wrong("edges between known bags", f"bag {unknown[0]!r}", "drop that edge or add the bag")
            pair = (min(place[str(first)], place[str(second)]), max(place[str(first)], place[str(second)]))
            if pair in weights:
                got = f"{first!r} - {second!r} more than once"
                raise _wrong("every pair of bags once", got, "add up or drop the repeated edges")
            weights[pair] = float(weight[0]) if weight else 1.0
        rows, columns = np.array(list(weights), dtype=np.int64).reshape(-1, 2).T
        half = sp.coo_array((np.array(list(weights.values())), (rows, columns)), shape=(len(names), len(names)))
        off_diagonal = sp.coo_array((half.data * (rows != columns), (columns, rows)), shape=half.shape)
        return cls(sp.csr_array(half + off_diagonal), names)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return int(self.adjacency.nnz // 2)

    def take(self, indices: Any) -> BagGraph:
        """The graph induced on these bags, in this order.

        >>> BagGraph.from_edges([(0, 1), (1, 2)], ids=[0, 1, 2]).take([2, 1])
        BagGraph: 2 bags, 1 edge, mean degree 1.0, 1 component, 0 isolates
        """
        index = np.asarray(indices, dtype=np.int64)
        return BagGraph(self.adjacency[index][:, index], self.ids[index])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BagGraph):
            return NotImplemented
        return bool(np.array_equal(self.ids, other.ids)) and (self.adjacency != other.adjacency).nnz == 0

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        degrees = np.diff(self.adjacency.indptr)
        components = connected_components(self.adjacency, directed=False)[0] if len(self) else 0
        counts = [(self.n_edges, "edge"), (int(components), "component"), (int((degrees == 0).sum()), "isolate")]
        edges, parts, alone = (f"{n} {word}" + ("" if n == 1 else "s") for n, word in counts)
        return f"BagGraph: {len(self)} bags, {edges}, mean degree {degrees.mean():.1f}, {parts}, {alone}"


def _wrong(expected: str, got: str, remedy: str) -> InvalidGraphError:
    return InvalidGraphError("graph", expected=expected, got=got, remedy=remedy)
