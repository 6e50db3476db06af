"""The bag graph for real targets and shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from baggraph.baselines._input import real_targets
from baggraph.data.bags import Bags
from baggraph.data.posterior import Posterior
from baggraph.errors import InvalidBagsError, closest
from baggraph.estimators._base import Array, BagGraphEstimator
from baggraph.estimators._building import wrong
from baggraph.inference.calibration import fit_noise, with_noise
from baggraph.inference.sampling import Draws
from baggraph.nn.losses import AbstractLoss, BinaryCrossEntropy, Gaussian, SquaredError

__all__ = ["BagGraphRegressor"]

LOSSES = ("bce", "gaussian", "squared")
OBJECTIVES = ("joint", "separate")


class BagGraphRegressor(RegressorMixin, BagGraphEstimator):
    r"""Real targets of bags, one or several, or shares: Algorithm 1 of Pal et al. (2022, Bag Graph) for regression.

    .. math:: p(y \mid y_L, X, G_{obs}) \approx \frac1S \sum_s \mathcal N(y \mid f(W_s, \hat G, \hat Z), \sigma^2)

    See :class:`BagGraphClassifier` for the parameters that both share.  Targets are standardised by the visible labels
    while a network is trained.

    Parameters
    ----------
    loss
        ``"squared"``: one noise variance for all bags, the mean squared residual of the visible labels or, with
        ``calibration``, of labels held out.  ``"gaussian"``: a variance that every bag has of its own.
        ``"bce"``: shares from 0 to 1, with a noise variance as for ``"squared"``.
    objective
        With ``head="gp"``: ``"separate"`` trains the network by its loss, then fits the process to the embedding;
        ``"joint"`` adds the network's output to the process, and trains both by one marginal likelihood, for as many of
        ``epochs`` as parts of the training bags, left out in turn, ask for.  The graph then is None, ``"given"`` or a
        BagGraph.

    Attributes
    ----------
    posterior_ : Posterior
        Of every bag in fit, noise included.
    transduction_ : (B,) or (B, t)
        Expected target of every bag in fit.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.linspace(-1, 1, 40)
    >>> model = BagGraphRegressor(epochs=60, n_draws=5, lr=5e-3).fit([rng.normal(m, 0.3, size=(9, 2)) for m in y], y)
    >>> model.score([rng.normal(m, 0.3, size=(9, 2)) for m in y], y) > 0.7
    True

    """

    def __init__(self, *, loss: str = "squared", objective: str = "separate", **common: Any) -> None:
        super().__init__(**common)
        self.loss = loss
        self.objective = objective

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def predict_interval(self, X: Any = None, *, coverage: float = 0.9, links: Any = None) -> Array:
        """Lower and upper ends (B, 2), or (B, t, 2) of several targets, of new bags or, without X, of those in fit.

        The target lies between them with probability ``coverage``.  Needs ``calibration`` above 0.
        """
        conformal = self._conformal("intervals")
        ends = conformal.intervals(self._asked(X, links), coverage)
        return ends[:, 0] if self._one_target else ends

    # ------------------------------------------------------------------ targets

    def _read_targets(self, bags: Bags) -> Array:
        if self.loss not in LOSSES:
            raise wrong(self, f"loss to be one of {LOSSES}", repr(self.loss), closest(str(self.loss), LOSSES))
        self._check_objective()
        stage, labelled = type(self).__name__, bags.labelled
        values = real_targets(bags.y[labelled], stage)
        self._one_target = bags.y.ndim == 1
        if self.loss == "bce" and ((values < 0) | (values > 1)).any():
            bag = bags.ids[labelled][((values < 0) | (values > 1)).any(axis=1)][0]
            got = f"{values[(values < 0) | (values > 1)][0]:g} (bag {str(bag)!r})"
            raise InvalidBagsError(stage, expected="shares from 0 to 1", got=got, remedy="use loss='squared'")
        targets = np.full((len(bags), values.shape[1]), np.nan)
        targets[labelled] = values
        return targets

    def _check_objective(self) -> None:
        if self.objective not in OBJECTIVES:
            remedy = closest(str(self.objective), OBJECTIVES)
            raise wrong(self, f"objective to be one of {OBJECTIVES}", repr(self.objective), remedy)
        if self._joint and (self.head != "gp" or self.loss != "squared"):
            got, remedy = f"head={self.head!r}, loss={self.loss!r}", "change these, or leave objective out"
            raise wrong(self, "head='gp' and loss='squared' with objective='joint'", got, remedy)

    @property
    def _joint(self) -> bool:
        return self.objective == "joint"

    def _loss(self, targets: Array) -> AbstractLoss:
        kinds: dict[str, Callable[[int], AbstractLoss]] = {
            "bce": BinaryCrossEntropy,
            "gaussian": Gaussian,
            "squared": SquaredError,
        }
        return kinds[self.loss](targets.shape[1])

    def _weights(self, _targets: Array, masks: Any, sample_weight: Array) -> Array:
        return masks * sample_weight

    def _scaled_targets(self, targets: Array, weights: Array) -> tuple[Array, Any]:
        if self.loss == "bce":
            return np.repeat(targets[None], len(weights), axis=0), None
        shares = (weights / weights.sum(axis=1, keepdims=True))[:, :, None]
        values = np.where(shares > 0, targets, 0.0)
        center = (shares * values).sum(axis=1, keepdims=True)
        scale = np.sqrt((shares * (values - center) ** 2).sum(axis=1, keepdims=True))
        scale = np.where(scale > 0, scale, 1.0)
        return (targets - center) / scale, (center, scale)

    def _truth(self, targets: Array) -> Array:
        return np.nan_to_num(targets)

    def _labels_of(self, targets: Array) -> Any:
        return targets

    # ------------------------------------------------------------------ posteriors

    def _posterior(self, draws: Draws, scales: Any, ids: Any) -> Posterior:
        center, scale = (0.0, 1.0) if scales is None else scales
        mean = draws.mean.to(torch.float64).numpy() * scale + center
        variance = None if draws.variance is None else draws.variance.to(torch.float64).numpy() * scale**2
        return Posterior(mean, ids, None, variance)

    def _calibrated(self, raw: Posterior, targets: Array, seen: Any, held: Any) -> Array:
        if len(held):
            return fit_noise(raw.take(held), targets[held])
        if raw.has_noise:
            return np.ones(targets.shape[1])
        return fit_noise(raw, np.where(np.asarray(seen)[:, None], targets, np.nan))

    def _corrected(self, raw: Posterior, correction: Array) -> Posterior:
        return with_noise(raw, correction)

    @property
    def noise_(self) -> Array:
        """The noise variance (t,) of targets or, with ``loss="gaussian"``, the factor on that of every bag."""
        check_is_fitted(self, "posterior_")
        return np.asarray(self._correction)
