"""mi-Net: bags are judged by pooled probabilities of instances."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from baggraph.errors import ParameterError, closest
from baggraph.nn.encoders._layers import checked_widths, row_wise
from baggraph.nn.ragged import segment_logsumexp, segment_max, segment_mean

__all__ = ["MiNet"]


def _mean(scores: Tensor, offsets: Tensor) -> Tensor:
    """``log mean p - log mean (1 - p)``, where the counts cancel."""
    log_sigmoid = nn.functional.logsigmoid
    return segment_logsumexp(log_sigmoid(scores), offsets) - segment_logsumexp(log_sigmoid(-scores), offsets)


def _log_mean_exp(scores: Tensor, offsets: Tensor) -> Tensor:
    """``log q - log(1 - q)`` of ``q = log mean exp p``; both ends without cancellation."""
    tiny = torch.finfo(scores.dtype).tiny
    q = segment_mean(scores.sigmoid().expm1(), offsets).log1p().clamp(min=tiny)
    rest = -segment_mean((-(-scores).sigmoid()).expm1(), offsets).log1p().clamp(max=-tiny)
    return q.log() - rest.log()


# The maximum of probabilities is reached where that of the scores is.
LOGITS = {"logsumexp": _log_mean_exp, "max": segment_max, "mean": _mean}


class MiNet(nn.Module):
    r"""mi-Net: the pooled probability of the instances is the probability of the bag, returned as a logit.

    .. math:: p_i = \sigma(s_i), \quad z_b = \mathrm{logit}\,\mathrm{pool}_{i \in b}\, p_i

    with s a row-wise network that ends in one score an output.  A head must pass z on as it is.  Log-sum-exp is that of
    the mean, ``log(1/n sum exp p_i)``, a probability again.  Wang et al. (2018, Revisiting multiple instance neural
    networks).

    Parameters
    ----------
    n_features
        Features of an instance.
    hidden
        Widths of the layers before the score.
    n_outputs
        Scores of an instance.
    pooling
        ``"max"``, ``"mean"`` or ``"logsumexp"``, of probabilities.
    activation
        ``"relu"``, ``"elu"``, ``"gelu"`` or ``"tanh"``.

    Shapes: instances (N, n_features), offsets (B + 1,) to logits (B, n_outputs).

    >>> import torch
    >>> MiNet(5)(torch.ones(3, 5), torch.tensor([0, 1, 3])).shape
    torch.Size([2, 1])
    """

    def __init__(
        self,
        n_features: int,
        hidden: Sequence[int] = (256, 128, 64),
        *,
        n_outputs: int = 1,
        pooling: str = "max",
        activation: str = "relu",
    ) -> None:
        super().__init__()
        if pooling not in LOGITS:
            remedy = closest(pooling, LOGITS)
            raise ParameterError("mi-net", expected="a pooling of probabilities", got=repr(pooling), remedy=remedy)
        checked_widths("n_outputs", n_outputs)
        layers = row_wise(n_features, hidden, activation)
        self.scores = nn.Sequential(*layers, nn.Linear(hidden[-1], n_outputs))
        self.pooling = pooling
        self.width = n_outputs
        self.level_widths = (self.width,)

    def forward(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """Logits of bags."""
        return LOGITS[self.pooling](self.scores(instances), offsets)
