"""Figures of the paper and of an honest evaluation; each has ``frame()``, the numbers that it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray
from scipy import stats

from baggraph.data.graph import BagGraph
from baggraph.errors import InvalidBagsError

__all__ = [
    "Figure",
    "critical_difference",
    "graph_drawing",
    "label_curve",
    "rank_box",
    "ranks_of",
    "region_map",
    "reliability_diagram",
]

INK, SOFT, ACCENT = "#1f2933", "#9aa5b1", "#b4431f"
LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class Figure:
    """A picture and the table it shows."""

    canvas: Canvas
    table: pd.DataFrame

    def frame(self) -> pd.DataFrame:
        """The numbers in the picture, as a DataFrame of its own."""
        return self.table.copy()

    def save(self, path: str | Path) -> Path:
        """Write it as .png, .svg or .pdf."""
        target = Path(path)
        self.canvas.savefig(
            target, dpi=150, bbox_inches="tight", metadata={"Date": None} if target.suffix == ".svg" else None
        )
        return target


def _canvas(width: float, height: float) -> tuple[Canvas, Axes]:
    canvas = Canvas(figsize=(width, height), layout="constrained")
    axes = canvas.subplots()
    _plain(axes)
    return canvas, axes


def _plain(axes: Axes) -> None:
    """No box around the picture, quiet ticks."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(SOFT)
    axes.tick_params(colors=INK, labelsize=9)


# ---------------------------------------------------------------------- ranks


def ranks_of(scores: pd.DataFrame, *, larger_is_better: bool = True) -> pd.DataFrame:
    """Ranks of methods (columns) on sets (rows), 1 is best, equal scores share their mean rank.

    >>> ranks_of(pd.DataFrame({"a": [3.0, 1.0], "b": [2.0, 1.0]})).to_dict("list")
    {'a': [1.0, 1.5], 'b': [2.0, 1.5]}
    """
    if scores.isna().any(axis=None):
        where = scores.isna().stack()
        got = f"none of {where[where].index[0][1]!r} on {where[where].index[0][0]!r}"
        remedy = "drop the method or the set"
        raise InvalidBagsError("figure", expected="a score of every method on every set", got=got, remedy=remedy)
    return scores.rank(axis=1, ascending=not larger_is_better)


def rank_box(scores: pd.DataFrame, *, larger_is_better: bool = True, title: str = "") -> Figure:
    """Ranks of methods over sets as boxes: line the median, triangle the mean, whiskers to the extremes.

    >>> rank_box(pd.DataFrame({"a": [3.0, 1.0], "b": [2.0, 1.5]})).frame()["mean"].to_dict()
    {'b': 1.5, 'a': 1.5}
    """
    ranks = ranks_of(scores, larger_is_better=larger_is_better)[list(scores.columns)[::-1]]
    canvas, axes = _canvas(6.4, 0.9 + 0.32 * ranks.shape[1])
    axes.boxplot(
        [ranks[name] for name in ranks],
        orientation="horizontal",
        whis=(0, 100),
        showmeans=True,
        widths=0.55,
        patch_artist=True,
        boxprops={"facecolor": "#e4e7eb", "edgecolor": SOFT},
        medianprops={"color": ACCENT, "linewidth": 2},
        meanprops={"marker": "^", "markerfacecolor": INK, "markeredgecolor": INK, "markersize": 6},
        whiskerprops={"color": SOFT},
        capprops={"color": SOFT},
    )
    axes.set_yticks(range(1, ranks.shape[1] + 1), list(ranks.columns))
    axes.set_xticks(range(1, ranks.shape[1] + 1))
    axes.set_xlabel(f"rank over {len(ranks)} sets (1 is best)", color=INK)
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    table = ranks.agg(["mean", "median", "min", "max"]).T
    return Figure(canvas, table.rename_axis("method"))


