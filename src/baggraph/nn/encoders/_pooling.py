"""Pooling by name: from instance representations (N, h) to bag representations (B, h)."""

from __future__ import annotations

from torch import Tensor, nn

from baggraph.errors import ParameterError, closest
from baggraph.nn._layout import layout_of
from baggraph.nn.ragged import segment_logsumexp, segment_max, segment_mean, segment_softmax, segment_sum

ATTENTION_WIDTH = 64


def log_mean_exp(values: Tensor, offsets: Tensor) -> Tensor:
    """``log (1 / |b| sum_{i in b} exp v_i)``: between the mean and the maximum, whatever the size of the bag."""
    log_sums = segment_logsumexp(values, offsets)
    sizes = layout_of(offsets).sizes.to(log_sums.dtype)
    return log_sums - sizes.log().reshape(-1, *(1,) * (values.ndim - 1))


FIXED = {"logsumexp": log_mean_exp, "max": segment_max, "mean": segment_mean, "sum": segment_sum}
POOLINGS = (*FIXED, "attention")


def pooling_layer(name: str, width: int, allowed: tuple[str, ...] = POOLINGS) -> nn.Module:
    """A new layer of this name for representations of this width."""
    if name not in allowed:
        raise ParameterError("encoder", expected="a pooling", got=repr(name), remedy=closest(name, allowed))
    return AttentionPooling(width) if name == "attention" else FixedPooling(name)


class FixedPooling(nn.Module):
    """Mean, maximum, sum or log-mean-exp."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, values: Tensor, offsets: Tensor) -> Tensor:
        """(N, h) to (B, h)."""
        return FIXED[self.name](values, offsets)

    def extra_repr(self) -> str:
        """Show which."""
        return repr(self.name)


class AttentionPooling(nn.Module):
    """A weighted mean, with weights from a small network on the same representations; see :class:`Attention`."""

    def __init__(self, width: int, attention_width: int = ATTENTION_WIDTH, *, gated: bool = False) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, attention_width)
        self.gate = nn.Linear(width, attention_width) if gated else None
        self.score = nn.Linear(attention_width, 1, bias=False)  # a bias would cancel in the softmax

    def weights(self, values: Tensor, offsets: Tensor) -> Tensor:
        """(N, h) to (N, 1), with sum 1 in every bag."""
        hidden = self.hidden(values).tanh()
        if self.gate is not None:
            hidden = hidden * self.gate(values).sigmoid()
        return segment_softmax(self.score(hidden), offsets)

    def forward(self, values: Tensor, offsets: Tensor) -> Tensor:
        """(N, h) to (B, h)."""
        return segment_sum(self.weights(values, offsets) * values, offsets)
