"""Atlas: what a page shows of bags: where they lie, what is known of each, and what joins them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.data.posterior import Posterior
from baggraph.errors import InvalidBagsError
from baggraph.report._columns import Column, columns_of
from baggraph.report._groups import grouped
from baggraph.report._thumbnails import thumbnails
from baggraph.report.layout import layout

__all__ = ["Atlas"]

MOST_BAGS = 20_000  # above it, a point stands for a group of bags
MOST_EDGES = 60_000  # the heaviest are shown
MOST_NAMED = 60_000  # above it, names alone would fill the page
MOST_HEARD = 50  # bags that are told of one
COVERAGE = 0.9


@dataclass(frozen=True, eq=False)
class Atlas:
    """Points, one a bag (or a group of bags where there are very many), as the explorer of a page draws them.

    Parameters
    ----------
    ids
        Names of the points.
    columns
        What can be coloured by, and is told of a point.
    places
        Positions (P, 2) by name of the view: ``"graph"``, and ``"map"`` where bags have coordinates.
    graph
        Edges between the points; None where there is no graph.
    beliefs
        A sentence a point: what is predicted, and how sure it is.
    instances
        For some points, names and contributions of the instances that tell most, by position of the point.
    neighbors
        For some points, contributions of other bags by their position, by position of the point.
    about
        For the same points, what it is that contributions add up to.
    n_bags, n_edges
        Of the data; fewer may be shown.
    members
        Names of the bags of every group, so that they can be searched; none of too many.

    """

    ids: Sequence[str]
    columns: Sequence[Column]
    places: Mapping[str, NDArray[np.float64]]
    graph: sp.csr_array | None = None
    beliefs: Sequence[str] = ()
    instances: Mapping[int, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    neighbors: Mapping[int, Mapping[int, float]] = field(default_factory=dict)
    about: Mapping[int, str] = field(default_factory=dict)
    n_bags: int = 0
    n_edges: int = 0
    members: Sequence[Sequence[str]] = ()

    @property
    def is_grouped(self) -> bool:
        """Whether a point stands for several bags."""
        return len(self.ids) < self.n_bags

    @classmethod
    def of(
        cls,
        bags: Bags,
        *,
        posterior: Posterior | None = None,
        graph: BagGraph | None = None,
        embedding: Any = None,
        seen: NDArray[np.bool_] | None = None,
        explanations: Mapping[str, Any] | None = None,
        top: int = 5,
        random_state: int = 0,
    ) -> Atlas:
        """Bags with what a model believes of them; without a model, the graph that the bags carry.

        ``explanations`` maps ids of some bags to what ``model.explain`` gave; ``seen`` (B,) says whose label the
        model saw, where it did not see all.

        >>> from baggraph import datasets
        >>> atlas = Atlas.of(datasets.load("digits-bags", n_bags=20))
        >>> len(atlas.ids), [column.name for column in atlas.columns]
        (20, ['label', 'size'])
        """
        graph = bags.graph if graph is None else graph
        for name, other in (("posterior", posterior), ("graph", graph)):
            if other is not None and not np.array_equal(other.ids, bags.ids):
                got, remedy = "others", "pass the bags that the model was fitted on"
                raise InvalidBagsError("atlas", expected=f"a {name} of the same bags", got=got, remedy=remedy)
        adjacency = None if graph is None else sp.csr_array(graph.adjacency)
        if len(bags) > MOST_BAGS:
            return cls._of_groups(bags, posterior, adjacency, embedding, seen, random_state)
        places = {"graph": layout(graph or _no_edges(bags.ids), embedding=embedding, random_state=random_state)}
        if bags.coords is not None:
            places["map"] = np.asarray(bags.coords[:, :2], dtype=np.float64)
        return cls(
            ids=[str(name) for name in bags.ids],
            columns=columns_of(bags, posterior, graph, COVERAGE, seen),
            places=places,
            graph=adjacency,
            beliefs=[] if posterior is None else sentences(posterior),
            instances=_instances(bags, explanations or {}, top),
            neighbors=_neighbors(bags, explanations or {}),
            about={i: e.about for i, name in enumerate(bags.ids) if (e := (explanations or {}).get(name)) is not None},
            n_bags=len(bags),
            n_edges=0 if graph is None else graph.n_edges,
        )

    @classmethod
    def _of_groups(
        cls, bags: Bags, posterior: Posterior | None, adjacency: Any, embedding: Any, seen: Any, random_state: int
    ) -> Atlas:
        columns = columns_of(bags, posterior, None, COVERAGE, seen)
        group, places, between = grouped(bags, adjacency, embedding, random_state)
        counts = np.bincount(group, minlength=group.max() + 1)
        drawn = (
            _no_edges(range(len(counts))) if between is None else BagGraph.from_adjacency(between, range(len(counts)))
        )
        views = {"graph": layout(drawn, embedding=places, random_state=random_state)}
        if bags.coords is not None:
            flat = np.asarray(bags.coords[:, :2], dtype=np.float64)
            views["map"] = np.stack([np.bincount(group, flat[:, a]) / counts for a in (0, 1)], axis=1)
        return cls(
            ids=[f"group {number + 1}" for number in range(len(counts))],
            columns=[*(column.grouped(group) for column in columns), Column.counts("bags", counts)],
            places=views,
            graph=between,
            n_bags=len(bags),
            n_edges=0 if adjacency is None else adjacency.nnz // 2,
            members=_members(bags, group) if len(bags) <= MOST_NAMED else [],
        )

    def to_json(self) -> str:
        """What the front end reads, with numbers short enough for ten thousand bags in a page."""
        edges = self._edges()
        content = {
            "ids": list(self.ids),
            "columns": [column.plain() for column in self.columns],
            "views": {name: _short_places(places) for name, places in self.places.items()},
            "source": edges[0].tolist(),
            "target": edges[1].tolist(),
            "weight": _short(edges[2]),
            "beliefs": list(self.beliefs),
            "instances": {str(k): list(v) for k, v in self.instances.items()},
            "neighbors": {str(k): {str(j): _short_one(w) for j, w in v.items()} for k, v in self.neighbors.items()},
            "about": {str(k): text for k, text in self.about.items()},
            "bags": self.n_bags,
            "edges": self.n_edges,
            "members": [list(names) for names in self.members],
        }
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    def _edges(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        if self.graph is None:
            return np.zeros(0, int), np.zeros(0, int), np.zeros(0)
        upper = sp.coo_array(sp.triu(self.graph, k=1))
        heaviest = np.sort(np.argsort(-upper.data, kind="stable")[:MOST_EDGES])
        weight = upper.data[heaviest]
        return upper.row[heaviest], upper.col[heaviest], weight / weight.max(initial=1e-300)


def _members(bags: Bags, group: NDArray[np.int64]) -> list[list[str]]:
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group))[:-1]
    return [[str(name) for name in part] for part in np.split(bags.ids[order], ends)]


def _no_edges(ids: Any) -> BagGraph:
    return BagGraph.from_adjacency(sp.csr_array((len(ids), len(ids))), ids)


def sentences(posterior: Posterior) -> list[str]:
    """What is believed of every bag, in words.

    >>> sentences(Posterior([[[0.1, 0.9]], [[0.3, 0.7]]], classes=["calm", "stormy"]))
    ['stormy with probability 0.80; nine draws in ten say 0.71 to 0.89.']
    """
    low, high = np.moveaxis(posterior.quantile([(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]), -1, 0)
    if posterior.is_classification:
        best = posterior.mean.argmax(axis=1)
        rows = np.arange(len(best))
        values = zip(
            posterior.classes[best], posterior.mean[rows, best], low[rows, best], high[rows, best], strict=True
        )
        spread = "; nine draws in ten say {:.2f} to {:.2f}." if len(posterior.draws) > 1 else "."
        return [f"{name} with probability {p:.2f}" + spread.format(a, b) for name, p, a, b in values]
    found, often = [], "nine times in ten" if posterior.has_noise else "in nine draws of ten"
    for mean, a, b in zip(posterior.mean, low, high, strict=True):
        parts = [f"{m:.4g}, {often} from {x:.4g} to {z:.4g}" for m, x, z in zip(mean, a, b, strict=True)]
        found.append("; ".join(parts) + ".")
    return found


def _instances(bags: Bags, explanations: Mapping[str, Any], top: int) -> dict[int, list[dict[str, Any]]]:
    place = {name: i for i, name in enumerate(bags.ids)}
    found = {}
    for name, explanation in explanations.items():
        share = explanation.instances["contribution"].to_numpy()
        order = np.argsort(-np.abs(share), kind="stable")[:top]
        bag = bags[name]
        names = bag.instance_names
        pictures = thumbnails(bags, bag, order)
        found[place[name]] = [
            {"name": str(k) if names is None else str(names[k]), "share": _short_one(share[k])}
            | ({} if pictures is None else {"picture": pictures[i]})
            for i, k in enumerate(order)
        ]
    return found


def _neighbors(bags: Bags, explanations: Mapping[str, Any]) -> dict[int, dict[int, float]]:
    """The bags that are heard loudest; label spreading hears all."""
    place = {name: i for i, name in enumerate(bags.ids)}
    loudest = {name: one.neighbors["contribution"].head(MOST_HEARD) for name, one in explanations.items()}
    return {place[name]: {place[i]: float(w) for i, w in some.items() if i in place} for name, some in loudest.items()}


def _short(values: Any) -> list[float | None]:
    return [_short_one(value) for value in values]


def _short_one(value: Any) -> float | None:
    """Three digits are as many as an eye or a tooltip can use."""
    return float(f"{value:.3g}") if np.isfinite(value) else None


def _short_places(places: NDArray[np.float64]) -> list[list[float]]:
    low, high = places.min(axis=0, initial=np.inf), places.max(axis=0, initial=-np.inf)
    scaled = (places - low) / max(float((high - low).max(initial=0.0)), 1e-300)
    return np.round(scaled, 4).T.tolist()
