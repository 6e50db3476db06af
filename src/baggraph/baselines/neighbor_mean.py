"""The mean label of the labelled neighbours."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.baselines._input import Matrix, check_count
from baggraph.baselines._on_graph import GraphClassifier, GraphRegressor


class NeighborMeanClassifier(GraphClassifier):
    """The weighted share of every class among the labelled neighbours: ``p_i = sum_j w_ij y_j / sum_j w_ij``.

    A bag without a labelled neighbour looks one hop further (w of all walks of two steps), and so on to ``hops``; after
    that it gets the shares of all labelled bags.  Transductive: the bags to be answered are in fit, without a label.

    Parameters
    ----------
    hops
        How far to look.

    Attributes
    ----------
    transduction_ : (B,) array
        The class of every bag; of labelled ones, their own.
    label_distributions_ : (B, C) array
        Shares of the classes.

    Examples
    --------
    >>> from baggraph import BagGraph, Bags
    >>> graph = BagGraph.from_edges([(0, 1), (1, 2), (2, 3)], ids=range(4))
    >>> bags = Bags(np.zeros((4, 1)), range(5), ["a", None, "b", None], graph=graph)
    >>> model = NeighborMeanClassifier().fit(bags)
    >>> model.label_distributions_[1].tolist(), model.transduction_.tolist()
    ([0.5, 0.5], ['a', 'a', 'b', 'b'])
    """

    def __init__(self, *, hops: int = 1) -> None:
        self.hops = hops

    def _spread(self, adjacency: sp.csr_array, known: NDArray[np.bool_], values: Matrix) -> Matrix:
        check_count(self._stage, hops=self.hops)
        return neighbor_means(adjacency, known, values, self.hops)


class NeighborMeanRegressor(GraphRegressor):
    """The weighted mean target of the labelled neighbours: ``y_i = sum_j w_ij y_j / sum_j w_ij``.

    A bag without a labelled neighbour looks one hop further (w of all walks of two steps), and so on to ``hops``; after
    that it gets the mean of all labelled bags.  Transductive: the bags to be answered are in fit, without a target.

    Parameters
    ----------
    hops
        How far to look.

    Attributes
    ----------
    transduction_ : (B,) or (B, t) array
        The target of every bag; of labelled ones, their own.

    Examples
    --------
    >>> from baggraph import BagGraph, Bags
    >>> graph = BagGraph.from_edges([(0, 1), (1, 2), (2, 3)], ids=range(4))
    >>> bags = Bags(np.zeros((4, 1)), range(5), [1.0, None, 4.0, None], graph=graph)
    >>> NeighborMeanRegressor().fit(bags).transduction_.tolist()
    [1.0, 2.5, 4.0, 4.0]
    """

    def __init__(self, *, hops: int = 1) -> None:
        self.hops = hops

    def _spread(self, adjacency: sp.csr_array, known: NDArray[np.bool_], values: Matrix) -> Matrix:
        check_count(self._stage, hops=self.hops)
        return neighbor_means(adjacency, known, values, self.hops)


def neighbor_means(adjacency: sp.csr_array, known: NDArray[np.bool_], values: Matrix, hops: int) -> Matrix:
    """Weighted means (B, t) over the known bags within the fewest hops that reach one."""
    means = np.tile(values.mean(axis=0), (len(known), 1))
    sums = np.zeros_like(means)
    sums[known] = values
    mass = known.astype(np.float64)
    open_bags = np.ones(len(known), dtype=bool)
    for _ in range(hops):
        sums, mass = adjacency @ sums, adjacency @ mass
        reached = open_bags & (mass > 0)
        means[reached] = sums[reached] / mass[reached, None]
        open_bags &= ~reached
    return means
