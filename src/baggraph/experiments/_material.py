"""What the methods of a recipe are given: bags, divisions, known graphs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from baggraph import datasets
from baggraph.data._fingerprint import fingerprint
from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.data.splits import label_mask
from baggraph.errors import ParameterError, closest
from baggraph.evaluation._division import divide
from baggraph.experiments._published import published_draw
from baggraph.experiments.recipe import Recipe
from baggraph.graphs.knn import knn_graph

__all__ = ["Material", "drawn", "load"]

CENTROID_NEIGHBORS = 5


@dataclass(frozen=True, eq=False)
class Material:
    """Bags of one set, and which of them are tested in which repeat.

    Parameters
    ----------
    bags
        With labels.
    division : (R, B)
        As in ``bags.splits``.
    sample
        Instances drawn from a bag in every repeat; 0 takes all.
    as_published
        Drawn as the published code draws.
    """

    bags: Bags
    division: NDArray[np.int16]
    sample: int = 0
    as_published: bool = False
    data_sha256: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data_sha256", fingerprint(self.bags))

    def of_repeat(self, repeat: int) -> Bags:
        """The bags as they are in one repeat."""
        if not self.sample:
            return self.bags
        return (published_draw if self.as_published else drawn)(self.bags, self.sample, repeat)

    def graph(self, name: str) -> BagGraph:
        """A known graph of the bags by name."""
        makers = {"borders": self._borders, "centroids": self._centroids, "shipped centroids": self._shipped_centroids}
        if name not in makers:
            remedy = closest(name, makers)
            raise ParameterError("recipe", expected="a known graph", got=repr(name), remedy=remedy)
        return makers[name]()

    def _borders(self) -> BagGraph:
        if self.bags.graph is None:
            remedy = "leave graph out"
            raise ParameterError("recipe", expected="bags with a graph", got="none", remedy=remedy)
        return self.bags.graph

    def _centroids(self) -> BagGraph:
        """Nearest centroids on the sphere, from longitude and latitude."""
        longitude, latitude = np.radians(self.bags.coords).T
        east, north, up = np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)
        return knn_graph(np.stack([east, north, up], axis=1), CENTROID_NEIGHBORS, ids=self.bags.ids)

    def _shipped_centroids(self) -> BagGraph:
        """Nearest centroids as the published code has them, which takes latitude for co-latitude."""
        shipped = datasets.load(str(self.bags.metadata["name"]), as_published=True)
        return knn_graph(shipped.coords, CENTROID_NEIGHBORS, ids=self.bags.ids)


def drawn(bags: Bags, n_instances: int, random_state: int) -> Bags:
    """Bags with at most ``n_instances`` instances each, drawn without replacement, in their order.

    >>> drawn(Bags([[1.0], [2.0], [3.0], [4.0]], [0, 3, 4]), 2, 0).sizes.tolist()
    [2, 1]
    """
    generator = np.random.default_rng(random_state)
    rows = []
    for start, size in zip(bags.offsets[:-1], bags.sizes, strict=True):
        kept = np.sort(generator.permutation(size)[:n_instances])
        rows.append(start + kept)
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in rows])])
    return bags._pick(slice(None), np.concatenate(rows), offsets)


def load(recipe: Recipe, dataset: str) -> Material:
    """The material of one set of a recipe."""
    bags = _loaded(dataset, recipe.protocol == "as-published")
    if recipe.labelled:
        division = _labelled(bags, recipe.labelled, recipe.repeats)
    else:
        division = divide(bags, recipe.splits, recipe.folds, recipe.repeats, 0)[: recipe.repeats]
    return Material(bags, division, recipe.sample, recipe.protocol == "as-published")


def _labelled(bags: Bags, shares: tuple[float, ...], repeats: int) -> NDArray[np.int16]:
    """Divisions in which every share has its turn; a larger share of the same draw contains the smaller ones."""
    turns = [(shares[r % len(shares)], r // len(shares)) for r in range(repeats)]
    kept = [label_mask(bags.y, labelled=share, random_state=draw) for share, draw in turns]
    return np.where(kept, -1, 0).astype(np.int16)


@lru_cache(maxsize=4)
def _loaded(dataset: str, as_published: bool) -> Bags:
    bags = datasets.load(dataset, as_published=as_published)
    return _in_published_units(bags) if as_published and dataset == "rental" else bags


def _in_published_units(bags: Bags) -> Bags:
    """Rents as the published code scores them: standardised with outliers, and scaled back without."""
    known = bags.metadata
    standard = (np.asarray(bags.y) - known["price_mean"]) / known["price_std"]
    return bags.replace(y=standard * known["clipped_price_std"] + known["clipped_price_mean"])
