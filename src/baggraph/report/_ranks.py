"""Ranks of methods over data sets."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baggraph.errors import InvalidBagsError
from baggraph.evaluation.ranks import critical_difference as least_difference
from baggraph.evaluation.ranks import ranks as ranks_in_rows
from baggraph.report._figure import ACCENT, INK, SOFT, Figure
from baggraph.report._figure import canvas as blank

LEVEL = 0.05


def ranks_of(scores: pd.DataFrame, *, larger_is_better: bool = True) -> pd.DataFrame:
    """Ranks of methods (columns) on sets (rows), 1 is best, equal scores share their mean rank.

    >>> ranks_of(pd.DataFrame({"a": [3.0, 1.0], "b": [2.0, 1.0]})).to_dict("list")
    {'a': [1.0, 1.5], 'b': [2.0, 1.5]}
    """
    gaps = np.argwhere(scores.isna().to_numpy())
    if len(gaps):
        row, column = gaps[0]
        got = f"none of {scores.columns[column]!r} on {scores.index[row]!r}"
        remedy = "drop the method or the set"
        raise InvalidBagsError("figure", expected="a score of every method on every set", got=got, remedy=remedy)
    place = ranks_in_rows(scores, larger_is_better=larger_is_better)
    return pd.DataFrame(place, scores.index, scores.columns)


def rank_box(scores: pd.DataFrame, *, larger_is_better: bool = True, title: str = "") -> Figure:
    """Ranks of methods over sets as boxes: line the median, triangle the mean, whiskers to the extremes.

    >>> rank_box(pd.DataFrame({"a": [3.0, 1.0], "b": [2.0, 1.5]})).frame()["mean"].to_dict()
    {'b': 1.5, 'a': 1.5}
    """
    ranks = ranks_of(scores, larger_is_better=larger_is_better)[list(scores.columns)[::-1]]
    canvas, axes = blank(6.4, 0.9 + 0.32 * ranks.shape[1])
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
    difference = least_difference(k, n, LEVEL)
    mean = ranks.mean().sort_values()
    groups = _alike(mean.to_numpy(), difference)
    canvas, axes = blank(6.8, 1.1 + 0.17 * k + 0.14 * len(groups))
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
