"""Bags, a model and scores that look like real ones to a page, without the time of a fit."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from baggraph import BagGraph, Bags, ResultTable
from baggraph.data.posterior import Posterior

HOSTILE = "</script><img src=x onerror=alert(1)>&\"'"


def some_bags(n=40, **more):
    rng = np.random.default_rng(0)
    return Bags.from_list([rng.normal(size=(3, 4)) for _ in range(n)], y=[i % 2 for i in range(n)], **more)


def a_model(bags, hidden=3, classes=(0, 1)):
    """What a page reads of a fitted model."""
    rng = np.random.default_rng(1)
    p = np.clip(np.asarray(bags.y) * 0.6 + 0.2 + rng.normal(scale=0.1, size=(7, len(bags))), 0.01, 0.99)
    near = [(bags.ids[i], bags.ids[(i + 1) % len(bags)], 1 + i % 3) for i in range(len(bags))]
    return SimpleNamespace(
        posterior_=Posterior(np.stack([1 - p, p], -1), bags.ids, list(classes)),
        graph_=BagGraph.from_edges(near, bags.ids),
        embedding_=rng.normal(size=(len(bags), 5)),
        get_params=lambda deep: {"epochs": 3, "graph": object},
    )


def scores():
    rows = [
        {
            "method": m,
            "dataset": "d",
            "metric": "accuracy",
            "repeat": r,
            "fold": f,
            "value": v + (r + f) / 100,
            "n_train": 20,
            "n_test": 10,
        }
        for m, v in (("majority", 0.5), (HOSTILE, 0.9))
        for r in range(2)
        for f in range(3)
    ]
    return ResultTable.from_rows(rows)


def hide(bags, every=3):
    y = np.asarray(bags.y, dtype=float).copy()
    y[::every] = np.nan
    return bags.replace(y=y)


@pytest.fixture(scope="session")
def made():
    return SimpleNamespace(hostile=HOSTILE, bags=some_bags, model=a_model, scores=scores, hide=hide)
