"""The frame of methods that answer from ``bags.graph`` and labels alone, for the bags of fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from baggraph.baselines._input import Matrix, as_bags, class_codes, real_targets, with_labels
from baggraph.data.bags import Bags
from baggraph.errors import InvalidBagsError, name_some


class _OnGraph(BaseEstimator, ABC):
    """A transductive method: all bags are passed to fit, those to be answered without a label."""

    @abstractmethod
    def _spread(self, adjacency: sp.csr_array, known: NDArray[np.bool_], values: Matrix) -> Matrix:
        """Values (B, t) of all bags from those of the known ones, (known.sum(), t)."""

    @property
    def _stage(self) -> str:
        return type(self).__name__

    def _answer(self, bags: Bags, values: Matrix) -> Matrix:
        if bags.graph is None:
            got, remedy = "none", "pass one: bags.replace(graph=...)"
            raise InvalidBagsError(self._stage, expected="bags with a graph", got=got, remedy=remedy)
        known = bags.labelled
        answers = np.empty((len(bags), values.shape[1]))
        answers[:] = self._spread(bags.graph.adjacency, known, values)
        answers[known] = values
        self.ids_, self.n_features_in_ = bags.ids, bags.n_features
        return answers

    def _places(self, bags: Any) -> NDArray[np.int64]:
        check_is_fitted(self, "ids_")
        asked = as_bags(bags, self._stage, self.n_features_in_)
        place = {bag_id: i for i, bag_id in enumerate(self.ids_)}
        unknown = [bag_id for bag_id in asked.ids if bag_id not in place]
        if unknown:
            remedy = "pass all bags to fit, those to be answered without a label"
            raise InvalidBagsError(self._stage, expected="bags seen in fit", got=name_some(unknown), remedy=remedy)
        return np.array([place[bag_id] for bag_id in asked.ids], dtype=np.int64)


class GraphClassifier(ClassifierMixin, _OnGraph):
    """Classes spread as one column of zeros and ones each."""

    def fit(self, bags: Any, y: Any = None) -> Any:
        """Answer for all bags from the labels ``y`` (B,), or their own; None or NaN is a bag to be answered."""
        everything = with_labels(bags, y, self._stage)
        self.classes_, codes = class_codes(everything.y[everything.labelled], self._stage)
        self.label_distributions_ = self._answer(everything, np.eye(len(self.classes_))[codes])
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        return self

    def predict(self, bags: Any) -> NDArray[Any]:
        """Classes (B,) of bags seen in fit, by their ids."""
        return self.transduction_[self._places(bags)]

    def predict_proba(self, bags: Any) -> Matrix:
        """Shares of the classes (B, C) of bags seen in fit, by their ids."""
        return self.label_distributions_[self._places(bags)]


class GraphRegressor(RegressorMixin, _OnGraph):
    """Targets spread as they are."""

    def fit(self, bags: Any, y: Any = None) -> Any:
        """Answer for all bags from the targets ``y`` (B,) or (B, t), or their own; NaN is a bag to be answered."""
        everything = with_labels(bags, y, self._stage)
        answers = self._answer(everything, real_targets(everything.y[everything.labelled], self._stage))
        self.transduction_ = answers[:, 0] if everything.y.ndim == 1 else answers
        return self

    def predict(self, bags: Any) -> Matrix:
        """Targets of bags seen in fit, by their ids."""
        return self.transduction_[self._places(bags)]
