"""Algorithm 1 behind scikit-learn's contract: bags and labels in, posteriors out."""

from baggraph.estimators._base import BagGraphEstimator
from baggraph.estimators._explaining import Explanation
from baggraph.estimators._saving import load
from baggraph.estimators.classifier import BagGraphClassifier
from baggraph.estimators.printed import algorithms, make
from baggraph.estimators.regressor import BagGraphRegressor

__all__ = ["BagGraphClassifier", "BagGraphEstimator", "BagGraphRegressor", "Explanation", "algorithms", "load", "make"]
