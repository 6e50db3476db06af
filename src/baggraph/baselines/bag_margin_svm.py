"""MI-SVM: a support vector machine that stands every positive bag on one witness."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from baggraph.baselines import _kernels as kernels
from baggraph.baselines._gram import Gram
from baggraph.baselines._input import Matrix, Vector
from baggraph.baselines._instance_machine import InstanceMachine
from baggraph.baselines._svc import Expansion, Points, fit_svc
from baggraph.errors import ParameterError


@dataclass(frozen=True)
class _Machine:
    """A machine on instances, the witness of every positive bag (an instance), and whether witnesses settled."""

    expansion: Expansion
    witnesses: kernels.Index
    converged: bool


class BagMarginSVM(InstanceMachine):
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
    >>> from baggraph import Bags
    >>> bags = Bags(np.array([[0.0], [3.0], [0.1], [0.2], [2.9], [0.3]]), [0, 2, 3, 5, 6], [1, 0, 1, 0])
    >>> model = BagMarginSVM(kernel="linear", C=10.0).fit(bags)
    >>> model.witnesses_[0].tolist(), model.predict(bags).tolist()
    ([1, 4], [1, 0, 1, 0])
    """

    _guess = "witnesses"

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        C: float = 1.0,
        class_weight: str | None = "balanced",
        max_iter: int = 50,
        scaling: str = "auto",
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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.class_weight not in (None, "balanced"):
            got, remedy = f"class_weight={self.class_weight!r}", 'pass "balanced" or None'
            raise ParameterError(self._stage, expected="a known class_weight", got=got, remedy=remedy)

    def _train(self, evidence: Gram, sign: Vector) -> _Machine:
        bags = _Bags.of(evidence, sign)
        points: _Witnesses | _Means = _Means.of(bags)
        start, witnesses = None, np.full(len(bags.offsets) - 1, -1)
        for _ in range(self.max_iter):
            machine = fit_svc(points, bags.signs, self.C, balanced=self.class_weight == "balanced", start=start)
            expansion = points.expand(machine)
            new = bags.highest(evidence.apply(expansion))
            if np.array_equal(new, witnesses):
                return _Machine(expansion, witnesses, converged=True)
            start, witnesses, points = np.flatnonzero(machine.coef), new, _Witnesses(bags, new)
        self._warn()
        return _Machine(expansion, witnesses, converged=False)


@dataclass(frozen=True)
class _Bags:
    """Instances of positive and negative bags, by their positions in the table of all."""

    evidence: Gram
    positive: kernels.Index
    offsets: kernels.Index  # of positive bags among these
    negative: kernels.Index
    signs: Vector  # of one point a positive bag, then of every negative instance

    @classmethod
    def of(cls, evidence: Gram, sign: Vector) -> _Bags:
        """Those of bags with these signs."""
        sizes = np.diff(evidence.row_offsets)
        of_instance = np.repeat(sign, sizes)
        positive, negative = np.flatnonzero(of_instance > 0), np.flatnonzero(of_instance < 0)
        offsets = np.concatenate([[0], np.cumsum(sizes[sign > 0])])
        return cls(evidence, positive, offsets, negative, np.repeat([1.0, -1.0], [len(offsets) - 1, len(negative)]))

    def highest(self, scores: Vector) -> kernels.Index:
        """The instance of the largest score (N,) in every positive bag."""
        return self.positive[kernels.first_highest(scores[self.positive], self.offsets)]


@dataclass(frozen=True)
class _Witnesses(Points):
    """One instance a positive bag, then every negative instance."""

    bags: _Bags
    witnesses: kernels.Index

    @cached_property
    def _place(self) -> kernels.Index:
        return np.concatenate([self.witnesses, self.bags.negative])

    def block(self, rows: kernels.Index, columns: kernels.Index) -> Matrix:
        return self.bags.evidence.block(self._place[rows], self._place[columns])

    def apply(self, function: Expansion) -> Vector:
        return self.bags.evidence.apply(self.expand(function))[self._place]

    def expand(self, function: Expansion) -> Expansion:
        """The function as one of the kernel with all instances."""
        coef = np.zeros(len(self.bags.positive) + len(self.bags.negative))
        coef[self._place] = function.coef
        return Expansion(coef, function.intercept)


@dataclass(frozen=True)
class _Means(Points):
    """The mean of every positive bag in the space of the kernel, then every negative instance."""

    bags: _Bags
    table: Matrix  # of means with all points

    @classmethod
    def of(cls, bags: _Bags) -> _Means:
        """Means of positive bags."""
        sizes, starts = np.diff(bags.offsets), bags.offsets[:-1]
        everything = np.concatenate([bags.positive, bags.negative])
        means = np.add.reduceat(bags.evidence.block(bags.positive, everything), starts, axis=0) / sizes[:, None]
        of_means = np.add.reduceat(means[:, : len(bags.positive)], starts, axis=1) / sizes
        return cls(bags, np.hstack([of_means, means[:, len(bags.positive) :]]))

    def block(self, rows: kernels.Index, columns: kernels.Index) -> Matrix:
        n = len(self.table)
        values = np.empty((len(rows), len(columns)))
        above, left = rows < n, columns < n
        values[above] = self.table[np.ix_(rows[above], columns)]
        values[:, left] = self.table[np.ix_(columns[left], rows)].T
        negative = self.bags.negative[rows[~above] - n], self.bags.negative[columns[~left] - n]
        values[np.ix_(~above, ~left)] = self.bags.evidence.block(*negative)
        return values

    def apply(self, function: Expansion) -> Vector:
        values = self.bags.evidence.apply(self.expand(function))
        sums = np.add.reduceat(values[self.bags.positive], self.bags.offsets[:-1])
        return np.concatenate([sums / np.diff(self.bags.offsets), values[self.bags.negative]])

    def expand(self, function: Expansion) -> Expansion:
        """The function as one of the kernel with all instances."""
        sizes = np.diff(self.bags.offsets)
        coef = np.zeros(len(self.bags.positive) + len(self.bags.negative))
        coef[self.bags.positive] = np.repeat(function.coef[: len(sizes)] / sizes, sizes)
        coef[self.bags.negative] = function.coef[len(sizes) :]
        return Expansion(coef, function.intercept)
