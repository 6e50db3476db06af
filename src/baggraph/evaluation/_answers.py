"""What a fitted method says of bags, whatever it offers to say it with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.data.posterior import Posterior
from baggraph.errors import ParameterError
from baggraph.evaluation.metrics import Metric

LACKS = {
    "probabilities": "the method gives decisions, and no probabilities",
    "noise": "the method gives no noise variance",
}


@dataclass(frozen=True)
class Answer:
    """What a method decides, and what it believes where it says so.

    The class that a method decides for need not be the one it finds most probable: a support vector machine decides by
    the sign of its score, and its probabilities are fitted afterwards.
    """

    decided: Posterior
    believed: Posterior | None

    def score(self, metric: Metric, labels: NDArray[Any]) -> tuple[float, str | None]:
        """The score, and where it is not defined, why."""
        decides = metric.needs in ("decisions", "targets")
        posterior = self.decided if decides else self.believed
        if posterior is None:
            return np.nan, LACKS["probabilities"]
        if not decides and not posterior.is_classification and not posterior.has_noise:
            return np.nan, LACKS["noise"]
        if posterior.is_classification:
            posterior = with_classes(posterior, labels)
        value = metric(labels, posterior)
        return value, metric.undefined if np.isnan(value) else None


def with_classes(posterior: Posterior, labels: NDArray[Any]) -> Posterior:
    """The same posterior, in which classes that training did not know have no probability.

    >>> with_classes(Posterior([[[1.0]]], classes=["a"]), np.array(["b"], dtype=object)).mean.tolist()
    [[1.0, 0.0]]
    """
    known = set(posterior.classes.tolist())
    new = [label for label in dict.fromkeys(labels.tolist()) if label is not None and label == label]
    new = [label for label in new if label not in known]
    if not new:
        return posterior
    draws = np.concatenate([posterior.draws, np.zeros((*posterior.draws.shape[:2], len(new)))], axis=2)
    return Posterior(draws, posterior.ids, np.array([*posterior.classes.tolist(), *new], dtype=object))


def from_posterior(posterior: Posterior) -> Answer:
    """The answer of a method that believes what it decides."""
    return Answer(posterior, posterior)


def from_classes(decided: NDArray[Any], proba: Any, classes: Any, ids: NDArray[Any]) -> Answer:
    """From decisions (B,) and, unless None, probabilities (B, C)."""
    place = {label: code for code, label in enumerate(np.asarray(classes).tolist())}
    codes = [place[label] for label in np.asarray(decided).tolist()]
    one_hot = np.eye(len(place))[codes].reshape(1, len(ids), len(place))
    believed = None if proba is None else Posterior(np.asarray(proba)[None], ids, classes)
    return Answer(Posterior(one_hot, ids, classes), believed)


def ask(model: Any, bags: Bags, *, classify: bool, believe: bool) -> Answer:
    """Ask a fitted method about bags; without ``believe``, decisions are enough."""
    if hasattr(model, "predict_posterior"):
        return from_posterior(model.predict_posterior(bags))
    if not hasattr(model, "predict"):
        got, remedy = f"{type(model).__name__} without one", "see the guide to evaluation for what a method is"
        raise ParameterError("cross_validate", expected="a method with predict", got=got, remedy=remedy)
    decided = np.asarray(model.predict(bags))
    if not classify:
        return from_posterior(_real_posterior(model, decided, bags))
    proba = model.predict_proba(bags) if believe and gives_probabilities(model) else None
    return from_classes(decided, proba, model.classes_, bags.ids)


def _real_posterior(model: Any, decided: NDArray[Any], bags: Bags) -> Posterior:
    """Means, with a noise variance where the method states one on the scale of the targets."""
    draws, variance = decided.reshape(1, len(bags), -1), None
    if hasattr(model, "predict_std") and getattr(model, "link", "identity") == "identity":
        variance = np.asarray(model.predict_std(bags)).reshape(draws.shape) ** 2
    return Posterior(draws, bags.ids, variance=variance)


def gives_probabilities(model: Any) -> bool:
    """Whether there is a ``predict_proba``, and where it is calibrated, calibration was asked for."""
    return hasattr(model, "predict_proba") and getattr(model, "calibration_folds", 0) is not None
