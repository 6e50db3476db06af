"""``baggraph graph`` as a person meets it."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

from baggraph import datasets
from baggraph.data.graph import BagGraph
from baggraph.graphs.learned import LearnedGraph


@pytest.fixture
def run(command):
    return partial(command, "graph")


@pytest.fixture
def embeddings(tmp_path):
    path = tmp_path / "z.npy"
    np.save(path, np.random.default_rng(0).normal(size=(60, 5)))
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_written_edges_are_the_learned_graph(run, embeddings, tmp_path, suffix):
    code, out, err = run(embeddings, "-k", 4, "-o", tmp_path / f"edges.{suffix}")
    learned = LearnedGraph(4, certify="check").fit(np.load(embeddings))
    assert code == 0
    assert BagGraph.from_table(tmp_path / f"edges.{suffix}", learned.graph_.ids) == learned.graph_
    assert f"wrote {tmp_path / f'edges.{suffix}'}" in err
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert lines["edges"].split()[1] == str(learned.graph_.n_edges)
    assert lines["degree"].endswith(f"asked 4, reached {learned.degree_:.4g}")
    assert lines["certified"].split()[1] == f"{learned.certified_fraction_:.1%}"


def test_json_for_machines(run, embeddings):
    facts = json.loads(run(embeddings, "--json", "--certify", "exact", "--degree-match", "exact", "-k", 5)[1])
    assert facts["certified"] == 1.0
    assert abs(facts["degree"]["reached"] - 5) <= 0.1
    assert facts["gap"]["reached"]
    assert set(facts["seconds"]) == {"neighbours", "candidates", "solve", "certify", "graph"}


def test_tables_and_named_sets_are_embedded_by_their_means(run, tmp_path):
    digits = datasets.load("digits-bags")
    digits.to_npz(tmp_path / "digits.npz")
    named, own = (json.loads(run(source, "--json")[1]) for source in ("digits-bags", tmp_path / "digits.npz"))
    assert named["edges"] == own["edges"]
    table = pd.DataFrame({"slide": list("aabbccdd"), "tumour": 0, "f": range(8), "g": [1, 5, 2, 8, 1, 9, 3, 3]})
    table.to_csv(tmp_path / "t.csv", index=False)
    code, out, _ = run(tmp_path / "t.csv", "--bag", "slide", "--target", "tumour", "-k", 2)
    assert code == 0
    assert out.startswith("bags          4\n")


def test_known_edges_count(run, embeddings, tmp_path):
    pd.DataFrame({"source": ["0"], "target": ["59"], "weight": [1.0]}).to_csv(tmp_path / "known.csv", index=False)
    run(embeddings, "--observed", tmp_path / "known.csv", "--trust", 1, "-o", tmp_path / "e.csv")
    edges = pd.read_csv(tmp_path / "e.csv")
    assert ((edges["source"] == 0) & (edges["target"] == 59)).any()


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["nothing.npy"], 2, "expected a file, a folder or the name of a data set, got 'nothing.npy'"),
        (["digits-bags", "-o", "edges.txt"], 2, "must end in .parquet or .csv"),
        (["digits-bags", "--certify", "exakt"], 2, "did you mean 'exact'?"),
        (["digits-bags", "-k", "0"], 2, "n_neighbors a whole number from 1"),
    ],
)
def test_wrong_usage(run, arguments, code, text):
    left, out, err = run(*arguments)
    assert (left, out) == (code, "")
    assert text in err


def test_a_broken_array(run, tmp_path):
    (tmp_path / "z.npy").write_bytes(b"\x93NUMPY")
    code, _, err = run(tmp_path / "z.npy")
    assert code == 3
    assert "an array in z.npy" in err
