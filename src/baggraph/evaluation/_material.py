"""What an audit knows of the bags, gathered in one pass over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data._split_checks import bit_stream
from baggraph.data.bags import Bags
from baggraph.evaluation._tasks import task_of_labels

Array = NDArray[np.float64]
MOST_LABELLED = 2000  # bags whose labels are tested: enough to tell, few enough for seconds


@dataclass(frozen=True)
class Material:
    """Per bag and column: mean, least and largest value, whether any is not zero; per instance, a hash."""

    bags: Bags
    means: Array
    minima: Array
    maxima: Array
    present: NDArray[np.bool_]
    deviation: Array
    largest_norm: Array
    zeros: Array
    row_hash: NDArray[np.int64]
    empty_row: NDArray[np.bool_]

    @cached_property
    def known(self) -> NDArray[np.int64]:
        """Positions of the labelled bags; of more than ``MOST_LABELLED``, of some drawn at random."""
        where = np.flatnonzero(self.bags.labelled)
        if len(where) <= MOST_LABELLED:
            return where
        keys = bit_stream("audit of some", 0).random_raw(len(where))
        return np.sort(where[np.argsort(keys, kind="stable")[:MOST_LABELLED]])

    @property
    def classify(self) -> bool:
        """Whether labels are classes."""
        return bool(len(self.known)) and task_of_labels(self.bags) == "classification"

    def column(self, position: int) -> str:
        """How a column is called in sentences.

        >>> gather(Bags([[0.0]], [0, 1], feature_names=["price"])).column(0)
        "'price'"
        """
        names = self.bags.feature_names
        return f"column {position}" if names is None else repr(str(names[position]))

    def some_columns(self, positions: Any, at_most: int = 5) -> str:
        """The first few columns by name."""
        found = [self.column(int(p)) for p in positions]
        return ", ".join(found[:at_most]) + ("" if len(found) <= at_most else f" and {len(found) - at_most} more")


def gather(bags: Bags) -> Material:
    """Look at every bag once.

    >>> found = gather(Bags([[3.0, 4.0], [0.0, 1.0], [0.0, 0.0]], [0, 2, 3]))
    >>> found.means.tolist(), found.largest_norm.tolist(), found.zeros.round(2).tolist()
    ([[1.5, 2.5], [0.0, 0.0]], [5.0, 0.0], [0.25, 1.0])
    """
    shape = (len(bags), bags.n_features)
    means, minima, maxima, squares = (np.empty(shape) for _ in range(4))
    present = np.empty(shape, dtype=bool)
    norm, zeros = np.empty(len(bags)), np.empty(len(bags))
    hashes, empty = np.empty(bags.n_instances, np.int64), np.empty(bags.n_instances, bool)
    for b, bag in enumerate(bags):
        raw = bag.instances.toarray() if sp.issparse(bag.instances) else bag.instances
        block = np.asarray(raw, dtype=np.float64) + 0.0  # minus zero is zero
        filled = block != 0
        means[b], minima[b], maxima[b] = block.mean(axis=0), block.min(axis=0), block.max(axis=0)
        squares[b] = ((block - means[b]) ** 2).sum(axis=0)
        present[b], zeros[b] = filled.any(axis=0), 1 - filled.mean()
        norm[b] = np.sqrt((block**2).sum(axis=1).max())
        rows = slice(int(bags.offsets[b]), int(bags.offsets[b + 1]))
        hashes[rows] = [hash(row.tobytes()) for row in block]
        empty[rows] = ~filled.any(axis=1)
    weights = bags.sizes / bags.n_instances
    overall = weights @ means
    variance = squares.sum(axis=0) / bags.n_instances + weights @ (means - overall) ** 2
    return Material(bags, means, minima, maxima, present, np.sqrt(variance), norm, zeros, hashes, empty)
