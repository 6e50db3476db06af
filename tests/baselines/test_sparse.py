"""Methods take sparse bags as they come: nobody has to know which scaling keeps zeros zero."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import baggraph as bg
from baggraph import AutoBagClassifier, AutoBagRegressor, Bags

NAMES = [
    "mi-SVM",
    "MI-SVM",
    "MI-Kernel",
    "mi-Graph",
    "EM-DD",
    "MI-VLAD",
    "mi-FV",
    "MILES",
    "summary SVM",
    "average kernel",
]


def bags() -> Bags:
    """Terms of posts: one tells the class."""
    random = np.random.default_rng(0)
    y = np.arange(24) % 2
    rows = sp.random_array((96, 20), density=0.1, rng=random, data_sampler=random.random).tolil()
    rows[np.arange(0, 96, 4), 0] = 3.0 * y + 0.01
    return Bags(sp.csr_array(rows), np.arange(0, 97, 4), y)


@pytest.mark.filterwarnings("ignore::baggraph.errors.BagWarning")
@pytest.mark.parametrize("name", NAMES)
def test_classical_methods(name: str) -> None:
    given = bags()
    model = bg.make(name, **({} if name == "average kernel" else {"calibration_folds": None})).fit(given)
    assert (model.predict(given) == given.y).mean() > 0.7


def test_committees() -> None:
    given = bags()
    assert (AutoBagClassifier().fit(given).transduction_ == given.y).mean() > 0.8
    found = AutoBagRegressor().fit(given.replace(y=given.y + 0.1)).transduction_
    assert np.corrcoef(found, given.y)[0, 1] > 0.7
