"""Scalers see the bags they are given, agree with scikit-learn, and keep their precision."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

from baggraph.data import _instances
from baggraph.data.bags import Bags
from baggraph.data.scaling import InstanceScaler
from baggraph.errors import InvalidBagsError, ParameterError

ORACLES = {"standard": StandardScaler, "minmax": MinMaxScaler, "maxabs": MaxAbsScaler, "unit-norm": Normalizer}
KINDS = [*ORACLES, "none"]
SPARSE_KINDS = ["maxabs", "unit-norm", "none"]

# Hundredths: a column is constant or varies by far more than rounding does.
BLOCKS = hnp.arrays(np.float64, (12, 3), elements=st.integers(-10_000, 10_000).map(lambda v: v / 100))


def bags_of(block: Any, **more: Any) -> Bags:
    """Bags of two, three and then as many instances as are left."""
    return Bags(block, [0, 2, 5, block.shape[0]], ["a", "b", None], ids=["p", "q", "r"], **more)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of two rows, so that every statistic is merged from many."""
    monkeypatch.setattr(_instances, "CHECK_BYTES", 2 * 3 * 8)


def random_block(seed: int = 0, rows: int = 40) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, 3)) * [1.0, 100.0, 0.01] + [5.0, 0.0, -3.0]


# ---------------------------------------------------------------------- against scikit-learn


@pytest.mark.parametrize("kind", ORACLES)
@given(block=BLOCKS)
def test_the_result_is_that_of_scikit_learn(kind, block):
    bags = bags_of(block)
    ours = InstanceScaler(kind).fit(bags).transform(bags).instances
    assert np.allclose(ours, ORACLES[kind]().fit_transform(block), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ORACLES)
def test_merged_blocks_give_the_result_of_scikit_learn(kind, small_blocks):
    block, other = random_block(), random_block(1)
    scaler = InstanceScaler(kind).fit(bags_of(block))
    oracle = ORACLES[kind]().fit(block)
    assert np.allclose(scaler.transform_block(other), oracle.transform(other), rtol=1e-12, atol=1e-12)
    assert np.array_equal(scaler.transform(bags_of(other)).instances, scaler.transform_block(other))


@pytest.mark.parametrize("kind", ["maxabs", "unit-norm"])
@given(block=BLOCKS)
def test_sparse_and_dense_are_scaled_alike(kind, block):
    dense, sparse = bags_of(block), bags_of(sp.csr_array(block))
    of_dense, of_sparse = (InstanceScaler(kind).fit(bags) for bags in (dense, sparse))
    assert np.array_equal(of_dense.scale_, of_sparse.scale_)
    scaled = of_sparse.transform(sparse)
    assert scaled.is_sparse
    assert scaled.instances.nnz == sparse.instances.nnz
    assert np.allclose(scaled.instances.toarray(), of_dense.transform(dense).instances, rtol=1e-14)


# ---------------------------------------------------------------------- laws


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_ignore_bags_that_were_not_given(kind):
    block, changed = random_block(), random_block()
    changed[5:] = 1e6
    one, other = (InstanceScaler(kind).fit(bags_of(b)[:2]) for b in (block, changed))
    assert one.to_dict() == other.to_dict()


@pytest.mark.parametrize("kind", KINDS)
@given(block=BLOCKS, order=st.permutations([0, 1, 2]))
def test_the_order_of_bags_changes_nothing(kind, block, order):
    bags = bags_of(block)
    one, other = InstanceScaler(kind).fit(bags), InstanceScaler(kind).fit(bags.take(order))
    assert np.allclose(one.center_, other.center_, rtol=1e-12, atol=1e-12)
    assert np.allclose(one.scale_, other.scale_, rtol=1e-12, atol=1e-12)


@given(block=BLOCKS, step=st.integers(1, 12))
def test_the_size_of_blocks_changes_nothing(block, step):
    whole = InstanceScaler("standard").fit(bags_of(block))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_instances, "CHECK_BYTES", step * 3 * 8)
        pieces = InstanceScaler("standard").fit(bags_of(block))
    assert np.allclose(whole.center_, pieces.center_, rtol=1e-12, atol=1e-12)
    assert np.allclose(whole.scale_, pieces.scale_, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["standard", "minmax", "maxabs", "none"])
