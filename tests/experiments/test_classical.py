"""Settings of the classical methods: none depends on a label, all can be fitted."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import baggraph as bg
from baggraph import baselines, datasets
from baggraph.data._fingerprint import digest
from baggraph.evaluation.grid import Grid
from baggraph.experiments import classical

NAMES = (*classical.CLASSICAL, *classical.TRIVIAL)


@pytest.fixture(scope="module")
def bags():
    return datasets.load("digits-bags")


def test_settings_do_not_depend_on_labels(bags):
    """The hash that names a recipe would differ if they did."""
    shuffled = bags.replace(y=np.random.default_rng(0).permutation(bags.y))
    assert digest(classical.methods(bags)) == digest(classical.methods(shuffled))
    assert digest(classical.methods(bags)) != digest(classical.methods(bags.take(range(50))))


@pytest.mark.parametrize("name", NAMES)
def test_every_candidate_can_be_made(bags, name):
    method = classical.methods(bags)[name]
    made = [method.estimator.set_params(**one) for one in method.candidates] if isinstance(method, Grid) else [method]
    assert {type(one) for one in made} == {type(baselines.make(name))}


def test_sparse_instances_stay_sparse(bags):
    """Candidates for them are scaled in ways that keep zeros."""
    thin = bg.Bags(sp.csr_array(bags.instances), bags.offsets, bags.y)
    grids = [method for method in classical.methods(thin).values() if isinstance(method, Grid)]
    assert {one["scaling"] for grid in grids for one in grid.candidates} == {"maxabs", "none"}


def test_machines_on_many_instances_are_tried_with_fewer_settings(bags, monkeypatch):
    many = classical.methods(bags)["mi-SVM"].candidates
    monkeypatch.setattr(classical, "LARGE", 10)
    few = classical.methods(bags)["mi-SVM"].candidates
    assert few == many[: len(few)]
    assert len(few) < len(many)
