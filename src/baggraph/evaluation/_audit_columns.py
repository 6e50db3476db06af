"""Columns that say nothing, that say it loudest, or that name the bag."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baggraph.evaluation._findings import Finding
from baggraph.evaluation._material import Material

LARGE_RATIO, SERIOUS_RATIO = 1e2, 1e6
FEWEST_BAGS = 10


def findings(material: Material) -> Iterator[Finding]:
    """What can be said of columns without looking at labels."""
    low, high = material.minima.min(axis=0), material.maxima.max(axis=0)
    constant = low == high
    yield from _constant(material, constant, constant & (low == 0))
    yield from _of_a_single_bag(material, constant)
    yield from _scales(material, constant)
    yield from _names_of_bags(material)


def _constant(material: Material, constant: np.ndarray, zero: np.ndarray) -> Iterator[Finding]:
    if not constant.any():
        return
    total, n, n_zero = len(constant), int(constant.sum()), int(zero.sum())
    kinds = [f"{n_zero} zero everywhere"] * (n_zero > 0) + [f"{n - n_zero} with another value"] * (n > n_zero)
    measured = f"{n} of {total} columns, {' and '.join(kinds)}: {material.some_columns(np.flatnonzero(constant))}"
    why = "they say nothing, and dividing by their standard deviation makes infinities"
    advice = "drop them, or scale as InstanceScaler does, which leaves them alone"
    yield Finding("BG401", "note", measured, why, advice, {"constant": n, "zero": n_zero, "columns": total})


def _of_a_single_bag(material: Material, constant: np.ndarray) -> Iterator[Finding]:
    """Columns that have one value in all bags but one."""
    if len(material.bags) < FEWEST_BAGS:
        return
    usual = np.median(material.minima, axis=0)
    differs = (material.minima != usual) | (material.maxima != usual)
    single = (differs.sum(axis=0) == 1) & ~constant
    if not single.any():
        return
    n = int(single.sum())
    measured = f"{n} of {len(single)} columns: {material.some_columns(np.flatnonzero(single))}"
    why = "what is learned of them is learned of one bag, and holds for no other"
    advice = "drop them before fitting, on the training bags alone"
    yield Finding("BG402", "note", measured, why, advice, {"columns": n})


def _scales(material: Material, constant: np.ndarray) -> Iterator[Finding]:
    spread = np.where(constant | (material.deviation == 0), np.nan, material.deviation)
    if np.isnan(spread).all():
        return
    narrow, wide = int(np.nanargmin(spread)), int(np.nanargmax(spread))
    ratio = float(spread[wide] / spread[narrow])
    if ratio < LARGE_RATIO:
        return
    measured = (
        f"standard deviations from {spread[narrow]:.2g} ({material.column(narrow)}) to {spread[wide]:.2g} "
        f"({material.column(wide)}), a factor of {ratio:.1g}"
    )
    why = "distances, kernels and penalties see the widest columns alone"
    advice = "standardise by the training bags: InstanceScaler, or scaling= of a method"
    severity = "warning" if ratio >= SERIOUS_RATIO else "note"
    yield Finding("BG403", severity, measured, why, advice, {"ratio": ratio})


def _names_of_bags(material: Material) -> Iterator[Finding]:
    """Columns of whole numbers in even steps, one value a bag: codes of the bags themselves."""
    n_bags = len(material.bags)
    if n_bags < FEWEST_BAGS or material.bags.sizes.mean() < 2:
        return
    for column in np.flatnonzero((material.minima == material.maxima).all(axis=0)):
        values = np.sort(material.minima[:, column])
        steps = np.diff(values)
        if (steps > 0).all() and np.allclose(steps, steps[0]) and (values % 1 == 0).all():
            measured = f"{material.column(int(column))} has one value in every bag, and another one in every other bag"
            why = "a method can look the label of a bag up by it; the value of a new bag means nothing"
            advice = "leave the column out"
            yield Finding("BG203", "warning", measured, why, advice, {"column": int(column)})
