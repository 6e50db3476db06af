"""Segment kernels for GPUs over (M, N, h): a tile of rows and columns for every member and bag, no atomics.

Values are read once, in place and with any stride of members and rows; half precision is accumulated in float32. Long
bags come first, so that none is left running when the others are done.
"""

# Kernels have no types; Triton reads annotations, so that they are not put off here either.
# mypy: allow-untyped-defs, allow-incomplete-defs

import torch
from torch import Tensor

from baggraph.nn._jit import cdiv, jit, next_power_of_2, tl
from baggraph.nn._layout import Layout

# Entries of a tile, columns of it at most, and warps, as measured on an H200: small tiles for bags of a few instances,
# so that few lanes are idle, larger ones for long bags and for what has no bags.
SHORT, LONG, EVEN = (512, 256, 1), (1024, 128, 2), (1024, 256, 2)
LONG_FROM = 32


@jit
def _sum_kernel(
    values, offsets, order, out, members, width, n_bags, stride_member, stride_row,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr, MEAN: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(width, COLUMNS)
    program = tl.program_id(0)
    column = (program % tiles) * COLUMNS + tl.arange(0, COLUMNS)
    member = ((program // tiles) % members).to(tl.int64)
    bag = tl.load(order + program // (tiles * members))
    start = tl.load(offsets + bag)
    stop = tl.load(offsets + bag + 1)
    inside = column < width
    base = values + member * stride_member
    total = tl.zeros((ROWS, COLUMNS), WIDE)
    for first in range(start, stop, ROWS):
        row = first + tl.arange(0, ROWS)
        mask = (row < stop)[:, None] & inside[None, :]
        total += tl.load(base + row[:, None] * stride_row + column[None, :], mask=mask, other=0).to(WIDE)
    result = tl.sum(total, axis=0)
    if MEAN:
        result = result / (stop - start).to(WIDE)
    tl.store(out + (member * n_bags + bag) * width + column, result.to(out.dtype.element_ty), mask=inside)


@jit
def _max_kernel(
    values, offsets, order, out, winners, members, width, n_bags, stride_member, stride_row,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(width, COLUMNS)
    program = tl.program_id(0)
    column = (program % tiles) * COLUMNS + tl.arange(0, COLUMNS)
    member = ((program // tiles) % members).to(tl.int64)
    bag = tl.load(order + program // (tiles * members))
    start = tl.load(offsets + bag)
    stop = tl.load(offsets + bag + 1)
    inside = column < width
    base = values + member * stride_member
    best = tl.full((ROWS, COLUMNS), float("-inf"), WIDE)
    where = tl.zeros((ROWS, COLUMNS), tl.int32) + tl.minimum(start + tl.arange(0, ROWS), stop - 1).to(tl.int32)[:, None]
    for first in range(start, stop, ROWS):
        row = first + tl.arange(0, ROWS)
        mask = (row < stop)[:, None] & inside[None, :]
        new = tl.load(base + row[:, None] * stride_row + column[None, :], mask=mask, other=float("-inf")).to(WIDE)
        # What is not a number wins, and stays.
        better = ((new > best) | (new != new)) & (best == best)
        where = tl.where(better, row.to(tl.int32)[:, None], where)
        best = tl.where(better, new, best)
    broken = tl.max((best != best).to(tl.int32), axis=0) > 0
    top = tl.max(tl.where(best == best, best, float("-inf")), axis=0)
    first_of = tl.where((best == top[None, :]) | (best != best), where, (stop - 1).to(tl.int32))
    target = (member * n_bags + bag) * width + column
    tl.store(out + target, tl.where(broken, float("nan"), top).to(out.dtype.element_ty), mask=inside)
    tl.store(winners + target, tl.min(first_of, axis=0), mask=inside)


@jit
def _spread_kernel(
    bag_values, bag_of, winners, out, n_instances, width, n_bags, stride_member, stride_bag,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, ONLY_WINNERS: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(width, COLUMNS)
    program = tl.program_id(0)
    column = (program % tiles) * COLUMNS + tl.arange(0, COLUMNS)
    blocks = tl.cdiv(n_instances, ROWS)
    row = ((program // tiles) % blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    member = (program // (tiles * blocks)).to(tl.int64)
    bag = tl.load(bag_of + row, mask=row < n_instances, other=0)
    mask = (row < n_instances)[:, None] & (column < width)[None, :]
    value = tl.load(
        bag_values + member * stride_member + bag[:, None] * stride_bag + column[None, :], mask=mask, other=0
    )
    if ONLY_WINNERS:
        won = tl.load(winners + (member * n_bags + bag[:, None]) * width + column[None, :], mask=mask, other=-1)
        value = tl.where(won == row[:, None], value, 0)
    tl.store(out + (member * n_instances + row[:, None]) * width + column[None, :], value, mask=mask)


def sums(values: Tensor, layout: Layout) -> Tensor:
    """(M, N, h) to (M, B, h)."""
    return _launch(_sum_kernel, values, layout, MEAN=False)[0]


def means(values: Tensor, layout: Layout) -> Tensor:
    """(M, N, h) to (M, B, h)."""
    return _launch(_sum_kernel, values, layout, MEAN=True)[0]


def maxima(values: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    """(M, N, h) to maxima (M, B, h) and the first instances that reach them, int32."""
    top, winners = _launch(_max_kernel, values, layout, torch.int32)
    return top, winners


def spreads(bag_values: Tensor, layout: Layout) -> Tensor:
    """(M, B, h) to (M, N, h)."""
    return _spread(bag_values, None, layout)


def routes(bag_values: Tensor, winners: Tensor, layout: Layout) -> Tensor:
    """(M, B, h) to (M, N, h): to the winners alone."""
    return _spread(bag_values, winners.contiguous(), layout)


def _launch(kernel, values: Tensor, layout: Layout, *more: torch.dtype, **flags: bool) -> tuple[Tensor, ...]:
    """Outputs (M, B, h): of the values' type, and of ``more`` types."""
    values = _rows_in_place(values)
    members, n_instances, width = values.shape
    out = [values.new_empty(members, layout.n_bags, width, dtype=dtype) for dtype in (values.dtype, *more)]
    mean = n_instances // layout.n_bags
    # Twice the mean: most bags are done in one tile.
    rows, columns, warps = _tile(width, 2 * mean, LONG if mean >= LONG_FROM else SHORT)
    grid = (layout.n_bags * members * cdiv(width, columns),)
    wide = tl.float64 if values.dtype == torch.float64 else tl.float32
    with torch.cuda.device_of(values):
        kernel[grid](
            values, layout.offsets, layout.longest_first, *out, members, width, layout.n_bags, *values.stride()[:2],
            ROWS=rows, COLUMNS=columns, WIDE=wide, num_warps=warps, **flags,
        )  # fmt: skip
    return tuple(out)


def _spread(bag_values: Tensor, winners: Tensor | None, layout: Layout) -> Tensor:
    bag_values = _rows_in_place(bag_values)
    members, n_bags, width = bag_values.shape
    out = bag_values.new_empty(members, layout.n_instances, width)
    rows, columns, warps = _tile(width, layout.n_instances, EVEN)
    grid = (members * cdiv(layout.n_instances, rows) * cdiv(width, columns),)
    with torch.cuda.device_of(bag_values):
        _spread_kernel[grid](
            bag_values, layout.bag_of, bag_values if winners is None else winners, out,
            layout.n_instances, width, n_bags, *bag_values.stride()[:2],
            ROWS=rows, COLUMNS=columns, ONLY_WINNERS=winners is not None, num_warps=warps,
        )  # fmt: skip
    return out


def _tile(width: int, height: int, shape: tuple[int, int, int]) -> tuple[int, int, int]:
    entries, most_columns, warps = shape
    columns = min(most_columns, next_power_of_2(width))
    return min(entries // columns, next_power_of_2(max(height, 1))), columns, warps


def _rows_in_place(values: Tensor) -> Tensor:
    return values if values.stride(2) == 1 or values.shape[2] == 1 else values.contiguous()
