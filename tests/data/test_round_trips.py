"""Law: what is written comes back equal, whatever the bags are."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import baggraph as bg
from baggraph.data.readers.npz import read_npz, write_npz
from baggraph.data.readers.parquet import read_parquet, write_parquet
from baggraph.testing import strategies

FIVE_HUNDRED = settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
FEWER = settings(FIVE_HUNDRED, max_examples=100)


@pytest.mark.parametrize(("write", "read"), [(write_npz, read_npz), (write_parquet, read_parquet)])
@FIVE_HUNDRED
@given(bags=strategies.bags())
def test_files_give_back_equal_bags(write, read, bags):
    with tempfile.TemporaryDirectory() as folder:
        path = write(bags, Path(folder) / "bags")
        assert read(path) == bags


@FEWER
@given(bags=strategies.bags())
def test_a_mapped_npz_equals_the_one_in_memory(bags):
    with tempfile.TemporaryDirectory() as folder:
        path = bags.to_npz(Path(folder) / "bags.npz")
        mapped = read_npz(path, memory_map=True)
        assert mapped.is_memory_mapped == (not bags.is_sparse)
        assert mapped == bags
        if mapped.is_memory_mapped:
            assert mapped.instances.ctypes.data % 64 == 0


@FEWER
@given(bags=strategies.bags())
def test_read_knows_both_kinds_of_files(bags):
    with tempfile.TemporaryDirectory() as folder:
        assert bg.read(bags.to_npz(Path(folder) / "a.npz")) == bags
        assert bg.read(bags.to_parquet(Path(folder) / "a.parquet")) == bags


@FEWER
@given(bags=strategies.bags())
def test_a_pickle_equals_the_original(bags):
    assert pickle.loads(pickle.dumps(bags)) == bags


@FIVE_HUNDRED
@given(bags=strategies.bags())
def test_a_long_frame_gives_back_the_bags(bags):
    """A frame has no place for attachments; all that it shows comes back."""
    plain = bags.replace(
        graph=None, coords=None, splits={}, bag_info={}, instance_info={}, metadata={}, instance_y=None
    ).replace(feature_names=[f"f{i}" for i in range(bags.n_features)])
    assert bg.Bags.from_frame(plain.to_frame()) == plain


@FEWER
@given(bags=strategies.bags())
def test_a_list_of_arrays_gives_back_the_bags(bags):
    back = bg.Bags.from_list(bags.to_list(), bags.y, ids=bags.ids)
    names = {"instance_names", "instance_y", "coords", "graph", "feature_names"}
    empty = {"splits", "bag_info", "instance_info", "metadata"}
    assert back == bags.replace(**dict.fromkeys(names), **{name: {} for name in empty})


@FEWER
@given(bags=strategies.bags())
def test_concat_undoes_slicing(bags):
    whole = bags if bags.graph is None else bags.replace(graph=None)
    cut = len(bags) // 2
    parts = [whole] if cut == 0 else [whole[:cut], whole[cut:]]
    assert bg.Bags.concat(parts) == whole


@FEWER
@given(bags=strategies.bags())
def test_take_then_take_back_is_the_identity(bags):
    order = np.argsort(bags.sizes, kind="stable")
    assert bags.take(order).take(np.argsort(order)) == bags
    assert bags.take(bags.ids[order]) == bags.take(order)
    mask = bags.sizes > bags.sizes.min()
    if mask.any():
        assert bags[mask] == bags.take(np.flatnonzero(mask))
