"""What is known of every bag, as columns that points are coloured by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.data._columns import missing_mask
from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.data.posterior import Posterior

MOST_LEVELS = 12  # more than can be told apart by colour


@dataclass(frozen=True, eq=False)
class Column:
    """One fact a bag: a number, or one of few levels; None where it is not known.

    >>> Column.of("label", np.array(["b", "a", None], dtype=object)).plain()
    {'name': 'label', 'levels': ['a', 'b'], 'values': [1, 0, None]}
    >>> Column.of("size", np.array([1.5, np.nan])).plain()
    {'name': 'size', 'levels': None, 'values': [1.5, None]}
    """

    name: str
    values: NDArray[np.float64]
    levels: list[str] | None = None

    @classmethod
    def of(cls, name: str, values: NDArray[Any]) -> Column | None:
        """Text and few whole numbers are levels; None where there are too many texts."""
        absent = missing_mask(values)
        known = values[~absent]
        real = known.dtype.kind in "iuf" or all(isinstance(v, int | float) for v in known.tolist())
        if real and not _few_whole(known):
            return cls(name, np.array([np.nan if gone else float(v) for v, gone in zip(values, absent, strict=True)]))
        text = np.array([_text(v) for v in known.tolist()], dtype=str)
        levels, codes = np.unique(text, return_inverse=True)
        if len(levels) > MOST_LEVELS:
            return None
        filled = np.full(len(values), np.nan)
        filled[~absent] = codes
        return cls(name, filled, levels.tolist())

    @classmethod
    def counts(cls, name: str, values: NDArray[Any]) -> Column:
        """Numbers, however few there are."""
        return cls(name, np.asarray(values, dtype=np.float64))

    def grouped(self, group: NDArray[np.int64]) -> Column:
        """Of groups of bags: the mean of numbers, the most frequent level."""
        known = np.isfinite(self.values)
        size = int(group.max()) + 1
        if self.levels is None:
            total = np.bincount(group[known], self.values[known], size)
            with np.errstate(invalid="ignore"):
                return Column(f"mean {self.name}", total / np.bincount(group[known], minlength=size))
        table = np.zeros((size, len(self.levels)))
        np.add.at(table, (group[known], self.values[known].astype(np.int64)), 1)
        return Column(
            f"most frequent {self.name}", np.where(table.any(axis=1), table.argmax(axis=1), np.nan), self.levels
        )

    def plain(self) -> dict[str, Any]:
        """What JSON can hold."""
        whole = self.levels is not None
        values = [None if not np.isfinite(v) else int(v) if whole else float(f"{v:.4g}") for v in self.values]
        return {"name": self.name, "levels": self.levels, "values": values}


def columns_of(
    bags: Bags,
    posterior: Posterior | None,
    graph: BagGraph | None,
    coverage: float,
    seen: NDArray[np.bool_] | None = None,
) -> list[Column]:
    """Label, whether it was seen, belief, error, size, degree, and what the bags carry of their own."""
    found: list[Column | None] = []
    if bags.y is not None:
        found += _targets("label", bags.y)
    if seen is not None and not seen.all():
        found.append(Column.of("label in the fit", np.where(seen, "seen", "hidden")))
    if posterior is not None:
        found += _beliefs(posterior, coverage)
        found += _errors(bags, posterior, "" if seen is not None else ", label seen")
    found.append(Column.counts("size", bags.sizes))
    if graph is not None:
        found.append(Column.counts("neighbours", graph.neighbor_counts))
    for name, values in bags.bag_info.items():
        if np.ndim(values) == 1:
            found.append(Column.of(name, np.asarray(values)))
    return [column for column in found if column is not None]


def _targets(name: str, y: NDArray[Any]) -> list[Column | None]:
    if y.ndim == 1:
        return [Column.of(name, y)]
    return [Column.of(f"{name} {t}", y[:, t]) for t in range(y.shape[1])]


def _beliefs(posterior: Posterior, coverage: float) -> list[Column | None]:
    found: list[Column | None] = []
    if not posterior.is_classification:
        low, high = np.moveaxis(posterior.quantile([(1 - coverage) / 2, (1 + coverage) / 2]), -1, 0)
        for t in range(posterior.mean.shape[1]):
            after = f" {t}" if posterior.mean.shape[1] > 1 else ""
            found += [Column.counts(f"prediction{after}", posterior.mean[:, t])]
            found += [Column.counts(f"uncertainty{after}", (high - low)[:, t])]
        return found
    shown = range(1, 2) if len(posterior.classes) == 2 else range(len(posterior.classes))
    found += [Column.of("prediction", posterior.prediction.astype(str))]
    found += [Column.counts(f"probability of {posterior.classes[c]}", posterior.mean[:, c]) for c in shown]
    found += [Column.counts("uncertainty (entropy)", posterior.entropy)]
    if len(posterior.draws) > 1:
        found += [Column.counts("disagreement of draws", posterior.mutual_information)]
    return found


def _errors(bags: Bags, posterior: Posterior, after: str) -> list[Column | None]:
    """Answers held against labels; ``after`` says that these were seen in the fit, which proves nothing."""
    if bags.y is None or (bags.y.ndim == 2 and bags.y.shape[1] > 1):
        return []
    absent = missing_mask(bags.y).reshape(len(bags), -1).any(axis=1)
    if posterior.is_classification:
        right = posterior.codes(bags.y) == posterior.mean.argmax(axis=1)
        words = np.where(right, "right", "wrong").astype(object)
        words[absent] = None
        return [Column.of(f"answer{after}", words)]
    residual = np.asarray(bags.y, dtype=np.float64).reshape(-1) - posterior.mean[:, 0]
    return [Column.counts(f"error{after}", residual)]


def _few_whole(known: NDArray[Any]) -> bool:
    values = set(known.tolist())
    return len(values) <= MOST_LEVELS // 2 and all(float(v).is_integer() for v in values)


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
