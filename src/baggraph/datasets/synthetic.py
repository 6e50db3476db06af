"""Made bags with a known graph between them: the truth that learned graphs can be held against."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.datasets._keys import check_option, keys
from baggraph.datasets.cards import Card, Counts


def build(
    files: Mapping[str, Path],
    *,
    n_bags: int = 200,
    n_features: int = 8,
    bag_size: int = 10,
    n_neighbors: int = 4,
    smoothness: float = 0.1,
    noise: float = 1.0,
    random_state: int = 0,
) -> Bags:
    """Bags on a plane whose instances scatter around a signal that is smooth on the graph of neighbours.

    Bag i lies at a random place; the graph joins every bag to its ``n_neighbors`` nearest.  A latent matrix is
    white noise Z smoothed by the graph,  M = (I + L / smoothness)^-1 Z  (scaled to unit variance), and instances
    are M_i + noise * N(0, I).  The label is the first column of M, so neighbours have similar labels and
    the instances tell them with noise.

    Parameters
    ----------
    n_bags, n_features
        Sizes of the set.
    bag_size
        Bags have from 1 to ``2 * bag_size - 1`` instances.
    n_neighbors
        Nearest bags that a bag is joined to.
    smoothness
        Positive; the smaller, the more alike are neighbours.
    noise
        Standard deviation of instances around the signal of their bag.
    random_state
        Seed.
    """
    del files
    counts = {"n_neighbors": n_neighbors, "n_features": n_features, "bag_size": bag_size}
    for name, value in counts.items():
        check_option("synthetic", name, value, whole=True, least=1)
    check_option("synthetic", "n_bags", n_bags, whole=True, least=n_neighbors + 1)
    check_option("synthetic", "random_state", random_state, whole=True, least=0)
    check_option("synthetic", "smoothness", smoothness, above=0)
    check_option("synthetic", "noise", noise, least=0)
    places = keys(random_state, "places", (n_bags, 2))
    adjacency = _nearest(places, n_neighbors)
    laplacian = np.diag(adjacency.sum(axis=1)) - adjacency
    latent = np.linalg.solve(
        np.eye(n_bags) + laplacian / smoothness, _normal(random_state, "signal", n_bags, n_features)
    )
    latent = (latent - latent.mean(axis=0)) / latent.std(axis=0)
    sizes = 1 + np.floor(keys(random_state, "sizes", n_bags) * (2 * bag_size - 1)).astype(np.int64)
    scatter = _normal(random_state, "instances", int(sizes.sum()), n_features)
    ids = [f"bag-{i:0{len(str(n_bags - 1))}d}" for i in range(n_bags)]
    return Bags(
        (np.repeat(latent, sizes, axis=0) + noise * scatter).astype(np.float32),
        np.concatenate([[0], np.cumsum(sizes)]),
        latent[:, 0],
        ids=ids,
        coords=places,
        graph=BagGraph(adjacency, ids),
        metadata={"random_state": random_state, "smoothness": smoothness, "noise": noise},
    )


def _nearest(places: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Symmetric 0/1 adjacency: i and j are joined when either is among the nearest of the other."""
    squared = ((places[:, None] - places[None]) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    nearest = np.argsort(squared, axis=1, kind="stable")[:, :n_neighbors]
    adjacency = np.zeros(squared.shape)
    np.put_along_axis(adjacency, nearest, 1.0, axis=1)
    return np.maximum(adjacency, adjacency.T)


def _normal(random_state: int, purpose: str, rows: int, columns: int) -> np.ndarray:
    """Standard normal numbers by Box and Muller's transform."""
    first, second = keys(random_state, purpose, (2, rows, columns))
    return np.sqrt(-2 * np.log1p(-first)) * np.cos(2 * np.pi * second)


CARDS = (
    Card(
        name="synthetic",
        title="Made bags on a plane with a known graph (embedded)",
        task="regression",
        counts=Counts(),
        licence="made by this package",
        citation="none",
        home="this package",
        build=build,
        notes=("Options: n_bags, n_features, bag_size, n_neighbors, smoothness, noise, random_state.",),
    ),
)
