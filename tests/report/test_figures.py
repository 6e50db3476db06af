"""Figures show the numbers in their frames, and can be written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from baggraph import BagGraph, Bags
from baggraph.errors import InvalidBagsError
from baggraph.experiments.recipe import recipes
from baggraph.report import _paper as paper
from baggraph.report.figures import (
    Figure,
    critical_difference,
    graph_drawing,
    label_curve,
    rank_box,
    ranks_of,
    region_map,
    reliability_diagram,
)
from baggraph.report.reproduction import Section, write_page
from baggraph.report.tables import grid, markdown


def scores(n_sets: int = 6, n_methods: int = 4, seed: int = 0) -> pd.DataFrame:
    values = np.random.default_rng(seed).normal(size=(n_sets, n_methods))
    return pd.DataFrame(values, columns=[f"m{i}" for i in range(n_methods)])


tables = st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=8)


@settings(max_examples=30, deadline=None)
@given(tables)
def test_ranks_are_those_of_scipy(rows: list[list[int]]) -> None:
    frame = pd.DataFrame(rows, columns=list("abc"), dtype=float)
    expected = np.array([stats.rankdata([-value for value in row]) for row in rows])
    assert np.array_equal(ranks_of(frame).to_numpy(), expected)
    assert np.array_equal(ranks_of(frame, larger_is_better=False).to_numpy(), 4 - expected)


def test_ranks_refuse_gaps() -> None:
    frame = scores()
    frame.iloc[2, 1] = np.nan
    with pytest.raises(InvalidBagsError, match="none of 'm1' on 2"):
        ranks_of(frame)


def test_box_plot_of_the_paper() -> None:
    """Average and median ranks as Table 2 prints them, from its accuracies; ties share ranks, in print they did not."""
    printed = recipes()["text-original"].expected["accuracy"]
    names = list(printed)
    wide = pd.DataFrame({name: {dataset: cell[0] for dataset, cell in printed[name].items()} for name in names})
    found = rank_box(wide).frame()
    assert found.loc["B-Res+pool-GCN", "mean"] == pytest.approx(3.35, abs=0.05)
    assert found.loc["Res+pool", "median"] == 3.5
    assert found.loc["MI-Kernel", "mean"] == 10
    for name, mean in {"mi-Graph": 8.70, "mi-FV": 7.50, "mi-Net": 4.60, "MI-Net": 3.70, "MI-Net (DS)": 4.05}.items():
        assert found.loc[name, "mean"] == pytest.approx(mean, abs=0.06)


def test_box_plot_draws_what_it_says() -> None:
    figure = rank_box(scores())
    axes = figure.canvas.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["m3", "m2", "m1", "m0"]
    assert figure.frame().loc["m0", "mean"] == ranks_of(scores())["m0"].mean()


def test_critical_difference_of_demsar() -> None:
    """Four methods on fourteen sets have 1.25 in Demsar (2006), section 3.2.4."""
    found = critical_difference(scores(14, 4)).frame()
    assert found["critical difference"].iloc[0] == pytest.approx(1.25, abs=0.01)
    assert found["mean rank"].is_monotonic_increasing


def test_critical_difference_joins_what_is_alike() -> None:
    frame = pd.DataFrame({"a": np.full(40, 3.0), "b": np.full(40, 2.0), "c": np.full(40, 1.0)})
    thick = [line for line in critical_difference(frame).canvas.axes[0].lines if line.get_linewidth() == 3]
    assert thick == []  # ranks 1, 2, 3 on 40 sets are told apart
    few = [line for line in critical_difference(frame[:2]).canvas.axes[0].lines if line.get_linewidth() == 3]
    assert len(few) == 1


def test_reliability_counts_every_bag() -> None:
    generator = np.random.default_rng(0)
    probability = generator.random(500)
    label = generator.random(500) < probability
    found = reliability_diagram({"m": (probability, label)}).frame()
    assert found["bags"].sum() == 500
    assert np.allclose(found["predicted"], found["observed"], atol=0.2)
    assert (found["bags"] * found["observed"]).sum() == label.sum()


def test_map_greys_what_has_no_value() -> None:
    places = np.random.default_rng(0).normal([10.0, 50.0], 1.0, size=(20, 2))
    values = np.linspace(0, 1, 20)
    values[3] = np.nan
    figure = region_map(
        places, {"a": values}, uncertainty={"a": np.ones(20)}, center=0.5, ids=[f"r{i}" for i in range(20)]
    )
    grey, known = figure.canvas.axes[0].collections
    assert (len(grey.get_offsets()), len(known.get_offsets())) == (1, 19)
    assert figure.frame().loc["r4", "a"] == values[4]
    assert np.isnan(figure.frame().loc["r3", "a"])


def test_map_pales_with_uncertainty() -> None:
    places = [[0.0, 50.0], [1.0, 50.0], [0.0, 51.0]]
    figure = region_map(places, {"a": [1.0, 2.0, 3.0]}, uncertainty={"a": [0.1, 0.5, 0.9]})
    alpha = figure.canvas.axes[0].collections[0].get_alpha()
    assert alpha[0] == 1 > alpha[1] > alpha[2] > 0


def test_map_of_polygons() -> None:
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    polygons = [square + np.array([i, 40]) for i in range(3)]
    figure = region_map([p.mean(0) for p in polygons], {"a": [1.0, np.nan, 2.0]}, polygons=polygons)
    assert [len(drawn.get_paths()) for drawn in figure.canvas.axes[0].collections] == [1, 2]


def test_cells_without_an_end_are_cut_off() -> None:
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    places = [40 + 2 * corners[i] for i in range(4)]
    squares = [p + corners - 0.5 for p in places]
    squares[0] = np.array([[40.5, 40.5], [-500.0, 40.5], [-500.0, 39.5], [40.5, 39.5]])
    drawn = region_map(places, {"a": np.arange(4.0)}, polygons=squares).canvas.axes[0].collections[0]
    shown = drawn.get_paths()[0].vertices
    assert 39 < shown[:, 0].min() < 40
    assert drawn.get_paths()[3].vertices.max() < 42.5


def test_graph_drawing_has_every_edge() -> None:
    graph = BagGraph.from_edges([("a", "b", 1.0), ("b", "c", 3.0)], ids=["a", "b", "c"])
    figure = graph_drawing(graph, [[0, 0], [1, 0], [1, 1]], [0.0, 1.0, 2.0])
    pd.testing.assert_frame_equal(figure.frame(), graph.to_table())
    lines, dots = figure.canvas.axes[0].collections
    assert len(lines.get_segments()) == 2
    assert len(dots.get_offsets()) == 3
    assert lines.get_linewidths()[1] > lines.get_linewidths()[0]


def test_label_curve_averages_trials() -> None:
    rows = pd.DataFrame({"method": "a", "labelled": [0.1, 0.1, 0.5], "value": [0.4, 0.6, 0.9]})
    found = label_curve(rows, metric="accuracy").frame()
    assert found[["labelled", "mean", "trials"]].values.tolist() == [[0.1, 0.5, 2], [0.5, 0.9, 1]]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_figures_can_be_written(tmp_path: Path, suffix: str) -> None:
    assert rank_box(scores()).save(tmp_path / f"figure{suffix}").stat().st_size > 1000


def test_frame_is_a_copy() -> None:
    figure = rank_box(scores())
    own = figure.frame()
    own["mean"] = 0.0
    assert (figure.frame()["mean"] > 0).all()


def test_means_without_gaps() -> None:
    cells = pd.DataFrame(
        [("a", "x", 1.0), ("a", "y", 2.0), ("b", "x", 3.0), ("b", "y", np.nan), ("c", "x", 1.0), ("c", "y", 1.0)],
        columns=["method", "dataset", "ours"],
    )
    assert list(paper.means_of(cells)) == ["a", "c"]


def test_map_of_predictions_is_blank_where_labels_were_seen() -> None:
    bags = Bags([[0.0]] * 3, range(4), [0.2, 0.6, 0.9], ids=["a", "b", "c"], coords=[[0, 50], [1, 50], [0, 51]])
    predictions = pd.DataFrame({"method": "m", "bag": ["a", "c"], "prediction": [0.1, 0.8], "std": [0.1, 0.2]})
    figure = paper.prediction_map(bags, predictions, ["m", "absent"], label="share", center=0.5)
    assert isinstance(figure, Figure)
    assert figure.frame()["m"].isna().tolist() == [False, True, False]


# ---------------------------------------------------------------------- tables and the page


def test_markdown_escapes_and_rounds() -> None:
    text = markdown(pd.DataFrame({"a": ["x|y", None], "b": [1.0, np.nan]}))
    assert text.splitlines()[2:] == ["| x\\|y | 1.00 |", "|  |  |"]


def section(**changes: object) -> Section:
    row = {
        "method": "m",
        "role": "printed",
        "dataset": "d",
        "metric": "accuracy",
        "ours": 80.0,
        "sd": 1.0,
        "repeats": 2,
    }
    row |= {
        "of": 10,
        "printed": 81.0,
        "printed_sd": 2.0,
        "difference": -1.0,
        "tolerance": 2.0,
        "device": "CPU",
        "hours": 0.1,
    }
    absent = row | {
        "dataset": "e",
        "ours": np.nan,
        "repeats": 0,
        "verdict": "no number: not run; printed claim explained: x",
    }
    cells = pd.DataFrame([row | {"verdict": "reproduced"}, absent])
    claim = {"claim": "m is better", "dataset": "d", "metric": "accuracy", "gain": 1.0, "pairs": 20}
    claims = pd.DataFrame([claim | {"p_wilcoxon": 0.01, "p_corrected": 0.2, "verdict": "a gain that may be chance"}])
    figures = {"Ranks": rank_box(scores())}
    return Section(
        "t", "Title", "Table 1", "sound", "in a line", cells, claims, ["accuracy"], ["Other folds."], figures
    )


def test_grid_says_how_many_repeats() -> None:
    found = grid(section().cells)
    assert found.to_dict("records") == [{"method": "m", "d": "80.0 ± 1.0 (2) / 81.0", "e": "– / 81.0"}]


def test_page_has_everything(tmp_path: Path) -> None:
    path = write_page(tmp_path / "page.md", [section()], "# Page", "## Appendix")
    text = path.read_text(encoding="utf-8")
    for part in (
        "in a line",
        "80.0 ± 1.0 (2) / 81.0",
        "No number: not run",
        "Printed claim explained (m): x",
        "Other folds.",
    ):
        assert part in text
    assert "**A gain that may be chance.**" in text
    assert (tmp_path / "page" / "t-1.png").exists()
    assert len(pd.read_parquet(tmp_path / "page" / "t-cells.parquet")) == 2
    assert text.rstrip().endswith("## Appendix")
