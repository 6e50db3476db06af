"""The block of instances: dense, memory-mapped or CSR, finite, float32 or float64, frozen."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data._columns import EXACT, as_array, frozen
from baggraph.errors import InvalidBagsError, ParameterError, closest

Instances = Any  # an ndarray, memmap or csr_array; NumPy and SciPy share no useful base class
CHECK_BYTES = 1 << 26


def canonical_instances(raw: Any) -> Instances:
    """A 2-D float block that nobody else can write to.

    float32 and float64 are kept, small integers become float32 (exactly), other numbers float64.
    A writable array is copied once; a read-only one and a memory map are taken as they are.
    """
    if sp.issparse(raw):
        return _canonical_csr(raw)
    array = raw if isinstance(raw, np.memmap) else as_array(unmasked(raw), "instances")
    if array.ndim != 2:
        raise _wrong("a 2-D array (instances, features)", f"shape {array.shape}", "reshape it, or use Bags.from_list")
    if array.shape[1] == 0:
        raise _wrong("at least one feature", "none", "pass the columns of the instances")
    dtype = target_dtype(array.dtype)
    refuse_inexact(array)
    if array.dtype == dtype and (isinstance(array, np.memmap) or not array.flags.writeable):
        return frozen(array)
    return frozen(np.array(array, dtype=dtype, order="C"))


def unmasked(raw: Any) -> Any:
    """The block itself; of a masked array, its values with NaN where they are masked.

    >>> unmasked(np.ma.masked_array([[1, 2]], mask=[[True, False]]))
    array([[nan,  2.]])
    """
    if not np.ma.isMaskedArray(raw) or not np.ma.is_masked(raw):
        return np.asarray(raw) if np.ma.isMaskedArray(raw) else raw
    refuse_inexact(raw.compressed())
    return np.ma.filled(raw.astype(target_dtype(raw.dtype)), np.nan)


def frozen_again(instances: Instances) -> Instances:
    """A block as it comes out of a pickle, which loses the lock and the file behind a memory map."""
    if sp.issparse(instances):
        return freeze_csr(instances)
    return frozen(np.asarray(instances))


def refuse_inexact(numbers: NDArray[Any], where: str = "") -> None:
    """Integers that float64 would round are identifiers, not features."""
    if numbers.dtype.kind in "iu" and numbers.dtype.itemsize == 8 and numbers.size:
        low, high = int(numbers.min()), int(numbers.max())
        if max(-low, high) > EXACT:
            got = f"{low if -low > high else high}{where}"
            raise _wrong("integers up to 2**53 as features", got, "leave out columns of identifiers")


def target_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The float type that holds these numbers without loss.

    >>> [str(target_dtype(np.dtype(t))) for t in ("int16", "int64", "float32", "bool")]
    ['float32', 'float64', 'float32', 'float32']
    """
    if dtype.kind in "biuf" and dtype.itemsize <= 8:
        small = dtype.itemsize <= (4 if dtype.kind == "f" else 2)
        return np.dtype(np.float32 if small else np.float64)
    raise _wrong("numbers as features", f"values of type {dtype}", "encode text and dates as numbers first")


def _canonical_csr(raw: Any) -> sp.csr_array:
    dtype = target_dtype(raw.dtype)
    refuse_inexact(np.asarray(raw.data))
    matrix = sp.csr_array(raw, dtype=dtype, copy=True)
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise _wrong("a sparse matrix in order", str(error), "build it anew from its rows and columns") from error
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return freeze_csr(matrix)


def freeze_csr(matrix: sp.csr_array) -> sp.csr_array:
    """Make the three arrays of a CSR matrix read-only."""
    for name in ("data", "indices", "indptr"):
        setattr(matrix, name, frozen(getattr(matrix, name)))
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix


