"""``baggraph audit`` as a person meets it."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from baggraph import datasets


@pytest.fixture
def run(command, monkeypatch, tmp_path):
    """Run one command without data or network."""
    monkeypatch.setenv("BAGGRAPH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BAGGRAPH_OFFLINE", "1")
    return command


@pytest.fixture
def flats(tmp_path):
    """A table of flats whose district label is the mean of one of its columns."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"district": np.repeat([f"d{i}x" for i in range(40)], 4), "rooms": rng.integers(1, 6, 160)})
    table["rent"] = np.round(rng.lognormal(7, 0.4, 160), 2)
    table["mean_rent"] = table.groupby("district")["rent"].transform("mean")
    path = tmp_path / "flats.csv"
    table.to_csv(path, index=False)
    return path


def test_a_data_set_by_name(run):
    code, out, err = run("audit", "digits-bags")
    assert code == 0
    assert out.startswith("Audit of digits-bags: 4 notes\n\nBG401 note: Constant columns\n")
    assert "audited 160 bags, 1,586 instances in " in err


def test_a_table_whose_label_is_the_mean_of_a_column(run, flats):
    code, out, _ = run("audit", str(flats), "--bag", "district", "--target", "mean_rent")
    assert code == 0
    assert out.startswith("Audit of flats: 1 serious")
    assert "the mean of 'rent' over a bag has correlation 1.0000 with the target" in out


def test_json_is_whole_and_alone_on_the_output(run, flats):
    code, out, _ = run("audit", str(flats), "--bag", "district", "--target", "mean_rent", "--json")
    facts = json.loads(out)
    assert code == 0
    assert (facts["name"], facts["findings"][0]["code"]) == ("flats", "BG201")
    assert facts["findings"][0]["numbers"]["correlation"] == pytest.approx(1.0)


def test_scores_are_laid_beside_a_constant(run, tmp_path):
    (tmp_path / "printed.csv").write_text("method,metric,mean\nours,accuracy,51.0\ntheirs,accuracy,49.5\n")
    code, out, _ = run("audit", "digits-bags", "--scores", str(tmp_path / "printed.csv"))
    assert code == 0
    assert "BG602 serious: A constant is as good as a score" in out


def test_other_sets_are_compared(run, tmp_path):
    bags = datasets.load("digits-bags")
    named = bags.replace(ids=[f"bag {chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(len(bags))])
    whole = named.to_parquet(tmp_path / "whole.parquet")
    part = named.take(np.arange(12)).to_parquet(tmp_path / "part.parquet")
    code, out, _ = run("audit", str(whole), "--beside", str(part))
    assert code == 0
    assert "12 of 160 bags are also among the 12 of" in out


@pytest.mark.parametrize(
    ("arguments", "code", "hint"),
    [
        (["digit-bags"], 2, "did you mean 'digits-bags'?"),
        (["musk1"], 3, "baggraph datasets get musk1 --from-file FILE"),
        (["digits-bags", "--as-published"], 2, "call load without it"),
        (["digits-bags", "--beside", "nothing"], 2, "a file, a folder or the name of a data set"),
        (["digits-bags", "--scores", "nowhere.csv"], 3, "nowhere.csv"),
        (["digits-bags", "--jsn"], 2, "--json"),
    ],
)
def test_mistakes_are_answered(run, arguments, code, hint):
    found, out, err = run("audit", *arguments)
    assert (found, out) == (code, "")
    assert hint in err


def test_help_has_examples(run):
    code, out, _ = run("audit", "--help")
    assert code == 0
    assert "Example" in out
