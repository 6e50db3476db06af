"""Laws of splits: they part the bags, balance them, and stay what they are."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baggraph.data.bags import Bags
from baggraph.data.splits import (
    grouped_folds,
    hide_labels,
    label_mask,
    pairs,
    published,
    stratified_folds,
)
from baggraph.errors import BagWarning, InvalidBagsError, ParameterError

SEEDS = st.integers(0, 2**40)
CLASSES = st.lists(st.integers(0, 3), min_size=4, max_size=60)
REALS = st.lists(st.integers(0, 50).map(lambda v: v / 4 + 0.1), min_size=4, max_size=60)


def quietly(y: Any, **settings: Any) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BagWarning)
        return stratified_folds(y, **settings)


def counts(row: Any, folds: int) -> np.ndarray:
    return np.bincount(np.asarray(row), minlength=folds)


def bags_with(y: Any, **more: Any) -> Bags:
    n_bags = len(y)
    return Bags(np.zeros((n_bags, 1)), np.arange(n_bags + 1), y, **more)


# ---------------------------------------------------------------------- stratified


@given(y=CLASSES, folds=st.integers(2, 4), seed=SEEDS)
def test_every_class_and_the_whole_are_dealt_out_to_within_one(y, folds, seed):
    result = quietly(y, folds=folds, repeats=2, random_state=seed)
    assert result.dtype == np.int16
    assert result.shape == (2, len(y))
    for row in result:
        assert np.ptp(counts(row, folds)) <= 1
        for label in set(y):
            assert np.ptp(counts(row[np.array(y) == label], folds)) <= 1


@given(y=REALS, folds=st.integers(2, 4), seed=SEEDS)
def test_neighbours_in_rank_go_to_different_folds(y, folds, seed):
    y = [0.1, 0.2, *y]  # certainly not whole numbers
    row = quietly(y, folds=folds, repeats=1, random_state=seed)[0]
    values = np.array(y)
    assert np.ptp(counts(row, folds)) <= 1
    for value in set(y):
        # Cut at any value: a fold has one bag of every complete run below, and at most one of the run cut through.
        assert np.ptp(counts(row[values < value], folds)) <= 1


@given(y=st.lists(st.sampled_from(["a", "b", None]), min_size=6), seed=SEEDS)
def test_a_bag_without_label_is_never_tested(y, seed):
    y = ["a", "b", *y]
    row = quietly(y, folds=2, repeats=1, random_state=seed)[0]
    assert [k == -1 for k in row] == [label is None for label in y]


@given(y=CLASSES, seed=SEEDS)
def test_only_the_partition_into_classes_counts_not_their_type(y, seed):
    expected = quietly(y, folds=3, repeats=2, random_state=seed)
    for other in ([f"class {c}" for c in y], np.array(y, float), np.array(y, np.int8) * 7, [c * 1.0 for c in y]):
        assert np.array_equal(quietly(other, folds=3, repeats=2, random_state=seed), expected)


def test_booleans_are_classes():
    y = np.arange(10) % 3 == 0
    assert np.array_equal(stratified_folds(y, folds=2), stratified_folds(y.astype(int), folds=2))


@given(y=REALS, seed=SEEDS)
def test_only_the_order_of_real_targets_counts_and_of_several_the_first(y, seed):
    y = np.array([0.5, *y])
    expected = quietly(y, folds=2, repeats=2, random_state=seed)
    for other in (y * 3 - 1, np.exp(y), np.c_[y, y[::-1]]):
        assert np.array_equal(quietly(other, folds=2, repeats=2, random_state=seed), expected)


def test_whole_numbers_of_many_kinds_are_ranked_if_they_are_floats():
    ages = np.arange(21.0)
    row = stratified_folds(ages, folds=7, repeats=1)[0]
    assert all(sorted(row[run : run + 7]) == list(range(7)) for run in (0, 7, 14))
    with pytest.warns(BagWarning):
        stratified_folds(ages[:20], folds=7, repeats=1)
    with pytest.warns(BagWarning):
        stratified_folds(ages.astype(int), folds=7, repeats=1)


@given(seed=SEEDS)
def test_more_repeats_begin_with_the_fewer_and_differ(seed):
    y = np.arange(40) % 2
    many = stratified_folds(y, folds=4, repeats=5, random_state=seed)
    assert np.array_equal(many[:2], stratified_folds(y, folds=4, repeats=2, random_state=seed))
    assert len({row.tobytes() for row in many}) == 5


def test_every_bag_may_meet_every_fold():
    rows = stratified_folds([0] * 6 + [1] * 5, folds=5, repeats=200)
    assert all(set(rows[:, bag]) == set(range(5)) for bag in range(11))


def test_a_rare_class_is_a_warning_that_names_it():
    with pytest.warns(BagWarning) as caught:
        stratified_folds(["a"] * 5 + ["b"] * 2, folds=3)
    assert [str(w.message) for w in caught] == [
        "stratified folds: expected 3 labelled bags of every class, got 2 of 'b'; "
        "some folds will test none of it: lower folds or merge classes"
    ]
    assert caught[0].filename == __file__


# ---------------------------------------------------------------------- groups


@given(groups=st.lists(st.sampled_from("pqrstu"), min_size=6, max_size=50), folds=st.integers(2, 4), seed=SEEDS)
def test_no_group_on_both_sides_and_folds_differ_by_a_group_at_most(groups, folds, seed):
    groups = ["w", "x", "y", "z", *groups]
    result = grouped_folds(groups, folds=folds, repeats=2, random_state=seed)
    assert result.dtype == np.int16
    for row in result:
        assert len({(group, fold) for group, fold in zip(groups, row, strict=True)}) == len(set(groups))
        assert set(row) == set(range(folds))
        assert np.ptp(counts(row, folds)) <= max(Counter(groups).values())


def test_equal_groups_go_together_at_random():
    rows = grouped_folds(np.repeat(np.arange(6), 2), folds=3, repeats=50)
    assert len({row.tobytes() for row in rows}) > 10
    assert all(counts(row, 3).tolist() == [4, 4, 4] for row in rows)


# ---------------------------------------------------------------------- masks


@given(y=st.lists(st.integers(0, 2), min_size=3, max_size=60), seed=SEEDS, data=st.data())
def test_webster_shares_out_the_labels(y, seed, data):
    count = data.draw(st.integers(1, len(y)))
    mask = label_mask(y, labelled=count, random_state=seed)
    assert mask.dtype == bool
    assert mask.sum() == count
    size, kept = Counter(y), Counter(np.array(y)[mask].tolist())
    if count >= len(size):
        assert set(kept) == set(size)
        # Min-max law: no class that got more than its one could give a label to another and be no worse off.
        given_up = max([(kept[c] - 0.5) / size[c] for c in size if kept[c] > 1], default=0.0)
        asked_for = min([(kept[c] + 0.5) / size[c] for c in size if kept[c] < size[c]], default=np.inf)
        assert given_up <= asked_for


@given(y=CLASSES, seed=SEEDS, data=st.data())
def test_a_larger_mask_contains_the_smaller(y, seed, data):
    few = data.draw(st.integers(1, len(y) - 1))
    small, large = (label_mask(y, labelled=n, random_state=seed) for n in (few, few + 1))
    assert (large >= small).all()


@given(y=REALS, seed=SEEDS, data=st.data())
def test_kept_real_targets_are_spread_over_the_ranks(y, seed, data):
    y = np.array([0.3, *y])
    count = data.draw(st.integers(1, len(y)))
    mask = label_mask(y, labelled=count, random_state=seed)
    assert mask.sum() == count
    for value in y:
        below = y < value
        # Runs that lie below the value keep one each, and the run cut through keeps it or does not.
        assert abs(mask[below].sum() - below.sum() * count / len(y)) <= 1


@given(y=st.lists(st.sampled_from([0, 1, None]), min_size=3), seed=SEEDS)
def test_only_labelled_bags_keep_a_label(y, seed):
    y = [0, 1, *y]
    mask = label_mask(y, labelled=2, random_state=seed)
    assert not mask[[label is None for label in y]].any()
    assert mask.sum() == 2


def test_a_share_is_of_the_labelled_bags_and_never_none_of_them():
    y = [0] * 10 + [1] * 10 + [None] * 50
    mask = label_mask(y, labelled=0.3)
    assert [mask[:10].sum(), mask[10:20].sum(), mask[20:].sum()] == [3, 3, 0]
    assert label_mask(y, labelled=0.001).sum() == 1
    assert label_mask(y, labelled=np.float32(0.5)).sum() == 10


def test_every_bag_may_keep_its_label():
    masks = np.array([label_mask([0, 0, 0, 1, 1], labelled=2, random_state=seed) for seed in range(50)])
    assert masks.any(axis=0).all()
    assert not masks.all(axis=0).any()


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([True, False, True], [1.0, None, None]),
        ([4, 5, 6], [4.0, None, None]),
        ([0.5, None, 2.0], [0.5, None, None]),
        (["a", "b", None], ["a", None, None]),
    ],
)
def test_hidden_labels_are_missing_and_all_else_stays(y, expected):
    bags = bags_with(y, ids=["p", "q", "r"], splits={"paper": [[0, 1, 0]]})
    hidden = hide_labels(bags, [True, False, False])
    assert [None if missing else label for label, missing in zip(hidden.y, ~hidden.labelled, strict=True)] == expected
    assert hidden.replace(y=None) == bags.replace(y=None)
    assert hidden.instances is bags.instances
    assert hide_labels(bags, np.ones(3, bool)) == bags
    assert not hide_labels(bags, np.zeros(3, bool)).labelled.any()


def test_all_targets_of_a_bag_are_hidden():
    assert hide_labels(bags_with([[1.0, 2.0], [3.0, 4.0]]), [True, False]).y.tolist()[0] == [1.0, 2.0]
    assert np.isnan(hide_labels(bags_with([[1.0, 2.0], [3.0, 4.0]]), [True, False]).y[1]).all()


@given(y=CLASSES, seed=SEEDS)
def test_hidden_labels_are_never_tested(y, seed):
    y = [0, 0, 1, 1, *y]
    keep = label_mask(y, labelled=4, random_state=seed)
    folds = quietly(hide_labels(bags_with(y), keep).y, folds=2, random_state=seed)
    assert all(keep[test].all() and not keep[train].all() for train, test in pairs(folds))


# ---------------------------------------------------------------------- pairs and published splits


@given(y=CLASSES, folds=st.integers(2, 4), seed=SEEDS)
def test_train_and_test_part_the_bags(y, folds, seed):
    splits = list(pairs(quietly(y, folds=folds, repeats=3, random_state=seed)))
    assert len(splits) == 3 * folds
    everything = list(range(len(y)))
    assert all(sorted([*train, *test]) == everything for train, test in splits)
    for repeat in range(3):
        assert sorted(np.concatenate([test for _, test in splits[repeat * folds :][:folds]])) == everything


def test_pairs_come_in_order_and_skip_folds_that_are_not_there():
    tests = [test.tolist() for _, test in pairs(np.array([[4, 0, -1], [1, 1, 0], [-1, -1, -1]]))]
    assert tests == [[1], [0], [2], [0, 1]]


def test_published_splits_are_found():
    bags = bags_with([0, 1], splits={"paper": [[0, 1]], "five": [[1, 0], [0, 1]]})
    assert published(bags, "five").tolist() == [[1, 0], [0, 1]]
    assert published(bags_with([0, 1], splits={"paper": [0, 1]})).tolist() == [[0, 1]]


# ---------------------------------------------------------------------- the same on every machine


def test_golden_splits():
    """Splits for fixed seeds, written down once: another machine or NumPy must find the same."""
    y = [0, 1, 1, 0, 1, 0, 0, 1, 2, 2, 2, 2]
    assert stratified_folds(y, folds=3, repeats=2, random_state=7).tolist() == GOLDEN["classes"]
    ranked = [0.5, 0.1, 0.9, 0.4, 0.4, 0.8, 0.2]
    assert stratified_folds(ranked, folds=2, repeats=2, random_state=7).tolist() == GOLDEN["ranks"]
    assert grouped_folds(list("aabbccddeef"), folds=3, repeats=2, random_state=7).tolist() == GOLDEN["groups"]
    assert label_mask(y, labelled=5, random_state=7).astype(int).tolist() == GOLDEN["mask"]
    assert label_mask(ranked, labelled=0.5, random_state=7).astype(int).tolist() == GOLDEN["ranked mask"]


GOLDEN: dict[str, list[Any]] = {
    "classes": [[2, 1, 2, 1, 1, 0, 0, 0, 2, 1, 0, 2], [0, 1, 2, 1, 1, 0, 2, 0, 1, 0, 2, 2]],
    "ranks": [[1, 1, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1]],
    "groups": [[2, 2, 1, 1, 0, 0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 0, 0, 2, 2, 1, 1, 2]],
    "mask": [0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 1, 1],
    "ranked mask": [0, 0, 1, 0, 1, 1, 1],
}


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: stratified_folds([0, 1], folds=1),
            "stratified folds: expected folds from 2 to 32767, got folds=1; 10 is customary",
        ),
        (
            lambda: stratified_folds([0, 1], folds=True),
            "stratified folds: expected folds from 2 to 32767, got folds=True; 10 is customary",
        ),
        (
            lambda: stratified_folds([0, 1, None], folds=3),
            "stratified folds: expected at most as many folds as labelled bags, got folds=3 for 2; lower folds",
        ),
        (
            lambda: stratified_folds([0, 1], folds=2, repeats=0),
            "stratified folds: expected repeats of 1 or more, got repeats=0; pass repeats=1",
        ),
        (
            lambda: stratified_folds([0, 1], folds=2, random_state=None),
            "stratified folds: expected a seed, an integer from 0, got random_state=None; pass random_state=0",
        ),
        (
            lambda: label_mask([0, 1], labelled=1, random_state=-1),
            "label mask: expected a seed, an integer from 0, got random_state=-1; pass random_state=0",
        ),
        (
            lambda: grouped_folds(["a", "b", "a"], folds=3),
            "grouped folds: expected at most as many folds as groups, got folds=3 for 2; lower folds",
        ),
        (
            lambda: grouped_folds([], folds=2),
            "grouped folds: expected at most as many folds as groups, got folds=2 for 0; lower folds",
        ),
        (
            lambda: label_mask([0, 1], labelled=3),
            "label mask: expected a share between 0 and 1 or a number of bags from 1 to 2, got labelled=3; "
            "pass 0.1 for a tenth",
        ),
        (
            lambda: label_mask([0, 1], labelled=1.0),
            "label mask: expected a share between 0 and 1 or a number of bags from 1 to 2, got labelled=1.0; "
            "pass 0.1 for a tenth",
        ),
        (
            lambda: published(bags_with([0], splits={"paper": [0], "five": [0]})),
            "published: expected the name of one set of splits, got name=None; choose from 'five', 'paper'",
        ),
        (
            lambda: published(bags_with([0], splits={"paper": [0]}), "papers"),
            "published: expected the name of one set of splits, got name='papers'; did you mean 'paper'?",
        ),
    ],
)
def test_a_wrong_parameter_is_named(call, message):
    with pytest.raises(ParameterError) as caught:
        call()
    assert str(caught.value) == message


NO_LABEL = "expected at least one labelled bag, got none; pass the labels, as in bags.y"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stratified_folds(None), f"stratified folds: {NO_LABEL}"),
        (lambda: stratified_folds([]), f"stratified folds: {NO_LABEL}"),
        (lambda: label_mask([None, np.nan], labelled=1), f"label mask: {NO_LABEL}"),
        (
            lambda: grouped_folds(["a", None, "b"]),
            "grouped folds: expected a group for every bag, got none for bag 1; give it a group of its own",
        ),
        (
            lambda: grouped_folds([[1, 2], [3, 4]]),
            "grouped folds: expected one group a bag, got shape (2, 2); pass a flat sequence",
        ),
        (
            lambda: hide_labels(bags_with([0, 1]), [0, 1]),
            "hide labels: expected a mask of 2 booleans, got int64 of shape (2,); make it with label_mask",
        ),
        (
            lambda: hide_labels(bags_with([0, 1]).replace(y=None), [True, False]),
            "hide labels: expected bags with labels, got none; pass y to Bags",
        ),
        (
            lambda: pairs([0.0, 1.0]),
            "pairs: expected fold numbers of shape (B,) or (repeats, B), got float64 of shape (2,); "
            "number the folds from 0",
        ),
        (
            lambda: published(bags_with([0, 1])),
            "published: expected bags with splits, got none; make some with stratified_folds",
        ),
    ],
)
def test_wrong_data_are_named(call, message):
    with pytest.raises(InvalidBagsError) as caught:
        call()
    assert str(caught.value) == message
