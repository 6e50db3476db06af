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
        if self._fused:
            _triton_adam.step(self, gradient, lr, self._corrections(), BETAS, EPSILON)
            return
        gradient = self._decay(gradient, lr.unsqueeze(1))
        if self.rows.is_cpu:
            self._step_by_member(gradient, lr)
        else:
            self._step(gradient, lr.unsqueeze(1), self._corrections())

    def _corrections(self) -> Tensor:
        return torch.stack([1 - beta**self.steps for beta in BETAS])

    def _decay(self, gradient: Tensor, lr: Tensor) -> Tensor:
        """The gradient with its decay, or, after the rows were decayed, as it was."""
        decays = self.decay.unsqueeze(1) * self.decayed
        if self.kind == "l2":
            return torch.addcmul(gradient, decays, self.rows)
        self.rows.addcmul_(lr * decays, self.rows, value=-1)
        return gradient

    def _step_by_member(self, gradient: Tensor, lr: Tensor) -> None:
        """In one pass over each row: the kernel of ``torch.optim.Adam(fused=True)``, which has one rate for all."""
        for row, first, second, own, rate in zip(
            self.rows, self.first, self.second, gradient, lr.tolist(), strict=True
        ):
            torch._fused_adam_(
                [row], [own], [first], [second], [], [self.steps], lr=rate, beta1=BETAS[0], beta2=BETAS[1],
                weight_decay=0.0, eps=EPSILON, amsgrad=False, maximize=False,
            )  # fmt: skip

    def _step(self, gradient: Tensor, lr: Tensor, corrections: Tensor) -> None:
        self.first.lerp_(gradient, 1 - BETAS[0])
        self.second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        scale = self.second.sqrt().div_(corrections[1].sqrt()).add_(EPSILON)
        self.rows.addcdiv_(self.first * (lr / corrections[0]), scale, value=-1)
