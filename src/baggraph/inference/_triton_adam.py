"""The step of :class:`~baggraph.inference._adam.StackedAdam` on a GPU, each number read and written once."""

# Kernels have no types; Triton reads annotations, so that they are not put off here either.
# mypy: allow-untyped-defs, allow-incomplete-defs, ignore-errors

from baggraph.nn._jit import cdiv, jit, tl

BLOCK = 1024


@jit
def _kernel(
    rows, first, second, gradient, decayed, lr, decay, corrections, width,
    BETA1: tl.constexpr, BETA2: tl.constexpr, EPSILON: tl.constexpr, DECOUPLED: tl.constexpr, BLOCK: tl.constexpr,
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
    m += (1 - BETA1) * (g - m)
    v = tl.load(second + place, mask=inside)
    v = BETA2 * v + (1 - BETA2) * g * g
    move = (m / tl.load(corrections)) / (tl.sqrt(v / tl.load(corrections + 1)) + EPSILON)
    if DECOUPLED:
        move += pull
    tl.store(first + place, m, mask=inside)
    tl.store(second + place, v, mask=inside)
    tl.store(rows + place, p - tl.load(lr + member) * move, mask=inside)


def step(adam, gradient, lr, corrections, betas, epsilon):
    """Move all rows."""
    members, width = adam.rows.shape
    grid = (cdiv(width, BLOCK), members)
    _kernel[grid](
        adam.rows, adam.first, adam.second, gradient, adam.decayed, lr, adam.decay, corrections, width,
        BETA1=betas[0], BETA2=betas[1], EPSILON=epsilon, DECOUPLED=adam.kind == "decoupled", BLOCK=BLOCK,
    )  # fmt: skip
