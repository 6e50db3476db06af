"""From a folder of results to the page on the reproduction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from baggraph import datasets
from baggraph.data.results import ResultTable
from baggraph.experiments import supplement
from baggraph.experiments._scores import SCORES
from baggraph.experiments.recipe import Recipe
from baggraph.experiments.run import results, results_folder
from baggraph.experiments.verdict import cells, claims, one_line, stars
from baggraph.report import _paper as paper
from baggraph.report.figures import Figure, label_curve
from baggraph.report.reproduction import METRICS, Section, write_page
from baggraph.report.tables import markdown

INTRO = """
# Reproduction of the paper

What Pal, Valkanas, Regol and Coates print in "Bag Graph: Multiple Instance Learning using Bayesian Graph Neural
Networks" (AAAI 2022), run again with this library.  This page is written by one command, from results on disk:

```sh
baggraph reproduce all --tier {tier} -o runs                          # computes what is missing, for hours
baggraph reproduce all --tier {tier} -o runs --repeats 0 --page docs/reproduction.md   # computes nothing
```

Two protocols are kept apart.  *Sound* is the algorithm as the paper states it, solved properly and scored by one rule
for every method.  *As published* is what the published code does, quirk by quirk, so that our numbers can be laid
beside the printed ones.

A cell reads `ours ± standard deviation (repeats, where fewer than planned) / printed`.  Every table has its trivial
rows, and controls: base models averaged over as many draws as the Bayesian rows, and graphs whose bags were exchanged.
A claim *holds* where the corrected t-test (Nadeau & Bengio 2003), which knows that splits share training bags, finds a
gain at 5 %; *by the paper's test alone* where only Wilcoxon's test does, which takes splits for independent.  Numbers
were computed on the machine named below each table; {gpu}
What has fewer repeats is the mean of the first of them; claims are tested on the splits that both rows have.
"""
CPU_ONLY = """there was no GPU, so that rows of
networks have fewer repeats than planned (the number stands in brackets), and some have none."""
PALE = "pale where uncertain by the residuals of the training labels, so that what overfits looks sure"
ON_MAP = ("Deep Sets", "DS-GCN", "B-DS-GCN", "Gaussian process over bags", "auto")
BENCHMARK_NETWORKS = ("rFF+pool", "rFF+pool, 50 draws", "rFF+pool-GCN", "B-rFF+pool-GCN")


def write(path: Path, chosen: Sequence[Recipe], folder: Path, tier: str) -> Path:
    """Write the page of these recipes, with its figures, its tables, and all rows behind them."""
    tables = {recipe.name: results(folder, tier, recipe) for recipe in chosen}
    sections = [_section(recipe, results_folder(folder, tier, recipe), tables[recipe.name]) for recipe in chosen]
    on_gpu = any(
        not device.casefold().startswith("cpu") for section in sections for device in section.cells["device"] if device
    )
    intro = INTRO.format(tier=tier, gpu="most rows of networks on a GPU." if on_gpu else CPU_ONLY)
    written = write_page(path, sections, intro, _supplement())
    for recipe in chosen:
        rows = tables[recipe.name].rows
        pq.write_table(rows, path.with_suffix("") / f"{recipe.name}-rows.parquet", compression="zstd")
    return written


def _section(recipe: Recipe, folder: Path, table: ResultTable) -> Section:
    found = cells(recipe, table)
    plain = [name for name in recipe.metrics if SCORES[name].needs in ("decisions", "targets")]
    headline = [name for name in plain if name in recipe.expected or recipe.comparable]
    return Section(
        recipe.name,
        recipe.title,
        recipe.source,
        recipe.protocol,
        one_line(recipe, found).partition("): ")[2],
        found,
        claims(recipe, table),
        headline,
        recipe.deviations,
        _of_labels(recipe, table.frame()) if recipe.labelled else _figures(recipe, folder, found),
        stars(recipe, table),
    )


def _predictions(folder: Path) -> pd.DataFrame:
    parts = [pd.read_parquet(path) for path in sorted((folder / "predictions").glob("*.parquet"))]
    return pd.concat(parts) if parts else pd.DataFrame(columns=["method", "dataset", "bag", "prediction", "std"])


def _of_labels(recipe: Recipe, rows: pd.DataFrame) -> dict[str, Figure]:
    metric = recipe.metrics[0]
    mine = rows[rows["metric"] == metric]
    share = (mine["n_train"] / (mine["n_train"] + mine["n_test"])).round(3)
    trials = mine[["method"]].assign(labelled=share, value=mine["value"] * recipe.scales.get(metric, 1.0))
    if not len(trials):
        return {}
    return {
        "Bags with a label, and how many regions' winners are right; bands are one standard deviation": label_curve(
            trials, metric=METRICS[metric]
        )
    }


def _figures(recipe: Recipe, folder: Path, found: pd.DataFrame) -> dict[str, Figure]:
    makers = {"benchmark": _of_benchmark, "text": _of_text, "election": _of_election, "rental": _of_rental}
    return makers[recipe.experiment](recipe, found, _predictions(folder))


def _of_benchmark(_: Recipe, found: pd.DataFrame, predictions: pd.DataFrame) -> dict[str, Figure]:
    figures = paper.rank_figures(found[found["metric"] == "accuracy"], "ours", "our accuracies on the five sets")
    drawn = paper.calibration(predictions, BENCHMARK_NETWORKS, "all five sets, ten folds")
    return figures | ({"Reliability of the networks on tested bags": drawn} if drawn else {})


def _of_text(recipe: Recipe, found: pd.DataFrame, _: pd.DataFrame) -> dict[str, Figure]:
    accuracy = found[found["metric"] == "accuracy"]
    if recipe.comparable:
        return paper.rank_figures(accuracy, "ours", "our accuracies on the rebuilt sets")
    return paper.rank_figures(accuracy, "printed", "printed accuracies")


def _of_election(recipe: Recipe, _: pd.DataFrame, predictions: pd.DataFrame) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for dataset in recipe.datasets:
        mine = predictions[predictions["dataset"] == dataset]
        if not len(mine):
            continue
        bags = datasets.load(dataset)
        west, north = np.asarray(bags.coords).T
        mainland = (west > -130) & (north > 23) & (north < 50)
        drawn = paper.prediction_map(bags, mine, ON_MAP, label="Republican share", center=0.5, inside=mainland)
        if drawn:
            figures[f"Truth and predictions from {dataset}, first split; training regions are grey; {PALE}"] = drawn
    return figures


def _of_rental(recipe: Recipe, _: pd.DataFrame, predictions: pd.DataFrame) -> dict[str, Figure]:
    if recipe.protocol != "sound":
        return {}
    bags = datasets.load("rental")
    drawn = paper.prediction_map(bags, predictions, ON_MAP, label="mean rent, dollars", polygons=_polygons())
    figures = {f"Truth and predictions, first split; training neighbourhoods are grey; {PALE}": drawn} if drawn else {}
    if recipe.sample:
        return figures
    return figures | {"Learned graph of the standardised bag means": paper.summary_graph(bags, 8, "mean rent, dollars")}


def _polygons() -> list[np.ndarray]:
    from baggraph.datasets.rental import polygons

    return polygons(datasets.files_of(datasets.card("rental")))


def _short(value: float) -> str:
    return "" if np.isnan(value) else f"{value:g}"


def _supplement() -> str:
    sizes, settings = supplement.statistics(), supplement.settings()
    return "\n".join(
        [
            "## The supplement's tables",
            "",
            "Sizes of the sets, as loaded here; the last column names what differs from print.",
            "",
            markdown(sizes),
            "",
            "Settings of the networks, as `baggraph.make` has them.",
            "",
            markdown(settings, dict.fromkeys(("lr", "weight_decay", "k_gcn", "epochs"), _short)),
        ]
    )
