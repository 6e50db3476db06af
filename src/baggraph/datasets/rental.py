"""Mean rents of New York neighbourhoods from their listings (Kaggle, two sigma connect)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.datasets.cards import Card, Counts, DataFile
from baggraph.errors import DataFileError

LISTINGS = "nyc_rental/raw/neighbourhood_data.csv"
DISTRICTS = "nyc_rental/raw/districts_data_cleaned.csv"
SHIPPED_GRAPH = "nyc_rental/raw/adj_nbhd.txt"
COVARIATES = (
    "bathrooms",
    "bedrooms",
    "interest_level",
    "num_photos",
    "num_features",
    "num_description_words",
    "created_month",
    "created_day",
)
CLIP_PERCENTILE = 95
PRIOR = 1e-6  # of a centroid beside a border
CORNER_DIGITS = 9  # of a degree, by which polygons agree about their corners
N_TRIALS, N_TRAIN = 100, 55


def build(files: Mapping[str, Path], *, as_published: bool) -> Bags:
    """Bags of listings; the label is the mean rent of the neighbourhood, in dollars.

    Sound: eight covariates, rents clipped at their 95th percentile before the mean is taken, borders
    between neighbourhoods as the graph.  As published: ten inputs, among them the neighbourhood's code and
    the listing's own (standardised) rent, means without clipping, and the shipped adjacency, whose rows
    are in another order than the bags.
    """
    districts = pd.read_csv(files[DISTRICTS], index_col=0)
    listings = pd.read_csv(files[LISTINGS], index_col=0)
    listings = listings[listings["neighbourhood"].isin(districts["name"])]
    _check(listings, districts)
    published_order = listings["neighbourhood"].drop_duplicates().tolist()
    order = published_order if as_published else districts["name"].tolist()
    listings = listings.assign(place=pd.Categorical(listings["neighbourhood"], order).codes)
    listings = listings.sort_values("place", kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(listings["place"]))])
    rent = listings["price"].to_numpy(dtype=np.float64)
    ceiling = float(np.percentile(rent, CLIP_PERCENTILE))
    target = rent if as_published else np.minimum(rent, ceiling)
    rings = _rings(districts)
    shipped = np.loadtxt(files[SHIPPED_GRAPH], delimiter=",")
    features, names = _published_features(listings) if as_published else _covariates(listings)
    boroughs = districts.set_index("name")["borough"]
    return Bags(
        features,
        offsets,
        np.add.reduceat(target, offsets[:-1]) / np.diff(offsets),
        ids=order,
        feature_names=names,
        coords=(_centroids if as_published else _sites)([rings[name] for name in order]),
        graph=_shipped_graph(shipped, order)
        if as_published
        else BagGraph.from_polygons([rings[name] for name in order], order),
        splits={"published-100": _published_splits(published_order, order)},
        bag_info={"borough": boroughs[order].to_numpy()}
        | ({"shipped_self_loop": shipped.diagonal()} if as_published else {}),
        instance_info={"price": rent},
        metadata={
            "price_mean": float(rent.mean()),
            "price_std": float(rent.std(ddof=1)),
            "clip": ceiling,
            "clipped_price_mean": float(np.minimum(rent, ceiling).mean()),
            "clipped_price_std": float(np.minimum(rent, ceiling).std(ddof=1)),
        },
    )


def _check(listings: pd.DataFrame, districts: pd.DataFrame) -> None:
    lonely = set(districts["name"]) - set(listings["neighbourhood"])
    if lonely or listings[[*COVARIATES, "price"]].isna().to_numpy().any():
        raise DataFileError(
            "rental",
            expected="complete listings for every district",
            got=f"none in {min(lonely)!r}" if lonely else "missing values",
            remedy="use the files of the card",
        )


def _covariates(listings: pd.DataFrame) -> tuple[NDArray[np.float32], list[str]]:
    levels = {"low": 0, "medium": 1, "high": 2}
    coded = listings[list(COVARIATES)].assign(interest_level=listings["interest_level"].map(levels))
    return coded.to_numpy(dtype=np.float32), list(COVARIATES)


def _published_features(listings: pd.DataFrame) -> tuple[NDArray[np.float64], list[str]]:
    """The ten inputs of the published code: codes by first appearance, whole bathrooms, standardised rent."""
    in_file_order = listings.sort_index()
    first = in_file_order["interest_level"].drop_duplicates().tolist()
    rent = listings["price"].astype(np.float64)
    coded = listings[list(COVARIATES)].assign(
        interest_level=pd.Categorical(listings["interest_level"], first).codes,
        bathrooms=listings["bathrooms"].astype(np.int64),
        neighbourhood=listings["place"],
        price=(rent - rent.mean()) / rent.std(),
    )
    return coded.to_numpy(dtype=np.float64), [*COVARIATES, "neighbourhood", "price"]


def polygons(files: Mapping[str, Path]) -> list[NDArray[np.float64]]:
    """Corners (n, 2) of every neighbourhood, longitude and latitude, in the order of the sound bags."""
    return list(_rings(pd.read_csv(files[DISTRICTS], index_col=0)).values())


def _rings(districts: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    return {name: _ring(text) for name, text in zip(districts["name"], districts["geometry"], strict=True)}


def _ring(text: str) -> NDArray[np.float64]:
    """Corners of a polygon without holes, in well-known text."""
    match = re.fullmatch(r"POLYGON \(\(([^()]*)\)\)", text.strip())
    if match is None:
        raise DataFileError(
            "rental", expected="POLYGON ((x y, ...))", got=repr(text[:30]), remedy="use the files of the card"
        )
    return np.array([[float(number) for number in corner.split()] for corner in match[1].split(",")])


def _centroids(rings: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Centres of mass (n, 2) of polygons whose last corner repeats the first."""
    found = []
    for ring in rings:
        x, y = ring[:-1].T
        cross = x * ring[1:, 1] - ring[1:, 0] * y
        found.append(((ring[:-1] + ring[1:]) * cross[:, None]).sum(axis=0) / (3 * cross.sum()))
    return np.array(found)


