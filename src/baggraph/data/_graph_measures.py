"""What graphs are normalised to, and how labels lie on them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data._columns import canonical_column, missing_mask
from baggraph.data._graph_checks import bad_parameter, row_of_entries, wrong
from baggraph.errors import closest

KINDS = ("symmetric", "row")


def normalised(adjacency: sp.csr_array, self_loops: float, kind: str) -> sp.csr_array:
    """See :meth:`BagGraph.normalised`."""
    if kind not in KINDS:
        raise bad_parameter("kind='symmetric' or 'row'", repr(kind), closest(kind, KINDS))
    if not 0 <= self_loops < math.inf:
        got = f"self_loops={self_loops!r}"
        raise bad_parameter("self-loops of a finite weight from 0", got, "1 is customary, 0 leaves them out")
    matrix = adjacency.copy()
    if self_loops:
        matrix = sp.csr_array(matrix + self_loops * sp.eye_array(matrix.shape[0], format="csr"))
    degree = np.asarray(matrix.sum(axis=1))
    rows = row_of_entries(matrix)
    if kind == "row":
        matrix.data = matrix.data / degree[rows]
    else:  # one product of two roots, so that the result is symmetric to the last digit
        root = np.sqrt(degree)
        matrix.data = matrix.data / (root[rows] * root[matrix.indices])
    return matrix


def homophily(adjacency: sp.csr_array, ids: NDArray[Any], y: Any) -> float:
    """See :meth:`BagGraph.homophily`."""
    labels = _labels(y, ids, finite=False)
    rows, columns = row_of_entries(adjacency), adjacency.indices
    known = ~missing_mask(labels)
    counted = known[rows] & known[columns]
    weights = adjacency.data[counted]
    if not len(weights):
        return math.nan
    alike = labels[rows[counted]] == labels[columns[counted]]
    return float(weights[alike].sum() / weights.sum())


def morans_i(adjacency: sp.csr_array, ids: NDArray[Any], y: Any) -> float:
    """See :meth:`BagGraph.morans_i`."""
    values = _labels(y, ids, finite=True)
    if values.dtype.kind == "O":
        raise wrong("real labels for Moran's I", "text", "use homophily for classes")
    known = np.flatnonzero(~missing_mask(values))
    values, weights = values[known].astype(np.float64), adjacency[known][:, known]
    if not weights.nnz or np.ptp(values) == 0:
        return math.nan
    centred = values - values.mean()
    centred /= np.abs(centred).max()  # the scale cancels, and squares of it could overflow
    return float(len(known) / weights.sum() * (centred @ (weights @ centred)) / (centred @ centred))


def _labels(y: Any, ids: NDArray[Any], *, finite: bool) -> NDArray[Any]:
    labels = canonical_column(y, "label", len(ids), lambda i: f"bag {ids[i]!r}", finite=finite)
    if labels.ndim != 1:
        raise wrong("one label a bag", f"shape {labels.shape}", "pass one target at a time")
    return labels
