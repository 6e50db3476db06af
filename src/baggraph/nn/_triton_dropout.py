"""The masks of :class:`~baggraph.nn.Dropout` on a GPU: the same numbers as on a CPU, in one pass."""

# Kernels have no types; Triton reads annotations, so that they are not put off here either.
# mypy: allow-untyped-defs, allow-incomplete-defs, ignore-errors

from torch import Tensor, dtype

from baggraph.nn._jit import cdiv, jit, tl

BLOCK = 1024
FIRST, SECOND = 0x7FEB352D, 0x846CA68B - (1 << 32)  # as in baggraph.nn.dropout


@jit
def _scrambled(number, FIRST: tl.constexpr, SECOND: tl.constexpr):
    number = (number ^ ((number >> 16) & 0xFFFF)) * FIRST
    number = (number ^ ((number >> 15) & 0x1FFFF)) * SECOND
    return number ^ ((number >> 16) & 0xFFFF)


@jit
def _kernel(
    seeds, rows, out, total, width, least, scale,
    BLOCK: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < total
    row = tl.load(rows + place // width, mask=inside, other=0)
    column = place % width
    number = _scrambled(_scrambled(row ^ tl.load(seeds + member), FIRST, SECOND) + column // 2, FIRST, SECOND)
    half = tl.where(column % 2 == 0, number << 16, number) >> 16  # the lower half first, as integers lie in memory
    value = tl.where(half + 32768 >= least, scale, 0.0)
    tl.store(out + member * total + place, value.to(out.dtype.element_ty), mask=inside)


def masks(seeds: Tensor, rows: Tensor, width: int, least: int, scale: float, kind: dtype) -> Tensor:
    """Masks (M, n, width) of seeds (M,) for rows (n,)."""
    total = len(rows) * width
    out = rows.new_empty(len(seeds), len(rows), width, dtype=kind)
    _kernel[(cdiv(total, BLOCK), len(seeds))](
        seeds, rows, out, total, width, least, scale, BLOCK=BLOCK, FIRST=FIRST, SECOND=SECOND
    )
    return out
