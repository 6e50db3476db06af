"""Bags handed over to other libraries and taken back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baggraph import Bags, datasets
from baggraph.errors import InvalidBagsError


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=5), targets=st.sampled_from([1, 2]), seed=st.integers(0, 99)
)
@settings(max_examples=25, deadline=None)
def test_torchmil_and_back(sizes, targets, seed):
    rng = np.random.default_rng(seed)
    n, count = sum(sizes), len(sizes)
    bags = Bags(
        rng.normal(size=(n, 3)).astype(np.float32),
        np.cumsum([0, *sizes]),
        y=rng.normal(size=(count, targets) if targets > 1 else count),
        instance_y=rng.integers(0, 2, n),
        instance_info={"coords": rng.normal(size=(n, 2))},
    )
    assert Bags.from_torchmil(bags.to_torchmil(), ids=bags.ids) == bags


def test_pyg_and_back():
    pytest.importorskip("torch_geometric")
    bags = datasets.load("digits-bags", n_bags=12)
    again = Bags.from_pyg(bags.to_pyg())
    assert np.array_equal(again.instances, bags.instances)
    assert again.ids.tolist() == bags.ids.tolist()
    assert again.y.tolist() == bags.y.tolist()
    unlabelled = Bags.from_pyg(bags.replace(y=None).to_pyg())
    assert unlabelled.y is None


def test_items_of_torchmil_itself():
    toy = pytest.importorskip(
        "torchmil.datasets.toy_dataset", reason="torchmil is not installed: pip install '.[peers]'"
    )
    rng = np.random.default_rng(0)
    source = toy.ToyDataset(rng.normal(size=(60, 4)).astype(np.float32), np.arange(60) % 10, 8, [3], (3, 6))
    bags = Bags.from_torchmil([source[i] for i in range(len(source))])
    inside = np.array([bag.instance_y.max() for bag in bags])
    assert bags.y.tolist() == inside.tolist()
    assert bags.sizes.tolist() == [len(source[i]["X"]) for i in range(len(source))]


@pytest.mark.parametrize(
    ("items", "got"),
    [
        ([{"Y": 1}], "Y in item 0"),
        ([{"X": np.zeros((1, 2)), "Y": 1}, {"X": np.zeros((1, 2))}], "X in item 1"),
    ],
)
def test_items_of_different_keys_are_named(items, got):
    with pytest.raises(InvalidBagsError, match=f"bags: expected X, and the same keys in every item, got {got}"):
        Bags.from_torchmil(items)
