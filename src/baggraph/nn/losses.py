"""Losses of bags: what the outputs of a network mean, and how far they are from labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

__all__ = ["AbstractLoss", "BinaryCrossEntropy", "CrossEntropy", "Gaussian", "SquaredError"]

LEAST_LOG_VARIANCE = -12.0


class AbstractLoss(ABC):
    """Outputs (..., B, n_outputs) against targets (..., B, n_targets); both may have members in front."""

    n_targets: int
    takes_classes = False  # whether targets (B,) are codes of classes

    @property
    def n_outputs(self) -> int:
        """Numbers that a network must give for every bag."""
        return self.n_targets

    @abstractmethod
    def of_bags(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Loss of every bag (..., B), before any weight."""

    @abstractmethod
    def mean(self, outputs: Tensor) -> Tensor:
        """Expected label of every bag (..., B, n_targets): probabilities, shares or values."""

    def variance(self, _outputs: Tensor) -> Tensor | None:
        """Variance of the label given the outputs (..., B, n_targets), where the loss has one of its own."""
        return None


@dataclass(frozen=True)
class CrossEntropy(AbstractLoss):
    r"""``- sum_c t_c log softmax(o)_c`` over classes; t is one class (one-hot), or soft.

    >>> loss = CrossEntropy(3)
    >>> loss.of_bags(torch.zeros(1, 3), torch.eye(3)[:1]).item()
    1.098612...
    """

    n_targets: int
    takes_classes = True

    def of_bags(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Loss of every bag."""
        return -(targets * outputs.log_softmax(-1)).sum(-1)

    def mean(self, outputs: Tensor) -> Tensor:
        """Class probabilities."""
        return outputs.softmax(-1)


@dataclass(frozen=True)
class BinaryCrossEntropy(AbstractLoss):
    r"""``- t log s - (1 - t) log(1 - s)``, s = sigmoid(o), summed over targets in [0, 1]: two classes, or shares.

    >>> BinaryCrossEntropy().of_bags(torch.zeros(1, 1), torch.full((1, 1), 0.3)).item()
    0.693147...
    """

    n_targets: int = 1

    def of_bags(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Loss of every bag."""
        return (nn.functional.softplus(outputs) - targets * outputs).sum(-1)

    def mean(self, outputs: Tensor) -> Tensor:
        """Probability of the second class, or shares."""
        return outputs.sigmoid()


@dataclass(frozen=True)
class SquaredError(AbstractLoss):
    r"""``sum_t (o_t - y_t)^2 / n_targets``.

    >>> SquaredError(2).of_bags(torch.tensor([[1.0, 2.0]]), torch.zeros(1, 2)).item()
    2.5
    """

    n_targets: int = 1

    def of_bags(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Loss of every bag."""
        return (outputs - targets).square().mean(-1)

    def mean(self, outputs: Tensor) -> Tensor:
        """The outputs."""
        return outputs


@dataclass(frozen=True)
class Gaussian(AbstractLoss):
    r"""``1/2 sum_t (log v_t + (m_t - y_t)^2 / v_t)``: the first outputs are means m, the others log variances log v.

    The constant log(2 pi) / 2 a target is left out.  Log variances are kept above -12 (Nix & Weigend 1994).

    >>> Gaussian().of_bags(torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0]])).item()
    2.0
    """

    n_targets: int = 1

    @property
    def n_outputs(self) -> int:
        """A mean and a log variance a target."""
        return 2 * self.n_targets

    def of_bags(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Loss of every bag."""
        mean, log_variance = self.mean(outputs), self._log_variance(outputs)
        return 0.5 * (log_variance + (mean - targets).square() * torch.exp(-log_variance)).sum(-1)

    def mean(self, outputs: Tensor) -> Tensor:
        """The means."""
        return outputs[..., : self.n_targets]

    def variance(self, outputs: Tensor) -> Tensor | None:
        """The variances."""
        return self._log_variance(outputs).exp()

    def _log_variance(self, outputs: Tensor) -> Tensor:
        return outputs[..., self.n_targets :].clamp_min(LEAST_LOG_VARIANCE)
