"""Sentences follow from numbers."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from baggraph import ResultTable
from baggraph.experiments.recipe import Recipe, read_recipe
from baggraph.experiments.supplement import settings, statistics
from baggraph.experiments.verdict import cells, claims, one_line, stars

SMALL = Path(__file__).parent / "small.toml"


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return read_recipe(SMALL)


def table(values: dict[str, list[list[float]]]) -> ResultTable:
    """Accuracy (repeats, folds) by method."""
    return ResultTable.from_rows(
        {"method": method, "dataset": "digits-bags", "metric": "accuracy", "repeat": repeat, "fold": fold}
        | {"value": value, "n_train": 90, "n_test": 10, "device": "CPU", "wall_time": 36.0, "task": "benchmark"}
        for method, rows in values.items()
        for repeat, row in enumerate(rows)
        for fold, value in enumerate(row)
    )


def cell(recipe: Recipe, found: ResultTable, method: str) -> dict[str, object]:
    frame = cells(recipe, found)
    return frame[frame["method"] == method].to_dict("records")[0]


def test_mean_and_spread_are_those_of_repeats(recipe: Recipe) -> None:
    one = cell(recipe, table({"majority": [[0.4, 0.6], [0.5, 0.7], [0.6, 0.8]]}), "majority")
    assert one["ours"] == pytest.approx(60)
    assert one["sd"] == pytest.approx(10)
    assert (one["repeats"], one["of"], one["device"]) == (3, 8, "CPU")
    assert one["hours"] == pytest.approx(0.06)


@pytest.mark.parametrize(
    ("value", "repeats", "begins"),
    [
        (0.515, 8, "reproduced"),
        (0.53, 8, "not reproduced: 3.00 above"),
        (0.53, 2, "undecided: +3.00 after 2 of 8"),
        (0.45, 2, "not reproduced: 5.00 below"),
    ],
)
def test_sentence(recipe: Recipe, value: float, repeats: int, begins: str) -> None:
    assert str(cell(recipe, table({"majority": [[value]] * repeats}), "majority")["verdict"]).startswith(begins)


def test_reasons_and_explanations(recipe: Recipe) -> None:
    other = dataclasses.replace(recipe, comparable="other data")
    found = table({"majority": [[0.5]], "bag size": [[math.nan]], "rFF+pool": [[0.5]]})
    assert cell(other, found, "majority")["verdict"] == "cannot be compared: other data"
    assert str(cell(recipe, found, "bag size")["verdict"]).startswith("not defined, or failed")
    assert cell(recipe, found, "rFF+pool")["verdict"] == "not printed"
    absent = str(cell(recipe, table({"majority": [[0.5]]}), "bag size")["verdict"])
    assert absent.startswith("no number: not run")
    assert absent.endswith("printed claim explained: it was made up")


def test_relative_tolerance(recipe: Recipe) -> None:
    other = dataclasses.replace(recipe, relative=True, tolerance=0.03, tolerances={"majority": 0.01})
    assert cell(other, table({"majority": [[0.5]]}), "majority")["tolerance"] == pytest.approx(0.5)
    assert cell(other, table({"majority": [[0.5]]}), "bag size")["tolerance"] == pytest.approx(2.97)


def test_a_failed_fold_is_not_averaged_away(recipe: Recipe) -> None:
    assert math.isnan(float(str(cell(recipe, table({"majority": [[0.4, math.nan]]}), "majority")["ours"])))


def test_claims_are_tested_in_pairs(recipe: Recipe) -> None:
    generator = np.random.default_rng(0)
    base = generator.uniform(0.5, 0.7, size=(8, 3))
    gain = generator.normal(0.05, 0.02, size=(8, 3))
    found = claims(recipe, table({"majority": base.tolist(), "rFF+pool": (base + gain).tolist()}))
    (row,) = found.to_dict("records")
    assert row["gain"] == pytest.approx(100 * gain.mean())
    assert row["pairs"] == 24
    error = math.sqrt((1 / 24 + 1 / 9) * gain.var(ddof=1))
    assert row["p_corrected"] == pytest.approx(2 * stats.t.sf(gain.mean() / error, 23))
    assert row["verdict"] == "holds"


@pytest.mark.parametrize(
    ("shift", "verdict"), [(0.0, "does not hold: no gain"), (-0.2, "does not hold: significantly worse")]
)
def test_claims_that_fail(recipe: Recipe, shift: float, verdict: str) -> None:
    noise = np.random.default_rng(1).normal(0, 0.01, size=(8, 3))
    base = np.full((8, 3), 0.6)
    found = claims(recipe, table({"majority": base.tolist(), "rFF+pool": (base + shift - abs(noise)).tolist()}))
    assert found["verdict"].tolist()[0].startswith("does not hold")
    if shift:
        assert found["verdict"].tolist() == [verdict]


def test_claims_without_both_methods_are_left_out(recipe: Recipe) -> None:
    assert len(claims(recipe, table({"majority": [[0.5, 0.6]]}))) == 0


def test_one_line(recipe: Recipe) -> None:
    text = one_line(recipe, cells(recipe, table({"majority": [[0.5]]})))
    assert text == (
        "small (this test, sound): ours beside 1 printed numbers: 1 reproduced; 1 printed numbers have none beside them"
    )


def test_supplement_says_what_differs() -> None:
    found = statistics().set_index("dataset")["verdict"]
    assert found["newsgroups/sci.med"].startswith(("equal", "no number"))
    if found["elephant"].startswith("no number"):
        pytest.skip("no files of elephant")
    assert found["elephant"] == "smallest is 2, printed 3"
    assert set(settings()["verdict"]) == {"equal"}


def test_stars_follow_the_rule_of_the_paper(recipe: Recipe) -> None:
    """The second beats base and third: two stars; the third beats the base alone: one."""
    family = dataclasses.replace(recipe, families=(("majority", "rFF+pool", "bag size"),), expected={})
    noise = np.random.default_rng(0).normal(0, 0.003, size=(8, 3))
    base, third = np.full((8, 3), 0.5), 0.6 + noise
    found = table({"majority": base.tolist(), "rFF+pool": (third + 0.1).tolist(), "bag size": third.tolist()})
    made = stars(family, found)
    assert made[["method", "wilcoxon"]].values.tolist() == [["rFF+pool", "**"], ["bag size", "*"]]
    worse = table({"majority": (third + 0.3).tolist(), "rFF+pool": third.tolist(), "bag size": base.tolist()})
    assert stars(family, worse)["corrected"].tolist() == ["", ""]
