"""A figure: a picture, and the numbers in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

INK, SOFT, ACCENT = "#1f2933", "#9aa5b1", "#b4431f"


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


def canvas(width: float, height: float) -> tuple[Canvas, Axes]:
    """An empty picture of this size in inches."""
    made = Canvas(figsize=(width, height), layout="constrained")
    axes = made.subplots()
    plain(axes)
    return made, axes


def plain(axes: Axes) -> None:
    """No box around the picture, quiet ticks."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(SOFT)
    axes.tick_params(colors=INK, labelsize=9)
