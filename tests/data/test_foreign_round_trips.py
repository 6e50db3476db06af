"""Law: bags written in the format of another tool, as that tool writes it, come back as they were."""

from __future__ import annotations

import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import savemat

import baggraph as bg

MANY = settings(deadline=None, suppress_health_check=list(HealthCheck))  # 100; 500 with the profile "thorough"
# What every format can hold: letters of any alphabet, but no blanks, separators, or signs of the format itself.
WORDS = st.text(st.characters(categories=["L"]), min_size=1, max_size=6).map(lambda word: "b" + word)


@st.composite
def plain_bags(draw, kinds=("int", "real", "text", "missing"), sparse=True):
    """Bags that a foreign file can say in full: instances, ids and labels."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    elements = st.floats(-1e9, 1e9) | st.just(0.0)
    shape = (sum(sizes), draw(st.integers(1, 3)))
    values = draw(st.lists(elements, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    block = np.array(values).reshape(shape)
    ids = draw(st.lists(WORDS, min_size=len(sizes), max_size=len(sizes), unique=True))
    of = {
        "int": st.integers(-9, 9),
        "real": st.floats(-1e6, 1e6).map(lambda value: value + 0.25).filter(lambda value: value % 1 != 0),
        "text": st.sampled_from(["ja", "nein", "日本"]),
        "missing": st.none() | st.sampled_from([0.5, 1.5]),
    }[draw(st.sampled_from(kinds))]
    y = draw(st.lists(of, min_size=len(sizes), max_size=len(sizes)))
    block = sp.csr_array(block) if sparse and draw(st.booleans()) else block
    return bg.Bags(block, np.concatenate([[0], np.cumsum(sizes)]), y, ids=ids)


def same(back, bags):
    """Instances, sizes and labels, whether stored dense or sparse."""
    dense, expected = (b.instances.toarray() if b.is_sparse else b.instances for b in (back, bags))
    np.testing.assert_array_equal(dense, expected)
    np.testing.assert_array_equal(back.offsets, bags.offsets)
    if bags.labelled.any():
        assert back.y.tolist() == pytest.approx(bags.y.tolist(), abs=0, nan_ok=True)
    else:
        assert not back.labelled.any()
    return True


def rows(bags):
    """Every instance with the number of its bag."""
    dense = bags.instances.toarray() if bags.is_sparse else bags.instances
    return zip(np.repeat(np.arange(len(bags)), bags.sizes), dense.tolist(), strict=True)


def word(label):
    return "nan" if label is None or label != label else repr(label) if isinstance(label, float) else str(label)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet"])
@MANY
@given(bags=plain_bags(sparse=False))
def test_long_tables_of_pandas(suffix, bags):
    frame = bags.to_frame()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t{suffix}"
        if suffix == ".parquet":
            frame.to_parquet(path)
        else:
            frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
        back = bg.read(path, bag="bag", target="target")
    assert same(back, bags)
    assert back.ids.tolist() == bags.ids.tolist()


@pytest.mark.parametrize("layout", ["qid", "triple"])
@MANY
@given(bags=plain_bags())
def test_svmlight(layout, bags):
    lines = []
    for number, (place, values) in enumerate(rows(bags)):
        bag, label = bags.ids[place], word(bags.y.tolist()[place])
        cells = " ".join(f"{index}:{value!r}" for index, value in enumerate(values, start=1) if value)
        lines.append(f"{label} qid:{bag} {cells}" if layout == "qid" else f"i{number}:{bag}:{label} {cells}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.svm"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        back = bg.read(path, n_features=bags.n_features)
    assert same(back, bags)
    assert back.ids.tolist() == bags.ids.tolist()


@pytest.mark.parametrize("suffix", [".npy", ".h5"])
@MANY
@given(bags=plain_bags(sparse=False))
def test_folders_of_feature_files(suffix, bags):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = [f"s{place}" for place in range(len(bags))]
        for one, block in zip(names, bags.to_list(), strict=True):
            if suffix == ".npy":
                np.save(folder / f"{one}.npy", block)
            else:
                with h5py.File(folder / f"{one}.h5", "w") as file:
                    file["features"] = block
        labels = bg.Bags(np.zeros((len(bags), 1)), np.arange(len(bags) + 1), bags.y, ids=names).to_frame()
        back = bg.read(folder, labels=labels)
    assert same(back, bags)
    assert back.ids.tolist() == names


@MANY
@given(bags=plain_bags(kinds=("int", "real")))
def test_cells_of_matlab(bags):
    cell = np.empty((len(bags), 2), dtype=object)
    for place, block in enumerate(bags.to_list()):
        cell[place, 0] = sp.csc_matrix(block) if bags.is_sparse else block
        cell[place, 1] = float(bags.y[place])
    with tempfile.TemporaryDirectory() as folder:
        savemat(Path(folder) / "t.mat", {"data": cell})
        back = bg.read(Path(folder) / "t.mat")
    assert same(back, bags)


@MANY
@given(bags=plain_bags(kinds=("text",)))
def test_data_sets_of_prtools(bags):
    classes = np.unique(bags.y)
    ident = np.zeros((1, 1), dtype=[("milbag", object)])
    ident[0, 0]["milbag"] = np.repeat(bags.ids, bags.sizes).astype(object)[:, None]
    numbers = np.repeat(np.searchsorted(classes, bags.y) + 1, bags.sizes)[:, None]
    data = sp.csc_matrix(bags.instances) if bags.is_sparse else bags.instances
    record = {"data": data, "nlab": numbers, "lablist": classes.astype(object)[:, None], "ident": ident}
    with tempfile.TemporaryDirectory() as folder:
        savemat(Path(folder) / "t.mat", {"x": record})
        back = bg.read(Path(folder) / "t.mat")
    assert same(back, bags)
    assert back.ids.tolist() == bags.ids.tolist()


@MANY
@given(bags=plain_bags(kinds=("int", "text"), sparse=False))
def test_c45(bags):
    y = bags.y.tolist()
    names = [", ".join(map(str, dict.fromkeys(y))) + ".", f"molecule: {', '.join(bags.ids)}."]
    names += [f"f{i}: continuous." for i in range(bags.n_features)]
    data = [",".join([bags.ids[place], *map(repr, values), f"{y[place]}."]) for place, values in rows(bags)]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "t.names").write_text("\n".join(names) + "\n", encoding="utf-8")
        (Path(folder) / "t.data").write_text("\n".join(data) + "\n", encoding="utf-8")
        back = bg.read(Path(folder) / "t.data")
    assert same(back, bags)
    assert back.ids.tolist() == bags.ids.tolist()
