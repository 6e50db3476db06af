r"""Network and Gaussian process under one objective: ``T(y_b) = g(b) + sum_p f_p(b) + e_b``, all fitted jointly.

The loss is the negative log marginal likelihood of the visible targets, generalised least squares in the network g,
with the weak priors of the process.  The process is fitted first, alone, and g begins at zero, so that training for no
epoch at all is the process without a network: it takes part when the number of epochs is chosen.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from baggraph.data.bags import Bags
from baggraph.data.posterior import Posterior
from baggraph.errors import ParameterError
from baggraph.inference._device import chosen_device
from baggraph.inference._inputs import check_settings, one_each
from baggraph.inference._joint_program import LOOK_EVERY, JointMember, JointProgram, JointTrained, Shared
from baggraph.inference._members import Layout, refuse_running_statistics, start
from baggraph.inference._program import Settings
from baggraph.inference.gp import Evidence, FittedProcess, fit_process
from baggraph.inference.gp_regression import FittedRegression
from baggraph.inference.gp_scale import to_posterior
from baggraph.inference.stack import StackFit, chunk_size, dense
from baggraph.nn.heads import Head
from baggraph.nn.losses import SquaredError
from baggraph.nn.network import Network

__all__ = ["JointFit", "JointRegression", "fit_joint"]

Array = NDArray[np.float64]
Progress = Callable[[str, int, int], None]
FOLDS = 5  # of the training bags, to choose the number of epochs
FOLD_SALT = 0xF01D
PRECISIONS = ("float32", "float64", "tf32")


@dataclass(frozen=True, eq=False)
class JointRegression:
    """What a network says of targets, and the process of what it leaves.

    Parameters
    ----------
    rest
        Fitted to the targets less the network's outputs.
    outputs : (B, t)
        Of the network for all described bags, on the scale of the process.
    epochs
        That it was trained for; 0: the process alone.
    densities : (looks,)
        Mean log density of targets held out of training, on the scale of the process, after 0, 5, 10, ... epochs.

    """

    rest: FittedRegression
    outputs: Array
    epochs: int
    densities: Array

    def posterior(self, rows: Any, ids: Any, outputs: Array) -> Posterior:
        """Of bags that these rows describe, and for which the network says ``outputs`` (m, t)."""
        mean, signal, noise = self.rest.fitted.predict(rows)
        return to_posterior(mean + outputs, signal, noise, self.rest.scale, ids)

    def shares(self) -> dict[str, float]:
        """As of :class:`FittedRegression`; the ``encoder`` has the variance of its outputs over all described bags."""
        found = self.rest.variances() | {"encoder": float(self.outputs.var(axis=0).mean())}
        total = sum(found.values())
        return {name: value / total for name, value in found.items()}


@dataclass(frozen=True, eq=False)
class JointFit:
    """M fitted networks, and what they and their processes say."""

    stack: StackFit
    regressions: list[JointRegression]


def fit_joint(
    network: Network,
    bags: Bags,
    plain: Sequence[FittedRegression],
    masks: Any,
    seeds: Sequence[int],
    *,
    lr: float = 5e-4,
    weight_decay: float = 5e-3,
    epochs: int = 200,
    precision: str = "float32",
    device: str = "auto",
    memory_bytes: int | None = None,
    progress: Progress | None = None,
) -> JointFit:
    """Train M members by the marginal likelihood of their training bags, for as many epochs as these bags say.

    The training bags of a member are cut into FOLDS parts; each is left out once, the process fitted to the rest, and
    network and process trained on it for ``epochs``.  The epoch (0, 5, 10, ...) after which the parts left out have the
    largest log density is that at which training on all training bags stops; it must gain a standard error, over the
    bags, on the process alone, or there is no training at all.

    Parameters
    ----------
    network
        For one member, with a linear layer behind its encoder, which is set to zero at the start.
    bags
        Whose instances are scaled already.
    plain
        A fitted process a member, all over the same description: where the member begins.
    masks : (M, B)
        Which bags train.
    seeds
        One a member.
    lr, weight_decay
        Of Adam, for the network; the logarithms of the covariance's parameters move by 0.01.
    epochs
        The largest number that is tried.
    precision
        Of the network; covariances are always factored in double precision.
    device, memory_bytes, progress
        As for :func:`~baggraph.inference.stack.fit_stack`; ``progress`` is given the phase first.

    """
    loss = SquaredError(plain[0].fitted.targets.shape[1])
    settings = Settings(loss, epochs, "l2", "weights", None, None, precision, chosen_device(device))
    _check(network, plain, settings, seeds, lr, weight_decay)
    dtype = torch.float64 if precision == "float64" else torch.float32
    instances, offsets = dense(bags, dtype, settings.device)
    description = plain[0].description
    own = copy.deepcopy(network).to(settings.device, dtype)
    shared = Shared(
        own, Layout.of(network), instances, offsets, settings, description.process, description.rows, lr, weight_decay
    )
    places = [np.flatnonzero(mask) for mask in np.asarray(masks)]
    inner = [_left_out(*one, epochs) for one in zip(plain, places, seeds, strict=True)]
    tried = _train(
        shared, [member for members in inner for member in members], memory_bytes, progress, "choosing epochs"
    )
    chosen, densities = _chosen(inner, [] if tried is None else tried.densities.numpy())
    none = np.zeros(0, dtype=np.int64)
    final = [
        JointMember(seed, seen, one.fitted.targets, one.fitted.theta, int(stop), none, one.fitted.targets[:0])
        for seed, seen, one, stop in zip(seeds, places, plain, chosen, strict=True)
    ]
    found = cast(JointTrained, _train(shared, final, memory_bytes, progress, "training"))
    stack = _as_stack(network, shared.layout, found)
    facts = zip(plain, places, stack.mean.numpy(), np.exp(found.log_theta.numpy()), chosen, densities, strict=True)
    return JointFit(stack, [_regression(*fact) for fact in facts])


def _check(network: Network, plain: Any, settings: Settings, seeds: Any, lr: float, weight_decay: float) -> None:
    check_settings(settings, seeds)
    refuse_running_statistics(network)
    one_each(lr, 1, "lr"), one_each(weight_decay, 1, "weight_decay")
    stage = "joint objective"
    if settings.precision not in PRECISIONS:
        raise ParameterError(stage, expected=f"precision one of {PRECISIONS}", got=settings.precision, remedy="change")
    if not isinstance(network.head, Head):
        got, remedy = f"{type(network.encoder).__name__} alone", "choose another encoder, such as 'deep-sets'"
        raise ParameterError(stage, expected="an encoder with a linear layer behind it", got=got, remedy=remedy)
    if any(one.description is not plain[0].description for one in plain):
        remedy = "describe the bags once"
        raise ParameterError(stage, expected="one description of the bags", got="several", remedy=remedy)


def zeroed(network: Network, layout: Layout, rows: Tensor) -> Tensor:
    """Rows (M, width) with the last layer of every level at zero: networks that say nothing yet."""
    views = layout.views(rows)
    for level, layers in enumerate(cast(Head, network.head).levels):
        last = f"head.levels.{level}.{len(cast(nn.ModuleList, layers)) - 1}."
        for name in views:
            if name.startswith(last):
                views[name].zero_()
    return rows


def _left_out(plain: FittedRegression, seen: NDArray[np.int64], seed: int, epochs: int) -> list[JointMember]:
    """A member for every part of the training bags, held out in its turn."""
    if len(seen) < 2:
        return []
    order = np.random.default_rng([seed, FOLD_SALT]).permutation(len(seen))
    targets, description = plain.fitted.targets, plain.description
    members = []
    for part in np.array_split(order, min(FOLDS, len(seen))):
        held = np.sort(part)
        kept = np.setdiff1d(np.arange(len(seen)), held)
        fitted = fit_process(description.process, description.take(seen[kept]), targets[kept], starts=1)
        members.append(JointMember(seed, seen[kept], targets[kept], fitted.theta, epochs, seen[held], targets[held]))
    return members


def _chosen(inner: Sequence[Sequence[JointMember]], densities: Any) -> tuple[list[int], list[Array]]:
    """The number of epochs, and the mean log density of all bags left out after every look, by member."""
    epochs, means, first = [], [], 0
    for members in inner:
        own = densities[first : first + len(members)]
        first += len(members)
        parts = [part[: len(member.held)] for part, member in zip(own, members, strict=True)]
        looks = np.nan_to_num(np.concatenate(parts), nan=-np.inf) if parts else np.zeros((1, 1))
        epochs.append(min(best_look(looks) * LOOK_EVERY, members[0].epochs) if members else 0)
        means.append(looks.mean(axis=0))
    return epochs, means


def best_look(densities: Array) -> int:
    """The look of the largest mean of log densities (bags, looks), if it gains a standard error on the first one.

    >>> best_look(np.array([[0.0, 1.0], [0.0, 1.2]])), best_look(np.array([[0.0, 1.0], [0.0, -0.9]]))
    (1, 0)
    """
    best = int(np.argmax(densities.mean(axis=0)))
    gains = densities[:, best] - densities[:, 0]
    return best if gains.mean() > gains.std() / np.sqrt(len(gains)) else 0


def _train(
    shared: Shared, members: Sequence[JointMember], memory_bytes: int | None, progress: Progress | None, phase: str
) -> JointTrained | None:
    """All members, in chunks that fit."""
    if not members:
        return None
    rows = start(shared.network, shared.layout, [member.seed for member in members]).to(shared.instances.dtype)
    rows = zeroed(shared.network, shared.layout, rows)
    largest = max(len(member.seen) for member in members)
    extra = 64 * largest * (largest + len(shared.rows["level"]))
    one = (shared.network, shared.layout, shared.instances, shared.offsets, shared.settings)
    chunk = chunk_size(one, rows, None, memory_bytes, extra)
    total, done = sum(member.epochs for member in members), 0
    parts = []
    for first in range(0, len(members), chunk):
        some = members[first : first + chunk]
        before, own = done, sum(member.epochs for member in some)

        def tell(epoch: int, before: int = before, own: int = own, some: Sequence[JointMember] = some) -> None:
            if progress is not None:
                progress(phase, before + own * epoch // max(member.epochs for member in some), total)

        parts.append(JointProgram(shared, rows[first : first + chunk], some).train(tell))
        done += own
    most = max(part.losses.shape[1] for part in parts)
    held = max(part.densities.shape[1] for part in parts)
    even = [
        part._replace(
            losses=nn.functional.pad(part.losses, (0, most - part.losses.shape[1]), value=torch.nan),
            densities=nn.functional.pad(part.densities, (0, 0, 0, held - part.densities.shape[1]), value=torch.nan),
        )
        for part in parts
    ]
    return JointTrained(*(torch.cat(tensors) for tensors in zip(*even, strict=True)))


def _as_stack(network: Network, layout: Layout, found: JointTrained) -> StackFit:
    outputs = found.outputs.unsqueeze(1)
    return StackFit(network, layout.views(found.rows), found.embedding, outputs, found.losses, found.outputs)


def _regression(
    plain: FittedRegression, seen: NDArray[np.int64], outputs: Array, theta: Array, epochs: int, densities: Array
) -> JointRegression:
    """The process of what the network leaves, at the parameters that were trained with it."""
    if not epochs:
        return JointRegression(plain, np.zeros_like(outputs), 0, densities)
    fitted = plain.fitted
    evidence = Evidence(fitted.process, fitted.rows, fitted.targets - outputs[seen])
    likelihood = evidence.log_likelihood(theta)[0]
    posterior = likelihood + evidence.log_prior(theta)[0]
    process = FittedProcess(fitted.process, theta, fitted.rows, evidence.targets, likelihood, posterior)
    rest = replace(plain, fitted=process, log_evidence=plain.log_evidence + posterior - fitted.log_posterior)
    return JointRegression(rest, outputs, epochs, densities)
