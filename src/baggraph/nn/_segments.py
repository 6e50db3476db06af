"""Sum, mean, maximum, spreading and padding of (M, N, h), M members over the same bags, with gradients.

Under ``vmap`` the members become the leading axis, so that a stack of any size is one operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from baggraph.nn import _kernels
from baggraph.nn._layout import Layout
from baggraph.nn._operation import Operation

__all__ = ["BagMap", "Max"]


class _Linear(NamedTuple):
    run: Callable[[Tensor, Layout], Tensor]
    adjoint: str


def _pad(values: Tensor, layout: Layout) -> Tensor:
    padding = layout.padding
    return values.index_select(1, padding.take).index_fill_(1, padding.pads, 0)


def _unpad(values: Tensor, layout: Layout) -> Tensor:
    return values.index_select(1, layout.padding.place)


MAPS = {
    "sum": _Linear(_kernels.sums, "spread"),
    "spread": _Linear(_kernels.spreads, "sum"),
    "mean": _Linear(_kernels.means, "share"),
    "share": _Linear(_kernels.shares, "mean"),
    "pad": _Linear(_pad, "unpad"),
    "unpad": _Linear(_unpad, "pad"),
}


class BagMap(Operation):
    """One of ``MAPS``: (M, N, h) to (M, B, h), or to padded rows (M, P, h), or back; its gradient is its adjoint."""

    @staticmethod
    def forward(values: Tensor, layout: Layout, name: str) -> Tensor:
        return MAPS[name].run(values, layout)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        _, ctx.layout, ctx.name = inputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return BagMap.run(grad, ctx.layout, MAPS[ctx.name].adjoint), None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], values: Tensor, layout: Layout, name: str) -> tuple[Tensor, int]:
        stacked = _stacked(values, in_dims[0], info.batch_size)
        return BagMap.run(stacked.flatten(0, 1), layout, name).unflatten(0, stacked.shape[:2]), 0


class Max(Operation):
    """(M, N, h) to (M, B, h): maxima over bags, and the instances that reach them first."""

    @staticmethod
    def forward(values: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        return _kernels.maxima(values, layout)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.layout = inputs[1]
        ctx.save_for_backward(output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, None]:
        return Route.run(grad, ctx.saved_tensors[0], ctx.layout), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], values: Tensor, layout: Layout) -> tuple[Any, tuple[int, int]]:
        stacked = _stacked(values, in_dims[0], info.batch_size)
        found = Max.run(stacked.flatten(0, 1), layout)
        return tuple(part.unflatten(0, stacked.shape[:2]) for part in found), (0, 0)


class Route(Operation):
    """(M, B, h) to (M, N, h): values to the instances that won, and zero to all others."""

    @staticmethod
    def forward(bag_values: Tensor, winners: Tensor, layout: Layout) -> Tensor:
        return _kernels.routes(bag_values, winners, layout)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return torch.gather(grad, 1, ctx.saved_tensors[0].long()), None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[Any, ...], bag_values: Tensor, winners: Tensor, layout: Layout
    ) -> tuple[Tensor, int]:
        values, won = (
            _stacked(part, dim, info.batch_size) for part, dim in zip((bag_values, winners), in_dims, strict=False)
        )
        return Route.run(values.flatten(0, 1), won.flatten(0, 1), layout).unflatten(0, values.shape[:2]), 0


def _stacked(values: Tensor, dim: int | None, count: int) -> Tensor:
    return values.expand(count, *values.shape) if dim is None else values.movedim(dim, 0)
