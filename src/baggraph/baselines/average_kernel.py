"""The average of all kernels between bags, and a support vector machine on it: nothing is selected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baggraph.baselines._families import Anchor, View, families
from baggraph.baselines._gram import Gram, KernelSVM
from baggraph.baselines._input import Matrix, Vector, check_positive
from baggraph.data.bags import Bags
from baggraph.errors import InvalidBagsError


@dataclass(frozen=True)
class _Known:
    bags: Bags
    anchor: Anchor


class AverageKernelSVM(KernelSVM):
    """Support vector machine on the average of kernels, within families and then over them

    ``K = 1/F sum_f 1/|f| sum_{k in f} c_k H K_k H``,  H the centring,  c_k such that the mean of the diagonal is one.

    The families: summaries of instances, set kernels, mean embeddings, mi-Graph, distances of Hausdorff's kind, rows of
    such distances, similarities as in MILES, residuals (VLAD) and Fisher vectors.  Selecting among kernels on a few
    bags is unreliable; their plain average is hard to beat (Gehler & Nowozin 2009, On feature combination for
    multiclass object classification, ICCV; the centring: Cortes, Mohri & Rostamizadeh 2012).

    Parameters
    ----------
    C
        Price of errors.
    scaling
        Kind of :class:`~baggraph.data.scaling.InstanceScaler`, fitted on the training bags.
    calibration_folds
        Inner folds that probabilities are fitted on; None does without.
    random_state
        Seed of the codebooks and of the inner folds.

    Examples
    --------
    >>> bags = Bags(np.array([[0.0], [0.2], [3.0], [0.1], [3.1]]), [0, 1, 2, 3, 4, 5], ["a", "a", "b", "a", "b"])
    >>> AverageKernelSVM().fit(bags).predict([[[0.3]], [[2.8]]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        C: float = 10.0,
        scaling: str = "auto",
        calibration_folds: int | None = 5,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.scaling = scaling
        self.calibration_folds = calibration_folds
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_positive(self._stage, C=self.C)

    def _anchor(self, bags: Bags) -> _Known:
        if len(bags) < 2:
            raise InvalidBagsError(self._stage, expected="two bags at least", got="one", remedy="pass more")
        return _Known(bags, Anchor.of(bags, self.scaling, self.random_state))

    def _evidence(self, anchor: _Known, bags: Bags) -> Gram:
        own = anchor.anchor.view
        view = own if bags is anchor.bags else View(own.rows.others(bags))
        sums: dict[str, Matrix] = {}
        counts: dict[str, int] = {}
        for family, left, right in families(anchor.anchor, view):
            centred = normalised(left, right)
            if centred is not None:
                sums[family] = sums.get(family, 0.0) + centred
                counts[family] = counts.get(family, 0) + 1
        if not sums:
            return Gram.of(np.zeros((len(bags), len(anchor.bags))))
        return Gram.of(sum(total / counts[family] for family, total in sums.items()) / len(sums))


def normalised(left: Matrix, right: Matrix) -> Matrix | None:
    """A kernel (m, B) centred by those among the B bags, whose diagonal then has mean one; None of a constant one.

    >>> right = np.array([[2.0, 0.0], [0.0, 2.0]])
    >>> normalised(right, right).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    columns: Vector = right.mean(axis=0)
    total = float(columns.mean())
    trace = float(np.trace(right) / len(right)) - total
    if trace <= 1e-12 * max(abs(total), 1e-300):
        return None
    return np.asarray((left - left.mean(axis=1, keepdims=True) - columns + total) / trace)