def _sites(rings: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Where the neighbourhoods are (n, 2): the points whose Voronoi cells the polygons are.

    Cells at the river have no end and were cut miles away, so that their centroids lie in New Jersey.  A border halves
    the line between its two sites at a right angle: two linear equations a border, which all sites meet to 1e-7
    degrees.  The centroids have a say where borders alone leave a choice.
    """
    centroids = _centroids(rings)
    equations, values = [PRIOR * np.eye(centroids.size)], [PRIOR * centroids.ravel()]
    for (start, stop), (one, other) in _borders(rings):
        along = (stop - start) / np.linalg.norm(stop - start)
        across = np.array([-along[1], along[0]])
        rows = np.zeros((2, len(rings), 2))
        rows[0, [one, other]] = across / 2
        rows[1, one], rows[1, other] = along, -along
        equations.append(rows.reshape(2, -1))
        values.append(np.array([across @ start, 0.0]))
    found = np.linalg.lstsq(np.concatenate(equations), np.concatenate(values))[0]
    return np.asarray(found).reshape(-1, 2)


def _borders(rings: list[NDArray[np.float64]]) -> list[tuple[NDArray[np.float64], list[int]]]:
    """Sides (2, 2) that two polygons share, and which two."""
    owners: dict[tuple[Any, ...], list[int]] = {}
    sides = {}
    for place, ring in enumerate(rings):
        for side in np.stack([ring[:-1], ring[1:]], axis=1):
            key = tuple(sorted(map(tuple, np.round(side, CORNER_DIGITS).tolist())))
            owners.setdefault(key, []).append(place)
            sides[key] = side
    return [(sides[key], both) for key, both in owners.items() if len(both) == 2]


def _shipped_graph(shipped: NDArray[np.float64], order: list[str]) -> BagGraph:
    return BagGraph(sp.csr_array(shipped - np.diag(shipped.diagonal())), order)


def _published_splits(published_order: list[str], order: list[str]) -> NDArray[np.int16]:
    """The 100 published splits: seed t shuffles the bags of trial t and the first 55 train."""
    folds = np.zeros((N_TRIALS, len(order)), dtype=np.int16)
    place = {name: i for i, name in enumerate(order)}
    where = np.array([place[name] for name in published_order])
    for trial in range(N_TRIALS):
        shuffled = np.arange(len(order))
        np.random.RandomState(trial).shuffle(shuffled)  # the legacy stream is the published one
        folds[trial, where[shuffled[:N_TRAIN]]] = -1
    return folds


NETWORKSLAB = "https://raw.githubusercontent.com/networkslab/BagGraph/9c6b9e413ba8e9231655200e916d0d4d4e7dccd6/mil_rental_data/data"

CARDS = (
    Card(
        name="rental",
        title="Mean rents of 77 New York neighbourhoods from 47,834 listings",
        task="regression",
        counts=Counts(bags=77, instances=47834, smallest=51, largest=3142),
        licence="MIT for the published copy; the rules of the Kaggle competition apply to the listings",
        citation="Pal, Valkanas, Regol, Coates (2022). Bag Graph. AAAI. Listings: Kaggle, two sigma connect.",
        home="https://www.kaggle.com/c/two-sigma-connect-rental-listing-inquiries",
        build=build,
        files=(
            DataFile(
                LISTINGS,
                "58c7a95336196fdd1262c0b68abb077e9a7c66e28223d850740926ae4f51d82b",
                (f"{NETWORKSLAB}/neighbourhood_data.csv",),
            ),
            DataFile(
                DISTRICTS,
                "89966c9bc378f5c76f48030996392b9eda381446c478bb638dc2afa513650473",
                (f"{NETWORKSLAB}/districts_data_cleaned.csv",),
            ),
            DataFile(
                SHIPPED_GRAPH,
                "c7e2f1a6bb1d0cf88fbd0a7ad25cad12e0cfa93ffc0a80c622c4a2c72262a0df",
                (f"{NETWORKSLAB}/adj_nbhd.txt",),
            ),
        ),
        printed=Counts(bags=77),
        notes=(
            "8 features; as_published=True gives the 10 of the published code, two of which leak the label: "
            "the neighbourhood's code and the listing's own rent.",
            "The shipped adjacency (as_published=True) is in another order than the bags, and damaged; "
            "the borders, from the polygons, have mean degree 4.44.",
            "The polygons are Voronoi cells, and those at the river have no end: their centroids (as_published=True) "
            "lie in New Jersey.  Places are the points whose cells the polygons are.",
            "Outliers up to $4,490,000 a month stay in as_published labels; sound labels clip rents at the "
            "95th percentile.",
        ),
    ),
)
