"""Kernels of instances, and their sums over pairs of bags, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.baselines._input import Matrix, Vector, check_choice, check_positive, dense_rows
from baggraph.data.bags import Bags
from baggraph.data.scaling import InstanceScaler
from baggraph.errors import ParameterError

Index = NDArray[np.int64]
Kernel = Callable[[Matrix, Matrix], Matrix]
BLOCK = 2048  # rows and columns of a block: 32 MiB in float64
KERNELS = ("linear", "rbf")


def squared_distances(left: Matrix, right: Matrix) -> Matrix:
    """Squared Euclidean distances (n, m), none below zero.

    >>> squared_distances(np.array([[0.0, 3.0]]), np.array([[4.0, 0.0]])).tolist()
    [[25.0]]
    """
    distances = left @ right.T
    distances *= -2.0
    distances += np.einsum("ij,ij->i", left, left)[:, None]
    distances += np.einsum("ij,ij->i", right, right)
    return np.maximum(distances, 0.0, out=distances)


@dataclass(frozen=True)
class InstanceKernel:
    """``exp(-gamma |x - x'|^2)`` or ``x . x'``."""

    kind: str
    gamma: float

    def __call__(self, left: Matrix, right: Matrix) -> Matrix:
        if self.kind == "linear":
            return left @ right.T
        values = squared_distances(left, right)
        values *= -self.gamma
        return np.exp(values, out=values)


@dataclass(frozen=True)
class Rows:
    """Scaled instances of bags, with what they were scaled by and the kernel that fits them."""

    scaler: InstanceScaler
    kernel: InstanceKernel
    values: Matrix
    offsets: Index
    repeats: tuple[Index, Index] | None = None  # rows that differ, and where every row stands among these

    @classmethod
    def of(cls, bags: Bags, scaling: str, kernel: str, gamma: float | str) -> Rows:
        """The instances of bags, scaled by their own statistics."""
        scaler = InstanceScaler(scaling).fit(bags)
        values = dense_rows(scaler.transform(bags))
        return cls(scaler, InstanceKernel(kernel, width(values, gamma)), values, bags.offsets)

    def others(self, bags: Bags, same: Index | None = None) -> Rows:
        """The instances of other bags in the scale of these; those with the same number in ``same`` are the same."""
        repeats = None if same is None else np.unique(same, return_index=True, return_inverse=True)[1:]
        return Rows(self.scaler, self.kernel, dense_rows(self.scaler.transform(bags)), bags.offsets, repeats)

    @property
    def distinct(self) -> Rows:
        """Every row once, a bag of its own."""
        first = np.arange(len(self.values)) if self.repeats is None else self.repeats[0]
        return Rows(self.scaler, self.kernel, self.values[first], np.arange(len(first) + 1))


def width(values: Matrix, gamma: float | str) -> float:
    """The number given, or for ``"scale"`` one over the sum of the variances of the features."""
    if not isinstance(gamma, str):
        return float(gamma)
    total = float(values.var(axis=0).sum())
    return 1.0 / total if total > 0 else 1.0


def check_kernel(stage: str, kernel: str, gamma: float | str) -> None:
    """Raise unless the kernel is known and gamma is ``"scale"`` or a number above zero."""
    check_choice(stage, "kernel", kernel, KERNELS)
    if isinstance(gamma, str):
        if gamma != "scale":
            got, remedy = f"gamma={gamma!r}", 'pass "scale"'
            raise ParameterError(stage, expected='"scale" or a number above 0', got=got, remedy=remedy)
    else:
        check_positive(stage, gamma=gamma)


def all_pairs(left: Rows, right: Rows) -> Matrix:
    """The kernel of every instance with every other, (N, M), column after column in memory."""
    values = np.empty((len(right.values), len(left.values)))
    for rows in _blocks(len(right.values)):
        values[rows] = right.kernel(right.values[rows], left.values)
    return values.T


def segment_sums(
    left: Rows, right: Rows, kernel: Kernel, left_weights: Vector | None = None, right_weights: Vector | None = None
) -> Matrix:
    """``sum_{a in A} sum_{b in B} u_a v_b k(a, b)`` for every pair of bags, (B, B'), in blocks of bounded memory.

    >>> rows = Rows.of(Bags(np.array([[1.0], [2.0], [3.0]]), [0, 2, 3]), "none", "linear", 1.0)
    >>> segment_sums(rows, rows, rows.kernel).tolist()
    [[9.0, 9.0], [9.0, 9.0]]
    """
    if left.repeats is not None:
        each = segment_sums(left.distinct, right, kernel, None, right_weights)[left.repeats[1]]
        if left_weights is not None:
            each *= left_weights[:, None]
        return np.asarray(np.add.reduceat(each, left.offsets[:-1], axis=0))
    sums = np.zeros((len(left.offsets) - 1, len(right.offsets) - 1))
    for rows in _blocks(len(left.values)):
        row_bags, row_starts = _cut(left.offsets, rows)
        for columns in _blocks(len(right.values)):
            column_bags, column_starts = _cut(right.offsets, columns)
            values = kernel(left.values[rows], right.values[columns])
            if right_weights is not None:
                values *= right_weights[columns]
            partial = np.add.reduceat(values, column_starts, axis=1)
            if left_weights is not None:
                partial *= left_weights[rows, None]
            sums[row_bags, column_bags] += np.add.reduceat(partial, row_starts, axis=0)
    return sums


def self_sums(bags: Rows, kernel: Kernel) -> Vector:
    """The sums of every bag with itself, (B,)."""
    sums = np.empty(len(bags.offsets) - 1)
    for some in bag_blocks(bags.offsets, BLOCK // 4):
        part = slice(int(bags.offsets[some.start]), int(bags.offsets[some.stop]))
        offsets = bags.offsets[some.start : some.stop + 1] - bags.offsets[some.start]
        rows = Rows(bags.scaler, bags.kernel, bags.values[part], offsets)
        sums[some] = np.diag(segment_sums(rows, rows, kernel))
    return sums


def first_highest(scores: Vector, offsets: Index) -> Index:
    """The first instance of the largest score in every bag, (B,).

    >>> first_highest(np.array([1.0, 3.0, 3.0, 0.0]), np.array([0, 3, 4])).tolist()
    [1, 3]
    """
    largest = np.repeat(np.maximum.reduceat(scores, offsets[:-1]), np.diff(offsets))
    place = np.where(scores == largest, np.arange(len(scores)), len(scores))
    return np.minimum.reduceat(place, offsets[:-1])


def nearest_in_bag(left: Rows, right: Rows) -> Matrix:
    """The least squared distance from an instance of a bag to every instance of the others, (B, M)."""
    if right.repeats is not None:
        return nearest_in_bag(left, right.distinct)[:, right.repeats[1]]
    least = np.full((len(left.offsets) - 1, len(right.values)), np.inf)
    distinct = left.distinct.values if left.repeats is not None else None
    for columns in _blocks(len(right.values)):
        once = None if distinct is None else squared_distances(distinct, right.values[columns])
        for rows in _blocks(len(left.values)):
            bags, starts = _cut(left.offsets, rows)
            if once is None:
                distances = squared_distances(left.values[rows], right.values[columns])
            else:
                distances = once[left.repeats[1][rows]]  # type: ignore[index]
            found = np.minimum.reduceat(distances, starts, axis=0)
            least[bags, columns] = np.minimum(least[bags, columns], found)
    return least


def bag_blocks(offsets: Any, at_most: int) -> Iterator[slice]:
    """Runs of whole bags with at most so many instances together, or of one bag that has more.

    >>> list(bag_blocks(np.array([0, 2, 3, 9]), 4))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    start = 0
    while start < len(offsets) - 1:
        stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + at_most, side="right")) - 1)
        yield slice(start, stop)
        start = stop


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK))


def _cut(offsets: Index, rows: slice) -> tuple[slice, Index]:
    """Bags that have instances among these rows, and where each begins, counted from the first row."""
    first = int(np.searchsorted(offsets, rows.start, side="right")) - 1
    last = int(np.searchsorted(offsets, rows.stop, side="left"))
    return slice(first, last), np.maximum(offsets[first:last] - rows.start, 0)
