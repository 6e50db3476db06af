"""``baggraph reproduce`` as a person meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

SMALL = Path(__file__).parents[1] / "experiments" / "small.toml"


@pytest.fixture
def run(command, tmp_path):
    """Run ``reproduce``, which writes to a folder of its own."""
    return lambda *arguments: command("reproduce", *arguments, "-o", tmp_path / "runs")


def test_tables_and_claims_are_printed(run):
    code, out, err = run(SMALL, "--only", "majority", "--only", "rFF+pool")
    assert code == 0
    assert "majority" in out
    assert "reproduced" in out
    assert "the base model beats the majority (digits-bags):" in out
    assert "small (this test, sound): ours beside 1 printed numbers: 1 reproduced" in out
    assert "16/16" in err
    assert "done small" in " ".join(err.split())
    assert "left" in err


def test_interrupted_run_says_how_to_go_on(run, monkeypatch):
    def stops(task):
        raise KeyboardInterrupt

    monkeypatch.setattr("baggraph.experiments.run.perform", stops)
    code, _, err = run(SMALL, "--only", "majority")
    assert code == 5
    assert "the same command goes on" in " ".join(err.split())


def test_second_time_computes_nothing(run):
    run(SMALL, "--only", "majority")
    code, out, err = run(SMALL, "--only", "majority")
    assert (code, err) == (0, "")
    assert "majority" in out
    facts = json.loads(run(SMALL, "--only", "majority", "--json")[1])["small"]
    assert {cell["method"] for cell in facts["cells"] if cell["ours"] is not None} == {"majority"}
    assert facts["verdict"].startswith("small (")


def test_smoke_says_what_it_is_worth(run):
    assert "for a few epochs only" in run(SMALL, "--tier", "smoke", "--only", "majority")[2]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["benchmrk"], "did you mean 'benchmark'"),
        ([SMALL, "--tier", "ful"], "did you mean 'full'"),
        ([SMALL, "--engine", "proceses"], "did you mean 'processes'"),
        ([SMALL, "--only", "majorty"], "did you mean 'majority'"),
        ([SMALL, "--dataset", "digit-bags"], "did you mean 'digits-bags'"),
        (["benchmark", "--protocol", "sond"], "did you mean 'sound'"),
    ],
)
def test_wrong_words_are_answered_with_the_nearest(run, arguments, says):
    code, _, err = run(*arguments)
    assert code == 2
    assert says in " ".join(err.split())


def test_page_says_where_numbers_come_from(run, tmp_path):
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    stale = tmp_path / "docs" / "page" / "old-1.png"
    stale.parent.mkdir()
    stale.touch()
    code, _, err = run(SMALL, "--only", "majority", "--repeats", 2, "--page", page)
    assert code == 0
    assert "wrote" in err
    text = page.read_text(encoding="utf-8")
    assert "there was no GPU" in " ".join(text.split())  # of what ran on a CPU
    assert re.search(r"\| majority \| \d\d\.\d ± \d\.\d \(2\) / 50\.0 \|", text)
    assert "Printed claim explained (bag size): it was made up." in text
    assert not stale.exists()
    assert len(pd.read_parquet(tmp_path / "docs" / "page" / "small-cells.parquet")) == 4
