"""Forests as plain arrays, which can be saved without code; what they say is computed from the arrays alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Forest:
    """Binary trees side by side; a leaf is its own child.

    Parameters
    ----------
    roots : (T,)
        First node of every tree.
    left, right : (nodes,)
        Children: left of a row whose feature is at most the threshold.
    feature, threshold, value : (nodes,)
        What is asked at a node, and what is said at a leaf.

    """

    roots: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: Array
    value: Array

    @classmethod
    def of(cls, fitted: Any) -> Forest:
        """Of a fitted ensemble of scikit-learn: of two classes the share of the second, or the mean of a target."""
        trees = [one.tree_ for one in fitted.estimators_]
        counts = np.array([tree.node_count for tree in trees])
        roots = np.concatenate([[0], np.cumsum(counts)[:-1]])
        first = np.repeat(roots, counts)
        left, right, feature, threshold = (
            np.concatenate([getattr(tree, name) for tree in trees])
            for name in ("children_left", "children_right", "feature", "threshold")
        )
        raw = np.concatenate([tree.value[:, 0, :] for tree in trees])
        value = raw[:, 0] if raw.shape[1] == 1 else raw[:, 1] / raw.sum(axis=1)
        leaf, own = left < 0, np.arange(len(left))
        left, right = np.where(leaf, own, left + first), np.where(leaf, own, right + first)
        return cls(roots, left, right, np.where(leaf, 0, feature), threshold, value)

    def __call__(self, rows: Array) -> Array:
        """Means over the trees (m,) of what their leaves say.

        >>> from sklearn.ensemble import ExtraTreesRegressor
        >>> x, y = np.arange(9.0)[:, None], np.arange(9.0) ** 2
        >>> trees = ExtraTreesRegressor(5, random_state=0).fit(x, y)
        >>> bool(np.allclose(Forest.of(trees)(x), trees.predict(x)))
        True
        """
        single = np.asarray(rows, dtype=np.float32)  # thresholds were found among single-precision values
        which = np.arange(len(single))[:, None]
        node = np.broadcast_to(self.roots, (len(single), len(self.roots)))
        while True:
            below = single[which, self.feature[node]] <= self.threshold[node]
            found = np.where(below, self.left[node], self.right[node])
            if np.array_equal(found, node):
                return np.asarray(self.value[node].mean(axis=1))
            node = found
