"""The GPU kernels against torch, run by Triton's interpreter on a CPU; started by test_ragged with TRITON_INTERPRET=1."""

from __future__ import annotations

from itertools import product

import torch

from baggraph.inference import _triton_adam
from baggraph.inference._adam import BETAS, EPSILON, StackedAdam
from baggraph.nn import _kernels, _triton
from baggraph.nn._layout import layout_of
from baggraph.nn._triton_dropout import masks
from baggraph.nn.dropout import BITS, _Mask

SIZES = [3, 1, 5, 70, 1, 9]


def as_torch(dtype: torch.dtype, members: int, width: int, members_first: bool) -> None:
    layout = layout_of(torch.tensor([0, *SIZES]).cumsum(0))
    values = torch.randn(members, sum(SIZES), width).round(decimals=1).to(dtype)  # with ties
    if not members_first:
        values = values.transpose(0, 1).contiguous().transpose(0, 1)
    top, winners = _triton.maxima(values, layout)
    expected, first = _kernels.maxima(values, layout)
    assert torch.equal(top, expected)
    assert torch.equal(winners.long(), first)
    close = {"rtol": 2**-7, "atol": 1e-5} if dtype == torch.bfloat16 else {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(_triton.sums(values, layout), _kernels.sums(values, layout), **close)
    torch.testing.assert_close(_triton.means(values, layout), _kernels.means(values, layout), **close)
    grad = torch.randn(members, len(SIZES), width).to(dtype)
    assert torch.equal(_triton.spreads(grad, layout), _kernels.spreads(grad, layout))
    assert torch.equal(_triton.routes(grad, winners, layout), _kernels.routes(grad, first, layout))


def not_finite() -> None:
    layout = layout_of(torch.tensor([0, 2, 4, 6]))
    values = torch.tensor([-torch.inf, -torch.inf, 1, torch.nan, torch.inf, 2]).view(1, 6, 1)
    top, winners = _triton.maxima(values, layout)
    torch.testing.assert_close(top.flatten(), torch.tensor([-torch.inf, torch.nan, torch.inf]), equal_nan=True)
    assert winners.flatten()[[0, 2]].tolist() == [0, 4]
    assert winners[0, 1, 0] in (2, 3)


def dropout_as_torch() -> None:
    seeds, rows = torch.tensor([5, -7], dtype=torch.int32), torch.tensor([3, 0, 2**31 - 1], dtype=torch.int32)
    least = round(0.3 * (1 << BITS))
    for seed in (seeds, seeds[0]):
        expected = _Mask.forward(seed, rows, 700, 0.3, torch.float32)
        found = masks(seed.reshape(-1), rows, 700, least, 1 / (1 - least / (1 << BITS)), torch.float32)
        torch.testing.assert_close(found.view_as(expected), expected)


def adam_as_torch(kind: str) -> None:
    start, lr, decay = torch.randn(3, 2000), torch.tensor([1e-2, 0.0, 1e-3]), torch.tensor([0.1, 0.2, 0.0])
    decayed = (torch.arange(2000) % 3 > 0).float()
    ours, theirs = (StackedAdam(start.clone(), lr, decay, decayed, kind) for _ in range(2))
    for count in range(1, 5):
        gradient = torch.randn(3, 2000)
        theirs.step(gradient)
        corrections = torch.tensor([1 - beta**count for beta in BETAS])
        _triton_adam.step(ours, gradient, lr, corrections, BETAS, EPSILON)
        torch.testing.assert_close(ours.rows, theirs.rows, rtol=1e-5, atol=1e-6)


if __name__ == "__main__":
    torch.manual_seed(0)
    dtypes = (torch.float64, torch.float32, torch.bfloat16)
    for dtype, (members, width), first in product(dtypes, ((1, 1), (3, 5), (2, 130)), (True, False)):
        as_torch(dtype, members, width, first)
    not_finite()
    dropout_as_torch()
    for kind in ("l2", "decoupled"):
        adam_as_torch(kind)
