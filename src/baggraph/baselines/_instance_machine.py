"""What mi-SVM and MI-SVM share: a machine on instances, trained in rounds; a bag is its highest instance."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from baggraph.baselines import _kernels as kernels
from baggraph.baselines._gram import Gram, GramClassifier
from baggraph.baselines._input import Vector, check_count, check_positive
from baggraph.data.bags import Bags
from baggraph.errors import BagWarning


class InstanceMachine(GramClassifier):
    """Models have an ``expansion`` in the kernel of all instances, and say whether they ``converged``."""

    kernel: str
    gamma: float | str
    C: float
    max_iter: int
    scaling: str
    _guess: str  # what is guessed anew in every round

    @property
    def converged_(self) -> bool:
        """Whether nothing that is guessed changed in the last round."""
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

    def _score(self, model: Any, evidence: Gram) -> Vector:
        return np.maximum.reduceat(evidence.apply(model.expansion), evidence.row_offsets[:-1])

    def _warn(self) -> None:
        text = f"expected {self._guess} to settle, got changes in round {self.max_iter}; raise max_iter"
        warnings.warn(f"{self._stage}: {text}", BagWarning, stacklevel=6)
