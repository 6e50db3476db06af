"""The same answer for every bag."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from baggraph.baselines._input import Matrix, as_bags, class_codes, labelled_part
from baggraph.baselines._regressor import BagRegressor
from baggraph.data.bags import Bags


class MajorityClassifier(ClassifierMixin, BaseEstimator):
    """The most frequent class of the training bags (the first of equals), with their shares as probabilities.

    Examples
    --------
    >>> model = MajorityClassifier().fit(Bags(np.zeros((3, 1)), [0, 1, 2, 3], ["no", "no", "yes"]))
    >>> model.predict(np.zeros((1, 1))).tolist(), model.predict_proba(np.zeros((1, 1))).round(3).tolist()
    (['no'], [[0.667, 0.333]])
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, bags: Any, y: Any = None) -> MajorityClassifier:
        """Count the classes ``y`` (B,) of bags, or their own; bags without one are left out."""
        train = labelled_part(bags, y, "MajorityClassifier")
        self.classes_, codes = class_codes(train.y, "MajorityClassifier")
        self.shares_ = np.bincount(codes) / len(codes)
        self.n_features_in_ = train.n_features
        return self

    def predict(self, bags: Any) -> NDArray[Any]:
        """The majority, (B,)."""
        shares = self.predict_proba(bags)
        return self.classes_[shares.argmax(axis=1)]

    def predict_proba(self, bags: Any) -> Matrix:
        """Shares of the classes, (B, C)."""
        check_is_fitted(self, "shares_")
        return np.tile(self.shares_, (len(as_bags(bags, "MajorityClassifier", self.n_features_in_)), 1))


class MeanRegressor(BagRegressor):
    """The mean target of the training bags.

    Parameters
    ----------
    link
        The scale that targets are averaged on: ``"identity"``, ``"log"`` (the geometric mean), or ``"logit"``.

    Examples
    --------
    >>> MeanRegressor().fit(Bags(np.zeros((2, 1)), [0, 1, 2], [1.0, 4.0])).predict(np.zeros((2, 1))).tolist()
    [2.5, 2.5]
    """

    def __init__(self, *, link: str = "identity") -> None:
        self.link = link

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def _learn(self, bags: Bags, targets: Matrix) -> None:
        del bags
        self.mean_ = targets.mean(axis=0)

    def _estimate(self, bags: Bags) -> Matrix:
        return np.tile(self.mean_, (len(bags), 1))
