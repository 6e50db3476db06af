"""Adam for M members at once, each with its own learning rate and decay."""

from __future__ import annotations

import torch
from torch import Tensor

from baggraph.inference import _triton_adam
from baggraph.nn._jit import TRITON

BETAS, EPSILON = (0.9, 0.999), 1e-8


class StackedAdam:
    r"""Adam (Kingma & Ba 2015) on rows (M, P): ``p -= lr m̂ / (sqrt(v̂) + eps)``.

    ``decay`` (M,) is added to the gradient as ``decay * p`` ("l2", as ``torch.optim.Adam`` does), or taken from p as
    ``lr * decay * p`` ("decoupled", Loshchilov & Hutter 2019), where ``decayed`` (P,) is 1.  All state lies on the
    device, so that a step can be recorded and replayed.
    """

    def __init__(self, rows: Tensor, lr: Tensor, decay: Tensor, decayed: Tensor, kind: str) -> None:
        self.rows, self.lr, self.decay, self.decayed, self.kind = rows, lr, decay, decayed, kind
        self.first, self.second = torch.zeros_like(rows), torch.zeros_like(rows)
        self.steps = torch.zeros((), dtype=rows.dtype, device=rows.device)
        narrow = rows.dtype == torch.float32  # constants in the kernel are of this type
        self._fused = rows.is_cuda and narrow and TRITON

    @torch.no_grad()
    def step(self, gradient: Tensor, live: Tensor | None = None) -> None:
        """Move the rows, or only those that are live (M,)."""
        self.steps += 1
        lr = self.lr if live is None else self.lr * live
        corrections = torch.stack([1 - beta**self.steps for beta in BETAS])
        if self._fused:
            _triton_adam.step(self, gradient, lr, corrections, BETAS, EPSILON)
        else:
            self._step(gradient, lr.unsqueeze(1), corrections)

    def _step(self, gradient: Tensor, lr: Tensor, corrections: Tensor) -> None:
        decays = self.decay.unsqueeze(1) * self.decayed
        if self.kind == "l2":
            gradient = torch.addcmul(gradient, decays, self.rows)
        else:
            self.rows.addcmul_(lr * decays, self.rows, value=-1)
        self.first.lerp_(gradient, 1 - BETAS[0])
        self.second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        scale = self.second.sqrt().div_(corrections[1].sqrt()).add_(EPSILON)
        self.rows.addcdiv_(self.first * (lr / corrections[0]), scale, value=-1)
