"""Readers of files that others wrote; the real files are compared where they are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.io import savemat

import baggraph as bg
from baggraph.data.readers import _sources, npz, parquet, table, write
from baggraph.data.readers.c45 import read_c45
from baggraph.data.readers.features import read_features
from baggraph.data.readers.matlab import read_matlab
from baggraph.data.readers.svmlight import read_svmlight
from baggraph.errors import BagWarning, DataFileError, InvalidBagsError

TABLE = pd.DataFrame(
    {
        "slide": ["b", "a", "b", "a", "c"],
        "stage": ["II", "I", "II", "I", None],
        "tile": ["t1", "t2", "t3", "t4", "t5"],
        "lon": [1.0, 0.0, 1.0, 0.0, 2.0],
        "lat": [5.0, 6.0, 5.0, 6.0, 7.0],
        "f1": np.float32([1, 2, 3, 4, 5]),
        "f2": np.float32([6, 7, 8, 9, 10]),
    }
)
ROLES = {"bag": "slide", "target": "stage", "instance": "tile", "coords": ["lon", "lat"]}


@pytest.fixture
def data():
    folder = os.environ.get("BAGGRAPH_DATA")
    if not folder or not (Path(folder) / "mil_benchmark/raw").is_dir():
        pytest.skip("BAGGRAPH_DATA names no folder with mil_benchmark/raw")
    return Path(folder)


# ---------------------------------------------------------------------- tables


def check_table(bags):
    assert bags.ids.tolist() == ["b", "a", "c"]
    assert bags.y.tolist() == ["II", "I", None]
    assert bags.instance_names.tolist() == ["t1", "t3", "t2", "t4", "t5"]
    assert bags.coords.tolist() == [[1, 5], [0, 6], [2, 7]]
    assert bags.feature_names.tolist() == ["f1", "f2"]
    np.testing.assert_array_equal(np.asarray(bags["a"]), [[2, 7], [4, 9]])


def test_rows_of_a_bag_need_not_be_neighbours():
    bags = bg.Bags.from_frame(TABLE, **ROLES)
    check_table(bags)
    assert bags.instances.dtype == np.float32


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("rows", [2, 100])
def test_tables_of_every_kind_in_parts_of_any_size(tmp_path, monkeypatch, suffix, rows):
    path = tmp_path / f"table{suffix}"
    if suffix == ".parquet":
        TABLE.to_parquet(path)
    else:
        TABLE.to_csv(path, index=False, sep="\t" if "tsv" in suffix else ",")
    monkeypatch.setattr(_sources, "_rows", lambda n_columns: rows)
    check_table(bg.read(path, **ROLES))


def test_a_table_above_the_limit_is_memory_mapped_and_equal(tmp_path):
    TABLE.to_parquet(tmp_path / "t.parquet")
    mapped = bg.read(tmp_path / "t.parquet", memory_limit=8, **ROLES)
    assert mapped.is_memory_mapped
    assert mapped == bg.read(tmp_path / "t.parquet", **ROLES)
    assert mapped.take(["c", "a"]) == bg.read(tmp_path / "t.parquet", **ROLES).take(["c", "a"])


def test_names_in_a_csv_stay_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("bag,instance,f\n01001,007,1\n01001,008,2\nNA,009,3\n")
    bags = bg.read(path, instance="instance")
    assert bags.ids.tolist() == ["01001", "NA"]
    assert bags.instance_names.tolist() == ["007", "008", "009"]


def test_floats_of_a_csv_come_back_exactly(tmp_path):
    values = np.random.default_rng(0).random(500) * 10.0 ** np.arange(-250, 250)
    pd.DataFrame({"bag": "a", "f": values}).to_csv(tmp_path / "t.csv", index=False)
    np.testing.assert_array_equal(bg.read(tmp_path / "t.csv").instances.ravel(), values)


def test_a_later_part_may_need_float64(tmp_path, monkeypatch):
    monkeypatch.setattr(_sources, "_rows", lambda n_columns: 2)
    frame = pd.DataFrame({"bag": ["a", "a", "b"], "f": [True, False, True], "g": [True, True, False]})
    (tmp_path / "t.csv").write_text("bag,f\na,True\na,False\nb,0.1\n")
    assert bg.read(tmp_path / "t.csv").instances.ravel().tolist() == [1.0, 0.0, 0.1]
    assert bg.Bags.from_frame(frame).instances.dtype == np.float32


def test_missing_features_are_imputed_on_request(tmp_path):
    (tmp_path / "t.csv").write_text("bag,f\na,1\na,NA\nb,3\n")
    with pytest.raises(InvalidBagsError, match=r"NaN in bag 'a', column 'f'"):
        bg.read(tmp_path / "t.csv")
    assert bg.read(tmp_path / "t.csv", missing="impute").instances.ravel().tolist() == [1, 2, 3]


def test_a_label_does_not_become_a_feature_because_nobody_named_it(tmp_path):
    frame = pd.DataFrame({"bag": ["a", "b"], "target": [1, 0], "instance": ["01", "02"], "f": [0.5, 1.5]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for bags in (bg.Bags.from_frame(frame), bg.read(tmp_path / "t.csv")):
        assert bags.y.tolist() == [1, 0]
        assert bags.instance_names.tolist() == ["01", "02"]
        assert bags.feature_names.tolist() == ["f"]
    asked = bg.Bags.from_frame(frame, features=["target", "f"])
    assert asked.y is None
    assert asked.n_features == 2


def test_a_column_of_long_identifiers_is_no_feature():
    for kind in ("int64", "Int64"):
        with pytest.raises(
            InvalidBagsError, match=r"integers up to 2\*\*53 as features, got 9007199254740993 in column 'key'"
        ):
            bg.Bags.from_frame(pd.DataFrame({"bag": ["a"], "key": pd.array([2**53 + 1], dtype=kind)}))


def test_several_targets_and_information_beside():
    frame = TABLE.drop(columns="tile").assign(site=["x", "y", "x", "y", "z"], hit=[0, 1, 0, 0, 0])
    bags = bg.Bags.from_frame(
        frame, bag="slide", target=["lon", "lat"], bag_info=["site", "stage"], instance_y="hit", features=["f1"]
    )
    assert bags.y.tolist() == [[1, 5], [0, 6], [2, 7]]
    assert bags.bag_info["site"].tolist() == ["x", "y", "z"]
    assert bags.instance_y.tolist() == [0, 0, 1, 0, 0]
    assert bags.n_features == 1


def test_tables_that_cannot_be_read(tmp_path):
    with pytest.raises(DataFileError, match="none at"):
        table.read_table(tmp_path / "nothing.csv")
    with pytest.raises(DataFileError, match="none at"):
        bg.read(tmp_path / "nothing.csv")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataFileError, match="No columns to parse"):
        bg.read(tmp_path / "empty.csv")
    with pytest.raises(InvalidBagsError, match="'f' more than once"):
        bg.Bags.from_frame(pd.DataFrame([["a", 1, 2]], columns=["bag", "f", "f"]))
    with pytest.raises(InvalidBagsError, match="at least one column of features"):
        bg.Bags.from_frame(pd.DataFrame({"bag": ["a"]}))
    with pytest.raises(InvalidBagsError, match=r"Timestamp.* in column 'when'"):
        bg.Bags.from_frame(pd.DataFrame({"bag": ["a"], "when": pd.to_datetime(["2020-01-01"])}))


def test_sparse_frames_stay_sparse_when_bags_are_torn_apart():
    bags = bg.Bags(sp.csr_array(np.diag([1.0, 2.0, 3.0, 4.0])), [0, 2, 4], ids=["a", "b"])
    frame = bags.to_frame().iloc[[0, 2, 1, 3]].reset_index(drop=True)
    again = bg.Bags.from_frame(frame)
    assert again.is_sparse
    assert again.replace(feature_names=None) == bags


# ---------------------------------------------------------------------- our own files


def test_our_files_say_what_is_wrong_with_them(tmp_path):
    bags = bg.Bags.from_frame(TABLE, **ROLES)
    TABLE.to_parquet(tmp_path / "other.parquet")
    with pytest.raises(DataFileError, match="written by baggraph, got another table"):
        parquet.read_parquet(tmp_path / "other.parquet")
    np.savez(tmp_path / "other.npz", X=np.eye(2))
    with pytest.raises(DataFileError, match=r"another .npz with X.npy"):
        npz.read_npz(tmp_path / "other.npz")
    with pytest.raises(DataFileError, match="existing folder"):
        bags.to_npz(tmp_path / "no" / "where.npz")
    with pytest.raises(DataFileError, match=r"ends in .parquet or .npz"):
        write(bags, tmp_path / "bags.xls")
    assert bg.read(write(bags, tmp_path / "a.npz")) == bags == bg.read(write(bags, tmp_path / "a.parquet"))


@pytest.mark.parametrize("module", [npz, parquet])
def test_a_file_of_a_newer_layout_is_refused(tmp_path, monkeypatch, module):
    bags = bg.Bags.from_frame(TABLE, **ROLES)
    monkeypatch.setattr(module, "VERSION", 99)
    path = write(bags, tmp_path / f"b.{module.__name__.rpartition('.')[2]}")
    monkeypatch.setattr(module, "VERSION", 1)
    with pytest.raises(DataFileError, match="99"):
        bg.read(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_file_is_never_read_as_something_else(tmp_path, share):
    bags = bg.Bags.from_frame(TABLE, **ROLES)
    for path in (bags.to_npz(tmp_path / "b.npz"), bags.to_parquet(tmp_path / "b.parquet")):
        raw = path.read_bytes()
        path.write_bytes(raw[: int(len(raw) * share)])
        with pytest.raises(DataFileError):
            bg.read(path)


def test_an_altered_npz_in_memory_is_noticed(tmp_path):
    bags = bg.Bags(np.ones((50, 50)), [0, 50])
    path = bags.to_npz(tmp_path / "b.npz")
    raw = bytearray(path.read_bytes())
    raw[raw.find(np.ones(4).tobytes())] ^= 1
    path.write_bytes(raw)
    with pytest.raises(DataFileError, match="CRC"):
        bg.read(path)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    old = bg.Bags(np.ones((2, 2)), [0, 2])
    path = old.to_npz(tmp_path / "b.npz")
    monkeypatch.setattr(npz, "_write_column", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        bg.Bags(np.zeros((2, 2)), [0, 2]).to_npz(path)
    assert bg.read(path) == old
    assert [p.name for p in tmp_path.iterdir()] == ["b.npz"]


def test_numpy_alone_opens_our_npz(tmp_path):
    path = bg.Bags.from_frame(TABLE, **ROLES).to_npz(tmp_path / "b.npz")
    with np.load(path, allow_pickle=False) as content:
        assert content["instances"].shape == (5, 2)
        assert content["offsets"].tolist() == [0, 2, 4, 5]


# ---------------------------------------------------------------------- MATLAB


def prtools(labels, bag_names, **more):
    ident = np.zeros((1, 1), dtype=[("milbag", object)])
    ident[0, 0]["milbag"] = bag_names
    return {
        "data": np.arange(len(labels) * 2.0).reshape(-1, 2),
        "nlab": np.array(labels)[:, None],
        "lablist": np.array(["negative", "positive"], dtype=object),
        "ident": ident,
        **more,
    }


def object_array(*entries):
    array = np.empty(len(entries), dtype=object)
    array[:] = [np.array(entry, dtype=object) if isinstance(entry, list) else entry for entry in entries]
    return array


def test_prtools_keeps_the_order_of_the_file_and_strips_blanks(tmp_path):
    savemat(tmp_path / "s.mat", {"x": prtools([2, 2, 1], np.array(["z1  ", "z1  ", "a2  "]))})
    bags = bg.read(tmp_path / "s.mat")
    assert bags.ids.tolist() == ["z1", "a2"]
    assert bags.y.tolist() == ["positive", "negative"]
    assert bags.instance_y is None


def test_prtools_labels_of_instances_combine_by_presence(tmp_path):
    savemat(tmp_path / "s.mat", {"x": prtools([1, 2, 1, 1], np.array([10, 10, 9, 10]))})
    bags = read_matlab(tmp_path / "s.mat")
    assert bags.ids.tolist() == ["10", "9"]
    assert bags.y.tolist() == ["positive", "negative"]
    assert bags.instance_y.tolist() == ["negative", "positive", "negative", "negative"]
    np.testing.assert_array_equal(bags.instances[:, 0], [0, 2, 6, 4])


def test_prtools_reads_sparse_data_and_unlabelled_bags(tmp_path):
    savemat(tmp_path / "s.mat", {"x": prtools([0, 1], np.array([1, 2]), data=sp.csc_matrix(np.eye(2)))})
    bags = read_matlab(tmp_path / "s.mat")
    assert bags.is_sparse
    assert bags.y.tolist() == [None, "negative"]


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (prtools([1, 2], np.array([1, 2, 3])), "3 bag names for 2 instances"),
        (prtools([1, 3], np.array([1, 2])), "labels 1 to 2 in s.mat, got 1 to 3"),
        (prtools([1], np.array([1]), lablist=np.zeros((0, 0))), "names of the classes"),
        (prtools([1], np.array([1]), ident=np.zeros(1)), "bag names in ident.milbag"),
        (prtools([1, 1], np.array([1.5, 1.25])), "text or whole numbers in ident.milbag in s.mat, got other values"),
        (prtools([1, 1], object_array("a", ["b", "c"])), "one bag name an instance in ident.milbag in s.mat, got 2"),
        (
            prtools([1, 3], np.array([1, 1]), lablist=np.array(["a", "b", "c"], dtype=object)),
            "labels a and c in bag '1'",
        ),
    ],
)
def test_prtools_errors(tmp_path, record, text):
    savemat(tmp_path / "s.mat", {"x": record})
    with pytest.raises((DataFileError, InvalidBagsError), match=text):
        read_matlab(tmp_path / "s.mat")


def cells(*rows):
    array = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        array[i] = [np.asarray(entry) if not sp.issparse(entry) else entry for entry in row]
    return {"data": array}


def test_cells_tell_instance_labels_from_affinities(tmp_path):
    block = np.eye(3)
    savemat(tmp_path / "l.mat", cells((block, 1, [[0], [1], [0]]), (block[:1], 0, [[0]])))
    savemat(tmp_path / "a.mat", cells((block, 1, np.ones((3, 3))), (block[:2], 0, np.ones((2, 2)))))
    savemat(tmp_path / "s.mat", cells((sp.csc_matrix(block), 1.5), (sp.csc_matrix(block), 2)))
    savemat(tmp_path / "f.mat", cells((block, 1, [[0.5], [1], [0]]), (block[:1], 0, [[0]])))
    labelled, affine, sparse, soft = (read_matlab(tmp_path / f"{n}.mat") for n in "lasf")
    assert labelled.y.tolist() == [1, 0]
    assert labelled.instance_y.tolist() == [0, 1, 0, 0]
    assert affine.instance_y is None
    assert sparse.is_sparse
    assert sparse.y.tolist() == [1.5, 2.0]
    assert soft.instance_y.tolist() == [0.5, 1.0, 0.0, 0.0]


def test_matlab_files_that_cannot_be_read(tmp_path):
    with h5py.File(tmp_path / "new.mat", "w", userblock_size=512) as file:
        file["x"] = 1
    raw = bytearray((tmp_path / "new.mat").read_bytes())
    raw[:128] = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    (tmp_path / "new.mat").write_bytes(raw)
    with pytest.raises(DataFileError, match=r"version 7.3 in new.mat; save it again in MATLAB"):
        read_matlab(tmp_path / "new.mat")
    (tmp_path / "bad.mat").write_bytes(b"nothing of the kind")
    with pytest.raises(DataFileError, match=r"a MATLAB file in bad.mat"):
        read_matlab(tmp_path / "bad.mat")
    savemat(tmp_path / "none.mat", {})
    with pytest.raises(DataFileError, match="variables nothing"):
        read_matlab(tmp_path / "none.mat")


@pytest.mark.parametrize("name", ["musk1", "musk2", "fox", "tiger", "elephant"])
def test_real_prtools_files_equal_their_packed_copies(data, name):
    bags = bg.read(data / f"mil_benchmark/raw/{name}.mat")
    with np.load(data / f"mil_benchmark/{name}.npz") as packed:
        np.testing.assert_array_equal(bags.instances.astype(np.float32), packed["X"])
        np.testing.assert_array_equal(bags.offsets, packed["offsets"])
        assert bags.ids.tolist() == packed["bag_names"].tolist()
        assert (bags.y == "positive").tolist() == (packed["y"] == 1).tolist()


@pytest.mark.parametrize("name", ["fox", "tiger", "elephant"])
def test_real_cells_equal_the_prtools_files(data, name):
    cell = bg.read(data / f"mil_benchmark/raw/{name}_cell.mat")
    record = bg.read(data / f"mil_benchmark/raw/{name}.mat")
    np.testing.assert_array_equal(cell.instances, record.instances)
    np.testing.assert_array_equal(cell.offsets, record.offsets)
    np.testing.assert_array_equal(cell.y, record.y == "positive")
    assert cell.instance_y is None


# ---------------------------------------------------------------------- C4.5


def test_c45(tmp_path):
    (tmp_path / "m.names").write_text(
        "yes,no.\n| a comment\nmolecule: a,b.\nshape: a1,b1.\nf1: continuous scale=0.1.\n"
    )
    (tmp_path / "m.data").write_text("a,a1,1.5,yes.\n\na,a2,?,yes.\nb,b1,3,no.\n")
    bags = bg.read(tmp_path / "m.data", missing="impute")
    assert bags.ids.tolist() == ["a", "b"]
    assert bags.instance_names.tolist() == ["a1", "a2", "b1"]
    assert bags.y.tolist() == ["yes", "no"]
    assert bags.instances.ravel().tolist() == [1.5, 2.25, 3.0]
    (tmp_path / "m.data").write_text("a,a1,1.x,yes.\n")
    with pytest.raises(InvalidBagsError, match=r"'1.x' in column 'f1' \(bag 'a'\)"):
        read_c45(tmp_path / "m.data")


def test_c45_errors(tmp_path):
    with pytest.raises(DataFileError, match=r"the file of names in m.names"):
        read_c45(tmp_path / "m.data")
    (tmp_path / "m.names").write_text("0,1.\nf1: continuous.\n")
    with pytest.raises(DataFileError, match="a discrete attribute that names the bag"):
        read_c45(tmp_path / "m.data")
    with pytest.raises(DataFileError, match=r"a file of rows in m.data"):
        read_c45(tmp_path / "m.data", bag="f1")
    (tmp_path / "other.names").write_text("0,1.\nnonsense\n")
    with pytest.raises(DataFileError, match="'nonsense'"):
        read_c45(tmp_path / "m.data", names=tmp_path / "other.names")


def test_real_c45_equals_prtools(data):
    rows = bg.read(data / "mil_benchmark/raw/musk1.data")
    record = bg.read(data / "mil_benchmark/raw/musk1.mat").take(rows.ids)
    assert len(rows) == 92
    np.testing.assert_array_equal(rows.y == 1, record.y == "positive")
    for bag in rows:  # the two files list the conformations of a molecule in another order
        ours, theirs = np.asarray(bag), np.asarray(record[bag.id])
        np.testing.assert_array_equal(ours[np.lexsort(ours.T)], theirs[np.lexsort(theirs.T)])


# ---------------------------------------------------------------------- svmlight


@pytest.mark.parametrize(
    "text",
    ["1 qid:b 1:0.5 3:2 # c\n0 qid:a 2:1\n1 qid:b 1:4\n", "i1:b:1 1:0.5 3:2\ni2:a:0 2:1\n\ni3:b:1 1:4\n"],
)
def test_svmlight_in_both_layouts(tmp_path, text):
    (tmp_path / "t.svm").write_text(text)
    bags = bg.read(tmp_path / "t.svm")
    assert bags.ids.tolist() == ["b", "a"]
    assert bags.y.tolist() == [1, 0]
    np.testing.assert_array_equal(np.asarray(bags["b"]), [[0.5, 0, 2], [4, 0, 0]])
    if text.startswith("i1"):
        assert bags.instance_names.tolist() == ["i1", "i3", "i2"]
    assert read_svmlight(tmp_path / "t.svm", n_features=9, zero_based=True).n_features == 9


def test_svmlight_labels_may_be_real_or_text(tmp_path):
    (tmp_path / "t.svm").write_text("0.5 qid:a 1:1\n1.5 qid:b 1:1\n")
    assert bg.read(tmp_path / "t.svm").y.tolist() == [0.5, 1.5]
    (tmp_path / "t.svm").write_text("x qid:a 1:1\ny qid:b 1:1\n")
    assert bg.read(tmp_path / "t.svm").y.tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "expected", "options"),
    [
        ("", "at least one line", {}),
        ("1 qid:a 1:x\n", r"'1:x' in line 1 \(bag 'a'\)", {}),
        ("1 qid:a 5:1\n", "indices up to 3", {"n_features": 3}),
    ],
)
def test_svmlight_errors(tmp_path, text, expected, options):
    (tmp_path / "t.svm").write_text(text)
    with pytest.raises(DataFileError, match=expected):
        read_svmlight(tmp_path / "t.svm", **options)
    with pytest.raises(DataFileError, match="no such file"):
        read_svmlight(tmp_path / "none.svm")


# ---------------------------------------------------------------------- folders


def slides(folder, dtype=np.float16, axis=False):
    for name, n in (("s1", 2), ("s2", 3)):
        with h5py.File(folder / f"{name}.h5", "w") as file:
            values = np.full((n, 4), n, dtype=dtype)
            places = np.arange(2 * n).reshape(n, 2)
            file["features"] = values[None] if axis else values
            file["coords"] = places[None] if axis else places
    return folder


@pytest.mark.parametrize("axis", [False, True])
@pytest.mark.parametrize("limit", [None, 1])
def test_a_folder_of_slides(tmp_path, axis, limit):
    labels = pd.DataFrame({"slide": ["s2", "s1"], "grade": ["high", "low"]})
    (tmp_path / "f").mkdir()
    labels.to_csv(tmp_path / "labels.csv", index=False)
    labels.to_parquet(tmp_path / "labels.parquet")
    for table_ in (labels, tmp_path / "labels.csv", str(tmp_path / "labels.parquet")):
        bags = bg.read(
            slides(tmp_path / "f", axis=axis), labels=table_, bag="slide", target="grade", memory_limit=limit
        )
        assert bags.y.tolist() == ["low", "high"]
        assert bags.sizes.tolist() == [2, 3]
        assert bags.instances.dtype == np.float32
        assert bags.is_memory_mapped == (limit == 1)
        assert bags.instance_info["coords"].tolist() == [[0, 1], [2, 3], [0, 1], [2, 3], [4, 5]]
        assert np.asarray(bags["s2"]).tolist() == [[3] * 4] * 3


def test_slides_without_a_label_are_unlabelled_and_labels_without_a_slide_are_told(tmp_path):
    slides(tmp_path)
    labels = pd.DataFrame({"bag": ["s2", "s9"], "target": [1, 0]})
    with pytest.warns(BagWarning, match="1 labelled bags have no file: 's9'"):
        bags = read_features(tmp_path, labels=labels)
    assert bags.labelled.tolist() == [False, True]
    assert read_features(tmp_path).y is None


def test_npy_folders(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((2, 3)))
    np.save(tmp_path / "b.npy", np.ones((1, 3), dtype=np.float32))
    bags = bg.read(tmp_path)
    assert bags.ids.tolist() == ["a", "b"]
    assert bags.instances.dtype == np.float64
    assert not bags.instance_info


def test_folder_errors(tmp_path):
    with pytest.raises(InvalidBagsError, match="files in"):
        read_features(tmp_path)
    slides(tmp_path)
    with pytest.raises(
        InvalidBagsError, match=r"a data set 'feature' in s1.h5, got 'coords', 'features'; did you mean"
    ):
        read_features(tmp_path, features="feature")
    for labels, text in (
        (pd.DataFrame({"bag": ["s1"]}), "'target'"),
        (pd.DataFrame({"bag": ["s1", "s1"], "target": [1, 1]}), "'s1' twice"),
        (tmp_path / "none.csv", "no file at"),
    ):
        with pytest.raises(InvalidBagsError, match=text):
            read_features(tmp_path, labels=labels)


def test_ids_of_labels_may_keep_the_suffix_of_the_image_and_bring_facts(tmp_path):
    for name in ("s1", "s2", "s3.svs"):
        np.save(tmp_path / f"{name}.npy", np.ones((2, 3)))
    rows = {"slide": ["s1.svs", "s3.svs", "s2"], "grade": ["low", "high", "low"], "patient": ["p", "q", "p"]}
    bags = bg.read(tmp_path, labels=pd.DataFrame(rows), bag="slide", target="grade", bag_info=["patient"])
    assert bags.ids.tolist() == ["s1", "s2", "s3.svs"]
    assert bags.y.tolist() == ["low", "low", "high"]
    assert bags.bag_info["patient"].tolist() == ["p", "p", "q"]


def test_features_may_be_called_feats(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["feats"] = np.ones((2, 3), dtype=np.float32)
        file["coords"] = np.zeros((2, 2))
    assert bg.read(tmp_path).instances.shape == (2, 3)
    with pytest.raises(InvalidBagsError, match=r"expected a data set 'values' in a.h5, got 'coords', 'feats'"):
        bg.read(tmp_path, features="values")


def test_tensors_are_read_and_nothing_else_in_their_files(tmp_path):
    import torch

    values = torch.arange(6.0).reshape(2, 3)
    torch.save(values, tmp_path / "a.pt")
    torch.save(values.to(torch.bfloat16), tmp_path / "b.pt")
    assert bg.read(tmp_path).instances.tolist() == [*values.tolist(), *values.tolist()]
    torch.save({"features": values}, tmp_path / "a.pt")
    with pytest.raises(DataFileError, match=r"expected arrays in a.pt, got a dict, not a tensor"):
        bg.read(tmp_path)
    torch.save(Path("calls code when it is loaded"), tmp_path / "a.pt")
    with pytest.raises(DataFileError, match=r"expected arrays in a.pt, got Weights only load failed"):
        bg.read(tmp_path)


def test_the_folder_of_a_pipeline_points_to_those_in_it(tmp_path):
    (tmp_path / "pt_files").mkdir()
    np.save(tmp_path / "pt_files" / "a.npy", np.ones((2, 3)))
    with pytest.raises(InvalidBagsError, match=r"got none; pass the folder in it: 'pt_files'"):
        bg.read(tmp_path)


@pytest.mark.parametrize(
    ("write_file", "text"),
    [
        (lambda p: (p / "s.npy").write_bytes(b"\x93NUMPY"), "arrays in s.npy"),
        (lambda p: (p / "s.h5").write_bytes(b"\x89HDF"), "arrays in s.h5"),
        (lambda p: np.save(p / "s.npy", np.zeros(3)), r"a 2-D array in s.npy, got shape \(3,\)"),
        (lambda p: np.save(p / "s.npy", np.zeros((0, 3))), "at least one instance in s.npy"),
        (lambda p: np.save(p / "s.npy", np.array([{}]), allow_pickle=True), "Python objects in dtype"),
    ],
)
def test_broken_feature_files(tmp_path, write_file, text):
    write_file(tmp_path)
    with pytest.raises((DataFileError, InvalidBagsError), match=text):
        read_features(tmp_path)


def test_coords_must_fit_the_instances(tmp_path):
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["features"], file["coords"] = np.zeros((3, 2)), np.zeros((2, 2))
    with pytest.raises(InvalidBagsError, match=r"one row of 'coords' an instance in s.h5, got 2 for 3 instances"):
        read_features(tmp_path)
