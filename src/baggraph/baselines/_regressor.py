"""The frame of every regressor here: real targets, one or several, fitted on the scale of a link."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from baggraph.baselines._input import Matrix, as_bags, check_choice, labelled_part, real_targets
from baggraph.data.bags import Bags
from baggraph.errors import InvalidBagsError

LINKS = ("identity", "log", "logit")


class BagRegressor(RegressorMixin, BaseEstimator, ABC):
    """Targets (B,) or (B, t) are brought to the scale of ``link``, fitted there, and brought back."""

    link: str

    @abstractmethod
    def _learn(self, bags: Bags, targets: Matrix) -> None:
        """Learn from labelled bags and linked targets (B, t)."""

    @abstractmethod
    def _estimate(self, bags: Bags) -> Matrix:
        """Linked estimates (B, t)."""

    def _check_parameters(self) -> None:
        """Raise where a parameter of the method is out of range."""

    @property
    def _stage(self) -> str:
        return type(self).__name__

    def fit(self, bags: Any, y: Any = None) -> Any:
        """Learn from bags with targets ``y`` (B,) or (B, t), or their own; bags without one are left out."""
        self._check_parameters()
        check_choice(self._stage, "link", self.link, LINKS)
        train = labelled_part(bags, y, self._stage)
        targets = linked(real_targets(train.y, self._stage), self.link, self._stage)
        self._learn(train, targets)
        self.one_target_, self.n_features_in_ = train.y.ndim == 1, train.n_features
        return self

    def predict(self, bags: Any) -> Any:
        """Targets (B,) or (B, t), shaped as in fit."""
        check_is_fitted(self, "n_features_in_")
        values = unlinked(self._estimate(as_bags(bags, self._stage, self.n_features_in_)), self.link)
        return values[:, 0] if self.one_target_ else values


def linked(targets: Matrix, link: str, stage: str) -> Matrix:
    """Targets on the scale of a link; those that have no place on it are refused.

    >>> linked(np.array([[0.5], [0.5]]), "logit", "demo").tolist()
    [[0.0], [0.0]]
    """
    if link == "identity":
        return targets
    outside = targets <= 0 if link == "log" else (targets <= 0) | (targets >= 1)
    if outside.any():
        expected = "targets above 0" if link == "log" else "shares above 0 and below 1"
        remedy = 'pass link="identity", or move targets off the border'
        raise InvalidBagsError(stage, expected=expected, got=f"{targets[outside][0]:g}", remedy=remedy)
    return np.log(targets) if link == "log" else logit(targets)


def unlinked(values: Matrix, link: str) -> Matrix:
    """Targets from values on the scale of a link."""
    return values if link == "identity" else np.exp(values) if link == "log" else expit(values)
