"""Forty malformed inputs, one a row, each answered by the exact sentence expected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.io import savemat

import baggraph as bg
from baggraph.data.readers.c45 import read_c45
from baggraph.data.readers.features import read_features
from baggraph.data.readers.svmlight import read_svmlight
from baggraph.errors import BagError

X = np.arange(6.0).reshape(3, 2)
TABLE = pd.DataFrame({"bag": ["a", "a", "b"], "musk": [1, 1, 0], "f1": [1.0, 2.0, 3.0]})
BAGS = bg.Bags(X, [0, 2, 3], ["p", "q"], ids=["a", "b"])


def bags(**changes):
    return lambda _: bg.Bags(**{"instances": X, "offsets": [0, 2, 3], **changes})


def frame(changes=None, **options):
    return lambda _: bg.Bags.from_frame(TABLE.assign(**(changes or {})), **options)


def from_text(name: str, text: str, reader=bg.read, **options):
    def make(folder: Path):
        (folder / name).write_text(text)
        return reader(folder / name, **options)

    return make


def mat(**content):
    def make(folder: Path):
        savemat(folder / "set.mat", content)
        return bg.read(folder / "set.mat")

    return make


def folder_of(arrays, labels=None):
    def make(folder: Path):
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)
        return read_features(folder, labels=labels)

    return make


def cut_short(write):
    def make(folder: Path):
        path = write(folder)
        path.write_bytes(path.read_bytes()[:200])
        return bg.read(path)

    return make


def cell(*rows):
    array = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            array[i, j] = entry
    return array


NAN = np.array([[0.0, 1.0], [2.0, np.nan], [np.nan, 5.0]])
NAMES = "0,1.\nmolecule: a,b.\nf1: continuous.\n"

MALFORMED = {
    "nan": (
        bags(instances=NAN, ids=["a", "b"], feature_names=["width", "height"]),
        "bags: expected finite features, got NaN in bag 'a', column 'height' and at least 1 more; correct the data, or "
        'pass missing="impute" to fill NaN with the median of the column',
    ),
    "infinity": (
        bags(instances=np.array([[0.0, 1.0], [2.0, 3.0], [np.inf, 5.0]])),
        "bags: expected finite features, got an infinite value in bag '1', column 0; correct the data, or "
        'pass missing="impute" to fill NaN with the median of the column',
    ),
    "nan in a sparse block": (
        bags(instances=sp.csr_array(np.array([[0.0, 1.0], [0.0, 0.0], [np.nan, 0.0]]))),
        "bags: expected finite features, got NaN in bag '1', column 0; correct the data, or "
        'pass missing="impute" to fill NaN with the median of the column',
    ),
    "a column with nothing to impute from": (
        bags(instances=np.full((3, 2), np.nan), missing="impute"),
        "bags: expected some present value in every column to impute, got none in column 0; drop that column",
    ),
    "unknown way to treat what is missing": (
        bags(missing="imput"),
        "bags: expected missing='error' or 'impute', got 'imput'; did you mean 'impute'?",
    ),
    "an empty bag": (
        bags(offsets=[0, 2, 2, 3], ids=["a", "b", "c"]),
        "bags: expected at least one instance in every bag, got none in bag 'b'; leave empty bags out",
    ),
    "no bag": (
        bags(offsets=[0]),
        "bags: expected integer offsets, one more than there are bags, got int64 of shape (1,); pass the cumulative bag "
        "sizes, starting with 0",
    ),
    "offsets beyond the instances": (
        bags(offsets=[0, 2, 4]),
        "bags: expected offsets from 0 to the number of instances (3), got 0 to 4; pass the cumulative bag sizes, "
        "starting with 0",
    ),
    "offsets that fall": (
        bags(offsets=[0, 3, 2, 3]),
        "bags: expected offsets in rising order, got 2 after 3; pass the cumulative bag sizes, starting with 0",
    ),
    "offsets as real numbers": (
        bags(offsets=[0.0, 2.0, 3.0]),
        "bags: expected integer offsets, one more than there are bags, got float64 of shape (3,); pass the cumulative "
        "bag sizes, starting with 0",
    ),
    "a flat block": (
        bags(instances=np.arange(3.0)),
        "bags: expected a 2-D array (instances, features), got shape (3,); reshape it, or use Bags.from_list",
    ),
    "no feature": (
        bags(instances=np.zeros((3, 0))),
        "bags: expected at least one feature, got none; pass the columns of the instances",
    ),
    "text as features": (
        bags(instances=np.array([["a", "b"]] * 3)),
        "bags: expected numbers as features, got values of type <U1; encode text and dates as numbers first",
    ),
    "complex features": (
        bags(instances=X + 1j),
        "bags: expected numbers as features, got values of type complex128; encode text and dates as numbers first",
    ),
    "ragged features": (
        lambda _: bg.Bags.from_list([np.zeros((2, 3)), np.zeros((1, 4))], ids=["s1", "s2"]),
        "bags: expected the same features in every bag, got 4 features in bag 's2' after 3 in those before; give all "
        "bags the same columns",
    ),
    "duplicate ids": (
        bags(ids=["a", "a"]),
        "bags: expected unique bag ids, got 'a' more than once; rename or merge these bags",
    ),
    "a missing id": (
        bags(ids=["a", None]),
        "bags: expected bag ids that are strings or integers, got None at bag 1; convert them with str() or fill in the "
        "missing ones",
    ),
    "real numbers as ids": (
        bags(ids=[1.0, 2.0]),
        "bags: expected bag ids that are strings or integers, got 1.0 at bag 0; convert them with str() or fill in the "
        "missing ones",
    ),
    "ids that do not match": (
        bags(ids=["a"]),
        "bags: expected one of bag ids a bag (2), got shape (1,); pass a flat sequence of 2 strings or integers",
    ),
    "labels that do not match": (
        bags(y=[1, 0, 1]),
        "bags: expected 2 values of label, got shape (3,); pass one label each, in the order of the bags",
    ),
    "labels of two kinds": (
        bags(y=["benign", 1]),
        "bags: expected values of one kind as label, got text among numbers: 'benign' (bag '0'); correct it, or mark it "
        "as missing with NaN or None",
    ),
    "an infinite target": (
        bags(y=[0.5, np.inf], ids=["a", "b"]),
        "bags: expected a finite number as label, got an infinite one (bag 'b'); correct it, or mark it as missing with "
        "NaN or None",
    ),
    "duplicate feature names": (
        bags(feature_names=["f", "f"]),
        "bags: expected unique feature names, got 'f' more than once; rename these columns",
    ),
    "a missing coordinate": (
        bags(coords=[[0.0, 1.0], [2.0, np.nan]]),
        "bags: expected finite coordinates, got a missing one for bag '1'; fill it in or leave coords out",
    ),
    "splits of other bags": (
        bags(splits={"published": [0, 1, 2]}),
        "bags: expected splits as fold numbers from -1, shape (repeats, 2), got int64 of shape (1, 3) for 'published'; "
        "number the folds from 0",
    ),
    "a graph over other bags": (
        bags(ids=["a", "b"], graph=bg.BagGraph.from_edges([("b", "c")], ids=["b", "c"])),
        "bags: expected a graph over the same bags in the same order, got a graph over 2 bags such as 'c'; use "
        "graph.take, or replace(graph=None)",
    ),
    "metadata that is no JSON": (
        bags(metadata={"when": {1, 2}}),
        "bags: expected metadata that JSON can hold, got Object of type set is not JSON serializable; use text, "
        "numbers, lists and dicts",
    ),
    "an unknown bag": (
        lambda _: BAGS["c"],
        "bags: expected the id of a bag, got 'c'; choose from 'a', 'b'",
    ),
    "a mask that fits nothing": (
        lambda _: BAGS[[True, False, True]],
        "bags: expected positions, ids or a mask of 2 booleans, got bool of shape (3,); pass one flat sequence",
    ),
    "an unknown field": (
        lambda _: BAGS.replace(label=[1, 2]),
        "replace: expected a field of Bags, got 'label'; choose from 'bag_info', 'coords', 'feature_names', 'graph', "
        "'ids', 'instance_info', 'instance_names', 'instance_y', 'instances', 'metadata', 'offsets', 'splits', 'y'",
    ),
    "a bag with two targets": (
        frame({"musk": [1, 0, 0]}, target="musk"),
        "table: expected one value of 'musk' a bag, got 1 and 0 in bag 'a'; correct the table, or name another column",
    ),
    "a bag half labelled": (
        frame({"musk": [1.0, np.nan, 0.0]}, target="musk"),
        "table: expected one value of 'musk' a bag, got 1.0 and missing in bag 'a'; correct the table, or name another "
        "column",
    ),
    "an unknown column": (
        frame(target="mask"),
        "table: expected a column of the table, got 'mask'; did you mean 'musk'?",
    ),
    "text among the features": (
        from_text("t.csv", "bag,f1\na,1.5\na,x\nb,3\n"),
        "table: expected numbers as features, got 'x' in column 'f1' (bag 'a'); encode it, give it another role, or name "
        "the columns to use with features=[...]",
    ),
    "a row without a bag": (
        from_text("t.csv", "bag,f1\na,1.5\n,2\n"),
        "table: expected a bag in every row of column 'bag', got none in row 1; fill it in",
    ),
    "an empty table": (
        from_text("t.csv", "bag,f1\n"),
        "table: expected at least one row, got an empty table; check the file",
    ),
    "a truncated parquet": (
        cut_short(lambda folder: BAGS.to_parquet(folder / "t.parquet")),
        "table: expected a Parquet file in t.parquet, got Parquet magic bytes not found in footer. Either the file is "
        "corrupted or this is not a parquet file.; write it again",
    ),
    "a truncated npz": (
        cut_short(lambda folder: BAGS.to_npz(folder / "t.npz")),
        "npz: expected bags in t.npz, got File is not a zip file; fetch or write it again",
    ),
    "a file of an unknown kind": (
        from_text("bags.doc", "x"),
        "read: expected a file of a known kind, got bags.doc; convert it to one of .csv, .tsv, .csv.gz, .tsv.gz, "
        ".parquet, .npz, .mat, .data, .svm, .svmlight, .libsvm, or pass a folder of .h5, .npy or .pt files",
    ),
    "a MATLAB file of something else": (
        mat(foo=np.eye(2)),
        "matlab: expected a PRTools data set or a cell with a row a bag in set.mat, got variables 'foo'; check the file",
    ),
    "a cell with two labels": (
        mat(data=cell([np.eye(2), np.array([1, 0])], [np.eye(2), 1])),
        "matlab: expected one label in the second column of every row in set.mat, got 2 in row 1; check the file",
    ),
    "C4.5 with a value too few": (
        lambda folder: (
            (folder / "m.names").write_text(NAMES) and from_text("m.data", "a,1.5,1.\nb,1.\n", read_c45)(folder)
        ),
        "c45: expected 2 values and a class in m.data, got 2 values in line 2; correct that line",
    ),
    "svmlight without a bag": (
        from_text("t.svm", "1 1:0.5\n"),
        "svmlight: expected 'label qid:bag ...' or 'instance:bag:label ...' in t.svm, got '1 1:0.5' in line 1; name the "
        "bag in every line",
    ),
    "svmlight counted from zero": (
        from_text("t.svm", "1 qid:a 0:0.5\n", read_svmlight),
        "svmlight: expected indices from 1 in t.svm, got 0; pass zero_based=True",
    ),
    "feature files of two encoders": (
        folder_of({"s1": np.zeros((2, 4)), "s2": np.zeros((3, 4)), "s3": np.zeros((2, 8))}),
        "features: expected 4 features in every file, got 8 in s3.npy; extract all bags with one encoder",
    ),
    "labels for other files": (
        folder_of({"s1": np.zeros((2, 4))}, pd.DataFrame({"bag": ["case-1"], "target": [1]})),
        "features: expected ids in the table of labels that are names of files, got 'case-1' there and 's1' in the "
        "folder; make them equal, without suffix",
    ),
}


def test_there_are_at_least_forty():
    assert len(MALFORMED) >= 40


@pytest.mark.parametrize("case", MALFORMED)
def test_answer(case, tmp_path):
    make, expected = MALFORMED[case]
    with pytest.raises(BagError) as caught:
        make(tmp_path)
    assert str(caught.value) == expected
    assert isinstance(caught.value, ValueError | RuntimeError | ImportError)
