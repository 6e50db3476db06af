"""Ridge regression whose penalty is chosen by leaving out one training bag at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV

from baggraph.baselines._input import Matrix, check_positive
from baggraph.errors import ParameterError

ALPHAS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)


def check_alphas(stage: str, alphas: Any) -> None:
    """Raise unless there are penalties, all above zero."""
    if isinstance(alphas, str) or not np.iterable(alphas) or not len(list(alphas)):
        got, remedy = f"alphas={alphas!r}", "pass some, as in (0.1, 1.0, 10.0)"
        raise ParameterError(stage, expected="a sequence of penalties", got=got, remedy=remedy)
    for alpha in alphas:
        check_positive(stage, alphas=alpha)


def fit_ridge(vectors: Matrix, targets: Matrix, alphas: Sequence[float]) -> RidgeCV:
    """The machine (exact leave-one-out error decides the penalty, one for all targets)."""
    if len(vectors) == 1:  # leaves nobody to decide
        alphas = [max(alphas)]
    return RidgeCV(alphas=np.asarray(alphas, dtype=np.float64)).fit(vectors, targets)
