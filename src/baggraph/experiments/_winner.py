"""Classifiers on shares: who wins, and nothing about by how much."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone

from baggraph.data.bags import Bags

__all__ = ["Winner"]


class Winner(RegressorMixin, BaseEstimator):
    """A classifier of "more than one half", whose answers are the shares 0 and 1.

    >>> from baggraph.baselines import make
    >>> Winner(make("majority")).fit(Bags([[0.0]] * 3, range(4)), [0.6, 0.7, 0.2]).predict(Bags([[0.0]], [0, 1]))
    array([1.])
    """

    def __init__(self, classifier: Any = None) -> None:
        self.classifier = classifier

    def fit(self, X: Bags, y: Any) -> Winner:
        """Learn which bags are above one half; probabilities are asked of nobody."""
        chosen = clone(self.classifier)
        if "calibration_folds" in chosen.get_params():
            chosen.set_params(calibration_folds=None)
        self.classifier_ = chosen.fit(X, (np.asarray(y) > 0.5).astype(np.int64))
        return self

    def predict(self, X: Bags) -> Any:
        """1.0 or 0.0 for every bag."""
        return np.asarray(self.classifier_.predict(X), dtype=np.float64)
