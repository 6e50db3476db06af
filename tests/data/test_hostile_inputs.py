"""Inputs that used to pass in silence, or to fail without a sentence: each is refused, or read exactly."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from scipy.io import savemat

import baggraph as bg
from baggraph.data.readers import _sources
from baggraph.data.readers.npz import read_npz
from baggraph.data.readers.parquet import read_parquet
from baggraph.data.splits import grouped_folds, stratified_folds
from baggraph.errors import BagError, BagWarning, DataFileError, InvalidBagsError, closest

X = np.arange(6.0).reshape(3, 2)
LONG = 2**53 + 1  # the first integer that float64 rounds


def bags(instances=X, offsets=(0, 2, 3), y=None, **more):
    return bg.Bags(instances, list(offsets), y, **more)


SET = bags(y=["p", None], ids=["a", "b"], splits={"s": [0, 1]}, bag_info={"site": [1, 2]}, metadata={"n": [1]})


def refused(make, *words):
    with pytest.raises(BagError) as caught:
        make()
    for word in words:
        assert word in str(caught.value)


# ---------------------------------------------------------------------- labels and ids


@pytest.mark.parametrize("y", [{"a": 1, "b": 0}, {5, 3}, "pn", b"pn", 1])
def test_labels_without_an_order_are_no_labels(y):
    refused(lambda: bags(y=y), "a sequence of label", type(y).__name__)


@pytest.mark.parametrize("y", [[2**63, -1], [2**70, 1], [LONG, 0.5], [LONG, None], [[LONG, 1], [2, 3]]])
def test_labels_that_would_be_rounded_are_refused(y):
    refused(lambda: bags(y=y), str(y[0][0] if isinstance(y[0], list) else y[0]), "bag '0'")


@pytest.mark.parametrize(
    "y",
    [
        pd.array([LONG, None], dtype="Int64"),
        pd.DataFrame({"t": pd.array([LONG, 1], dtype="Int64"), "u": [0.5, None]}),
        np.array([[LONG, 1], [2, 3]], dtype=object),
    ],
)
def test_long_integers_of_pandas_are_refused_beside_gaps(y):
    refused(lambda: bags(y=y), str(LONG))


def test_integers_of_63_bits_are_exact():
    assert bags(y=[2**63 - 1, LONG]).y.tolist() == [2**63 - 1, LONG]
    assert bags(y=pd.array([LONG, 1], dtype="Int64")).y.tolist() == [LONG, 1]


def test_a_mask_means_missing():
    assert np.isnan(bags(y=np.ma.masked_array([1, 2], mask=[True, False])).y[0])
    assert bags(y=np.ma.masked_array(["p", "q"], mask=[True, False])).y.tolist() == [None, "q"]
    masked = np.ma.masked_array(X, mask=X == 4)
    refused(lambda: bags(masked), "NaN in bag '1', column 0")
    refused(lambda: bg.Bags.from_list([masked]), "NaN in bag '0', column 0")
    assert bags(masked, missing="impute").instances.tolist() == [[0, 1], [2, 3], [1, 5]]
    assert bags(np.ma.masked_array(X)).instances.tolist() == X.tolist()
    refused(lambda: bags(np.ma.masked_array([[LONG], [1], [1]], mask=[[0], [1], [0]])), str(LONG))


def test_labels_of_other_libraries_and_bytes():
    torch = pytest.importorskip("torch")
    assert bg.Bags(torch.tensor(X), torch.tensor([0, 2, 3]), torch.tensor([1, 0])).y.tolist() == [1, 0]
    assert bags(y=[b"p", b"q"]).y.tolist() == bags(y=np.array([b"p", b"q"])).y.tolist() == ["p", "q"]
    refused(lambda: bags(y=[b"\xff", b"q"]), "valid Unicode")


@pytest.mark.parametrize("y", [[pd.Timestamp("2020-01-01"), None], [1j, 2], [[1], [1, 2]], [[1j, 2], [3, 4]]])
def test_labels_of_no_known_kind(y):
    refused(lambda: bags(y=y), "label")


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize("kind", ["M8", "m8"])
def test_dates_are_no_ids(kind, unit):
    dates = np.array([1, 2], dtype=f"{kind}[{unit}]")
    refused(lambda: bags(ids=dates), "strings or integers")
    refused(lambda: bags(ids=list(dates)), "strings or integers")
    refused(lambda: bg.Bags.from_frame(pd.DataFrame({"bag": dates, "f": [1, 2]})), "strings or integers")


def test_undecodable_bytes_are_not_made_equal():
    refused(lambda: bags(ids=[b"\xff", b"\xfe"]), "valid Unicode")


# ---------------------------------------------------------------------- instances and attachments


def test_long_integers_are_refused_on_every_road():
    long = np.array([[LONG], [1], [2]])
    refused(lambda: bags(long, missing="impute"), str(LONG))
    refused(lambda: bg.Bags.from_list([long, np.array([[0.5]])], ids=["a", "b"]), str(LONG), "bag 'a'")
    refused(lambda: bg.Bags.from_list([sp.csr_array(long), sp.csr_array([[0.5]])]), str(LONG))
    real = bags(y=[0.5, 1], ids=["c", "d"])
    refused(lambda: bg.Bags.concat([bags(y=[LONG, 1]), real]), "beside real numbers")


def test_doubled_cells_are_added_up_before_gaps_are_filled():
    cells = sp.csr_array((np.array([np.nan, 3.0, 4.0]), np.array([0, 0, 0]), np.array([0, 2, 2, 3])), shape=(3, 1))
    assert bags(cells, missing="impute").instances.toarray().ravel().tolist() == [2.0, 0.0, 4.0]


def test_sparse_blocks_have_one_form():
    stored_zero = sp.csr_array((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 2, 2, 2])), shape=(3, 2))
    plain = sp.csr_array(np.array([[0.0, 1.0], [0, 0], [0, 0]]))
    assert bags(stored_zero) == bags(plain)
    beyond = sp.csr_array((np.array([1.0]), np.array([7]), np.array([0, 1, 1, 1])), shape=(3, 2))
    refused(lambda: bags(beyond), "a sparse matrix in order")


def test_ragged_rows_are_told():
    refused(lambda: bags([[1, 2], [3]]), "rows of one length")
    refused(lambda: bags(splits={"s": [[0], [0, 1]]}), "rows of one length")


def test_attachments_of_the_wrong_kind():
    refused(lambda: bags(splits={"s": [40_000, 1]}), "40000 for 's'")
    refused(lambda: bags(splits={"s": np.zeros((0, 2), int)}), "shape (0, 2)")
    refused(lambda: bags(splits=[[0, 1]]), "splits by name")
    refused(lambda: bags(bag_info=None), "bag_info by name")
    refused(lambda: bags(bag_info={1: [1, 2], "1": [3, 4]}), "unique names in bag_info")
    refused(lambda: bags(metadata={"x": float("nan")}), "JSON")  # NaN would make bags unequal to themselves


@pytest.mark.parametrize("key", [True, np.True_, 1.0, None, np.array(1), ..., {0}, b"a", (i for i in [0])])
def test_keys_that_choose_nothing(key):
    refused(lambda: SET[key], "positions, ids or a mask of 2 booleans")


def test_membership_is_that_of_ids():
    assert "a" in SET
    assert "c" not in SET
    assert 0 not in SET
    assert SET[0] not in SET


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
@pytest.mark.parametrize("whole", [SET, bags(sp.csr_array(X))])
def test_copies_are_equal_and_as_immutable(again, whole):
    twin = again(whole)
    assert twin == whole
    arrays = [twin.offsets, twin.ids, *twin.splits.values(), *twin.bag_info.values()]
    arrays += [twin.y] if twin.y is not None else []
    arrays += [twin.instances.data, twin.instances.indptr] if twin.is_sparse else [twin.instances]
    assert not any(array.flags.writeable for array in arrays)
    with pytest.raises(TypeError):
        twin.metadata["n"] = 2


def test_a_pickled_map_lies_in_memory(tmp_path):
    mapped = read_npz(SET.to_npz(tmp_path / "s.npz"), memory_map=True)
    twin = pickle.loads(pickle.dumps(mapped))
    assert (mapped.is_memory_mapped, twin.is_memory_mapped) == (True, False)
    assert twin == mapped == SET


def test_sets_that_do_not_fit_together():
    other = {"ids": ["c", "d"]}
    refused(lambda: bg.Bags.concat([bags(y=[[1.0], [2]]), bags(y=[1.0, 2], **other)]), "1 column and a vector")
    refused(lambda: bg.Bags.concat([bags(coords=X[:2]), bags(coords=np.eye(3)[:2], **other)]), "'coords'")
    two = bags(splits={"s": [[0, 1], [1, 0]]}, **other)
    refused(lambda: bg.Bags.concat([bags(splits={"s": [0, 1]}), two]), "'s' with as many columns")
    refused(lambda: bg.Bags.concat(SET), "a list of Bags")
    refused(lambda: bg.Bags.concat([SET, X]), "a list of Bags", "ndarray")


def test_bags_are_no_labels():
    refused(lambda: stratified_folds(SET), "pass the labels, as in bags.y")
    refused(lambda: stratified_folds(5), "one label a bag")
    refused(lambda: grouped_folds(SET), "one group a bag")


def test_capitals_do_not_hide_the_nearest_name():
    assert closest("MUSK1", ["musk1", "fox"]) == "did you mean 'musk1'?"
    assert closest("musk", ["Musk1", "fox"]) == "did you mean 'Musk1'?"


# ---------------------------------------------------------------------- tables

CSV = {
    "an index without a name": (",bag,f\n0,a,1\n", "a name for every column, got none for column 1"),
    "a column without a name": ("bag,f,\na,1,2\n", "a name for every column, got none for column 3"),
    "a name twice": ("bag,f,f\na,1,2\n", "'f' more than once"),
    "one long row": ("bag,f\na,1\nb,2,3\n", "Expected 2 fields in line 3, saw 3"),
    "long rows throughout": ("bag,f\na,1,9\nb,2,9\n", "more cells than columns in some row"),
    "a long first row": ("bag,f\na,1,9\nb,2\n", "more cells than columns in some row"),
    "a comma at the end of every row": ("bag,f\na,1,\nb,2,\n", "more cells than columns in some row"),
    "semicolons": ("bag;f\na;1,5\n", "commas between the columns of t.csv, got ';'"),
    "bags that differ in blanks": ("bag,f\na,1\na ,2\n", "'a', 'a ' in column 'bag'"),
    "classes that differ in blanks": ("bag,target,f\na,yes,1\nb,yes ,2\n", "'yes', 'yes ' in column 'target'"),
    "a target behind a blank": ("bag, target,f\na,1,2\n", "a column called 'target', got ' target'"),
    "a target in capitals": ("bag,TARGET,f\na,1,2\n", "a column called 'target', got 'TARGET'"),
    "an instance number in capitals": ("bag,Instance,f\na,1,2\n", "a column called 'instance', got 'Instance'"),
    "long integers beside a gap": (f"bag,f\na,{LONG}\nb,\n", "integers up to 2**53 beside missing values"),
    "long targets beside a gap": (f"bag,target,f\na,{LONG},1\nb,,2\n", "integers up to 2**53 beside missing values"),
    "targets beyond 64 bits": (f"bag,target,f\na,{10**30},1\nb,2,2\n", str(10**30)),
}


@pytest.mark.parametrize("case", CSV)
def test_a_csv_that_would_shift_leak_or_round(case, tmp_path):
    text, words = CSV[case]
    (tmp_path / "t.csv").write_text(text)
    refused(lambda: bg.read(tmp_path / "t.csv", missing="impute"), words)


def test_bytes_of_another_encoding_deep_in_a_csv(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"bag,f\na,1\nb,\xe9\n")
    with pytest.raises(DataFileError, match=r"t\.csv, got 'utf-8' codec"):
        bg.read(tmp_path / "t.csv")


def test_a_csv_as_windows_writes_it(tmp_path):
    path = tmp_path / "T.CSV"
    path.write_bytes('\ufeffbag,target,f\r\n"a\nb",1,0.5\r\nc,0,-1\r\n'.encode())
    back = bg.read(path)
    assert back.ids.tolist() == ["a\nb", "c"]
    assert back.y.tolist() == [1, 0]
    assert back.instances.tolist() == [[0.5], [-1.0]]


def test_unnamed_columns_do_not_matter_where_the_features_are_named(tmp_path):
    (tmp_path / "t.csv").write_text(",bag,f\n0,a,1\n")
    assert bg.read(tmp_path / "t.csv", features=["f"]).instances.tolist() == [[1.0]]


def test_real_numbers_beyond_53_bits_are_features(tmp_path):
    (tmp_path / "t.csv").write_text("bag,f\na,1e20\nb,0.5\nc,\n")
    assert bg.read(tmp_path / "t.csv", missing="impute").instances[:2].tolist() == [[1e20], [0.5]]


@pytest.mark.parametrize("limit", ["1GB", -1, 1.5])
def test_a_memory_limit_is_a_number_of_bytes(limit, tmp_path):
    (tmp_path / "t.csv").write_text("bag,f\na,1\n")
    refused(lambda: bg.read(tmp_path / "t.csv", memory_limit=limit), f"memory_limit={limit!r}")


def test_no_target_is_a_choice(tmp_path):
    (tmp_path / "t.csv").write_text("bag,target,f\na,1,2\n")
    refused(lambda: bg.read(tmp_path / "t.csv", target=[]), "a column called 'target'")
    assert bg.read(tmp_path / "t.csv", target=[], features=["f"]).y is None


def test_gaps_of_a_block_on_disk_are_not_filled(tmp_path):
    (tmp_path / "t.csv").write_text("bag,f\na,1\nb,\n")
    refused(lambda: bg.read(tmp_path / "t.csv", missing="impute", memory_limit=0), "raise memory_limit")


def test_suffixes_in_capitals(tmp_path):
    frame = pd.DataFrame({"bag": ["a"], "f": [1.5]})
    frame.to_parquet(tmp_path / "T.PARQUET")
    frame.to_csv(tmp_path / "T.TSV", sep="\t", index=False)
    assert bg.read(tmp_path / "T.PARQUET") == bg.read(tmp_path / "T.TSV")


def test_a_target_is_no_feature():
    frame = pd.DataFrame({"bag": ["a", "b"], "target": [1, 0], "f": [1, 2]})
    refused(lambda: bg.Bags.from_frame(frame, features=["f", "target"], target="target"), "as both")
    assert bg.Bags.from_frame(frame, features=["f", "target"]).y is None  # then it is a feature, and no target
    mixed = frame.assign(long=[LONG, 1], real=[0.5, 1.0])
    refused(lambda: bg.Bags.from_frame(mixed, target=["long", "real"]), str(LONG))


def test_what_is_no_table():
    refused(lambda: bg.Bags.from_frame({"bag": [1]}), "a DataFrame, got a dict")
    refused(lambda: bg.Bags.from_frame(pd.DataFrame({0: ["a"], "0": [1], "bag": ["a"]})), "'0' more than once")
    sparse = pd.DataFrame({"bag": ["a", "b"], "f": pd.arrays.SparseArray([0.0, 1.0])})
    refused(lambda: bg.Bags.from_frame(sparse), "sparse columns that leave out zeros, got nan in column 'f'")


# ---------------------------------------------------------------------- Parquet


@pytest.mark.parametrize("index", [None, "row", "bag"])
def test_the_index_of_pandas_is_no_feature_unless_it_is_a_column(index, tmp_path):
    frame = pd.DataFrame({"bag": ["a", "b", "a"], "target": [1, 0, 1], "f": [1.0, 2, 3]})
    kept = frame[frame["f"] > 1] if index is None else frame.set_index(index if index == "bag" else frame["bag"])
    kept.rename_axis(index).to_parquet(tmp_path / "t.parquet")
    back = bg.read(tmp_path / "t.parquet", features=["f"])
    assert back.feature_names.tolist() == ["f"]
    assert back.ids.tolist() == (["b", "a"] if index is None else ["a", "b"])
    if index is None:
        assert bg.read(tmp_path / "t.parquet") == back


@pytest.mark.parametrize("role", ["f", "target"])
def test_integers_with_gaps_are_exact_or_refused(role, tmp_path):
    def table(first):
        columns = {"f": pa.array([1, 2, 3]), "target": pa.array([0, 1, 1])}
        columns[role] = pa.array([first, None, 3])
        pq.write_table(pa.table({"bag": ["a", "b", "c"], **columns}), tmp_path / "t.parquet")
        return bg.read(tmp_path / "t.parquet", missing="impute")

    refused(lambda: table(LONG), str(LONG))
    back = table(5)
    assert (back.instances.ravel() if role == "f" else back.y)[0] == 5


def test_equal_names_in_parquet(tmp_path):
    columns = [pa.array(["a"]), pa.array([1]), pa.array([2])]
    pq.write_table(pa.Table.from_arrays(columns, names=["bag", "f", "f"]), tmp_path / "t.parquet")
    refused(lambda: bg.read(tmp_path / "t.parquet"), "'f' more than once")


def test_names_with_dots_stay_apart(tmp_path):
    names = ["f", "f.x", "bag.x", "graph_neighbors.x"]
    graph = bg.BagGraph.from_edges([("a", "b")], ["a", "b"])
    block = np.arange(12.0).reshape(3, 4)
    dotted = bags(block, ids=["a", "b"], feature_names=names, graph=graph, bag_info={"x": [1, 2]})
    assert bg.read(dotted.to_parquet(tmp_path / "t.parquet")) == dotted


def test_a_flipped_byte_is_never_read_as_other_bags(tmp_path):
    graph = bg.BagGraph.from_edges([("a", "b")], ["a", "b"])
    whole = SET.replace(graph=graph, instance_y=[0, 1, 1])
    for path, read in (
        (whole.to_npz(tmp_path / "s.npz"), read_npz),
        (whole.to_parquet(tmp_path / "s.parquet"), read_parquet),
    ):
        good = path.read_bytes()
        for position in range(0, len(good), 17):
            path.write_bytes(good[:position] + bytes([good[position] ^ 0x55]) + good[position + 1 :])
            try:
                assert read(path) == whole
            except BagError:
                continue


def test_a_parquet_is_let_go_of_while_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(_sources, "BATCH_BYTES", 1 << 20)
    columns = {f"f{i}": np.random.default_rng(i).random(200_000) for i in range(8)}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=8_000)
    before, held, rows = pa.total_allocated_bytes(), [], 0
    for batch in _sources.ParquetSource(tmp_path / "t.parquet").batches(list(columns)):
        held.append(pa.total_allocated_bytes() - before)
        rows += len(batch)
    assert rows == 200_000
    assert max(held) < (tmp_path / "t.parquet").stat().st_size / 3


def test_wide_tables_are_read_in_fewer_rows_at_a_time():
    assert _sources._rows(1) * 8 == _sources._rows(100_000) * 800_000 + _sources.BATCH_BYTES % 800_000
    assert _sources._rows(10**9) == 1


# ---------------------------------------------------------------------- other files


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 qid:a 1:2 1:3\n", "every index once a line"),
        ("1 qid:a 1_0:2\n", "'1_0:2' in line 1"),
        (f"1 qid:a {10**20}:2\n", "in line 1 (bag 'a')"),
        (b"1 qid:\xe9 1:2\n", "text in UTF-8"),
    ],
)
def test_svmlight_that_would_be_misread(text, words, tmp_path):
    (tmp_path / "t.svm").write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(lambda: bg.read(tmp_path / "t.svm"), words)


def test_svmlight_of_windows_with_missing_labels_and_rare_separators(tmp_path):
    (tmp_path / "t.svm").write_bytes("\ufeff1 qid:a\u2028b 1:2\r\nnan qid:c\t1:3\r\n".encode())
    back = bg.read(tmp_path / "t.svm")
    assert back.ids.tolist() == ["a\u2028b", "c"]
    assert back.y[0] == 1.0
    assert np.isnan(back.y[1])
    assert back.instances.toarray().tolist() == [[2.0], [3.0]]


NAMES = "0,1.\nnote: ignore.\nmolecule: a,b.\nf: continuous.\n"


def test_c45_of_windows_with_ignored_attributes_and_missing_classes(tmp_path):
    (tmp_path / "m.names").write_bytes(("\ufeff" + NAMES).encode())
    (tmp_path / "m.data").write_bytes("\ufeffx,a,1,1.\r\ny,a,2,1.\r\nz,b,3,?.\r\n".encode())
    back = bg.read(tmp_path / "m.data")
    assert back.ids.tolist() == ["a", "b"]
    assert back.y[0] == 1.0
    assert np.isnan(back.y[1])
    assert back.instance_names is None


@pytest.mark.parametrize("name", ["f", "class"])
def test_c45_names_that_stand_for_two_things(name, tmp_path):
    (tmp_path / "m.names").write_text(NAMES + f"{name}: continuous.\n")
    (tmp_path / "m.data").write_text("x,a,1,2,1.\n")
    refused(lambda: bg.read(tmp_path / "m.data"), "every attribute once", repr(name))


def test_matlab_labels_of_two_kinds_or_none(tmp_path):
    for labels, words in (
        ((1, "p"), "text among numbers: 'p'"),
        ((1, np.array([[{}]], dtype=object)), "a cell in row 2"),
    ):
        cell = np.empty((2, 2), dtype=object)
        cell[:, 0] = [X, X]
        cell[0, 1], cell[1, 1] = labels
        savemat(tmp_path / "t.mat", {"data": cell})
        refused(lambda: bg.read(tmp_path / "t.mat"), words)


@pytest.fixture
def slides(tmp_path) -> Path:
    folder = tmp_path / "slides"
    folder.mkdir()
    for name in ("s1.npy", "S2.NPY"):
        with (folder / name).open("wb") as file:
            np.save(file, X)
    (folder / "._s1.npy").write_bytes(b"left by a system")
    return folder


def test_files_of_other_systems(slides):
    assert bg.read(slides).ids.tolist() == ["S2", "s1"]


def test_an_empty_file_is_told_apart_from_an_unreadable_one(slides):
    np.save(slides / "s3.npy", X[:0])
    refused(
        lambda: bg.read(slides), "features: expected at least one instance in s3.npy, got none; leave empty bags out"
    )


def test_long_integers_in_one_of_many_files(slides):
    np.save(slides / "s3.npy", np.array([[LONG, 1]]))
    refused(lambda: bg.read(slides), str(LONG), "s3.npy")


def test_labels_keep_their_kind_where_some_are_missing(slides, tmp_path):
    def read(columns, **options):
        return bg.read(slides, labels=pd.DataFrame({"bag": ["s1"], **columns}), **options).y

    refused(lambda: read({"target": [LONG]}), str(LONG))
    assert read({"t": [1], "u": [2.5]}, target=["t", "u"])[1].tolist() == [1.0, 2.5]
    (tmp_path / "l.tsv").write_text("bag\ttarget\ns1\tp\n")
    assert bg.read(slides, labels=tmp_path / "l.tsv").y.tolist() == [None, "p"]
    pd.DataFrame({"bag": ["s1"], "target": [True]}).to_parquet(tmp_path / "l.parquet")
    assert bg.read(slides, labels=tmp_path / "l.parquet").y[1] == 1.0


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (
            pd.DataFrame({"bag": ["s1", None], "target": [1, 0]}),
            "in every row of the table of labels, got none in row 1",
        ),
        (pd.DataFrame([["s1", 1, 2]], columns=["bag", "target", "target"]), "'target' more than once"),
        (pd.DataFrame({"bag": [], "target": []}), "got none there"),
        ("", "No columns to parse"),
        ("bag;target\ns1;1\n", "commas between the columns"),
    ],
)
def test_tables_of_labels_that_do_not_fit(labels, words, slides, tmp_path):
    if isinstance(labels, str):
        (tmp_path / "l.csv").write_text(labels)
        labels = tmp_path / "l.csv"
    refused(lambda: bg.read(slides, labels=labels), words)


def test_coordinates_in_some_files_only_are_missed_aloud(tmp_path):
    for name in ("s1", "s2"):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["features"] = X
            if name == "s1":
                file["coords"] = X
    with pytest.warns(BagWarning, match=r"left out 'coords': 1 of 2 files have none: 's2\.h5'"):
        assert not bg.read(tmp_path).instance_info


def test_a_group_is_no_data_set(tmp_path):
    with h5py.File(tmp_path / "s1.h5", "w") as file:
        file["features/deep"] = X
    refused(lambda: bg.read(tmp_path), "'features' in s1.h5, got a group")
    assert bg.read(tmp_path, features="features/deep").ids.tolist() == ["s1"]


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    refused(lambda: SET.to_npz(tmp_path), "the name of a file")

    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkstemp", full)
    refused(lambda: SET.to_npz(tmp_path / "s.npz"), "a folder to write to", "No space left on device")


def test_errors_of_bags_stay_what_they_are():
    with pytest.raises(InvalidBagsError):
        bags(y=[LONG, None])
