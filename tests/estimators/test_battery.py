"""The public battery: every law catches what breaks it, and our estimators and baselines keep all of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

import baggraph as bg
from baggraph import baselines
from baggraph.baselines._input import as_bags, class_codes, labelled_part
from baggraph.data.posterior import Posterior
from baggraph.data.stacked import AbstractStacked
from baggraph.errors import ParameterError
from baggraph.testing import check_bag_estimator
from baggraph.testing.checks import CHECKS

FAST = {"epochs": 5, "n_draws": 3, "lr": 5e-3, "device": "cpu", "encoder_options": {"hidden": (16, 8)}}


class Nearest(ClassifierMixin, AbstractStacked, BaseEstimator):
    """An honest estimator: the class whose mean of bag means is nearest."""

    def __init__(self, *, scale=1.0):
        self.scale = scale

    def fit(self, X, y=None):
        train = labelled_part(X, y, "nearest")
        self.classes_, codes = class_codes(train.y, "nearest")
        means = baselines.summarise(train)
        self.centers_ = np.stack([means[codes == c].mean(axis=0) for c in range(len(self.classes_))])
        self.n_features_in_ = train.n_features
        return self

    def predict_proba(self, X):
        check_is_fitted(self)
        means = baselines.summarise(as_bags(X, "nearest", self.n_features_in_))
        closeness = np.exp(-self.scale * ((means[:, None] - self.centers_) ** 2).sum(axis=2))
        return (closeness + 1e-9) / (closeness + 1e-9).sum(axis=1, keepdims=True)

    def predict(self, X):
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]

    def posteriors(self, bags, masks):
        models = [type(self)(scale=self.scale).fit(bags.take(mask)) for mask in masks]
        return [Posterior(model.predict_proba(bags)[None], bags.ids, model.classes_) for model in models]


class FormsDiffer(Nearest):
    def predict_proba(self, X):
        return super().predict_proba(X)[:, :: -1 if isinstance(X, list) else 1]


class NoTables(Nearest):
    def fit(self, X, y=None):
        return super().fit([] if getattr(X, "ndim", 3) == 2 else X, y)


class LooksAtOwnLabels(Nearest):
    def fit(self, X, y=None):
        super().fit(X, y)
        self.centers_ = self.centers_ + (y is None)
        return self


class FirstInstance(Nearest):
    def predict_proba(self, X):
        return super().predict_proba([np.asarray(bag)[:1] for bag in as_bags(X, "first")])


class Company(Nearest):
    def predict_proba(self, X):
        shares = super().predict_proba(X) + super().predict_proba(X).mean(axis=0)
        return shares / shares.sum(axis=1, keepdims=True)


class NeedsAllLabels(Nearest):
    def fit(self, X, y=None):
        bags = as_bags(X, "all") if y is None else as_bags(X, "all").replace(y=y)
        if bags.y is not None and not bags.labelled.all():
            raise TypeError("labels are missing")
        return super().fit(bags)


class Peeks(Nearest):
    def posteriors(self, bags, masks):
        return [
            part.__class__(
                part.draws * 0 + 1 / (1 + bags.y.mean()) * np.array([1, bags.y.mean()]), part.ids, part.classes
            )
            for part in super().posteriors(bags, masks)
        ]


class Unseeded(Nearest):
    def fit(self, X, y=None):
        super().fit(X, y)
        self.centers_ = self.centers_ + np.random.default_rng().normal(size=self.centers_.shape)
        return self


class ChangesParameters(Nearest):
    def fit(self, X, y=None):
        self.scale = 2.0
        return super().fit(X, y)


class AnyParameter(Nearest):
    def set_params(self, **params):
        return self


class AnswersUnfitted(Nearest):
    def predict(self, X):
        return super().predict(X) if hasattr(self, "centers_") else np.zeros(len(as_bags(X, "any")))


class AnyWidth(Nearest):
    def predict_proba(self, X):
        check_is_fitted(self)
        return super().predict_proba([np.asarray(bag)[:, : self.n_features_in_] for bag in as_bags(X, "any")])


class NotPickled(Nearest):
    def __getstate__(self):
        return {"scale": self.scale}


class OwnNames(Nearest):
    def fit(self, X, y=None):
        super().fit(X, y)
        self.classes_ = np.arange(len(self.classes_))
        return self


class NoProbabilities(Nearest):
    def predict_proba(self, X):
        return 2 * super().predict_proba(X)


class OneClass(Nearest):
    def fit(self, X, y=None):
        return self if y is not None and len(set(y)) == 1 else super().fit(X, y)


BROKEN = {
    "check_forms_of_bags": FormsDiffer,
    "check_table_is_bags_of_one": NoTables,
    "check_labels_given_or_carried": LooksAtOwnLabels,
    "check_order_of_instances": FirstInstance,
    "check_order_and_company_of_bags": Company,
    "check_bags_without_labels": NeedsAllLabels,
    "check_hidden_labels_change_nothing": Peeks,
    "check_same_seed_same_answer": Unseeded,
    "check_parameters_are_kept": ChangesParameters,
    "check_unknown_parameters": AnyParameter,
    "check_not_fitted": AnswersUnfitted,
    "check_wrong_bags": AnyWidth,
    "check_pickling": NotPickled,
    "check_names_of_classes": OwnNames,
    "check_probabilities": NoProbabilities,
    "check_one_class": OneClass,
}


def test_every_law_has_something_that_breaks_it():
    assert set(BROKEN) == set(CHECKS)


def test_what_keeps_all_laws_passes():
    assert check_bag_estimator(Nearest()) == list(CHECKS)


@pytest.mark.parametrize("name", BROKEN)
def test_a_law_catches_what_breaks_it(name):
    with pytest.raises(AssertionError, match=rf"^\d+ of 16 laws are broken\n(.*\n)*{name}: "):
        check_bag_estimator(BROKEN[name]())


def test_an_expected_failure_must_fail_and_be_known():
    with pytest.raises(AssertionError, match="check_pickling: was expected to fail"):
        check_bag_estimator(Nearest(), expected_failed_checks={"check_pickling": "no reason"})
    with pytest.raises(ParameterError, match="did you mean 'check_pickling'"):
        check_bag_estimator(Nearest(), expected_failed_checks={"check_pikling": "no reason"})


@pytest.mark.parametrize("graph", [None, "knn", "learned"])
@pytest.mark.parametrize("kind", [bg.BagGraphClassifier, bg.BagGraphRegressor])
def test_bag_graphs_keep_all_laws(kind, graph):
    passed = check_bag_estimator(kind(graph=graph, **FAST))
    assert len(passed) == (16 if kind is bg.BagGraphClassifier else 13)


@pytest.mark.parametrize(
    "changes", [{"n_members": 2}, {"calibration": 0.3}, {"hidden": (4,), "setting": "disconnected"}]
)
def test_settings_keep_all_laws(changes):
    assert len(check_bag_estimator(bg.BagGraphClassifier(**FAST | changes))) == 16


@pytest.mark.parametrize(
    "name",
    ["mi-SVM", "MI-SVM", "MI-Kernel", "mi-Graph", "EM-DD", "MI-VLAD", "mi-FV", "MILES", "summary SVM", "bag size",
     "largest norm", "majority", "mean", "summary ridge", "distribution regression", "GP on bag means"],
)  # fmt: skip
def test_baselines_keep_all_laws(name):
    few = {"EM-DD": {"n_starts": 4}}.get(name, {})
    assert len(check_bag_estimator(baselines.make(name, **few))) >= 12
