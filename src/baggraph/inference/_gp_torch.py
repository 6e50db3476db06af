"""The covariances of a process as torch computes them, for many members at once, so that gradients reach everything."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from baggraph.inference.gp import JITTER, Process, Rows
from baggraph.inference.gp_kernels import AbstractKernel, Constant, Linear, Spectral, Stationary

LOG_2PI = math.log(2 * math.pi)
DOUBLE = torch.float64


class Chosen(NamedTuple):
    """Bags (M, n) of every member by their positions, and which of them (M, n) are there at all: the rest fills up."""

    place: Tensor
    there: Tensor

    @classmethod
    def of(cls, bags: list[np.ndarray], device: torch.device) -> Chosen:
        """From positions, a list of which may be shorter than another."""
        longest = max(len(some) for some in bags)
        place = np.stack([np.resize(some, longest) if len(some) else np.zeros(longest, np.int64) for some in bags])
        there = np.arange(longest) < np.array([len(some) for some in bags])[:, None]
        return cls(torch.from_numpy(place).to(device), torch.from_numpy(there).to(device))

    def of_rows(self, values: Tensor) -> Tensor:
        """Rows (M, n, ...) of values (M, B, ...)."""
        index = self.place.reshape(*self.place.shape, *(1,) * (values.ndim - 2))
        return values.gather(1, index.expand(*self.place.shape, *values.shape[2:]))


class Covariance:
    """Signal and noise between the left and the right bags of every member, as functions of its log parameters."""

    def __init__(self, process: Process, rows: Rows, left: Chosen, right: Chosen) -> None:
        self.process = process
        device = left.place.device
        self.noises = {name: torch.as_tensor(rows[name], dtype=DOUBLE, device=device) for name in process.noises}
        self.left = left
        self.pairs = {
            name: _pairs(kernel, torch.as_tensor(rows[name], dtype=DOUBLE, device=device), left.place, right.place)
            for name, kernel in process.kernels.items()
        }

    def signal(self, log_theta: Tensor) -> Tensor:
        """Covariance (M, n, m) of the signals of left and right bags."""
        theta, start = log_theta.exp(), 0
        found = torch.zeros((), dtype=DOUBLE, device=log_theta.device)
        for name, kernel in self.process.kernels.items():
            stop = start + len(kernel.parameters)
            own, start = theta[:, start:stop, None, None], stop
            found = found + own[:, 0] * _shape(kernel, self.pairs[name], own)
        return found

    def noise(self, log_theta: Tensor) -> Tensor:
        """Variance (M, n) of the noise of left bags."""
        first = log_theta.shape[1] - len(self.noises)
        parts = [log_theta[:, first + i, None].exp() * v[self.left.place] for i, v in enumerate(self.noises.values())]
        return torch.stack(parts).sum(0)


def _pairs(kernel: AbstractKernel, rows: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, ...]:
    """What depends on no parameter, (M, n, m) or of the bags of either side."""
    if isinstance(kernel, Constant):
        return (torch.ones(*left.shape, right.shape[1], dtype=DOUBLE, device=rows.device),)
    if isinstance(kernel, Spectral):
        values = torch.as_tensor(kernel.eigenvalues, dtype=DOUBLE, device=rows.device).clamp_min(0)
        return rows[left], rows[right], values
    if isinstance(kernel, Linear):
        return (rows[left] @ rows[right].transpose(1, 2),)
    apart = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    return (apart[left.unsqueeze(2), right.unsqueeze(1)],)


def _shape(kernel: AbstractKernel, pairs: tuple[Tensor, ...], theta: Tensor) -> Tensor:
    """The covariance (M, n, m) at variance one; ``theta`` (M, p, 1, 1)."""
    if isinstance(kernel, Spectral):
        left, right, values = pairs
        ratio = values / theta[:, 1, 0]
        g = (1 + ratio) ** -kernel.order if kernel.kind == "matern" else torch.exp(-ratio)
        weights = g / g.mean(1, keepdim=True)
        return (left * weights.unsqueeze(1)) @ right.transpose(1, 2)
    if not isinstance(kernel, Stationary):
        return pairs[0]
    r = pairs[0] / theta[:, 1]
    if kernel.shape == "rbf":
        return torch.exp(-0.5 * r**2)
    if kernel.shape == "matern12":
        return torch.exp(-r)
    a = math.sqrt(3.0 if kernel.shape == "matern32" else 5.0) * r
    return (1 + a + (a**2 / 3 if kernel.shape == "matern52" else 0.0)) * torch.exp(-a)


class Factor(NamedTuple):
    """Cholesky factors (M, n, n) of signal and noise, the identity where no bag is, and which members (M,) have one."""

    root: Tensor
    there: Tensor
    fine: Tensor

    @classmethod
    def of(cls, signal: Tensor, noise: Tensor, there: Tensor) -> Factor:
        """Of covariances (M, n, n) and variances (M, n) of the bags that are there (M, n)."""
        both = there.unsqueeze(2) & there.unsqueeze(1)
        own = signal.diagonal(dim1=1, dim2=2)
        level = torch.where(there, own, 0.0).sum(1, keepdim=True) / there.sum(1, keepdim=True)
        extra = torch.where(there, noise + JITTER * level.clamp_min(1e-30), 1.0)
        root, failed = torch.linalg.cholesky_ex(torch.where(both, signal, 0.0) + torch.diag_embed(extra))
        return cls(root, there, failed == 0)

    def white(self, values: Tensor) -> Tensor:
        """Values (M, n, t) made independent, of variance one; zero where no bag is."""
        return torch.linalg.solve_triangular(self.root, torch.where(self.there.unsqueeze(2), values, 0.0), upper=False)

    def log_likelihood(self, residual: Tensor) -> Tensor:
        """``log N(r; 0, K)`` (M,) of residuals (M, n, t), columns independent."""
        t = residual.shape[2]
        log_roots = self.root.diagonal(dim1=1, dim2=2).log().sum(1)
        constant = 0.5 * LOG_2PI * t * self.there.sum(1).to(DOUBLE)
        return -0.5 * self.white(residual).square().sum((1, 2)) - t * log_roots - constant


def log_prior(log_theta: Tensor, center: Tensor, spread: Tensor) -> Tensor:
    """Of the parameters (M, P) that are free, those of a spread (P,) above zero, without its constant (M,)."""
    free = spread > 0
    z = torch.where(free, (log_theta - center) / torch.where(free, spread, 1.0), 0.0)
    return -0.5 * z.square().sum(1)


def held_out_densities(cross: Tensor, variance: Tensor, factor: Factor, residual: Tensor, held: Tensor) -> Tensor:
    """Log densities (M, m) of residuals (M, m, t) of bags whose labels are not seen, each on its own, a target.

    ``cross`` (M, n, m) is their covariance with seen bags, whose residuals are (M, n, t); ``variance`` (M, m) of signal
    and noise, before a label is seen.
    """
    white = factor.white(cross)
    mean = white.transpose(1, 2) @ factor.white(residual)
    left = (variance - white.square().sum(1)).clamp_min(1e-12).unsqueeze(2)
    return -0.5 * ((held - mean).square() / left + left.log() + LOG_2PI).mean(2)