def canonical_offsets(raw: Any, n_instances: int) -> NDArray[np.int64]:
    """Boundaries of the bags: bag ``b`` is ``instances[offsets[b]:offsets[b + 1]]``."""
    offsets = np.asarray(raw)
    remedy = "pass the cumulative bag sizes, starting with 0"
    if offsets.ndim != 1 or offsets.dtype.kind not in "iu" or len(offsets) < 2:
        got = f"{offsets.dtype} of shape {offsets.shape}"
        raise _wrong("integer offsets, one more than there are bags", got, remedy)
    offsets = offsets.astype(np.int64)
    if offsets[0] != 0 or offsets[-1] != n_instances:
        got = f"{offsets[0]} to {offsets[-1]}"
        raise _wrong(f"offsets from 0 to the number of instances ({n_instances})", got, remedy)
    if (np.diff(offsets) < 0).any():
        first = int(np.argmax(np.diff(offsets) < 0))
        raise _wrong("offsets in rising order", f"{offsets[first + 1]} after {offsets[first]}", remedy)
    return frozen(offsets)


def refuse_empty_bags(offsets: NDArray[np.int64], ids: Any) -> None:
    """Raise where a bag has no instance."""
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if len(empty):
        got = f"none in bag {ids[empty[0]]!r}" + (f" and {len(empty) - 1} more bags" if len(empty) > 1 else "")
        raise _wrong("at least one instance in every bag", got, "leave empty bags out")