def critical_difference(scores: pd.DataFrame, *, larger_is_better: bool = True, title: str = "") -> Figure:
    """Mean ranks on a line; bars join methods that the Nemenyi test at 5 % cannot tell apart (Demsar 2006).

    >>> found = critical_difference(pd.DataFrame({"a": [3.0, 2.0], "b": [2.0, 1.0], "c": [1.0, 0.0]}))
    >>> found.frame()["critical difference"].round(2).unique().tolist()
    [2.34]
    """
    ranks = ranks_of(scores, larger_is_better=larger_is_better)
    n, k = ranks.shape
    difference = float(stats.studentized_range.ppf(1 - LEVEL, k, np.inf) / np.sqrt(2) * np.sqrt(k * (k + 1) / (6 * n)))
    mean = ranks.mean().sort_values()
    groups = _alike(mean.to_numpy(), difference)
    canvas, axes = _canvas(6.8, 1.1 + 0.17 * k + 0.14 * len(groups))
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.spines["top"].set_visible(True)
    axes.xaxis.tick_top()
    axes.set_yticks([])
    axes.set_xlim(0.6, k + 0.4)
    half = (k + 1) // 2
    floor = -0.6 - 0.45 * len(groups)
    for place, (name, value) in enumerate(mean.items()):
        left = place < half
        depth = floor - 0.6 * (place if left else k - 1 - place) - 0.3
        end = 0.6 if left else k + 0.4
        axes.plot([value, value, end], [0, depth, depth], color=INK, linewidth=0.9, clip_on=False)
        side = {"ha": "right", "x": end - 0.05} if left else {"ha": "left", "x": end + 0.05}
        axes.text(y=depth, s=f"{name}  {value:.2f}", va="center", fontsize=9, color=INK, **side)  # type: ignore[arg-type]
    for level, (start, stop) in enumerate(groups):
        ends = [mean.iloc[start] - 0.04, mean.iloc[stop] + 0.04]
        axes.plot(ends, [-0.45 - 0.45 * level] * 2, color=ACCENT, linewidth=3, solid_capstyle="round")
    axes.plot([1, 1 + difference], [0.75, 0.75], color=INK, linewidth=1.5, marker="|", clip_on=False)
    axes.text(1 + difference / 2, 0.9, f"CD {difference:.2f}", ha="center", va="bottom", fontsize=9, color=INK)
    axes.set_ylim(floor - 0.6 * half - 0.2, 1.4)
    axes.spines["top"].set_position(("data", 0))
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    table = pd.DataFrame({"mean rank": mean, "critical difference": difference, "sets": n})
    return Figure(canvas, table.rename_axis("method"))


def _alike(mean: NDArray[np.float64], difference: float) -> list[tuple[int, int]]:
    """Longest runs of sorted mean ranks that span no more than the critical difference."""
    runs: list[tuple[int, int]] = []
    for start in range(len(mean)):
        stop = int(np.flatnonzero(mean <= mean[start] + difference)[-1])
        if stop > start and (not runs or stop > runs[-1][1]):
            runs.append((start, stop))
    return runs


# ---------------------------------------------------------------------- places


