"""Why a network says what it says of a bag: parts of one score, by neighbours and by instances.

The score of a bag is ``s = sum_c v_c mean_l o_lc``: a direction v over the outputs o, averaged over the levels of
supervision.  With one level and two classes it is the logit.  Weights are those of the fit, without dropout, and
the graph stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call

from baggraph.errors import ParameterError, closest
from baggraph.nn.gcn import Propagation
from baggraph.nn.heads import Head
from baggraph.nn.network import Network

__all__ = ["Setting", "by_instances", "by_neighbors", "chosen_method", "instance_weights"]

METHODS = ("attention", "gradients", "leave-one-out")
STEPS = 64  # of a path, where the head is no linear map
CHUNK_ROWS = 1 << 17
MOST_LEFT_OUT = 1000  # instances of a bag of which each is left out in turn


@dataclass(frozen=True, eq=False)
class Setting:
    """One member and the surroundings of one bag.

    Parameters
    ----------
    network
        With the parameters of the member, in evaluation mode.
    embedding : (n, h)
        Of the bags that are heard, the bag itself being the last; beside them labels, if the head takes any.
    paths
        Their weights, or None without a graph.
    direction : (C,)
        What the score is of the outputs.
    shift
        Added to the score.

    """

    network: Network
    embedding: Tensor
    paths: Propagation | None
    direction: Tensor
    shift: float = 0.0

    def score(self, embedding: Tensor) -> Tensor:
        """The score (), of embeddings (n, h)."""
        outputs = self.network.head(embedding, self.paths)
        return outputs.mean(0)[-1] @ self.direction + self.shift

    def scores_of(self, own: Tensor) -> Tensor:
        """Scores (K,) of the bag, had it these embeddings (K, h)."""
        head: dict[str, Tensor] = dict(self.network.head.named_parameters())
        others = self.embedding[:-1]

        def one(z: Tensor) -> Tensor:
            own = torch.nn.functional.pad(z, (0, others.shape[1] - len(z))).unsqueeze(0)  # its label is not shown
            outputs = functional_call(self.network.head, head, (torch.cat([others, own]), self.paths))
            return outputs.mean(0)[-1] @ self.direction + self.shift

        return torch.vmap(one)(own)

    @property
    def is_linear(self) -> bool:
        """Whether the score is linear in the embeddings."""
        head = self.network.head
        return not isinstance(head, Head) or all(len(layers) == 1 for layers in head.levels)  # type: ignore[arg-type]


def by_neighbors(setting: Setting) -> tuple[Tensor, float]:
    r"""What every bag adds to the score (n,), and the score of nothing: together they are the score.

    .. math:: c_j = z_j^\top \int_0^1 \nabla_{z_j} s(t Z)\, dt, \quad s(Z) = s(0) + \sum_j c_j

    Integrated gradients of embeddings (Sundararajan et al. 2017).  For a linear head ``c_j = a_bj w^T z_j``, exactly;
    with hidden layers the integral is a sum over 64 points, and what it misses goes to the score of nothing.
    """
    steps = 1 if setting.is_linear else STEPS
    total = torch.zeros(len(setting.embedding), dtype=setting.embedding.dtype)
    for step in range(steps):
        point = (setting.embedding * ((step + 0.5) / steps)).requires_grad_()
        (slope,) = torch.autograd.grad(setting.score(point), point)
        total += (slope * setting.embedding).sum(1) / steps
    with torch.no_grad():
        whole = setting.score(setting.embedding)
    return total, float(whole - total.sum())


def by_instances(setting: Setting, instances: Tensor, method: str) -> Tensor:
    """What every instance (n, d) of the bag adds to its score (n,), by one of three methods.

    ``"leave-one-out"``: the score less that of the bag without the instance; of a bag of one, less that of an embedding
    of zeros.  ``"gradients"``: integrated gradients from instances of zeros, which add up to the difference that the
    instances make.  ``"attention"``: the weight of the instance in its bag, times what a bag of it alone would add; for
    encoders whose embedding is a weighted mean, these add up to the part of the bag itself in the score.
    """
    makers: dict[str, Callable[[Setting, Tensor], Tensor]] = {
        "attention": _by_attention,
        "gradients": _by_gradients,
        "leave-one-out": _by_leaving_out,
    }
    return makers[method](setting, instances)


def chosen_method(network: Network, method: str, most_instances: int) -> str:
    """The method that was asked for or, for ``"auto"``, that suits the encoder and the size of the bags."""
    attends = hasattr(network.encoder, "instance_weights")
    if method == "auto":
        return "attention" if attends else "leave-one-out" if most_instances <= MOST_LEFT_OUT else "gradients"
    if method not in METHODS:
        remedy = closest(method, METHODS)
        raise ParameterError("explain", expected=f"method 'auto' or one of {METHODS}", got=repr(method), remedy=remedy)
    if method == "attention" and not attends:
        got, remedy = f"{type(network.encoder).__name__}, which has none", "use method='auto', or encoder='attention'"
        raise ParameterError("explain", expected="an encoder with instance_weights", got=got, remedy=remedy)
    return method


def instance_weights(network: Network, instances: Tensor) -> Tensor:
    """Attention (n,) of the instances of one bag."""
    with torch.no_grad():
        return network.encoder.instance_weights(instances, _bounds([len(instances)]))  # type: ignore[operator]


# ---------------------------------------------------------------------- methods


def _by_attention(setting: Setting, instances: Tensor) -> Tensor:
    alone = _encoded(setting.network, instances, [1] * len(instances))
    nothing = setting.scores_of(torch.zeros_like(setting.embedding[-1:]))
    return instance_weights(setting.network, instances) * (setting.scores_of(alone).detach() - nothing.detach())


def _by_leaving_out(setting: Setting, instances: Tensor) -> Tensor:
    count = len(instances)
    whole = setting.scores_of(_encoded(setting.network, instances, [count]))
    if count == 1:
        return (whole - setting.scores_of(torch.zeros_like(setting.embedding[-1:]))).detach()
    places = torch.arange(count)
    found = []
    for left in places.split(max(1, CHUNK_ROWS // count)):
        rows = torch.cat([torch.cat([places[:i], places[i + 1 :]]) for i in left.tolist()])
        rest = _encoded(setting.network, instances[rows], [count - 1] * len(left))
        found.append(setting.scores_of(rest).detach())
    return whole.detach() - torch.cat(found)


def _by_gradients(setting: Setting, instances: Tensor) -> Tensor:
    total = torch.zeros_like(instances)
    for some in ((torch.arange(STEPS) + 0.5) / STEPS).split(max(1, CHUNK_ROWS // len(instances))):
        points = (some.to(instances.dtype)[:, None, None] * instances).requires_grad_()  # a bag a step
        own = setting.network.encoder(points.flatten(0, 1), _bounds([len(instances)] * len(some)))
        (slopes,) = torch.autograd.grad(setting.scores_of(own).sum(), points)
        total += slopes.sum(0) / STEPS
    return (total * instances).sum(1)


def _encoded(network: Network, instances: Tensor, sizes: list[int]) -> Tensor:
    with torch.no_grad():
        return network.encoder(instances, _bounds(sizes))


def _bounds(sizes: list[int]) -> Tensor:
    return torch.cat([torch.zeros(1, dtype=torch.int64), torch.tensor(sizes).cumsum(0)])
