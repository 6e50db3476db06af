"""Laws of Bags: immutable, choosing by place, id and mask, changing, converting, showing."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings

import baggraph as bg
from baggraph.data._columns import canonical_column
from baggraph.data.graph import BagGraph
from baggraph.errors import BagError, InvalidBagsError, closest, name_some
from baggraph.testing import strategies

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
X = np.arange(12.0, dtype=np.float32).reshape(6, 2)


@pytest.fixture
def bags():
    return bg.Bags(
        X,
        [0, 1, 3, 6],
        ["yes", None, "no"],
        ids=["a", "b", "c"],
        feature_names=["f", "g"],
        instance_names=list("uvwxyz"),
        instance_y=[1, 0, 1, 0, 0, 0],
        coords=[[0, 0], [1, 0], [0, 1]],
        graph=BagGraph.from_edges([("a", "b", 2.0), ("b", "c")], ["a", "b", "c"]),
        splits={"p": [[0, 1, -1]]},
        bag_info={"site": ["s1", "s2", "s1"]},
        instance_info={"weight": range(6), "place": X},
        metadata={"name": "three", "numbers": (1, 2)},
    )


@QUICK
@given(bags=strategies.bags())
def test_nothing_can_be_written_to(bags):
    arrays = [bags.offsets, bags.ids, bags.sizes, bags.y, bags.instance_y, bags.coords]
    arrays += [bags.instances.data] if bags.is_sparse else [bags.instances]
    arrays += [*bags.splits.values(), *bags.bag_info.values(), *bags.instance_info.values()]
    chosen = bags[:1]
    arrays += [chosen.offsets, chosen.instances.data if chosen.is_sparse else chosen.instances]
    assert not any(a.flags.writeable for a in arrays if a is not None)
    with pytest.raises(AttributeError):
        bags.y = None
    with pytest.raises(TypeError):
        bags.metadata["name"] = "other"


def test_what_the_user_does_to_his_array_does_not_reach_the_bags():
    mine = X.copy()
    bags = bg.Bags(mine, [0, 6])
    mine[:] = -1
    np.testing.assert_array_equal(bags.instances, X)


def test_a_read_only_block_and_a_memory_map_are_not_copied(tmp_path):
    mine = X.copy()
    mine.setflags(write=False)
    assert np.shares_memory(bg.Bags(mine, [0, 6]).instances, mine)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    bags = bg.Bags(mapped, [0, 6])
    assert bags.is_memory_mapped
    assert np.shares_memory(bags.instances, mapped)
    assert "memory-mapped" in repr(bags)
    assert bags.replace(y=[1]).is_memory_mapped


@pytest.mark.parametrize(
    ("given_type", "kept"),
    [
        *[(t, "float32") for t in ("bool", "int8", "int16", "uint16", "float16", "float32", ">f4")],
        *[(t, "float64") for t in ("int32", "int64", "uint64", "float64", ">f8")],
    ],
)
def test_numbers_become_the_float_that_holds_them(given_type, kept):
    assert bg.Bags(X.astype(given_type), [0, 6]).instances.dtype == kept


def test_integers_that_a_float_would_round_are_refused():
    assert bg.Bags(np.array([[2**53]]), [0, 1]).instances[0, 0] == 2**53
    for block in (np.array([[2**53 + 1]]), sp.csr_array(np.array([[-(2**53) - 1]]))):
        with pytest.raises(InvalidBagsError, match="leave out columns of identifiers"):
            bg.Bags(block, [0, 1])
    assert canonical_column([2**60, 1], "label", 2, str).tolist() == [2**60, 1]
    with pytest.raises(InvalidBagsError, match=r"up to 2\*\*53 where others are missing"):
        canonical_column([2**60, None], "label", 2, str)


def test_choosing(bags):
    assert bags[1].id == "b"
    assert bags[-1].id == bags["c"].id == "c"
    assert bags[1].y is None
    np.testing.assert_array_equal(np.asarray(bags[1]), X[1:3])
    np.testing.assert_array_equal(np.array(bags[1], dtype=np.float64), X[1:3])
    assert bags["b"].instance_names.tolist() == ["v", "w"]
    assert bags[1:].ids.tolist() == ["b", "c"]
    assert bags[::-1].ids.tolist() == ["c", "b", "a"]
    assert bags[[True, False, True]] == bags.take([0, 2]) == bags[["a", "c"]] == bags.take([-3, -1])
    assert [bag.id for bag in bags] == ["a", "b", "c"]
    assert [len(a) for a in bags.to_list()] == bags.sizes.tolist()


def test_attachments_follow_their_bags(bags):
    some = bags.take(["c", "a"])
    assert some.y.tolist() == ["no", "yes"]
    assert some.instance_names.tolist() == list("xyzu")
    assert some.instance_y.tolist() == [0, 0, 0, 1]
    assert some.coords.tolist() == [[0, 1], [0, 0]]
    assert some.graph.ids.tolist() == ["c", "a"]
    assert some.graph.n_edges == 0
    assert some.splits["p"].tolist() == [[-1, 0]]
    assert some.bag_info["site"].tolist() == ["s1", "s1"]
    assert some.instance_info["weight"].tolist() == [3, 4, 5, 0]
    assert some.instance_info["place"].shape == (4, 2)
    assert some.feature_names.tolist() == ["f", "g"]


@pytest.mark.parametrize(
    ("key", "error"),
    [
        *[(key, IndexError) for key in (3, -4, [5])],
        *[(key, InvalidBagsError) for key in ([], [0, 0], ["a", "nope"], slice(2, 2), [0.5])],
    ],
)
def test_what_cannot_be_chosen(bags, key, error):
    with pytest.raises(error):
        bags[key]


def test_labelled(bags):
    assert bags.labelled.tolist() == [True, False, True]
    assert bags.replace(y=None).labelled.tolist() == [False] * 3
    assert bags.replace(y=[[1, 2], [np.nan, 1], [3, 4]]).labelled.tolist() == [True, False, True]
    assert bags.replace(y=[True, False, True]).labelled.all()


@pytest.mark.parametrize(
    ("values", "dtype", "kept"),
    [
        ([True, False], "bool", [True, False]),
        ([True, None], "float64", [1.0, np.nan]),
        ([1, 2], "int64", [1, 2]),
        ([1, None], "float64", [1.0, np.nan]),
        ([1.5, np.nan], "float64", [1.5, np.nan]),
        (["a", np.nan], "object", ["a", None]),
        ([None, None], "object", [None, None]),
        (np.array([np.nan, np.nan]), "float64", [np.nan, np.nan]),
        (pd.array([1, None], dtype="Int64"), "float64", [1.0, np.nan]),
        (pd.Series(["a", "b"], dtype="category"), "object", ["a", "b"]),
        (pd.Series([pd.NaT, "a"], dtype=object), "object", [None, "a"]),
        (np.array([[1, None], [2, 3]], dtype=object), "float64", [[1.0, np.nan], [2.0, 3.0]]),
        ([[1, 2], [3, 4]], "float64", [[1.0, 2.0], [3.0, 4.0]]),
        (np.array([1, 2], dtype=np.uint8), "int64", [1, 2]),
    ],
)
def test_labels_have_one_canonical_form(values, dtype, kept):
    column = canonical_column(values, "label", 2, str)
    assert str(column.dtype) == dtype
    pd.testing.assert_frame_equal(pd.DataFrame(column), pd.DataFrame(np.array(kept, dtype=dtype)))
    again = canonical_column(column, "label", 2, str)
    assert again.dtype == column.dtype


@pytest.mark.parametrize(
    "values",
    [
        np.array([2**63, 1], dtype=np.uint64),
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
        [1, {"a": 1}],
        np.array([["a", 1], [2, 3]], dtype=object),
        np.zeros((2, 0)),
        ["a", "\ud800"],
    ],
)
def test_labels_that_are_none(values):
    with pytest.raises(InvalidBagsError):
        canonical_column(values, "label", 2, str)


def test_ids_are_text_of_integers_bytes_and_text():
    assert bg.Bags(X, [0, 3, 6], ids=np.array([7, 8])).ids.tolist() == ["7", "8"]
    assert bg.Bags(X, [0, 3, 6], ids=[b"a", "b\x00"]).ids.tolist() == ["a", "b\x00"]
    for broken in (["a", ""], [True, False], ["a", "\ud800"], [["a"], ["b"]]):
        with pytest.raises(InvalidBagsError):
            bg.Bags(X, [0, 3, 6], ids=broken)


def test_replace_shares_the_instances_and_checks_the_rest(bags):
    other = bags.replace(y=[1, 2, 3], graph=None)
    assert other.instances is bags.instances
    assert other.y.tolist() == [1, 2, 3]
    assert bags.replace(instances=X + 1).instances[0, 0] == 1
    with pytest.raises(InvalidBagsError, match="graph"):
        bags.replace(ids=["x", "y", "z"])
    with pytest.raises(InvalidBagsError, match="another order"):
        bags.replace(graph=bags.graph.take([1, 0, 2]))
    with pytest.raises(InvalidBagsError, match="coordinates"):
        bags.replace(coords=[1, 2, 3])


def test_impute_fills_the_median_and_says_so():
    block = np.array([[1.0, np.nan], [np.nan, 4.0], [3.0, 6.0]])
    for raw in (block, sp.csr_array(block)):
        bags = bg.Bags(raw, [0, 3], missing="impute")
        np.testing.assert_array_equal(np.asarray(bags[0]), [[1, 5], [2, 4], [3, 6]])
        assert bags.metadata["imputed_cells"] == 2
    assert "imputed_cells" not in bg.Bags(X, [0, 6], missing="impute").metadata


def test_impute_counts_the_zeros_of_a_sparse_column():
    block = sp.csr_array(np.array([[np.nan], [0.0], [0.0], [9.0]]))
    assert bg.Bags(block, [0, 4], missing="impute").instances.toarray().ravel().tolist() == [0, 0, 0, 9]


def test_a_memory_map_is_not_imputed(tmp_path):
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(InvalidBagsError, match="memory map"):
        bg.Bags(np.load(tmp_path / "x.npy", mmap_mode="r"), [0, 6], missing="impute")


def test_concat_refuses_to_lose_anything(bags):
    plain = bg.Bags(X, [0, 6], ids=["z"])
    for left, right in ((bags, plain), (plain, bg.Bags(X[:, :1], [0, 6])), (plain, bg.Bags(sp.csr_array(X), [0, 6]))):
        with pytest.raises(InvalidBagsError):
            bg.Bags.concat([left, right])
    with pytest.raises(InvalidBagsError, match="more than once"):
        bg.Bags.concat([plain, plain])
    with pytest.raises(InvalidBagsError, match="features"):
        bg.Bags.concat([plain.replace(feature_names=["f", "g"]), plain.replace(feature_names=["g", "f"], ids=["y"])])
    with pytest.raises(InvalidBagsError, match="bag_info"):
        bg.Bags.concat([plain, plain.replace(ids=["y"], bag_info={"site": ["s"]})])
    with pytest.raises(InvalidBagsError, match="one kind"):
        bg.Bags.concat([plain.replace(y=["a"]), plain.replace(y=[1], ids=["y"])])
    with pytest.raises(InvalidBagsError, match="at least one set"):
        bg.Bags.concat([])


def test_concat_joins_graphs_side_by_side(bags):
    two = bg.Bags.concat([bags, bags.replace(graph=None, ids=["d", "e", "f"]).replace(graph=renamed(bags.graph))])
    assert two.graph.n_edges == 4
    assert two.graph.adjacency[2, 3] == 0
    assert two.metadata == bags.metadata


def renamed(graph):
    return BagGraph(graph.adjacency, ["d", "e", "f"])


def test_equality_looks_at_everything(bags):
    assert bags == bags.take([0, 1, 2])
    for change in (
        {"y": ["yes", None, "yes"]},
        {"metadata": {}},
        {"graph": None},
        {"splits": {}},
        {"bag_info": {"site": ["s1", "s2", "s2"]}},
        {"coords": None},
        {"instances": X.astype(np.float64)},
    ):
        assert bags != bags.replace(**change)
    assert bags != "bags"
    with pytest.raises(TypeError):
        hash(bags)


def test_to_torch_makes_codes_of_text_and_shares_on_request(bags):
    tensors = bags.to_torch()
    assert tensors.y.tolist() == [1, -1, 0]
    assert tensors.classes == ("no", "yes")
    assert tensors.offsets.tolist() == [0, 1, 3, 6]
    shared = bags.to_torch(copy=False).instances
    assert shared.data_ptr() == bags.instances.ctypes.data
    assert bags.replace(y=None).to_torch().y is None
    sparse = bg.Bags(sp.csr_array(X), [0, 6], [0.5]).to_torch()
    np.testing.assert_array_equal(sparse.instances.to_dense().numpy(), X)
    assert sparse.classes is None


def test_to_pyg_makes_one_data_a_bag(bags):
    pytest.importorskip("torch_geometric", reason="needs torch-geometric")
    data = bags.to_pyg()
    assert [d.num_nodes for d in data] == [1, 2, 3]
    assert data[2].bag_id == "c"
    assert data[0].y.tolist() == [1]
    assert "y" not in bg.Bags(sp.csr_array(X), [0, 6]).to_pyg()[0]


def test_to_frame_refuses_a_feature_called_like_its_own_columns(bags):
    assert bags.to_frame().columns.tolist() == ["bag", "target", "instance", "f", "g"]
    with pytest.raises(InvalidBagsError, match="'bag'"):
        bags.replace(feature_names=["bag", "g"]).to_frame()


def test_the_repr_says_what_a_person_wants_to_know(bags):
    assert repr(bags).splitlines() == [
        "Bags three: 3 bags, 6 instances, 2 features (float32, dense, 48 bytes)",
        "  sizes   1 to 3, median 2",
        "  labels  no ×1, yes ×1; 1 missing",
        "  inside  0 ×4, 1 ×2 (labels of instances)",
        "  graph   3 bags, 2 edges, mean degree 1.3, 1 component, 0 isolates",
        "  coords  2 a bag",
        "  splits  p (1 repeat)",
        "  of bags site",
        "  of rows weight, place",
    ]


@pytest.mark.parametrize(
    ("y", "line"),
    [
        (None, "none"),
        ([None] * 3, "all 3 missing"),
        ([1.5, 2.5, 3.5], "1.5 to 3.5, mean 2.5"),
        ([[1, 2], [3, 4], [5, 6]], "2 targets (1 to 5, 2 to 6)"),
        ([0.0, 1.0, np.nan], "0 ×1, 1 ×1; 1 missing"),
    ],
)
def test_how_labels_are_described(bags, y, line):
    assert f"  labels  {line}\n" in repr(bags.replace(y=y))


def test_many_classes_are_counted_not_listed():
    many = bg.Bags(np.zeros((12, 1)), range(13), [f"c{i}" for i in range(12)])
    assert "  labels  12 classes (1 to 1 bags each)" in repr(many)


# ---------------------------------------------------------------------- errors


def test_errors_cross_processes_whole():
    import pickle

    error = InvalidBagsError("bags", expected="a", got="b", remedy="c")
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, ValueError)
    assert isinstance(again, BagError)
    assert (str(again), again.remedy) == ("bags: expected a, got b; c", "c")


def test_help_with_names():
    assert closest("tigre", ["tiger", "fox"]) == "did you mean 'tiger'?"
    assert closest("x", map(str, range(100, 140))).endswith("and 10 more")
    assert name_some(np.array([1, 2])) == "1, 2"


def test_metadata_is_json(bags):
    assert json.loads(json.dumps(dict(bags.metadata))) == {"name": "three", "numbers": [1, 2]}