def row_blocks(n_rows: int, row_bytes: int, block_bytes: int = CHECK_BYTES) -> Iterator[slice]:
    """Slices of rows that hold about ``block_bytes`` each, 64 MB unless told.

    >>> list(row_blocks(3, 1 << 26))
    [slice(0, 1, None), slice(1, 2, None), slice(2, 3, None)]
    """
    step = max(1, block_bytes // max(row_bytes, 1))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def blocks(instances: Instances) -> Iterator[tuple[int, NDArray[Any]]]:
    """First row and values of one block after another; of CSR, the stored values of those rows."""
    if sp.issparse(instances):
        for rows in row_blocks(instances.shape[0], 12 * max(1, instances.nnz // max(instances.shape[0], 1))):
            yield rows.start, instances.data[instances.indptr[rows.start] : instances.indptr[rows.stop]]
        return
    for rows in row_blocks(instances.shape[0], instances.shape[1] * instances.itemsize):
        yield rows.start, instances[rows]
        release(instances)


def release(block: Instances) -> None:
    """Hand the pages of a memory map back to the system; they are read again when needed."""
    mapping = getattr(block, "_mmap", None)
    if isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        if block.flags.writeable:
            block.flush()
        mapping.madvise(mmap.MADV_DONTNEED)


def refuse_non_finite(instances: Instances, name_cell: Any) -> None:
    """Raise at the first NaN or infinity, naming bag and column through ``name_cell(row, column)``."""
    for start, values in blocks(instances):
        if values.size and not np.isfinite(values).all():
            count = int((~np.isfinite(values)).sum())
            row, column, value = _first_non_finite(instances, start, values)
            kind = "NaN" if np.isnan(value) else "an infinite value"
            more = f" and at least {count - 1} more" if count > 1 else ""
            remedy = 'correct the data, or pass missing="impute" to fill NaN with the median of the column'
            raise _wrong("finite features", f"{kind} in {name_cell(row, column)}{more}", remedy)


def _first_non_finite(instances: Instances, start: int, values: NDArray[Any]) -> tuple[int, int, float]:
    flat = int(np.argmax(~np.isfinite(values).ravel()))
    if sp.issparse(instances):
        position = int(instances.indptr[start]) + flat
        row = int(np.searchsorted(instances.indptr, position, side="right")) - 1
        return row, int(instances.indices[position]), float(values.ravel()[flat])
    row, column = divmod(flat, values.shape[1])
    return start + row, column, float(values[row, column])


def fill_missing(raw: Any, missing: str) -> tuple[Any, int]:
    """Apply ``missing="impute"``: NaN becomes the median of its column's present values.

    The medians look at all bags and at no label.  Returns the block and the number of cells filled.
    """
    if missing == "error":
        return raw, 0
    if missing != "impute":
        choices = closest(missing, ("error", "impute"))
        raise ParameterError("bags", expected="missing='error' or 'impute'", got=repr(missing), remedy=choices)
    if isinstance(raw, np.memmap):
        raise _wrong("an array in memory to impute", "a memory map", "fill the gaps in the file, or raise memory_limit")
    if sp.issparse(raw):
        # An explicit NaN of a sparse block is one cell of a column whose other cells are mostly zero.
        matrix = sp.csc_array(_canonical_csr(raw))
        return _impute_csc(matrix)
    raw = as_array(unmasked(raw), "instances")
    dtype = target_dtype(raw.dtype)
    refuse_inexact(raw)
    array = np.array(raw, dtype=dtype)
    holes = np.isnan(array)
    for column in np.flatnonzero(holes.any(axis=0)):
        array[holes[:, column], column] = _median(array[~holes[:, column], column], int(column))
    return array, int(holes.sum())


def _impute_csc(matrix: sp.csc_array) -> tuple[sp.csr_array, int]:
    holes = np.isnan(matrix.data)
    for column in range(matrix.shape[1]):
        part = slice(matrix.indptr[column], matrix.indptr[column + 1])
        if holes[part].any():
            present = matrix.data[part][~holes[part]]
            zeros = np.zeros(matrix.shape[0] - (part.stop - part.start), dtype=matrix.dtype)
            matrix.data[part] = np.where(holes[part], _median(np.r_[present, zeros], column), matrix.data[part])
    return sp.csr_array(matrix), int(holes.sum())


def _median(present: NDArray[Any], column: int) -> float:
    if not len(present):
        raise _wrong("some present value in every column to impute", f"none in column {column}", "drop that column")
    return float(np.median(present))


def gather_rows(offsets: NDArray[np.int64], bags: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the chosen bags, one bag after the other, and their new offsets.

    >>> [a.tolist() for a in gather_rows(np.array([0, 2, 3]), np.array([1, 0]))]
    [[2, 0, 1], [0, 1, 3]]
    """
    sizes = np.diff(offsets)[bags]
    new = np.zeros(len(bags) + 1, dtype=np.int64)
    np.cumsum(sizes, out=new[1:])
    rows = np.arange(new[-1]) + np.repeat(offsets[:-1][bags] - new[:-1], sizes)
    return rows, new


def take_rows(instances: Instances, rows: Any) -> Instances:
    """These rows, read-only: a view where ``rows`` is a slice, and otherwise a copy.

    Of a memory map, the pages read are handed back as the copy grows.
    """
    if sp.issparse(instances):
        return freeze_csr(sp.csr_array(instances[rows]))
    if isinstance(rows, slice) or not isinstance(instances, np.memmap):
        return frozen(instances[rows])
    block = np.empty((len(rows), instances.shape[1]), dtype=instances.dtype)
    # Small steps: the system maps far more around scattered rows than is asked for.
    for part in row_blocks(len(rows), instances.shape[1] * instances.itemsize, 1 << 22):
        block[part] = instances[rows[part]]
        release(instances)
    return frozen(block)


def same_instances(left: Instances, right: Instances) -> bool:
    """Equal in kind, dtype, shape and value."""
    if left.shape != right.shape or left.dtype != right.dtype or sp.issparse(left) != sp.issparse(right):
        return False
    if sp.issparse(left):
        return all(np.array_equal(getattr(left, a), getattr(right, a)) for a in ("indptr", "indices", "data"))
    return all(
        np.array_equal(left[rows], right[rows]) for rows in row_blocks(left.shape[0], left.shape[1] * left.itemsize)
    )


def _wrong(expected: str, got: str, remedy: str) -> InvalidBagsError:
    return InvalidBagsError("bags", expected=expected, got=got, remedy=remedy)
