"""The step of :class:`~baggraph.inference._adam.StackedAdam` on a GPU, each number read and written once."""

# Kernels have no types; Triton reads annotations, so that they are not put off here either.
# mypy: allow-untyped-defs, allow-incomplete-defs, ignore-errors

import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def _kernel(
    rows, first, second, gradient, decayed, lr, decay, corrections, width, beta1, beta2, epsilon,
    DECOUPLED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1).to(tl.int64)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    place = member * width + column
    p = tl.load(rows + place, mask=inside)
    g = tl.load(gradient + place, mask=inside)
    pull = tl.load(decay + member) * tl.load(decayed + column, mask=inside) * p
    if not DECOUPLED:
        g += pull
    m = tl.load(first + place, mask=inside)
    m += (1 - beta1) * (g - m)
    v = tl.load(second + place, mask=inside)
    v = beta2 * v + (1 - beta2) * g * g
    move = (m / tl.load(corrections)) / (tl.sqrt(v / tl.load(corrections + 1)) + epsilon)
    if DECOUPLED:
        move += pull
    tl.store(first + place, m, mask=inside)
    tl.store(second + place, v, mask=inside)
    tl.store(rows + place, p - tl.load(lr + member) * move, mask=inside)


def step(adam, gradient, lr, corrections, betas, epsilon):
    """Move all rows."""
    members, width = adam.rows.shape
    grid = (triton.cdiv(width, BLOCK), members)
    _kernel[grid](
        adam.rows, adam.first, adam.second, gradient, adam.decayed, lr, adam.decay, corrections, width, *betas,
        epsilon, DECOUPLED=adam.kind == "decoupled", BLOCK=BLOCK,
    )  # fmt: skip
