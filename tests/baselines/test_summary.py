from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings

import baggraph as bg
from baggraph.baselines.summary import STATISTICS, summarise
from baggraph.errors import ParameterError
from baggraph.testing import strategies


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(bags=strategies.bags())
def test_summaries_do_not_depend_on_the_order_of_bags(bags):
    order = np.argsort(bags.sizes, kind="stable")
    np.testing.assert_array_equal(summarise(bags, list(STATISTICS))[order], summarise(bags[order], list(STATISTICS)))


def test_summaries_equal_those_of_pandas():
    block = np.random.default_rng(0).normal(size=(30, 4))
    sizes = np.array([5, 1, 10, 14])
    groups = pd.DataFrame(block).groupby(np.repeat(range(4), sizes))
    expected = np.hstack([groups.mean(), groups.min(), groups.max(), groups.std(ddof=0)])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    for instances in (block, sp.csr_array(block)):
        bags = bg.Bags(instances, offsets)
        np.testing.assert_allclose(summarise(bags, ["mean", "min", "max", "std"]), expected, atol=1e-12)


def test_an_unknown_statistic_is_answered_with_the_nearest():
    with pytest.raises(ParameterError, match=r"got 'meen'; did you mean 'mean'\?"):
        summarise(bg.Bags(np.eye(2), [0, 2]), ["meen"])


@pytest.mark.parametrize("statistics", ["mean", [], ()])
def test_statistics_are_a_list(statistics):
    with pytest.raises(ParameterError, match="expected a list of statistics"):
        summarise(bg.Bags(np.zeros((1, 1)), [0, 1]), statistics)
