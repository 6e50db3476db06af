"""Classical and trivial methods of the benchmark: settings chosen inside training folds, scores repeat by repeat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.baselines import make
from baggraph.baselines._kernels import Rows
from baggraph.data._fingerprint import fingerprint
from baggraph.data.bags import Bags
from baggraph.data.results import ResultTable
from baggraph.evaluation._division import divide, places, visible_and_tested
from baggraph.evaluation._provenance import provenance, rows_of
from baggraph.evaluation._running import Trial
from baggraph.evaluation.grid import Grid
from baggraph.evaluation.metrics import metrics_for

__all__ = ["CLASSICAL", "TRIVIAL", "Repeats", "methods"]

CLASSICAL = ("mi-SVM", "MI-SVM", "MI-Kernel", "EM-DD", "mi-Graph", "MI-VLAD", "mi-FV", "MILES")
TRIVIAL = ("majority", "bag size", "largest norm", "summary SVM")
LARGE = 3000  # instances above which a machine on instances is tried with fewer settings
SETTING = "transductive"


def methods(bags: Bags) -> dict[str, Any]:
    """Every method by its printed name: an estimator, or a :class:`Grid` where there is something to choose.

    Widths of kernels are multiples of one over the summed variance of the instances of ``bags``, for which no label is
    looked at.

    >>> from baggraph import datasets
    >>> [name for name, method in methods(datasets.load("digits-bags")).items() if not isinstance(method, Grid)]
    ['majority', 'bag size', 'largest norm']
    """
    grids = _grids(bags)
    found = {}
    for name in (*CLASSICAL, *TRIVIAL):
        found[name] = Grid(make(name), *grids[name]) if name in grids else make(name)
    return found


def _grids(bags: Bags) -> dict[str, tuple[list[dict[str, Sequence[Any]]], int]]:
    """Settings, the plainest first (of equals the first is chosen), and the number of inner folds."""
    both = ["maxabs", "none"] if bags.is_sparse else ["standard", "minmax"]  # sparse instances stay sparse
    unit = {scaling: Rows.of(bags, scaling, "rbf", "scale").kernel.gamma for scaling in both}

    def widths(*multiples: float, **others: Sequence[Any]) -> list[dict[str, Sequence[Any]]]:
        return [
            {"scaling": [scaling], "gamma": [float(m * scale) for m in multiples], **others}
            for scaling, scale in unit.items()
        ]

    standard, minmax = unit.items()
    margin: list[dict[str, Sequence[Any]]] = [
        {"scaling": [standard[0]], "gamma": [float(standard[1])], "C": [10.0]},
        {"scaling": [minmax[0]], "gamma": [float(3 * minmax[1])], "C": [1.0]},
        {"kernel": ["linear"], "C": [0.1]},
    ]
    margin = margin[:2] if bags.n_instances > LARGE else margin
    return {
        "mi-SVM": (margin, 3),
        "MI-SVM": (margin, 3),
        "MI-Kernel": (widths(1.0, 0.25, 4.0, C=[1.0, 10.0, 100.0]), 10),
        "EM-DD": ([{"scaling": both}], 3),
        "mi-Graph": (widths(1.0, 0.25, 4.0, C=[10.0, 100.0, 1000.0]), 10),
        "MI-VLAD": ([{"scaling": both, "n_centers": [1, 2, 3], "energy": [1.0, 0.9], "C": [1.0, 10.0]}], 10),
        "mi-FV": ([{"scaling": both, "n_components": [1, 2, 3], "energy": [0.9], "C": [1.0, 10.0]}], 10),
        "MILES": ([{"scaling": [minmax[0]], "gamma": [float(minmax[1])], "C": [1.0, 3.0]}], 5),
        "summary SVM": (widths(1.0, 0.25, 4.0, C=[10.0, 1.0])[:1], 10),
    }


class Repeats:
    """One method on one data set, repeat after repeat; tables of pairs are computed once for all of them.

    Parameters
    ----------
    name
        The method's printed name.
    bags
        With labels.
    task, dataset
        As they stand in the rows.
    repeats, folds, random_state
        Stratified folds, the same for every method.

    Examples
    --------
    >>> from baggraph import datasets
    >>> repeats = Repeats("summary SVM", datasets.load("digits-bags"), "demo", "digits-bags", repeats=2, folds=5)
    >>> len(repeats.run(1)), repeats.run(1).names("repeat")
    (5, [1])
    """

    def __init__(
        self,
        name: str,
        bags: Bags,
        task: str,
        dataset: str,
        *,
        repeats: int = 10,
        folds: int = 10,
        random_state: int = 0,
    ) -> None:
        self.method = methods(bags)[name]
        self.division: NDArray[np.int16] = divide(bags, None, folds, repeats, random_state)
        self.trial = Trial(bags, SETTING == "transductive", classify=True, believe=False)
        known = {"task": task, "dataset": dataset, "setting": SETTING, "data_sha256": fingerprint(bags)}
        self.origin = known | provenance(name, self.method, self.division, SETTING)

    def run(self, repeat: int) -> ResultTable:
        """Accuracy of every fold of one repeat."""
        bags, division = self.trial.bags, self.division[[repeat]]
        pairs = visible_and_tested(bags, division)
        rows = []
        for pair, place, outcome in zip(pairs, places(division), self.trial.run(self.method, pairs), strict=True):
            counts = {"n_train": len(pair[0]), "n_test": len(pair[1])}
            known = self.origin | place | {"repeat": repeat} | counts
            rows += rows_of(known, outcome, metrics_for("classification", ["accuracy"]), bags.y[pair[1]])
        return ResultTable.from_rows(rows)
