"""What every graph between bags must be, and the bags that errors name when it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data._columns import canonical_ids
from baggraph.errors import InvalidGraphError, ParameterError, closest, name_some

RULES = ("check", "mean", "max", "min")


def wrong(expected: str, got: str, remedy: str) -> InvalidGraphError:
    """An error of a graph."""
    return InvalidGraphError("graph", expected=expected, got=got, remedy=remedy)


def bad_parameter(expected: str, got: str, remedy: str) -> ParameterError:
    """An error about a number or a name."""
    return ParameterError("graph", expected=expected, got=got, remedy=remedy)


def canonical(
    raw: Any, ids: Any, *, symmetric: str = "check", drop_self_loops: bool = False
) -> tuple[sp.csr_array, NDArray[Any]]:
    """A sound adjacency matrix of one's own and its ids, or an error that names bags."""
    if symmetric not in RULES:
        remedy = closest(symmetric, RULES)
        raise bad_parameter("symmetric='check', 'mean', 'max' or 'min'", repr(symmetric), remedy)
    matrix = own_csr(raw)
    if matrix.shape[0] != matrix.shape[1]:
        raise wrong("a square adjacency matrix", f"shape {matrix.shape}", "pass one row and one column a bag")
    names = canonical_ids(ids, matrix.shape[0])
    if drop_self_loops:
        matrix.data[row_of_entries(matrix) == matrix.indices] = 0.0
        matrix.eliminate_zeros()
    refuse_weights(matrix, names, names)
    refuse_self_loops(matrix, names)
    if symmetric == "check":
        refuse_asymmetry(matrix, names)
        return matrix, names
    return symmetrised(matrix, symmetric), names


def own_csr(raw: Any) -> sp.csr_array:
    """A copy as canonical float64 CSR, without stored zeros."""
    array = raw if sp.issparse(raw) else np.asarray(raw)
    if array.dtype.kind not in "biuf":
        raise wrong("numbers as weights", f"values of type {array.dtype}", "convert them to floats")
    if array.ndim != 2:
        raise wrong("a square adjacency matrix", f"shape {array.shape}", "pass one row and one column a bag")
    try:
        matrix = sp.csr_array(array, dtype=np.float64, copy=True)
        matrix.check_format(full_check=True)  # scipy would write to wherever a column that does not exist leads
    except ValueError as error:
        raise wrong("a sparse matrix in order", str(error), "make it anew, or read it again") from error
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def row_of_entries(matrix: sp.csr_array) -> NDArray[np.int64]:
    """The row of every stored weight; its column is in ``indices``.

    >>> row_of_entries(sp.csr_array([[0.0, 1.0], [2.0, 3.0]])).tolist()
    [0, 1, 1]
    """
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def symmetrised(matrix: sp.csr_array, rule: str) -> sp.csr_array:
    """One weight a pair from the two that were given."""
    back = sp.csr_array(matrix.T)
    if rule == "mean":
        result = matrix * 0.5 + back * 0.5  # halved first: the sum of two large weights may overflow
    else:
        result = matrix.maximum(back) if rule == "max" else matrix.minimum(back)
    result = sp.csr_array(result)
    result.sum_duplicates()
    result.eliminate_zeros()
    return result


def refuse_weights(matrix: sp.csr_array, row_names: NDArray[Any], column_names: NDArray[Any]) -> None:
    """Raise at the first weight that is negative, NaN or infinite."""
    bad = ~np.isfinite(matrix.data) | (matrix.data < 0)
    if bad.any():
        first = int(np.argmax(bad))
        row, column = row_names[row_of_entries(matrix)[first]], column_names[matrix.indices[first]]
        got = f"{matrix.data[first]} between {row!r} and {column!r}"
        raise wrong("finite weights that are not negative", got, "correct or drop that edge")


def refuse_self_loops(matrix: sp.csr_array, names: NDArray[Any]) -> None:
    """Raise where a bag is joined to itself."""
    loops = np.flatnonzero(matrix.diagonal())
    if len(loops):
        got = f"self-loops at {name_some(names[loops])}"
        remedy = "drop them, as from_adjacency(..., drop_self_loops=True) does; models add their own"
        raise wrong("no weight on the diagonal", got, remedy)


def refuse_asymmetry(matrix: sp.csr_array, names: NDArray[Any]) -> None:
    """Raise at the pair of bags whose two weights differ most."""
    back = sp.csr_array(matrix.T)
    if all(np.array_equal(getattr(matrix, part), getattr(back, part)) for part in ("indptr", "indices", "data")):
        return
    difference = abs(matrix - back)
    worst = int(np.argmax(difference.data))
    row, column = int(row_of_entries(difference)[worst]), int(difference.indices[worst])
    weights = f"{matrix[row, column]} and {matrix[column, row]}"
    got = f"another weight from {names[row]!r} to {names[column]!r} than back ({weights})"
    remedy = "state a rule, as in from_adjacency(..., symmetric='mean')"
    raise wrong("a symmetric adjacency matrix", got, remedy)


def positions(which: Any, names: NDArray[Any]) -> NDArray[np.int64]:
    """Positions, from positions, ids or a mask; every bag at most once."""
    count = len(names)
    array = np.asarray(which) if len(which) else np.zeros(0, np.int64)
    if array.dtype.kind in "UO" and array.ndim == 1:
        array = places(array.tolist(), names, "ids of bags of this graph", "look at graph.ids")
    elif array.dtype.kind == "b" and array.shape == (count,):
        array = np.flatnonzero(array)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        got = f"{array.dtype} of shape {array.shape}"
        raise wrong(f"positions, ids or a mask of {count} booleans", got, "pass one flat sequence")
    outside = array[(array < -count) | (array >= count)]
    if len(outside):
        raise IndexError(f"graph: expected positions below {count}, got {outside[0]}; count from 0")
    index = array.astype(np.int64) % max(count, 1)
    seen, times = np.unique(index, return_counts=True)
    if len(seen) < len(index):
        raise wrong("every bag at most once", f"{name_some(names[seen[times > 1]])} again", "drop the repetition")
    return index


def places(wanted: list[Any], names: NDArray[Any], expected: str, remedy: str) -> NDArray[np.int64]:
    """Position of every wanted id, or an error that names the unknown ones."""
    place = {name: i for i, name in enumerate(names)}
    found = np.fromiter((place.get(name, -1) for name in wanted), dtype=np.int64, count=len(wanted))
    if (found < 0).any():
        unknown = dict.fromkeys(wanted[i] for i in np.flatnonzero(found < 0))
        raise wrong(expected, ("bag " if len(unknown) == 1 else "bags ") + name_some(unknown), remedy)
    return found
