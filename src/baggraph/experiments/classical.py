"""Classical and trivial methods of the benchmark, and the settings among which training folds choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from baggraph.baselines import make
from baggraph.baselines._kernels import Rows
from baggraph.data.bags import Bags
from baggraph.evaluation.grid import Grid

__all__ = ["methods"]

CLASSICAL = ("mi-SVM", "MI-SVM", "MI-Kernel", "EM-DD", "mi-Graph", "MI-VLAD", "mi-FV", "MILES")
TRIVIAL = ("majority", "bag size", "largest norm", "summary SVM")
LARGE = 3000  # instances above which a machine on instances is tried with fewer settings
SCALINGS = ("standard", "minmax")
SPARSE_SCALINGS = ("maxabs", "none")  # zeros stay zeros

Settings = Mapping[str, Sequence[Any]]


def methods(bags: Bags) -> dict[str, Any]:
    """Every method by its printed name: an estimator, or a :class:`Grid` where there is something to choose.

    Widths of kernels are multiples of one over the summed variance of the instances of ``bags``, for which no label is
    looked at.

    >>> from baggraph import datasets
    >>> [name for name, method in methods(datasets.load("digits-bags")).items() if not isinstance(method, Grid)]
    ['majority', 'bag size', 'largest norm']
    """
    grids = _grids(bags)
    return {name: Grid(make(name), *grids[name]) if name in grids else make(name) for name in (*CLASSICAL, *TRIVIAL)}


def _grids(bags: Bags) -> dict[str, tuple[list[Settings], int]]:
    """Settings, of which the first of equals is chosen, and the number of inner folds.

    A machine on bags is trained in a millisecond and gets ten inner folds, as few make the choice a lottery on a
    hundred bags; what looks at instances gets three or five.
    """
    scalings = SPARSE_SCALINGS if bags.is_sparse else SCALINGS
    first, second = scalings
    unit = {scaling: float(Rows.of(bags, scaling, "rbf", "scale").kernel.gamma) for scaling in scalings}

    def rbf(scaling: str, *multiples: float, **others: Sequence[Any]) -> Settings:
        return {"scaling": [scaling], "gamma": [multiple * unit[scaling] for multiple in multiples], **others}

    def both(*multiples: float, C: Sequence[float]) -> list[Settings]:
        return [rbf(scaling, *multiples, C=C) for scaling in scalings]

    def codebook(**others: Sequence[Any]) -> list[Settings]:
        return [{"scaling": scalings, "C": [1.0, 10.0], **others}]

    def linear(scaling: str, C: float) -> Settings:
        return {"kernel": ["linear"], "scaling": [scaling], "C": [C]}

    pattern = witness = [rbf(first, 3.0, C=[10.0]), rbf(second, 3.0, C=[1.0])]
    if bags.n_instances <= LARGE:
        pattern = [*pattern, linear(first, 0.1), linear(second, 1.0)]
        witness = [rbf(first, 1.0, C=[10.0]), rbf(second, 1.0, 0.25, C=[1.0, 10.0]), linear(first, 0.1)]
    return {
        "mi-SVM": (pattern, 3),
        "MI-SVM": (witness, 5),
        "MI-Kernel": (both(1.0, 0.25, 4.0, C=[1.0, 10.0, 100.0]), 10),
        "EM-DD": ([{"scaling": scalings}], 3),
        "mi-Graph": (both(1.0, 0.25, 4.0, C=[10.0, 100.0, 1000.0]), 10),
        "MI-VLAD": (codebook(n_centers=[1, 2, 3], energy=[1.0, 0.9]), 10),
        "mi-FV": (codebook(n_components=[1, 2, 3], energy=[0.9]), 10),
        "MILES": ([rbf(second, 1.0, C=[1.0, 3.0])], 5),
        "summary SVM": ([rbf(first, 1.0, 0.25, 4.0, C=[10.0, 1.0])], 10),
    }
