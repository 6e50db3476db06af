"""Bags of handwritten digits: real images that scikit-learn carries, so nothing needs fetching."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.datasets._keys import check_option, keys
from baggraph.datasets.cards import Card, Counts
from baggraph.errors import ParameterError


def build(
    files: Mapping[str, Path],
    *,
    n_bags: int = 160,
    bag_size: float = 10.0,
    bag_size_spread: float = 2.0,
    witness_rate: float = 0.2,
    target: int = 9,
    random_state: int = 0,
) -> Bags:
    """Bags of 8 x 8 images; a bag is positive when it holds the target digit.

    Parameters
    ----------
    n_bags
        Half of them (rounded down) are positive.
    bag_size, bag_size_spread
        Mean and standard deviation of the bag sizes, which are at least one.
    witness_rate
        Share of target digits in a positive bag; at least one image is.
    target
        The digit to look for.
    random_state
        Seed.  No image occurs twice, so bags share no instance across a split.
    """
    del files
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    _check(n_bags, bag_size, bag_size_spread, witness_rate, target, random_state)
    uniform = keys(random_state, "sizes", (2, n_bags))
    normal = np.sqrt(-2 * np.log(1 - uniform[0])) * np.cos(2 * np.pi * uniform[1])
    sizes = np.maximum(1, np.rint(bag_size + bag_size_spread * normal)).astype(np.int64)
    y = (np.argsort(np.argsort(keys(random_state, "labels", n_bags))) < n_bags // 2).astype(np.int64)
    witnesses = np.where(y == 1, np.maximum(1, np.rint(witness_rate * sizes)), 0).astype(np.int64)
    rows = _deal(digits == target, sizes, witnesses, random_state)
    return Bags(
        images[rows].astype(np.float32),
        np.concatenate([[0], np.cumsum(sizes)]),
        y,
        feature_names=[f"pixel_{row}_{column}" for row in range(8) for column in range(8)],
        instance_names=[f"image-{row}" for row in rows],
        instance_y=(digits[rows] == target).astype(np.int64),
        instance_info={"digit": digits[rows]},
        metadata={"target": target, "random_state": random_state, "image_shape": [8, 8]},
    )


def _check(
    n_bags: int, bag_size: float, bag_size_spread: float, witness_rate: float, target: int, random_state: int
) -> None:
    stage = "digits-bags"
    check_option(stage, "n_bags", n_bags, whole=True, least=2)
    check_option(stage, "bag_size", bag_size, least=1)
    check_option(stage, "bag_size_spread", bag_size_spread, least=0)
    check_option(stage, "random_state", random_state, whole=True, least=0)
    check_option(stage, "target", target, whole=True, least=0)
    check_option(stage, "witness_rate", witness_rate, above=0)
    for name, value, most in (("witness_rate", witness_rate, 1), ("target", target, 9)):
        if value > most:
            raise ParameterError(
                stage, expected=f"{name} of at most {most}", got=repr(value), remedy="change that option"
            )


def _deal(
    is_target: NDArray[np.bool_], sizes: NDArray[np.int64], witnesses: NDArray[np.int64], random_state: int
) -> NDArray[np.int64]:
    """Rows of the images of every bag in turn, each image at most once, witnesses at random places."""
    order = np.argsort(keys(random_state, "images", len(is_target)))
    piles = {True: order[is_target[order]], False: order[~is_target[order]]}
    needed = {True: int(witnesses.sum()), False: int((sizes - witnesses).sum())}
    for kind, pile in piles.items():
        if needed[kind] > len(pile):
            what = "images of the target digit" if kind else "images of other digits"
            raise ParameterError(
                "digits-bags",
                expected=f"at most {len(pile)} {what}, each used once",
                got=str(needed[kind]),
                remedy="lower n_bags, bag_size or witness_rate",
            )
    bag = np.repeat(np.arange(len(sizes)), sizes)
    rank = np.arange(len(bag)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    witness = rank < witnesses[bag]
    rows = np.empty(len(bag), dtype=np.int64)
    rows[witness] = piles[True][: needed[True]]
    rows[~witness] = piles[False][: needed[False]]
    return rows[np.lexsort((keys(random_state, "places", len(bag)), bag))]


CARDS = (
    Card(
        name="digits-bags",
        title="Bags of handwritten digits, positive when a 9 is among them (embedded)",
        task="binary",
        counts=Counts(features=64),
        licence="CC BY 4.0 (UCI), carried by scikit-learn",
        citation="Alpaydin, Kaynak (1998). Optical Recognition of Handwritten Digits. UCI Machine Learning Repository.",
        home="https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits",
        build=build,
        notes=("Options: n_bags, bag_size, bag_size_spread, witness_rate, target, random_state.",),
    ),
)
