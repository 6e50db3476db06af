"""mi-Graph: a support vector machine on a kernel of sets whose instances share the weight of their clique."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist, squareform

from baggraph.baselines import _kernels as kernels
from baggraph.baselines._gram import Gram, KernelSVM
from baggraph.baselines._input import Vector, check_positive
from baggraph.data.bags import Bags

TIE = 1 + 1e-9  # two instances lie at their mean distance, whatever rounding says


@dataclass(frozen=True)
class _Anchor:
    rows: kernels.Rows
    weights: Vector


class MIGraph(KernelSVM):
    """Support vector machine on the weighted set kernel

    ``k(A, B) = sum_{a, b} u_a v_b k(a, b) / (sum_a u_a sum_b v_b)``,

    where an instance weighs ``u_a = 1 / (number of instances of its bag within the radius)``, itself included: a clique
    of alike instances counts about once (Zhou, Sun & Li 2009, Multi-instance learning by treating instances as
    non-i.i.d. samples, ICML).

    Parameters
    ----------
    radius
        Largest distance of neighbours, in units of the mean distance between the instances of the bag; 1 as in the
        paper.
    kernel, gamma
        k(a, b): ``"rbf"``, ``exp(-gamma |a - b|^2)``, or ``"linear"``.  Gamma is a number, or ``"scale"``, one over the
        sum of the variances of the features.
    C
        Price of errors.
    scaling
        Kind of :class:`~baggraph.data.scaling.InstanceScaler`, fitted on the training bags.
    calibration_folds
        Inner folds that probabilities are fitted on; None does without.
    random_state
        Seed of the inner folds.

    Examples
    --------
    >>> bags = Bags(np.array([[0.0], [0.2], [3.0], [0.1], [3.1]]), [0, 1, 2, 3, 4, 5], ["a", "a", "b", "a", "b"])
    >>> MIGraph().fit(bags).predict([[[0.3]], [[2.8]]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        radius: float = 1.0,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        C: float = 1.0,
        scaling: str = "auto",
        calibration_folds: int | None = 5,
        random_state: int = 0,
    ) -> None:
        self.radius = radius
        self.kernel = kernel
        self.gamma = gamma
        self.C = C
        self.scaling = scaling
        self.calibration_folds = calibration_folds
        self.random_state = random_state

    def _check_parameters(self) -> None:
        kernels.check_kernel(self._stage, self.kernel, self.gamma)
        check_positive(self._stage, C=self.C, radius=self.radius)

    def _anchor(self, bags: Bags) -> _Anchor:
        rows = kernels.Rows.of(bags, self.scaling, self.kernel, self.gamma)
        return _Anchor(rows, clique_weights(rows, self.radius))

    def _evidence(self, anchor: _Anchor, bags: Bags) -> Gram:
        rows = anchor.rows.others(bags)
        weights = clique_weights(rows, self.radius)
        return Gram.of(kernels.segment_sums(rows, anchor.rows, anchor.rows.kernel, weights, anchor.weights))


def clique_weights(rows: kernels.Rows, radius: float) -> Vector:
    """Weights (N,) that sum to one in every bag, each in proportion to one over the number of neighbours.

    >>> bags = Bags(np.array([[0.0], [0.1], [9.0], [5.0]]), [0, 3, 4])
    >>> clique_weights(kernels.Rows.of(bags, "none", "rbf", 1.0), 1.0).tolist()
    [0.25, 0.25, 0.5, 1.0]
    """
    weights = np.ones(len(rows.values))
    for start, stop in zip(rows.offsets[:-1], rows.offsets[1:], strict=True):
        if stop - start > 1:
            # Differences first, then squares: distances of equal pairs are equal, and those of equal instances zero.
            distances = pdist(rows.values[start:stop])
            near = distances <= radius * distances.mean() * TIE
            share = 1.0 / (1.0 + squareform(near).sum(axis=1))
            weights[start:stop] = share / share.sum()
    return weights
