"""The support vector machine of a kernel that is only looked at where it is needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from baggraph.baselines._input import Matrix, Vector

Index = NDArray[np.int64]
TOLERANCE = 1e-3  # as libsvm has it
FEW = 2000  # points that are all taken at once
CHUNK = 600  # points that join the working set at a time


@dataclass(frozen=True)
class Expansion:
    """A function ``f = K coef + intercept`` of kernel values with training bags or instances."""

    coef: Vector
    intercept: float

    def __call__(self, kernel: Matrix) -> Vector:
        return kernel @ self.coef + self.intercept


class Points(ABC):
    """Points with a kernel, of which a machine asks for parts."""

    @abstractmethod
    def block(self, rows: Index, columns: Index) -> Matrix:
        """The kernel of some with others."""

    @abstractmethod
    def apply(self, function: Expansion) -> Vector:
        """Values (n,) of an expansion in all points; most of its coefficients are zero."""


def fit_svc(points: Points, sign: Vector, C: float, *, balanced: bool = False, start: Index | None = None) -> Expansion:
    """The machine of points with signs -1 and +1 (n,).

    Few points of many support a machine.  It is trained on a working set, points outside that lie on the wrong side of
    the margin join it, and so on until there are none: what is left out has a multiplier of zero,
    and the machine is that of all points (Osuna, Freund & Girosi 1997, An improved training algorithm for support
    vector machines).  ``start`` are points that are likely to support it; ``balanced`` prices errors of a class by one
    over its size.
    """
    counts = {s: int((sign == s).sum()) for s in (-1.0, 1.0)}
    prices = {s: len(sign) / (2 * count) for s, count in counts.items()} if balanced else None
    working = _first(sign, start)
    while True:
        machine = SVC(kernel="precomputed", C=C, class_weight=prices, tol=TOLERANCE, cache_size=500)
        machine.fit(points.block(working, working), sign[working])
        coef = np.zeros(len(sign))
        coef[working[machine.support_]] = machine.dual_coef_[0]
        found = Expansion(coef, float(machine.intercept_[0]))
        if len(working) == len(sign):
            return found
        slack = 1 - sign * points.apply(found)
        slack[working] = 0.0
        wrong = np.flatnonzero(slack > TOLERANCE)
        if not len(wrong):
            return found
        joining = wrong[np.argsort(-slack[wrong], kind="stable")[:CHUNK]]
        working = np.union1d(working, joining)


def _first(sign: Vector, start: Index | None) -> Index:
    """All points, if they are few; otherwise those to start with, or as many of both signs at even distances."""
    if len(sign) <= FEW:
        return np.arange(len(sign))
    sides = [np.flatnonzero(sign == s) for s in (-1.0, 1.0)]
    if start is not None:
        return np.unique(np.concatenate([start, *(side[:1] for side in sides)]))
    return np.sort(np.concatenate([side[:: max(1, 2 * len(side) // CHUNK)] for side in sides]))
