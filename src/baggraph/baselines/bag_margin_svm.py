"""MI-SVM: a support vector machine that stands every positive bag on one witness."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from baggraph.baselines import _kernels as kernels
from baggraph.baselines._gram import Expansion, Gram, GramClassifier, fit_svc
from baggraph.baselines._input import Matrix, Vector, check_count, check_positive
from baggraph.data.bags import Bags
from baggraph.errors import BagWarning


@dataclass(frozen=True)
class _Machine:
    """A machine on instances, the witness of every positive bag (an instance), and whether witnesses settled."""

    expansion: Expansion
    witnesses: kernels.Index
    converged: bool


class BagMarginSVM(GramClassifier):
    """MI-SVM, the maximum bag margin formulation:

    ``min_{w, b, xi}  |w|^2 / 2 + C sum xi``  with  ``max_{i in I} (w . x_i + b) >= 1 - xi_I``  for positive bags

    and ``-(w . x_i + b) >= 1 - xi_i`` for every instance of negative ones.  A positive bag enters by one witness: at
    first its mean (in the space of the kernel), then its highest instance, until no witness changes (Andrews,
    Tsochantaridis & Hofmann 2002, Support vector machines for multiple-instance learning, NIPS).  The score of a bag is
    the largest of its instances.

    ``gram(bags)`` is the kernel of all instances, (N, N): 8 N^2 bytes.

    Parameters
    ----------
    kernel, gamma
        ``"rbf"``, ``exp(-gamma |x - x'|^2)``, or ``"linear"``.  Gamma is a number, or ``"scale"``, one over the sum of
        the variances of the features.
    C
        Price of errors.
    class_weight
        ``"balanced"`` makes errors on the few witnesses as dear, together, as those on the many negative instances.
    max_iter
        Most rounds; where witnesses still change, a :class:`~baggraph.errors.BagWarning` says so.
    scaling
        Kind of :class:`~baggraph.data.scaling.InstanceScaler`, fitted on the training bags.
    calibration_folds
        Inner folds that probabilities are fitted on; None does without.
    random_state
        Seed of the inner folds.

    Attributes
    ----------
    witnesses_ : list of arrays
        Position of the witness of every positive bag among the training instances; one array, or for more than two
        classes one a class.
    converged_ : bool
        Whether no witness changed in the last round.

    Examples
    --------
    >>> bags = Bags(np.array([[0.0], [3.0], [0.1], [0.2], [2.9], [0.3]]), [0, 2, 3, 5, 6], [1, 0, 1, 0])
    >>> model = BagMarginSVM(kernel="linear", C=10.0).fit(bags)
    >>> model.witnesses_[0].tolist(), model.predict(bags).tolist()
    ([1, 4], [1, 0, 1, 0])
    """

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        C: float = 1.0,
        class_weight: str | None = "balanced",
        max_iter: int = 50,
        scaling: str = "standard",
        calibration_folds: int | None = 5,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.C = C
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.scaling = scaling
        self.calibration_folds = calibration_folds
        self.random_state = random_state

    @property
    def witnesses_(self) -> list[kernels.Index]:
        """Witnesses of positive bags, one array a machine."""
        return [model.witnesses for model in self.models_]

    @property
    def converged_(self) -> bool:
        """Whether no witness changed in the last round."""
        return all(model.converged for model in self.models_)

    def _check_parameters(self) -> None:
        kernels.check_kernel(self._stage, self.kernel, self.gamma)
        check_positive(self._stage, C=self.C)
        check_count(self._stage, max_iter=self.max_iter)

    def _anchor(self, bags: Bags) -> kernels.Rows:
        return kernels.Rows.of(bags, self.scaling, self.kernel, self.gamma)

    def _evidence(self, anchor: kernels.Rows, bags: Bags) -> Gram:
        rows = anchor.others(bags)
        return Gram(kernels.all_pairs(rows, anchor), rows.offsets, anchor.offsets)

    def _train(self, evidence: Gram, sign: Vector) -> _Machine:
        table = _Table.of(evidence, sign)
        chosen = _means(table.offsets)
        witnesses = np.full(len(table.offsets) - 1, -1)
        for _ in range(self.max_iter):
            machine = fit_svc(table.with_witnesses(chosen), table.signs, self.C, self.class_weight)
            expansion = table.expand(machine, chosen)
            new = _highest(expansion(table.positive_rows), table.offsets)
            if np.array_equal(new, witnesses):
                return _Machine(expansion, table.positive[witnesses], converged=True)
            witnesses, chosen = new, _picks(new, int(table.offsets[-1]))
        self._warn()
        return _Machine(expansion, table.positive[witnesses], converged=False)

    def _warn(self) -> None:
        text = f"expected witnesses to settle, got changes in round {self.max_iter}; raise max_iter"
        warnings.warn(f"{self._stage}: {text}", BagWarning, stacklevel=6)

    def _score(self, model: _Machine, evidence: Gram) -> Vector:
        return np.maximum.reduceat(model.expansion(evidence.values), evidence.row_offsets[:-1])


@dataclass(frozen=True)
class _Table:
    """The kernel of witnesses and negative instances; only the part of the witnesses changes from round to round."""

    positive: kernels.Index  # instances of positive bags
    offsets: kernels.Index  # of positive bags among them
    negative: kernels.Index
    positive_rows: Matrix  # (P, N)
    kernel: Matrix  # (bags + negative) squared
    signs: Vector

    @classmethod
    def of(cls, evidence: Gram, sign: Vector) -> _Table:
        """Everything but the part of the witnesses."""
        sizes = np.diff(evidence.row_offsets)
        of_instance = np.repeat(sign, sizes)
        positive, negative = np.flatnonzero(of_instance > 0), np.flatnonzero(of_instance < 0)
        offsets = np.concatenate([[0], np.cumsum(sizes[sign > 0])])
        n_bags = len(offsets) - 1
        kernel = np.empty((n_bags + len(negative),) * 2)
        kernel[n_bags:, n_bags:] = evidence.values[np.ix_(negative, negative)]
        signs = np.repeat([1.0, -1.0], [n_bags, len(negative)])
        return cls(positive, offsets, negative, evidence.values[positive], kernel, signs)

    def with_witnesses(self, chosen: sp.csr_array) -> Matrix:
        """The kernel with witnesses that are combinations (bags, P) of positive instances; the array is reused."""
        n_bags = chosen.shape[0]
        rows = chosen @ self.positive_rows
        self.kernel[:n_bags, :n_bags] = (chosen @ rows[:, self.positive].T).T
        self.kernel[:n_bags, n_bags:] = rows[:, self.negative]
        self.kernel[n_bags:, :n_bags] = self.kernel[:n_bags, n_bags:].T
        return self.kernel

    def expand(self, machine: Expansion, chosen: sp.csr_array) -> Expansion:
        """The machine as a function of the kernel with all instances."""
        coef = np.zeros(self.positive_rows.shape[1])
        coef[self.negative] = machine.coef[chosen.shape[0] :]
        coef[self.positive] = chosen.T @ machine.coef[: chosen.shape[0]]
        return Expansion(coef, machine.intercept)


def _means(offsets: kernels.Index) -> sp.csr_array:
    """Rows (bags, P) that average the instances of a bag."""
    sizes = np.diff(offsets)
    shape = (len(sizes), int(offsets[-1]))
    return sp.csr_array((np.repeat(1.0 / sizes, sizes), np.arange(shape[1]), offsets), shape=shape)


def _picks(instances: kernels.Index, count: int) -> sp.csr_array:
    """Rows (bags, P) that pick one instance each."""
    n = len(instances)
    return sp.csr_array((np.ones(n), instances, np.arange(n + 1)), shape=(n, count))


def _highest(scores: Vector, offsets: kernels.Index) -> kernels.Index:
    """The first instance of the largest score in every bag."""
    largest = np.repeat(np.maximum.reduceat(scores, offsets[:-1]), np.diff(offsets))
    place = np.where(scores == largest, np.arange(len(scores)), len(scores))
    return np.minimum.reduceat(place, offsets[:-1])
