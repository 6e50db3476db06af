"""Label propagation: values of bags without a label are the means of those of their neighbours."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from baggraph.baselines._input import Matrix
from baggraph.baselines._on_graph import GraphClassifier, GraphRegressor


class LabelPropagationClassifier(GraphClassifier):
    """The harmonic function that keeps known classes: ``D_uu F_u - W_uu F_u = W_uk F_k``, solved directly.

    F are shares of classes, w the weights of ``bags.graph``, D their row sums (Zhu, Ghahramani & Lafferty 2003,
    Semi-supervised learning using Gaussian fields and harmonic functions, ICML).  Bags that no labelled bag reaches get
    the shares of all labelled ones.  Transductive: the bags to be answered are in fit, without a label.

    Attributes
    ----------
    transduction_ : (B,) array
        The class of every bag; of labelled ones, their own.
    label_distributions_ : (B, C) array
        F.

    Examples
    --------
    >>> from baggraph import BagGraph, Bags
    >>> graph = BagGraph.from_edges([(0, 1), (1, 2), (2, 3)], ids=range(4))
    >>> bags = Bags(np.zeros((4, 1)), range(5), ["a", None, None, "b"], graph=graph)
    >>> LabelPropagationClassifier().fit(bags).label_distributions_[:, 1].round(3).tolist()
    [0.0, 0.333, 0.667, 1.0]
    """

    def _spread(self, adjacency: sp.csr_array, known: NDArray[np.bool_], values: Matrix) -> Matrix:
        return harmonic(adjacency, known, values)


class LabelPropagationRegressor(GraphRegressor):
    """The harmonic function that keeps known targets: ``D_uu f_u - W_uu f_u = W_uk f_k``, solved directly.

    w are the weights of ``bags.graph``, D their row sums (Zhu, Ghahramani & Lafferty 2003, Semi-supervised learning
    using Gaussian fields and harmonic functions, ICML).  Bags that no labelled bag reaches get the mean of all labelled
    ones.  Transductive: the bags to be answered are in fit, without a target.

    Attributes
    ----------
    transduction_ : (B,) or (B, t) array
        The target of every bag; of labelled ones, their own.

    Examples
    --------
    >>> from baggraph import BagGraph, Bags
    >>> graph = BagGraph.from_edges([(0, 1), (1, 2), (2, 3)], ids=range(4))
    >>> bags = Bags(np.zeros((4, 1)), range(5), [0.0, None, None, 3.0], graph=graph)
    >>> LabelPropagationRegressor().fit(bags).transduction_.round(6).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """

    def _spread(self, adjacency: sp.csr_array, known: NDArray[np.bool_], values: Matrix) -> Matrix:
        return harmonic(adjacency, known, values)


def harmonic(adjacency: sp.csr_array, known: NDArray[np.bool_], values: Matrix) -> Matrix:
    """Values (B, t) that are means of their neighbours' wherever they are not known."""
    answers = np.tile(values.mean(axis=0), (len(known), 1))
    answers[known] = values
    part = connected_components(adjacency, directed=False)[1]
    solved = np.flatnonzero(~known & np.isin(part, part[known]))
    if len(solved):
        rows = adjacency[solved]
        degree = np.asarray(rows.sum(axis=1))
        system = sp.csc_array(sp.diags_array(degree) - rows[:, solved])
        answers[solved] = splu(system).solve(rows[:, np.flatnonzero(known)] @ values)
    return answers
