"""Result tables: rows that are named once, kept on disk, laid out."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from baggraph.data._fingerprint import digest, fingerprint
from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.data.results import KEY, SCHEMA, ResultTable
from baggraph.errors import DataFileError, InvalidBagsError, ParameterError


def scores(method="a", repeats=2, folds=3, start=0.0, **more):
    return ResultTable.from_rows(
        {"method": method, "dataset": "d", "metric": "auc", "repeat": r, "fold": k, "value": start + r + k / 10, **more}
        for r in range(repeats)
        for k in range(folds)
    )


def test_pivot_and_summary_are_those_of_pandas():
    table = ResultTable.concat([scores("a"), scores("b", start=5.0)])
    frame = table.frame()
    wide = table.pivot("auc", index=["repeat", "fold"])
    expected = frame.pivot_table(index=["repeat", "fold"], columns="method", values="value")
    pd.testing.assert_frame_equal(wide, expected, check_names=False)
    summary = table.summary("auc")
    values = frame.loc[frame["method"] == "b", "value"]
    row = summary.loc[("d", "b")]
    assert row["mean"] == pytest.approx(values.mean())
    assert row["sd_splits"] == pytest.approx(values.std())
    assert row["sd_repeats"] == pytest.approx(np.std([5.1, 6.1], ddof=1))
    assert (row["n"], row["failed"]) == (6, 0)
    assert table.pivot("auc", aggregate="count").loc["d", "a"] == 6


def test_a_missing_score_makes_the_mean_missing_and_is_counted():
    table = ResultTable.concat([scores("a"), scores("b", repeats=1), scores("c")])
    rows = table.frame()
    rows.loc[(rows["method"] == "a") & (rows["fold"] == 1), "value"] = np.nan
    holed = ResultTable.from_frame(rows)
    assert np.isnan(holed.pivot("auc").loc["d", "a"])
    assert holed.pivot("auc").loc["d", "b"] == pytest.approx(0.1)
    assert holed.summary("auc").loc[("d", "a"), "failed"] == 2
    assert holed.summary("auc").loc[("d", "a"), "mean"] == pytest.approx(0.6)


def test_rows_are_named_once():
    with pytest.raises(InvalidBagsError, match=r"method='a'.*more than once; name the methods differently"):
        ResultTable.concat([scores("a"), scores("a", repeats=1)])
    with pytest.raises(InvalidBagsError, match="did you mean 'metric'"):
        ResultTable.from_rows([{"metrics": "auc"}])
    with pytest.raises(InvalidBagsError, match="an Arrow table"):
        ResultTable(pd.DataFrame())


def test_frames_go_both_ways():
    table = scores("a", note="why")
    assert ResultTable.from_frame(table.frame()) == table
    assert len(ResultTable.from_frame(table.frame().query("fold == 1"))) == 2
    with pytest.raises(InvalidBagsError, match="a column 'value'"):
        ResultTable.from_frame(table.frame().drop(columns="value"))


def test_filters():
    table = ResultTable.concat([scores("a"), scores("b")])
    assert len(table.filter(method="a", fold=[0, 2])) == 4
    assert table.filter(method="nobody").names("method") == []
    with pytest.raises(ParameterError, match="did you mean 'method'"):
        table.filter(methods="a")
    with pytest.raises(ParameterError, match="a metric of this table"):
        table.pivot("acu")
    with pytest.raises(ParameterError, match="did you mean 'median'"):
        table.pivot("auc", aggregate="medain")


def test_failures_are_rows():
    table = ResultTable.concat([scores("a"), scores("b", repeats=1, error="Traceback ...\nValueError: no")])
    assert len(table.failed) == 3
    assert "3 rows of failed tasks ('b')" in repr(table)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.text(max_size=5), st.floats()), unique_by=lambda row: row[0], max_size=5))
def test_what_is_appended_is_read_back(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("run")
    table = ResultTable.from_rows({"method": m, "dataset": "d", "metric": "auc", "value": v} for m, v in rows)
    table.append(folder)
    back = ResultTable.read(folder)
    assert back == table
    assert back.rows.schema == SCHEMA


def test_appending_adds_and_the_last_of_a_name_counts(tmp_path):
    scores("a").append(tmp_path)
    scores("b").append(tmp_path)
    scores("a", repeats=1, start=9.0).append(tmp_path)
    table = ResultTable.read(tmp_path)
    assert len(table) == 12
    found = table.filter(method="a").pivot("auc", index="repeat").sort_index()
    assert found["a"].tolist() == pytest.approx([9.1, 1.1])
    assert len(list(tmp_path.iterdir())) == 3


def _write_many(arguments):
    folder, writer = arguments
    for number in range(10):
        scores(f"{writer}-{number}").append(folder)


def test_writers_at_the_same_time_lose_nothing(tmp_path):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(_write_many, [(tmp_path, "one"), (tmp_path, "two")])
    table = ResultTable.read(tmp_path)
    assert len(table) == 20 * 6
    assert len(table.names("method")) == 20


def test_a_writer_that_dies_leaves_nothing(tmp_path, monkeypatch):
    scores("a").append(tmp_path)

    def dies(rows, draft, **_):
        draft.write_bytes(b"PAR1 half")
        raise KeyboardInterrupt

    monkeypatch.setattr("pyarrow.parquet.write_table", dies)
    with pytest.raises(KeyboardInterrupt):
        scores("b").append(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    assert ResultTable.read(tmp_path).names("method") == ["a"]


def test_drafts_of_others_are_not_read(tmp_path):
    scores("a").append(tmp_path)
    (tmp_path / ".draft.parquet").write_bytes(b"PAR1 half")
    assert ResultTable.read(tmp_path).names("method") == ["a"]


def test_broken_folders(tmp_path):
    with pytest.raises(DataFileError, match="a folder of results"):
        ResultTable.read(tmp_path / "none")
    (tmp_path / "x.parquet").write_bytes(b"not parquet")
    with pytest.raises(DataFileError, match=r"Parquet in x\.parquet"):
        ResultTable.read(tmp_path)
    pa.parquet.write_table(pa.table({"method": ["a"]}), tmp_path / "x.parquet")
    with pytest.raises(DataFileError, match="a column 'task'"):
        ResultTable.read(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataFileError, match="a folder to append to"):
        scores().append(tmp_path / "file")


def test_the_key_is_part_of_the_columns():
    assert set(KEY) < set(SCHEMA.names)


# ---------------------------------------------------------------------- fingerprints


def test_fingerprints_change_with_what_methods_see():
    graph = BagGraph.from_edges([(0, 1)], ids=[0, 1])
    bags = Bags(np.arange(6.0).reshape(3, 2), [0, 1, 3], ["a", None], coords=[[0, 0], [1, 1]], graph=graph)
    changed = [
        bags.replace(instances=bags.instances + 1),
        bags.replace(offsets=[0, 2, 3]),
        bags.replace(y=["a", "None"]),
        bags.replace(y=None),
        bags.replace(ids=["0", "x"], graph=None),
        bags.replace(coords=[[0, 0], [1, 2]]),
        bags.replace(graph=None),
        bags.replace(graph=BagGraph.from_edges([(0, 1, 0.5)], ids=[0, 1])),
        bags.take([1, 0]),
    ]
    seen = {fingerprint(other) for other in [bags, *changed]}
    assert len(seen) == len(changed) + 1
    assert fingerprint(bags.replace(metadata={"name": "other"})) == fingerprint(bags)


def test_recipes_of_large_parameters():
    graphs = [BagGraph.from_edges([(0, 1, w)], ids=[0, 1]) for w in (1.0, 2.0)]
    assert digest({"graph": graphs[0]}) != digest({"graph": graphs[1]})
    assert digest(np.arange(3)) == digest(np.arange(3))
    assert digest(object()) == digest(object())  # where an object lies in memory is no part of it
    assert digest({1, 2}) == digest({2, 1})
