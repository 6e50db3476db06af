"""Columns that are the label, or were chosen with it in view."""

from __future__ import annotations

from collections.abc import Iterator
from math import lgamma

import numpy as np
from scipy.stats import rankdata
from scipy.stats import t as student

from baggraph.evaluation._findings import Finding
from baggraph.evaluation._material import Array, Material
from baggraph.evaluation._shuffles import Shuffles, Suspicion

NEARLY, IN_ORDER, EQUAL = 0.98, 0.95, 0.999
LARGE_EXCESS = 0.1  # of all columns
BLOCK = 20_000_000  # numbers held at a time


def suspicions(material: Material, shuffles: Shuffles) -> Iterator[Suspicion]:
    """Columns equal to the target or to an ingredient of it, and columns that occur in one class only."""
    if material.bags.n_features:
        yield _target_among_columns(material, shuffles)
    if shuffles.classify:
        yield from _one_class_only(material, shuffles)


# ---------------------------------------------------------------------- the target itself


def _target_among_columns(material: Material, shuffles: Shuffles) -> Suspicion:
    """Columns whose mean, least or largest value over a bag is the target, nearly, or (of real ones) in its order."""
    blocks = {"mean": material.means, "smallest value": material.minima, "largest value": material.maxima}
    found = {name: _correlation(block[material.known], shuffles.indicator) for name, block in blocks.items()}
    needed = dict.fromkeys(found, NEARLY)
    if not shuffles.classify:  # a label that was clipped, or is a median, keeps the order of its ingredient's mean
        means, targets = (rankdata(values, axis=0) for values in (material.means[material.known], shuffles.indicator))
        found["rank of the mean"], needed["rank of the mean"] = _correlation(means, targets), IN_ORDER
    over = {name: r - needed[name] for name, r in found.items()}
    margin = np.max(list(over.values()), axis=0)
    leaks = np.flatnonzero(margin >= 0)
    if not len(leaks):
        return Suspicion(1.0, lambda _: None)
    worst = int(leaks[np.argmax(margin[leaks])])
    how = next(name for name in sorted(found, key=lambda name: -found[name][worst]) if over[name][worst] >= 0)
    r = float(found[how][worst])

    def finding(adjusted: float) -> Finding:
        more = f", and {len(leaks) - 1} more columns like it" if len(leaks) > 1 else ""
        measured = f"the {how} of {material.column(worst)} over a bag has correlation {r:.4f} with the target{more}"
        why = "the label, or what it is computed from, is an input: every score is a score of arithmetic"
        advice = f"leave out {material.some_columns(leaks)}, and ask how the label was made"
        numbers = {"columns": leaks, "correlation": r, "of": how, "p_adjusted": adjusted}
        return Finding("BG201", "serious" if r >= EQUAL else "warning", measured, why, advice, numbers)

    return Suspicion(_p_of(r, len(material.known), len(found) * len(margin), shuffles), finding)


def _correlation(values: Array, targets: Array) -> Array:
    """Largest absolute correlation of every column with any target, (d,)."""
    x, y = values - values.mean(axis=0), targets - targets.mean(axis=0)
    below = np.sqrt((x**2).sum(axis=0))[:, None] * np.sqrt((y**2).sum(axis=0))[None]
    rounding = 1e-9 * np.abs(values).max(axis=0, initial=0.0)[:, None] * len(values)
    found = np.divide(x.T @ y, below, out=np.zeros_like(below), where=below > rounding)
    return np.asarray(np.minimum(np.abs(found), 1.0).max(axis=1))


def _p_of(r: float, n: int, tests: int, shuffles: Shuffles) -> float:
    """P of a correlation by Student's law, times the tests; of classes, no less than one arrangement in all."""
    if n < 4:
        return 1.0
    statistic = r * np.sqrt((n - 2) / max(1 - r**2, 1e-300))
    p = 2 * float(student.sf(statistic, n - 2))
    if shuffles.classify:
        counts = shuffles.indicator.sum(axis=0)
        arrangements = lgamma(n + 1) - sum(lgamma(count + 1) for count in counts)
        p = max(p, 2 * float(np.exp(-arrangements)))
    return min(1.0, p * tests)


# ---------------------------------------------------------------------- one class only


def _one_class_only(material: Material, shuffles: Shuffles) -> Iterator[Suspicion]:
    present = material.present[material.known]
    sometimes = present.any(axis=0) & ~present.all(axis=0)
    present = present[:, sometimes].astype(np.float32)
    if not present.shape[1]:
        return
    observed = _exclusive(shuffles.indicator[None], present)[0]
    per_block = max(1, BLOCK // max(present.size, shuffles.indicator.size))
    parts = [shuffles.orders[i : i + per_block] for i in range(0, len(shuffles.orders), per_block)]
    shuffled = np.concatenate([_exclusive(shuffles.indicator[part], present) for part in parts]).max(axis=1)
    p, most, expected = shuffles.p_of(float(observed.max()), shuffled), int(observed.max()), float(shuffled.mean())
    classes = np.unique(material.bags.y[material.known])
    label, total = classes[int(observed.argmax())], material.bags.n_features

    def finding(adjusted: float) -> Finding:
        others = int(np.delete(observed, observed.argmax()).max(initial=0))
        measured = (
            f"{most} of {total} columns are non-zero in bags of class {_shown(label)} only, {others} in those of "
            f"another; with shuffled labels {expected:.0f} (p = {p:.2g})"
        )
        why = "columns were probably chosen with the labels of all bags in view, those of tested bags included"
        advice = (
            "choose columns on the training bags of every fold, and report a rule that only asks whether any is set"
        )
        severity = "serious" if most - expected >= LARGE_EXCESS * total else "warning"
        numbers = {"columns": most, "of": total, "shuffled": expected, "p_adjusted": adjusted}
        return Finding("BG202", severity, measured, why, advice, numbers)

    yield Suspicion(p, finding)


def _exclusive(indicator: Array, present: np.ndarray) -> np.ndarray:
    """Columns that occur in bags of one class only, (orders, classes), of indicators (orders, n, classes)."""
    within = np.einsum("onc,nd->ocd", indicator.astype(np.float32), present, optimize=True)
    return np.asarray((within == present.sum(axis=0)).sum(axis=2))


def _shown(label: object) -> str:
    return repr(label.item() if hasattr(label, "item") else label)
