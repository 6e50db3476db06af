"""Small charts as SVG text, which need no script and print well."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
WIDTH = 640
LEFT = 190  # room for names


def intervals(rows: Sequence[tuple[str, float, float, float]], title: str, unit: str) -> str:
    """Points with whiskers, a line each: (name, value, low, high).

    >>> intervals([("a", 1.0, 0.5, 1.5)], "Scores", "points").startswith("<svg")
    True
    """
    known = [row for row in rows if np.isfinite(row[1])]
    low = min((min(a, v) for _, v, a, _ in known), default=0.0)
    high = max((max(b, v) for _, v, _, b in known), default=1.0)
    pad = 0.05 * (high - low) or 0.5
    scale = _Scale(low - pad, high + pad, LEFT, WIDTH - 20)
    height = 24 * len(rows) + 46
    bottom = height - 36
    parts = [_axis(scale, bottom, unit)]
    for place, (name, value, least, most) in enumerate(rows):
        y = 16 + 24 * place
        parts.append(f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(_cut(name))}</text>')
        if np.isfinite(value):
            parts.append(
                f'<line class="mark" x1="{scale(least)}" x2="{scale(most)}" y1="{y}" y2="{y}" stroke-width="2"/>'
            )
            parts.append(f'<circle class="mark" cx="{scale(value)}" cy="{y}" r="4"/>')
    return _svg(WIDTH, height, title, parts)


def reliability(said: NDArray[np.float64], came: NDArray[np.float64], counts: NDArray[np.int64], title: str) -> str:
    """How often what was said with a probability came true, a point a bin."""
    size = 320
    across, up = _Scale(0, 1, 50, size - 15), _Scale(0, 1, size - 45, 12)
    parts = [_axis(across, size - 45, "probability that was given"), _upright(up, 50, "share that came true")]
    parts.append(f'<line class="thin" x1="{across(0)}" y1="{up(0)}" x2="{across(1)}" y2="{up(1)}"/>')
    biggest = max(int(counts.max(initial=1)), 1)
    for x, y, n in zip(said, came, counts, strict=True):
        error = 1.645 * float(np.sqrt(max(y * (1 - y), 0.25 / n) / n))
        low, high = up(max(y - error, 0.0)), up(min(y + error, 1.0))
        parts.append(f'<line class="mark" x1="{across(x)}" x2="{across(x)}" y1="{low}" y2="{high}"/>')
        parts.append(f'<circle class="mark" cx="{across(x)}" cy="{up(y)}" r="{2.5 + 4 * np.sqrt(n / biggest):.1f}"/>')
    return _svg(size, size, title, parts)


def histogram(counts: NDArray[np.int64], edges: NDArray[np.float64], title: str, unit: str) -> str:
    """Counts between edges."""
    width, height = 420, 260
    across = _Scale(float(edges[0]), float(edges[-1]), 50, width - 15)
    up = _Scale(0, float(max(counts.max(initial=1), 1)), height - 45, 12)
    parts = [_axis(across, height - 45, unit), _upright(up, 50, "bags")]
    for n, a, b in zip(counts, edges[:-1], edges[1:], strict=True):
        top, bottom = up(float(n)), up(0)
        wide = max(across(b) - across(a) - 1, 0.5)
        parts.append(f'<rect class="mark" x="{across(a)}" y="{top}" width="{wide:.1f}" height="{bottom - top:.1f}"/>')
    return _svg(width, height, title, parts)


MARKS = ("right", "wrong", "seen", "none")


def ladder(low: Array, mid: Array, high: Array, marks: Sequence[str], unit: str, title: str) -> str:
    """A point a bag with its whisker, from the least to the most; ``marks`` are classes of the style sheet."""
    width, height = 720, 300
    least, most = float(min(low.min(), mid.min())), float(max(high.max(), mid.max()))
    pad = 0.04 * (most - least) or 0.5
    across, up = _Scale(0, len(mid), 55, width - 10), _Scale(least - pad, most + pad, height - 30, 10)
    parts = [_upright(up, 55, unit)]
    parts.append(f'<line class="axis" x1="55" x2="{width - 10}" y1="{height - 30}" y2="{height - 30}"/>')
    parts.append(f'<text x="{width / 2}" y="{height - 10}" text-anchor="middle">bags in this order</text>')
    radius = min(3.5, max(1.3, 250 / len(mid)))
    for place, (a, value, b, mark) in enumerate(zip(low, mid, high, marks, strict=True)):
        x = across(place + 0.5)
        parts.append(f'<line class="{mark} faint" x1="{x}" x2="{x}" y1="{up(a)}" y2="{up(b)}"/>')
        parts.append(f'<circle class="{mark}" cx="{x}" cy="{up(value)}" r="{radius:.1f}"/>')
    return _svg(width, height, title, parts)


def places(spots: Array, colours: Sequence[str], title: str) -> str:
    """Points where they are, north up."""
    low, high = spots.min(axis=0), spots.max(axis=0)
    scale = 300 / max(float((high - low).max()), 1e-12)
    drawn = np.round((spots - low) * scale + 10, 1)
    height = float((high - low)[1]) * scale + 20
    radius = min(5.0, max(1.2, 40 / np.sqrt(len(spots) + 20)))
    dots = [
        f'<circle cx="{x:g}" cy="{height - y:.1f}" r="{radius:.1f}" fill="{c}"/>'
        for (x, y), c in zip(drawn, colours, strict=True)
    ]
    return _svg(320, round(height, 1), title, dots)


def still(places: NDArray[np.float64], edges: tuple[NDArray[np.int64], NDArray[np.int64]], colours: list[str]) -> str:
    """A drawing of the graph that stands still: for paper, and for browsers without WebGL."""
    spots = np.round(10 + 480 * places, 1)
    spots[:, 1] = 500 - spots[:, 1]  # up is up, as in the live drawing
    path = "".join(
        f"M{x1:g} {y1:g}L{x2:g} {y2:g}" for (x1, y1), (x2, y2) in zip(spots[edges[0]], spots[edges[1]], strict=True)
    )
    radius = min(6.0, max(1.2, 60 / np.sqrt(len(spots) + 20)))
    dots = "".join(
        f'<circle cx="{x:g}" cy="{y:g}" r="{radius:.1f}" fill="{c}"/>' for (x, y), c in zip(spots, colours, strict=True)
    )
    lines = f'<path d="{path}" stroke="#9aa0a6" stroke-width="0.4" fill="none"/>'
    return f'<svg viewBox="0 0 500 500" role="img" aria-label="The graph of the bags">{lines}{dots}</svg>'


class _Scale:
    """From values to pixels."""

    def __init__(self, low: float, high: float, start: float, stop: float) -> None:
        self.low, self.high, self.start, self.stop = low, high if high > low else low + 1, start, stop

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.stop - self.start), 1)

    def ticks(self) -> list[float]:
        """Four to eight round values within the range."""
        rough = (self.high - self.low) / 5
        unit = 10 ** np.floor(np.log10(rough))
        step = next(float(unit * factor) for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough * 0.8)
        first = np.ceil(self.low / step - 1e-9)
        count = int(np.floor((self.high - first * step) / step + 1e-9)) + 1
        return [float((first + k) * step) for k in range(count)]


def _axis(scale: _Scale, y: float, unit: str) -> str:
    parts = [f'<line class="axis" x1="{scale.start}" x2="{scale.stop}" y1="{y}" y2="{y}"/>']
    for value in scale.ticks():
        parts.append(f'<line class="axis" x1="{scale(value)}" x2="{scale(value)}" y1="{y}" y2="{y + 4}"/>')
        parts.append(f'<text x="{scale(value)}" y="{y + 17}" text-anchor="middle">{value:g}</text>')
    parts.append(f'<text x="{(scale.start + scale.stop) / 2}" y="{y + 33}" text-anchor="middle">{escape(unit)}</text>')
    return "".join(parts)


def _upright(scale: _Scale, x: float, unit: str) -> str:
    parts = [f'<line class="axis" y1="{scale.start}" y2="{scale.stop}" x1="{x}" x2="{x}"/>']
    parts += [f'<text x="{x - 6}" y="{scale(v) + 4}" text-anchor="end">{v:g}</text>' for v in scale.ticks()]
    middle = (scale.start + scale.stop) / 2
    parts.append(f'<text transform="translate(13 {middle}) rotate(-90)" text-anchor="middle">{escape(unit)}</text>')
    return "".join(parts)


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    opening = f'<svg class="chart" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
    return f'{opening} aria-label="{escape(title)}">{"".join(parts)}</svg>'


def _cut(name: str) -> str:
    return name if len(name) <= 28 else name[:27] + "…"