def region_map(
    places: Any,
    panels: Mapping[str, Any],
    *,
    uncertainty: Mapping[str, Any] | None = None,
    polygons: Sequence[NDArray[np.float64]] | None = None,
    center: float | None = None,
    label: str = "",
    ids: Sequence[Any] | None = None,
) -> Figure:
    """Maps side by side: colour is the value of a region, paleness its uncertainty where that is given.

    Parameters
    ----------
    places : (B, 2)
        Longitude and latitude of the centroids, drawn as dots where there are no ``polygons``.
    panels
        Values (B,) by title.
    uncertainty
        Standard deviations (B,) by title; the largest quarter of them over all panels is drawn nearly white.
    center
        The value that is drawn neutral, as 0.5 of shares; without, colours run from low to high.
    """
    xy = np.asarray(places, dtype=np.float64)
    values = {title: np.asarray(panel, dtype=np.float64) for title, panel in panels.items()}
    spread = {title: np.asarray(part, dtype=np.float64) for title, part in (uncertainty or {}).items()}
    low, high = (
        float(edge([np.nanmin(v) if edge is min else np.nanmax(v) for v in values.values()])) for edge in (min, max)
    )
    reach = max(abs(high - center), abs(low - center)) if center is not None else 0.0
    norm = TwoSlopeNorm(center, center - reach, center + reach) if center is not None else None
    stretch = 1 / np.cos(np.radians(xy[:, 1].mean()))
    shape = np.ptp(xy[:, 1]) * stretch / np.ptp(xy[:, 0])
    columns = min(len(values), 2)
    rows = -(-len(values) // columns)
    canvas = Canvas(figsize=(5.2 * columns, rows * (5.0 * shape + 0.4)), layout="constrained")
    grid = np.atleast_1d(canvas.subplots(rows, columns)).ravel()
    palest = float(np.nanquantile(np.concatenate(list(spread.values())), 0.95)) if spread else 1.0
    drawn: Any = None
    for axes, (title, panel) in zip(grid, values.items(), strict=False):
        sure = 1 - 0.85 * np.clip(spread[title] / palest, 0, 1) if title in spread else np.ones(len(panel))
        how: dict[str, Any] = {"cmap": "RdBu_r" if norm else "viridis", "norm": norm}
        how |= {} if norm else {"clim": (low, high)}
        known = np.flatnonzero(~np.isnan(panel))
        if polygons is None:
            how["clim"] = (center - reach, center + reach) if center is not None else (low, high)
            limits = how.pop("clim")
            drawn = axes.scatter(*xy[known].T, c=panel[known], s=9, linewidths=0, alpha=sure[known], **how)
            drawn.set_clim(*limits)
        else:
            drawn = PolyCollection(
                [polygons[b] for b in known], array=panel[known], edgecolors="white", linewidths=0.4, **how
            )
            drawn.set_alpha(sure[known])
            axes.add_collection(drawn)
            axes.autoscale_view()
        axes.set_aspect(stretch)
        axes.set_axis_off()
        axes.set_title(title, fontsize=10, color=INK)
    for axes in grid[len(values) :]:
        axes.set_axis_off()
    solid = canvas.colorbar(_opaque(drawn), ax=list(grid), shrink=0.7, label=label)
    solid.outline.set_visible(False)
    table = pd.DataFrame(
        {"longitude": xy[:, 0], "latitude": xy[:, 1], **values},
        index=pd.Index(ids if ids is not None else range(len(xy)), name="bag"),
    )
    return Figure(canvas, table.join(pd.DataFrame({f"{t}, sd": s for t, s in spread.items()}, index=table.index)))


def _opaque(drawn: Any) -> Any:
    from matplotlib.cm import ScalarMappable

    return ScalarMappable(drawn.norm, drawn.cmap)


# ---------------------------------------------------------------------- uncertainty


def reliability_diagram(predictions: Mapping[str, tuple[Any, Any]], *, n_bins: int = 10, title: str = "") -> Figure:
    """How often bags that get a probability are positive: (probabilities, zeros and ones) by name of the method.

    >>> found = reliability_diagram({"m": ([0.1, 0.9, 0.9, 0.95], [0, 1, 0, 1])}, n_bins=2)
    >>> found.frame()[["bags", "observed"]].round(2).values.tolist()
    [[1.0, 0.0], [3.0, 0.67]]
    """
    rows = []
    for method, (probability, label) in predictions.items():
        p, t = np.asarray(probability, dtype=np.float64), np.asarray(label, dtype=np.float64)
        bins = np.minimum((p * n_bins).astype(np.int64), n_bins - 1)
        for number in np.unique(bins):
            inside = bins == number
            row = {"method": method, "bags": int(inside.sum())}
            rows.append(row | {"predicted": p[inside].mean(), "observed": t[inside].mean()})
    table = pd.DataFrame(rows)
    canvas, axes = _canvas(4.6, 4.2)
    axes.plot([0, 1], [0, 1], color=SOFT, linewidth=1, linestyle="--")
    for method, part in table.groupby("method", sort=False):
        axes.plot(part["predicted"], part["observed"], marker="o", markersize=4, linewidth=1.4, label=str(method))
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel("predicted probability", color=INK)
    axes.set_ylabel("share of positive bags", color=INK)
    axes.legend(frameon=False, fontsize=8)
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    return Figure(canvas, table)


def label_curve(scores: pd.DataFrame, *, metric: str, title: str = "") -> Figure:
    """A score against the share of bags with a label: columns method, labelled, value, a row a trial.

    >>> rows = pd.DataFrame({"method": ["a", "a"], "labelled": [0.1, 0.1], "value": [0.5, 0.7]})
    >>> label_curve(rows, metric="accuracy").frame().round(2).to_dict("records")
    [{'method': 'a', 'labelled': 0.1, 'mean': 0.6, 'sd': 0.14, 'trials': 2}]
    """
    grouped = scores.groupby(["method", "labelled"], sort=False)["value"]
    table = grouped.agg(mean="mean", sd="std", trials="size").reset_index()
    canvas, axes = _canvas(5.4, 3.8)
    for method, part in table.groupby("method", sort=False):
        line = part.sort_values("labelled")
        (drawn,) = axes.plot(line["labelled"], line["mean"], marker="o", markersize=4, label=str(method))
        half = line["sd"].fillna(0.0)
        axes.fill_between(
            line["labelled"], line["mean"] - half, line["mean"] + half, color=drawn.get_color(), alpha=0.12
        )
    axes.set_xscale("log")
    ticks = sorted(table["labelled"].unique())
    axes.set_xticks(ticks, [f"{100 * tick:g} %" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("bags with a label", color=INK)
    axes.set_ylabel(metric, color=INK)
    axes.legend(frameon=False, fontsize=8)
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    return Figure(canvas, table)


# ---------------------------------------------------------------------- graphs


def graph_drawing(graph: BagGraph, places: Any, values: Any, *, label: str = "", title: str = "") -> Figure:
    """A graph over bags at places (B, 2): width of a line is its weight, colour of a dot the value of a bag.

    >>> graph = BagGraph.from_edges([("a", "b")], ids=["a", "b"])
    >>> graph_drawing(graph, [[0, 0], [1, 1]], [0.0, 1.0]).frame().to_dict("records")
    [{'source': 'a', 'target': 'b', 'weight': 1.0}]
    """
    xy = np.asarray(places, dtype=np.float64)
    table = graph.to_table()
    place = {name: number for number, name in enumerate(graph.ids.tolist())}
    ends = table[["source", "target"]].map(lambda name: place[name]).to_numpy(dtype=np.int64)
    weight = table["weight"].to_numpy(dtype=np.float64)
    canvas, axes = _canvas(5.6, 4.8)
    widths = 0.2 + 1.8 * weight / (weight.max() if len(weight) else 1.0)
    axes.add_collection(LineCollection(list(xy[ends]), colors=SOFT, linewidths=widths, alpha=0.8, zorder=1))
    drawn = axes.scatter(*xy.T, c=values, s=26, cmap="viridis", edgecolors="white", linewidths=0.5, zorder=2)
    canvas.colorbar(drawn, ax=axes, shrink=0.7, label=label).outline.set_visible(False)  # type: ignore[operator]
    axes.set_axis_off()
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    return Figure(canvas, table)
