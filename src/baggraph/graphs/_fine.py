"""Slack of pairs beyond the digits of float64.

A bag at squared distance c from all others has a potential near c and a weight near 1 / c, half the slack
``l_i + l_j - c``; from c = 1e7 on, float64 potentials round that slack away.  Twice the digits keep it to c = 1e14.
"""

from __future__ import annotations

import torch
from torch import Tensor


def two_sum(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The rounded sum and what rounding lost (Knuth, The art of computer programming, 4.2.2).

    >>> [float(part) for part in two_sum(*torch.tensor([1e16, 1.0], dtype=torch.float64))]
    [1e+16, 1.0]
    """
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def slack(potential: Tensor, fine: Tensor | None, rows: Tensor, columns: Tensor, costs: Tensor) -> Tensor:
    """Slack (E,) of pairs under the potentials ``potential + fine``; without ``fine``, as float64 rounds it."""
    if fine is None:
        return potential[rows] + potential[columns] - costs.to(torch.float64)
    total, lost = two_sum(potential[rows], potential[columns])
    total, more = two_sum(total, -costs.to(torch.float64))
    return total + ((lost + more) + (fine[rows] + fine[columns]))
