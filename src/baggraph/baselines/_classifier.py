"""The frame of every classifier here: classes against the rest, scores, calibrated probabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from baggraph.baselines._calibration import fit_sigmoid, probabilities
from baggraph.baselines._input import Vector, as_bags, class_codes, labelled_part
from baggraph.data._split_checks import bit_stream, is_count
from baggraph.data.bags import Bags
from baggraph.data.splits import pairs, stratified_folds
from baggraph.errors import InvalidBagsError, ParameterError

Index = NDArray[np.int64]


class BagClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Two classes are told apart by one score, more by one score each against the rest.

    A method sees bags through its *evidence*: whatever it can compute without labels.  It says how evidence is made
    (:meth:`_anchor`, :meth:`_evidence`) and divided (:meth:`_part`), how a score is learned from it and signs -1 and
    +1 (:meth:`_train`), and how bags are scored (:meth:`_score`).
    """

    calibration_folds: int | None
    random_state: int

    @abstractmethod
    def _anchor(self, bags: Bags) -> Any:
        """What is learned from training bags without labels: scaling, codebook, the bags themselves."""

    @abstractmethod
    def _evidence(self, anchor: Any, bags: Bags) -> Any:
        """What the method knows of bags, label-free, in the terms of the anchor."""

    @abstractmethod
    def _part(self, evidence: Any, rows: Index, columns: Index) -> Any:
        """Evidence of the bags ``rows`` for a model that is trained on the bags ``columns``."""

    @abstractmethod
    def _train(self, evidence: Any, sign: Vector) -> Any:
        """A model that tells the bags of sign +1 from those of -1."""

    @abstractmethod
    def _score(self, model: Any, evidence: Any) -> Vector:
        """Scores (B,), above zero for +1."""

    def _check_parameters(self) -> None:
        """Raise where a parameter of the method is out of range."""

    def _check(self) -> None:
        """Raise where any parameter is out of range."""
        self._check_parameters()
        bit_stream(self._stage, self.random_state)
        folds = self.calibration_folds
        if folds is not None and (not is_count(folds) or folds < 2):
            got, remedy = f"calibration_folds={folds!r}", "pass 5, or None to do without probabilities"
            raise ParameterError(self._stage, expected="calibration_folds of 2 or more", got=got, remedy=remedy)

    @property
    def _stage(self) -> str:
        return type(self).__name__

    # ------------------------------------------------------------------ scikit-learn's face

    def fit(self, bags: Any, y: Any = None) -> Any:
        """Learn from bags with labels ``y`` (B,), or their own; bags without a label are left out."""
        self._check()
        train = labelled_part(bags, y, self._stage)
        anchor = self._anchor(train)
        self._fit_evidence(self._evidence(anchor, train), train.y)
        self.anchor_, self.n_features_in_ = anchor, train.n_features
        return self

    def decision_function(self, bags: Any) -> NDArray[np.float64]:
        """Scores (B,), above zero for ``classes_[1]``; of more than two classes (B, C)."""
        return _squeezed(self._scores(self._seen(bags)))

    def predict(self, bags: Any) -> NDArray[Any]:
        """Classes (B,): that of the largest score, or of a score above zero."""
        return self._classes_of(self._scores(self._seen(bags)))

    def predict_proba(self, bags: Any) -> NDArray[np.float64]:
        """Probabilities (B, C), from sigmoids fitted to out-of-fold scores of training bags."""
        return self._probabilities_of(self._scores(self._seen(bags)))

    # ------------------------------------------------------------------ from evidence alone

    def _seen(self, bags: Any) -> Any:
        check_is_fitted(self, "anchor_")
        return self._evidence(self.anchor_, as_bags(bags, self._stage, self.n_features_in_))

    def _fit_evidence(self, evidence: Any, labels: NDArray[Any]) -> None:
        self.classes_, codes = class_codes(labels, self._stage)
        self.trained_on_, self.n_columns_ = np.arange(len(labels)), len(labels)
        positive = range(1, 2) if len(self.classes_) == 2 else range(len(self.classes_))
        signs = [np.where(codes == code, 1.0, -1.0) for code in positive]
        self.models_ = [self._train(evidence, sign) for sign in signs]
        self.sigmoids_ = None
        if self.calibration_folds is not None:
            folds = self._inner_folds(codes, self.calibration_folds)
            self.sigmoids_ = [fit_sigmoid(self._held_out(evidence, sign, folds), sign) for sign in signs]

    def _inner_folds(self, codes: Index, wanted: int) -> NDArray[np.int16]:
        smallest = int(np.bincount(codes).min())
        if smallest < 2:
            got, remedy = "1 of some class", "add bags, or pass calibration_folds=None to do without probabilities"
            raise InvalidBagsError(self._stage, expected="2 labelled bags of every class", got=got, remedy=remedy)
        folds = min(wanted, smallest)
        return stratified_folds(codes, folds=folds, repeats=1, random_state=self.random_state)

    def _held_out(self, evidence: Any, sign: Vector, folds: NDArray[np.int16]) -> Vector:
        scores = np.empty(len(sign))
        for train, test in pairs(folds):
            model = self._train(self._part(evidence, train, train), sign[train])
            scores[test] = self._score(model, self._part(evidence, test, train))
        return scores

    def _scores(self, evidence: Any) -> NDArray[np.float64]:
        return np.stack([self._score(model, evidence) for model in self.models_], axis=1)

    def _classes_of(self, scores: NDArray[np.float64]) -> NDArray[Any]:
        codes = (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def _probabilities_of(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.sigmoids_ is None:
            got, remedy = "calibration_folds=None", "fit with calibration_folds=5"
            raise ParameterError(self._stage, expected="a calibrated method", got=got, remedy=remedy)
        return probabilities(scores, self.sigmoids_)


def _squeezed(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return scores[:, 0] if scores.shape[1] == 1 else scores
