"""The worked examples run, and what they say of their data holds."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(monkeypatch, capsys, name, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def number(pattern, text):
    return float(re.search(pattern, text).group(1))


def test_every_example_is_short():
    assert {path.name: len(path.read_text().splitlines()) for path in EXAMPLES.glob("*.py")}.keys() == {
        "digits_explained.py",
        "election_map.py",
        "musk_uncertainty.py",
    }
    assert all(len(path.read_text().splitlines()) <= 100 for path in EXAMPLES.glob("*.py"))


def test_digits(monkeypatch, capsys, tmp_path):
    said = run(monkeypatch, capsys, "digits_explained.py", "--epochs", "60")
    assert number(r"mean ([\d.]+) of", said) > 0.8
    assert number(r"([\d.]+)% of 54", said) > 70
    assert (tmp_path / "digits_explained.png").stat().st_size > 10_000


@pytest.mark.needs("mil_benchmark/raw")
@pytest.mark.usefixtures("real")
def test_musk(monkeypatch, capsys, tmp_path):
    said = run(monkeypatch, capsys, "musk_uncertainty.py", "--epochs", "20", "--repeats", "2")
    assert number(r"([\d.]+)% right", said) > 55
    assert (tmp_path / "musk_uncertainty.png").exists()


@pytest.mark.needs("us_election_2016")
@pytest.mark.usefixtures("real")
def test_election(monkeypatch, capsys, tmp_path):
    said = run(monkeypatch, capsys, "election_map.py", "--epochs", "5", "--regions", "120")
    assert "12 regions are counted" in said
    assert (tmp_path / "election_map.png").exists()
