"""BagGraph: a symmetric weighted graph whose nodes are bags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from baggraph.data import _graph_builders as builders
from baggraph.data import _graph_checks as checks
from baggraph.data import _graph_measures as measures
from baggraph.data._columns import canonical_ids, frozen
from baggraph.data._instances import freeze_csr

if TYPE_CHECKING:
    import pandas as pd

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
        matrix, names = checks.canonical(self.adjacency, self.ids)
        object.__setattr__(self, "adjacency", freeze_csr(matrix))
        object.__setattr__(self, "ids", names)

    @classmethod
    def _trusted(cls, adjacency: Any, ids: Any) -> BagGraph:
        """A graph over canonical ids and weights known to be sound: no check, and no copy of a float64 CSR."""
        new = object.__new__(cls)
        matrix = sp.csr_array(adjacency, dtype=np.float64)
        matrix.sum_duplicates()  # sorts the columns of a row; free where that is known to be done
        object.__setattr__(new, "adjacency", freeze_csr(matrix))
        object.__setattr__(new, "ids", frozen(ids))
        return new

    # ------------------------------------------------------------------ making

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[Any, ...]], ids: Any) -> BagGraph:
        """Undirected edges ``(id, id)`` or ``(id, id, weight)``; each pair once, in either order.

        >>> BagGraph.from_edges([(0, 1, 0.5)], ids=[0, 1]).adjacency.toarray().tolist()
        [[0.0, 0.5], [0.5, 0.0]]
        """
        names = canonical_ids(ids, len(ids))
        return cls._trusted(builders.from_columns(*builders.edge_columns(edges), names), names)

    @classmethod
    def from_adjacency(
        cls, matrix: Any, ids: Any, *, symmetric: str = "check", drop_self_loops: bool = False
    ) -> BagGraph:
        """A matrix of weights; where both directions differ, ``symmetric`` says what a pair gets.

        ``"check"`` refuses, ``"mean"``, ``"max"`` and ``"min"`` take that of the two, an absent weight being 0.

        >>> BagGraph.from_adjacency([[5, 1], [3, 0]], ["a", "b"], symmetric="mean", drop_self_loops=True).to_table()
          source target  weight
        0      a      b     2.0
        """
        return cls._trusted(*checks.canonical(matrix, ids, symmetric=symmetric, drop_self_loops=drop_self_loops))

    @classmethod
    def from_coordinates(
        cls,
        coords: Any,
        ids: Any,
        *,
        n_neighbors: int | None = None,
        radius: float | None = None,
        geographic: bool = False,
    ) -> BagGraph:
        """Weight 1 between bags near each other: exactly one of ``n_neighbors`` and ``radius``.

        With ``n_neighbors``, two bags are joined when either is among the nearest of the other; of equally distant
        bags, the first come first.  With ``radius``, when they are at most so far apart.  ``coords`` are (B, 2) or
        (B, 3); with ``geographic``, longitude and latitude in degrees, and the radius is in kilometres on a sphere
        of 6371 km.

        >>> BagGraph.from_coordinates([[2.35, 48.86], [-0.13, 51.51], [-74, 40.71]], [*"pln"], radius=400,
        ...                           geographic=True).isolates.tolist()
        ['n']
        """
        names = canonical_ids(ids, len(ids))
        how = {"n_neighbors": n_neighbors, "radius": radius}
        return cls._trusted(builders.from_places(coords, names, geographic=geographic, **how), names)  # type: ignore[arg-type]

    @classmethod
    def from_polygons(cls, polygons: Sequence[Any], ids: Any, *, shared: int = 2) -> BagGraph:
        """Weight 1 between areas whose boundaries have at least ``shared`` corners in common.

        A polygon is a ring ((n, 2) corners), a list of rings, well-known text, or GeoJSON; corners are the same where
        they agree to 1e-9 of the extent of the map.  2 asks for a border, 1 is content with touching in a point.
        Where one side of a border has fewer corners than the other, only the common ones count.

        >>> BagGraph.from_polygons(["POLYGON ((0 0, 1 0, 0 1, 0 0))", [(1, 0), (1, 1), (0, 1)]], ids=["a", "b"]).n_edges
        1
        """
        from baggraph.data._graph_polygons import from_polygons

        names = canonical_ids(ids, len(ids))
        return cls._trusted(from_polygons(polygons, names, shared), names)

    @classmethod
    def from_table(
        cls, table: Any, ids: Any, *, source: str = "source", target: str = "target", weight: str | None = "weight"
    ) -> BagGraph:
        """A row an edge, each pair once: a DataFrame, or the path of a ``.csv`` or ``.parquet`` file.

        Ids are read as text.  ``weight=None`` gives every edge weight 1.

        >>> graph = BagGraph.from_edges([("a", "b", 0.5)], ids=["a", "b", "c"])
        >>> BagGraph.from_table(graph.to_table(), ids=["a", "b", "c"]) == graph
        True
        """
        from baggraph.data._graph_tables import from_table

        names = canonical_ids(ids, len(ids))
        return cls._trusted(from_table(table, names, source=source, target=target, weight=weight), names)

    # ------------------------------------------------------------------ looking

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return int(self.adjacency.nnz // 2)

    @property
    def degree(self) -> NDArray[np.float64]:
        """Sum of the weights of every bag, (B,)."""
        return np.asarray(self.adjacency.sum(axis=1))

    @property
    def neighbor_counts(self) -> NDArray[np.int64]:
        """Number of neighbours of every bag, (B,)."""
        return np.diff(self.adjacency.indptr).astype(np.int64)

    @property
    def isolates(self) -> NDArray[Any]:
        """Ids of the bags without a neighbour."""
        return frozen(self.ids[self.neighbor_counts == 0])

    @cached_property
    def components(self) -> NDArray[np.int64]:
        """Component of every bag, (B,), counted from 0 in order of their first bags."""
        labels = connected_components(self.adjacency, directed=False)[1] if len(self) else []
        return frozen(np.array(labels, dtype=np.int64))

    @property
    def n_components(self) -> int:
        """Number of components; an isolate is one."""
        return int(self.components.max(initial=-1)) + 1

    def homophily(self, y: Any) -> float:
        """Share of the weight that lies between bags of equal label; bags without a label are left out.

        NaN where no edge joins two labelled bags.

        >>> BagGraph.from_edges([(0, 1), (1, 2, 3.0)], ids=[0, 1, 2]).homophily(["x", "y", "y"])
        0.75
        """
        return measures.homophily(self.adjacency, self.ids, y)

    def morans_i(self, y: Any) -> float:
        """Moran's I of a real label, with the weights as they are; bags without a label are left out.

        ``I = n / sum_ij w_ij * sum_ij w_ij z_i z_j / sum_i z_i^2`` with z the labels less their mean (Moran 1950).
        NaN where no edge joins two labelled bags, or all labels are equal.

        >>> BagGraph.from_edges([(0, 1), (1, 2), (2, 3)], ids=range(4)).morans_i([0, 0, 1, 1])
        0.333...
        """
        return measures.morans_i(self.adjacency, self.ids, y)

    # ------------------------------------------------------------------ changing

    def take(self, which: Any) -> BagGraph:
        """The graph induced on these bags (positions, ids, or a mask), in the order asked for.

        >>> BagGraph.from_edges([(0, 1), (1, 2)], ids=[0, 1, 2]).take([2, 1])
        BagGraph: 2 bags, 1 edge, mean degree 1.0, 1 component, 0 isolates
        """
        index = checks.positions(which, self.ids)
        return self._trusted(self.adjacency[index][:, index], self.ids[index])

    def extend(self, new_ids: Any, rows: Any) -> BagGraph:
        """These bags followed by new ones; ``rows`` (m, B) are the weights from the new bags to these.

        >>> BagGraph.from_edges([("a", "b")], ids=["a", "b"]).extend(["c"], [[0, 2.0]]).to_table()
          source target  weight
        0      a      b     1.0
        1      b      c     2.0
        """
        fresh = canonical_ids(new_ids, len(new_ids))
        names = canonical_ids(np.concatenate([self.ids, fresh]), len(self) + len(fresh))
        weights = checks.own_csr(rows)
        if weights.shape != (len(fresh), len(self)):
            expected = f"a row a new bag and a column a bag of the graph ({len(fresh)}, {len(self)})"
            raise checks.wrong(expected, f"shape {weights.shape}", "pass the weights from new bags to old")
        checks.refuse_weights(weights, fresh, self.ids)
        corner = sp.csr_array((len(fresh), len(fresh)))
        return self._trusted(sp.block_array([[self.adjacency, weights.T], [weights, corner]], format="csr"), names)

    def normalised(self, *, self_loops: float = 1.0, kind: str = "symmetric") -> sp.csr_array:
        """Return ``D^-1/2 (A + s I) D^-1/2``, or ``D^-1 (A + s I)`` for ``kind="row"``; (B, B), CSR.

        ``s`` is ``self_loops``, the weight that every bag gives itself, and D the row sums of ``A + s I`` (Kipf &
        Welling 2017, where s = 1).  Eigenvalues lie in [-1, 1].  With ``self_loops=0``, rows of isolates are zero.

        >>> BagGraph.from_edges([(0, 1)], ids=[0, 1]).normalised().toarray().round(3).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
        """
        return measures.normalised(self.adjacency, self_loops, kind)

    # ------------------------------------------------------------------ handing over

    def to_table(self) -> pd.DataFrame:
        """A row an edge: ``source``, ``target``, ``weight``; each pair once."""
        from baggraph.data._graph_tables import to_table

        return to_table(self.adjacency, self.ids)

    def to_csv(self, path: str | Path) -> Path:
        """Write :meth:`to_table` as CSV; isolates come back with the ids that :meth:`from_table` is given."""
        from baggraph.data._graph_tables import write_csv

        return write_csv(self.to_table(), path)

    def to_parquet(self, path: str | Path) -> Path:
        """Write :meth:`to_table` as Parquet, which holds ids of any text."""
        from baggraph.data._graph_tables import write_parquet

        return write_parquet(self.to_table(), path)

    def to_networkx(self) -> Any:
        """Return a ``networkx.Graph`` over the ids, with ``weight`` on its edges."""
        from baggraph.data._convert import graph_to_networkx

        return graph_to_networkx(self)

    def to_pyg(self) -> Any:
        """Return a ``torch_geometric.data.Data`` with ``edge_index``, ``edge_weight`` and ``num_nodes``."""
        from baggraph.data._convert import graph_to_pyg

        return graph_to_pyg(self)

    # ------------------------------------------------------------------ comparing and showing

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BagGraph):
            return NotImplemented
        return bool(np.array_equal(self.ids, other.ids)) and (self.adjacency != other.adjacency).nnz == 0

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (self._trusted, (self.adjacency, self.ids))  # arrays forget over a pickle that they are read-only

    def __repr__(self) -> str:
        counts = [(self.n_edges, "edge"), (self.n_components, "component"), (len(self.isolates), "isolate")]
        edges, parts, alone = (f"{n:,} {word}" + ("" if n == 1 else "s") for n, word in counts)
        mean = self.neighbor_counts.sum() / max(len(self), 1)
        return f"BagGraph: {len(self):,} bags, {edges}, mean degree {mean:.1f}, {parts}, {alone}"