@given(block=BLOCKS)
def test_the_inverse_gives_back_the_block(kind, block):
    scaler = InstanceScaler(kind).fit(bags_of(block))
    assert np.allclose(scaler.inverse_block(scaler.transform_block(block)), block, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("kind", SPARSE_KINDS[::2])
def test_the_inverse_gives_back_a_sparse_block(kind):
    block = sp.csr_array([[0.0, 2.0], [-4.0, 0.0], [1.0, 0.0]])
    scaler = InstanceScaler(kind).fit(Bags(block, [0, 3]))
    back = scaler.inverse_block(scaler.transform_block(block))
    assert sp.issparse(back)
    assert np.allclose(back.toarray(), block.toarray(), rtol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_type_is_kept(kind, dtype):
    bags = bags_of(random_block().astype(dtype))
    scaler = InstanceScaler(kind).fit(bags)
    assert scaler.transform(bags).instances.dtype == dtype
    assert scaler.transform_block(bags.instances).dtype == dtype
    assert scaler.center_.dtype == scaler.scale_.dtype == np.float64


@pytest.mark.parametrize("kind", SPARSE_KINDS)
def test_the_type_of_a_sparse_block_is_kept_and_its_duplicates_are_one(kind):
    block = sp.coo_array((np.array([1, 2, 5], np.float32), ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    scaled = InstanceScaler(kind).fit(Bags(block, [0, 2])).transform_block(block)
    assert scaled.dtype == np.float32
    assert scaled.toarray().tolist() == ([[0, 3], [5, 0]] if kind == "none" else [[0, 1], [1, 0]])
    assert block.data.tolist() == [1, 2, 5]


def test_small_integers_of_a_raw_block_become_float32():
    assert InstanceScaler("none").transform_block(np.ones((2, 2), np.int8)).dtype == np.float32


# ---------------------------------------------------------------------- difficult numbers


def test_columns_that_do_not_vary():
    bags = bags_of(np.tile([[0.1, 0.0, -7e9]], (9, 1)))
    scaled = {kind: InstanceScaler(kind).fit(bags).transform(bags).instances for kind in ("standard", "minmax")}
    assert all(np.allclose(block, 0.0, atol=1e-15) for block in scaled.values())
    assert InstanceScaler("standard").fit(bags).scale_.tolist() == [1.0, 1.0, 1.0]
    assert InstanceScaler("minmax").fit(bags).scale_.tolist() == [1.0, 1.0, 1.0]
    assert InstanceScaler("maxabs").fit(bags).scale_.tolist() == [0.1, 1.0, 7e9]


def test_a_small_variation_beside_a_large_mean_is_no_variation():
    block = np.zeros((8, 3))
    block[:, 0] = np.arange(8) * 1e-13
    block[:, 1] = 1e6 + np.arange(8) * 1e-8
    block[:, 2] = np.arange(8) * 1e-11
    scale = InstanceScaler("standard").fit(bags_of(block)).scale_
    assert scale[1] == 1.0
    assert scale[[0, 2]] == pytest.approx(np.array([1e-13, 1e-11]) * np.std(np.arange(8)))


@pytest.mark.parametrize("rows_a_block", [7, 1000])
def test_small_noise_on_a_large_offset_is_measured_to_nine_digits(rows_a_block, monkeypatch):
    monkeypatch.setattr(_instances, "CHECK_BYTES", rows_a_block * 3 * 8)
    noise = np.random.default_rng(0).integers(-1000, 1000, size=(20_000, 3)) * 2.0**-16  # exact at 1e8
    scaler = InstanceScaler("standard").fit(bags_of(noise + 1e8))
    assert np.allclose(scaler.center_ - 1e8, noise.mean(axis=0), rtol=0, atol=1e-6)
    assert np.allclose(scaler.scale_, noise.std(axis=0), rtol=1e-9)


def test_a_block_far_from_the_others_is_merged_exactly(small_blocks):
    block = np.r_[np.full((2, 3), 1e8), random_block(rows=38)]
    scaler = InstanceScaler("standard").fit(bags_of(block))
    assert np.allclose(scaler.scale_, block.std(axis=0), rtol=1e-14)


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1.0, 1e200])
def test_norms_neither_overflow_nor_vanish(size):
    block = np.array([[3.0, 4.0], [0.0, 0.0]]) * size
    expected = [[0.6, 0.8], [0.0, 0.0]]
    scaler = InstanceScaler("unit-norm")
    assert np.allclose(scaler.transform_block(block), expected)
    assert np.allclose(scaler.transform_block(sp.csr_array(block)).toarray(), expected)


# ---------------------------------------------------------------------- bags and files


@pytest.mark.parametrize("kind", KINDS)
def test_all_but_the_instances_stays(kind):
    bags = bags_of(
        random_block(rows=6),
        feature_names=["x", "y", "z"],
        instance_y=[0, 1, 0, 1, 0, 1],
        coords=np.ones((3, 2)),
        splits={"paper": [[0, 1, -1]]},
        bag_info={"age": [1, 2, 3]},
        metadata={"name": "toy"},
    )
    before = bags.instances.copy()
    scaled = InstanceScaler(kind).fit(bags).transform(bags)
    assert scaled.replace(instances=bags.instances) == bags
    assert np.array_equal(bags.instances, before)
    assert not scaled.instances.flags.writeable


@pytest.mark.parametrize("kind", KINDS)
def test_a_memory_map_is_scaled_block_by_block(kind, tmp_path, small_blocks):
    block = random_block()
    np.save(tmp_path / "block.npy", block)
    mapped, held = bags_of(np.load(tmp_path / "block.npy", mmap_mode="r")), bags_of(block)
    assert mapped.is_memory_mapped
    scaler = InstanceScaler(kind).fit(mapped)
    assert scaler.to_dict() == InstanceScaler(kind).fit(held).to_dict()
    assert np.array_equal(scaler.transform(mapped).instances, scaler.transform(held).instances)
    assert scaler.transform(mapped).is_memory_mapped == (kind == "none")


@pytest.mark.parametrize("kind", KINDS)
def test_a_scaler_survives_json_exactly(kind):
    bags = bags_of(random_block())
    scaler = InstanceScaler(kind).fit(bags)
    again = InstanceScaler.from_dict(json.loads(json.dumps(scaler.to_dict())))
    assert again.to_dict() == scaler.to_dict()
    assert np.array_equal(again.transform_block(bags.instances), scaler.transform_block(bags.instances))
    assert InstanceScaler.from_dict(InstanceScaler(kind).to_dict()).center_ is None


def test_fit_returns_another_scaler_that_cannot_be_changed():
    scaler = InstanceScaler("standard")
    fitted = scaler.fit(bags_of(random_block()))
    assert scaler.center_ is None
    assert repr(fitted) == "InstanceScaler(kind='standard')"
    with pytest.raises(AttributeError):
        fitted.kind = "none"
    with pytest.raises(ValueError, match="read-only"):
        fitted.center_[0] = 1.0


@pytest.mark.parametrize("kind", ["unit-norm", "none"])
def test_there_is_nothing_to_fit(kind):
    bags = bags_of(random_block())
    assert InstanceScaler(kind).transform(bags) == InstanceScaler(kind).fit(bags).transform(bags)


# ---------------------------------------------------------------------- refusals


def fitted(kind: str = "standard") -> InstanceScaler:
    return InstanceScaler(kind).fit(Bags(np.eye(2), [0, 2]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: InstanceScaler("standart"),
            "scaling: expected a kind of scaling, got 'standart'; did you mean 'standard'?",
        ),
        (
            lambda: InstanceScaler("minmax").transform_block(np.eye(2)),
            "scaling: expected a fitted scaler, got InstanceScaler(kind='minmax') before fit; "
            "use what fit(bags) returns",
        ),
        (
            lambda: InstanceScaler("standard").fit(Bags(sp.csr_array(np.eye(2)), [0, 2])),
            "scaling: expected a kind that keeps sparse instances sparse, got 'standard'; "
            'use "maxabs", which keeps zeros zero',
        ),
        (
            lambda: fitted("minmax").transform_block(sp.csr_array(np.eye(2))),
            "scaling: expected a kind that keeps sparse instances sparse, got 'minmax'; "
            'use "maxabs", which keeps zeros zero',
        ),
        (
            lambda: fitted("unit-norm").inverse_block(np.eye(2)),
            "scaling: expected a kind of scaling that can be undone, got 'unit-norm'; "
            "keep the instances as they were, or use another kind",
        ),
        (
            lambda: InstanceScaler("standard", [0.0, 1.0], [1.0]),
            "scaling: expected one centre and one scale a feature, got shapes (2,) and (1,); use fit",
        ),
        (
            lambda: InstanceScaler("standard", [0.0, 1.0], [1.0, 0.0]),
            "scaling: expected finite centres and positive, finite scales, got centre 1.0 and scale 0.0 for feature 1; "
            "look for enormous numbers there",
        ),
        (
            lambda: InstanceScaler("standard").fit(Bags([[1e200], [-1e200]], [0, 2])),
            "scaling: expected finite centres and positive, finite scales, got centre 0.0 and scale inf for feature 0; "
            "look for enormous numbers there",
        ),
        (
            lambda: InstanceScaler.from_dict({"kind": "none"}),
            "scaling: expected keys 'kind', 'center' and 'scale', got 'kind'; pass what to_dict returned",
        ),
    ],
)
def test_a_wrong_parameter_is_named(call, message):
    with pytest.raises(ParameterError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize("kind", KINDS)
def test_other_features_than_those_fitted_are_refused(kind):
    message = (
        "scaling: expected 2 features, as in fit, got shape (2, 3); choose the columns that the scaler was fitted on"
    )
    other = Bags(np.ones((2, 3)), [0, 2])
    for call in (lambda: fitted(kind).transform(other), lambda: fitted(kind).transform_block(other.instances)):
        with pytest.raises(InvalidBagsError) as caught:
            call()
        assert str(caught.value) == message


def test_a_flat_block_is_refused():
    with pytest.raises(InvalidBagsError) as caught:
        InstanceScaler("unit-norm").transform_block(np.ones(3))
    assert str(caught.value) == (
        "scaling: expected rows of features, got shape (3,); choose the columns that the scaler was fitted on"
    )


def test_auto_keeps_what_is_sparse_sparse():
    rows = np.array([[1.0, 0.0], [0.0, 4.0], [3.0, 0.0]])
    dense, sparse = Bags(rows, [0, 1, 3]), Bags(sp.csr_array(rows), [0, 1, 3])
    assert InstanceScaler("auto").fit(dense).kind == "standard"
    found = InstanceScaler("auto").fit(sparse)
    assert found.kind == "maxabs"
    assert found.transform(sparse).is_sparse
    assert InstanceScaler.from_dict(found.to_dict()).kind == "maxabs"
