"""Laws of spatial folds: blocks of neighbours, equal in size, whatever the units, the same on every machine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from baggraph.data.splits import spatial_folds
from baggraph.errors import InvalidBagsError, ParameterError

SEEDS = st.integers(0, 2**40)


def fold_sizes(row: np.ndarray, folds: int) -> list[int]:
    return np.bincount(row, minlength=folds).tolist()


@given(n_bags=st.integers(5, 60), folds=st.integers(2, 5), dim=st.sampled_from([2, 3]), seed=st.integers(0, 2**30))
def test_blocks_are_equal_in_size_and_convex_at_the_first_cut(n_bags, folds, dim, seed):
    coords = np.random.default_rng(seed).normal(size=(n_bags, dim)) * [10.0, 1.0, 0.1][:dim]
    result = spatial_folds(coords, folds=folds, repeats=2, random_state=seed)
    assert result.dtype == np.int16
    for row in result:
        assert np.ptp(fold_sizes(row, folds)) <= 1
        assert separable(coords, row < folds // 2)


def separable(points: np.ndarray, left: np.ndarray) -> bool:
    """Whether a hyperplane lies between the two sides (a linear programme without objective)."""
    sign = np.where(left, 1.0, -1.0)[:, None]
    margins = sign * np.c_[points / points.std(axis=0), np.ones(len(points))]
    found = linprog(np.zeros(margins.shape[1]), A_ub=-margins, b_ub=-np.ones(len(points)), bounds=(None, None))
    return bool(found.success)


@given(seed=SEEDS, folds=st.integers(2, 6))
def test_bags_on_a_line_are_cut_into_intervals(seed, folds):
    place = np.array([3.0, 11.0, 7.0, 1.0, 9.0, 5.0])
    row = spatial_folds(np.c_[place, 2 * place], folds=folds, random_state=seed)[0]
    along = row[np.argsort(place)]
    assert sum(along[1:] != along[:-1]) == folds - 1


def test_distant_clusters_stay_whole():
    centres = np.array([[0, 0], [100, 0], [0, 300], [100, 300]])
    coords = np.repeat(centres, 5, axis=0) + np.random.default_rng(0).normal(size=(20, 2))
    for row in spatial_folds(coords, folds=2, repeats=20):
        assert len({(bag // 10, fold) for bag, fold in enumerate(row)}) == 2


def test_repeats_cut_round_fields_differently():
    coords = np.random.default_rng(0).normal(size=(50, 2))
    rows = spatial_folds(coords, folds=5, repeats=10)
    assert len({tuple(sorted(np.flatnonzero(row == k).tobytes() for k in range(5))) for row in rows}) == 10


@given(seed=SEEDS, scale=st.sampled_from([2.0**-30, 1.0, 2.0**900]))
def test_the_unit_of_length_does_not_matter(seed, scale):
    coords = np.random.default_rng(seed % 1000).integers(-50, 50, size=(20, 2)).astype(float)
    expected = spatial_folds(coords, folds=4, random_state=seed)
    assert np.array_equal(spatial_folds(coords * scale, folds=4, random_state=seed), expected)


def test_bags_at_one_place_are_dealt_out_at_random():
    rows = spatial_folds(np.ones((6, 2)), folds=3, repeats=20)
    assert all(fold_sizes(row, 3) == [2, 2, 2] for row in rows)
    assert len({row.tobytes() for row in rows}) > 5
    assert fold_sizes(spatial_folds(np.zeros((4, 2)), folds=2)[0], 2) == [2, 2]


def test_neighbours_across_the_date_line_are_neighbours():
    degrees = [[179.0, 0.0], [-179.0, 1.0], [178.0, 1.0], [0.0, 0.0], [2.0, 1.0], [359.0, 0.0]]
    for row in spatial_folds(degrees, folds=2, repeats=10, geographic=True):
        assert len(set(row[:3])) == len(set(row[3:])) == 1
        assert row[0] != row[3]


def test_golden_blocks():
    """Blocks for fixed seeds, written down once: another machine or NumPy must find the same."""
    grid = [[i % 4, i // 4] for i in range(12)]
    assert spatial_folds(grid, folds=3, repeats=2, random_state=7).tolist() == [
        [0, 0, 0, 1, 0, 2, 1, 1, 2, 2, 2, 1],
        [2, 2, 0, 0, 1, 2, 2, 0, 1, 1, 1, 0],
    ]
    globe = [[30.0 * i, 10.0 * (i % 5) - 20] for i in range(12)]
    assert spatial_folds(globe, folds=5, random_state=7, geographic=True).tolist() == [
        [3, 4, 4, 2, 2, 2, 4, 1, 1, 0, 0, 3]
    ]


# ---------------------------------------------------------------------- refusals


def test_more_folds_than_bags_are_refused():
    with pytest.raises(ParameterError) as caught:
        spatial_folds(np.empty((0, 2)), folds=2)
    assert str(caught.value) == (
        "spatial folds: expected at most as many folds as bags, got folds=2 for 0; lower folds"
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: spatial_folds([1.0, 2.0]),
            "spatial folds: expected two or three coordinates a bag, got shape (2,); pass a (bags, 2) array",
        ),
        (
            lambda: spatial_folds(np.zeros((4, 3)), geographic=True),
            "spatial folds: expected longitude and latitude of every bag, got shape (4, 3); pass a (bags, 2) array",
        ),
        (
            lambda: spatial_folds([[0.0, 0.0], [0.0, np.nan]], folds=2),
            "spatial folds: expected finite coordinates, got [0.0, nan] for bag 1; correct it or leave that bag out",
        ),
        (
            lambda: spatial_folds([[48.1, 111.6], [11.6, 48.1]], folds=2, geographic=True),
            "spatial folds: expected longitudes from -180 to 360 and latitudes from -90 to 90, "
            "got [48.1, 111.6] for bag 0; correct it or leave that bag out",
        ),
    ],
)
def test_wrong_coordinates_are_named(call, message):
    with pytest.raises(InvalidBagsError) as caught:
        call()
    assert str(caught.value) == message
