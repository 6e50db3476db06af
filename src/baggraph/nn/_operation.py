"""The base of our own differentiable operations."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


class Operation(Function):
    """A function without needless bookkeeping, which for small bags takes longer than the work itself."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Torch asks for the signature in every call; this is where Python looks for one that is known.
        cls.forward.__signature__ = inspect.signature(cls.forward)  # type: ignore[attr-defined]

    @classmethod
    def run(cls, *inputs: Any) -> Any:
        """As ``apply``, or ``forward`` alone where no gradient and no member is followed, as in a backward pass."""
        tensors = [each for each in inputs if isinstance(each, Tensor)]
        followed = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        if followed or any(torch._C._functorch.is_functorch_wrapped_tensor(tensor) for tensor in tensors):
            return cls.apply(*inputs)
        return cls.forward(*inputs)
