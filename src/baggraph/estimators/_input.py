"""What an estimator accepts as bags and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from baggraph.baselines._input import as_bags, class_codes, with_labels
from baggraph.data.bags import Bags
from baggraph.errors import InvalidBagsError

__all__ = ["bags_of", "codes_of", "takes_bags", "weights_of", "with_labels"]

FEWEST_BAGS = 2


def bags_of(estimator: Any, X: Any, *, reset: bool) -> Bags:
    """Bags from Bags, a list of 2-D arrays, a 3-D array, or a table (each row a bag of one instance).

    ``reset`` notes the number of features, as ``fit`` does; without, it is compared.
    """
    stage = type(estimator).__name__
    fewest = FEWEST_BAGS if reset else 1
    if _is_table(X):
        kinds = [np.float64, np.float32]
        table = validate_data(
            estimator, X, reset=reset, accept_sparse="csr", dtype=kinds, ensure_min_samples=fewest, order="C"
        )
        return Bags(table, np.arange(table.shape[0] + 1))
    bags = as_bags(X, stage)
    if len(bags) < fewest:
        raise InvalidBagsError(stage, expected=f"at least {fewest} bags", got=str(len(bags)), remedy="pass more")
    if reset:
        estimator.n_features_in_ = bags.n_features
    elif bags.n_features != estimator.n_features_in_:
        got, remedy = str(bags.n_features), "choose the columns that it was fitted on"
        raise InvalidBagsError(
            stage, expected=f"{estimator.n_features_in_} features, as in fit", got=got, remedy=remedy
        )
    return bags


def _is_table(X: Any) -> bool:
    """Whether scikit-learn's rules for two-dimensional input apply."""
    if isinstance(X, Bags):
        return False
    if isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1):
        return not len(X) or not all(sp.issparse(bag) or np.ndim(bag) == 2 for bag in X)
    return sp.issparse(X) or np.asarray(X).ndim != 3


def takes_bags(tags: Tags) -> Tags:
    """What scikit-learn should know: sparse rows and three dimensions are welcome, labels are needed."""
    tags.input_tags.sparse = True
    tags.input_tags.three_d_array = True
    tags.target_tags.required = True
    return tags


def codes_of(bags: Bags, stage: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Sorted classes, and the position among them of the label of every labelled bag."""
    known = bags.y[bags.labelled]
    if known.ndim == 2 and known.shape[1] == 1:
        known = column_or_1d(known, warn=True)
    check_classification_targets(known if known.dtype.kind != "O" else known.astype(str))
    classes, codes = class_codes(known, stage)
    # Whole numbers that became floats beside missing labels.
    return classes.astype(np.int64) if classes.dtype.kind == "f" else classes, codes


def weights_of(sample_weight: Any, count: int, stage: str) -> NDArray[np.float64]:
    """Weights (B,), one where none are given."""
    if sample_weight is None:
        return np.ones(count)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (count,) or not np.isfinite(weights).all() or (weights < 0).any():
        got = f"shape {weights.shape}" if weights.shape != (count,) else "negative or missing ones"
        raise InvalidBagsError(
            stage, expected=f"sample_weight of {count} numbers from 0", got=got, remedy="pass one a bag"
        )
    if not weights.any():
        raise InvalidBagsError(stage, expected="a sample_weight above zero", got="zeros only", remedy="weigh some bags")
    return weights
