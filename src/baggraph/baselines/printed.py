"""Classical and trivial methods by the names that papers print."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

import baggraph.baselines as room
from baggraph.errors import ParameterError, closest

__all__ = ["make", "printed_names"]

_PRINTED: dict[str, tuple[str, dict[str, Any]]] = {
    "EM-DD": ("EMDD", {}),
    "MI-Kernel": ("MIKernel", {}),
    "MI-SVM": ("BagMarginSVM", {}),
    "MI-VLAD": ("VladSVM", {}),
    "MILES": ("MILES", {}),
    "average kernel": ("AverageKernelSVM", {}),
    "bag size": ("OneNumberClassifier", {"number": "size"}),
    "bag size (regression)": ("OneNumberRegressor", {"number": "size"}),
    "distribution regression": ("DistributionRegression", {}),
    "GP on bag means": ("BagMeanGP", {}),
    "GP on coordinates": ("CoordinateGP", {}),
    "label propagation": ("LabelPropagationClassifier", {}),
    "label propagation (regression)": ("LabelPropagationRegressor", {}),
    "largest norm": ("OneNumberClassifier", {"number": "largest norm"}),
    "largest norm (regression)": ("OneNumberRegressor", {"number": "largest norm"}),
    "majority": ("MajorityClassifier", {}),
    "mean": ("MeanRegressor", {}),
    "mean of neighbours": ("NeighborMeanClassifier", {}),
    "mean of neighbours (regression)": ("NeighborMeanRegressor", {}),
    "mi-FV": ("FisherVectorSVM", {}),
    "mi-Graph": ("MIGraph", {}),
    "mi-SVM": ("InstanceMarginSVM", {}),
    "miFV": ("FisherVectorSVM", {}),
    "miGraph": ("MIGraph", {}),
    "miVLAD": ("VladSVM", {}),
    "summary ridge": ("SummaryRidge", {}),
    "summary SVM": ("SummarySVM", {}),
}


def printed_names() -> list[str]:
    """Names that :func:`make` knows, sorted.

    >>> printed_names()[:4]
    ['EM-DD', 'GP on bag means', 'GP on coordinates', 'MI-Kernel']
    """
    return sorted(_PRINTED)


def make(name: str, **parameters: Any) -> BaseEstimator:
    """A new method by its printed name; upper and lower case matter, as mi-SVM and MI-SVM differ.

    >>> make("mi-SVM", C=10.0)
    InstanceMarginSVM(C=10.0)
    """
    if name not in _PRINTED:
        raise ParameterError("make", expected="a printed name", got=repr(name), remedy=closest(name, _PRINTED))
    maker, settings = _PRINTED[name]
    return getattr(room, maker)(**{**settings, **parameters})
