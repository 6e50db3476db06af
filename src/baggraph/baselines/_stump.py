"""The threshold on one number that errs least."""

from __future__ import annotations

import numpy as np

from baggraph.baselines._input import Vector


def best_threshold(values: Vector, sign: Vector) -> tuple[float, int]:
    """Threshold above which bags are called +1, and its errors; of equally good ones, that in the widest gap.

    >>> best_threshold(np.array([1.0, 2.0, 6.0, 7.0]), np.array([-1.0, -1.0, 1.0, 1.0]))
    (4.0, 0)
    """
    order = np.argsort(values, kind="stable")
    ranked, positive = values[order], sign[order] > 0
    below = np.concatenate([[0], np.cumsum(positive)])  # positive bags that would be called -1
    above = np.concatenate([np.cumsum(~positive[::-1])[::-1], [0]])
    gaps = np.concatenate([[0.0], np.diff(ranked), [0.0]])
    possible = np.concatenate([[True], np.diff(ranked) > 0, [True]])
    errors = np.where(possible, below + above, len(values) + 1)
    best = int(np.lexsort((-gaps, errors))[0])
    spread = float(ranked[-1] - ranked[0]) or 1.0
    edges = np.concatenate([[ranked[0] - spread], (ranked[:-1] + ranked[1:]) / 2, [ranked[-1] + spread]])
    return float(edges[best]), int(errors[best])
