"""What can be a posterior."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.errors import InvalidBagsError

Array = NDArray[np.float64]


def own(values: Any) -> Array:
    """Numbers that nobody else can change."""
    array = np.asarray(values, dtype=np.float64)
    return array.copy() if array.flags.writeable and isinstance(values, np.ndarray) else array


def refuse_non_finite(values: Array, ids: NDArray[Any], what: str) -> None:
    """Raise at the first bag with a number that is none."""
    bad = ~np.isfinite(values).all(axis=(0, 2))
    if bad.any():
        got = f"NaN or infinity (bag {ids[int(bad.argmax())]!r})"
        raise wrong(f"finite {what}", got, "look at the training losses for a fit that diverged")


def check_probabilities(draws: Array, ids: NDArray[Any], classes: NDArray[Any], variance: Any) -> None:
    """Raise unless every draw has a share a class that sum to one."""
    if classes.shape != (draws.shape[2],):
        raise wrong(f"a class a column ({draws.shape[2]})", f"shape {classes.shape}", "name all of them")
    if variance is not None:
        raise wrong("no noise variance beside classes", "one", "leave it out")
    bad = ((draws < 0).any(axis=2) | (np.abs(draws.sum(axis=2) - 1) > 1e-5)).any(axis=0)
    if bad.any():
        bag = int(bad.argmax())
        got = f"{draws[0, bag].tolist()} (bag {ids[bag]!r})"
        raise wrong("probabilities that sum to one", got, "normalise the draws")


def check_variance(draws: Array, ids: NDArray[Any], variance: Array) -> None:
    """Raise unless there is a positive variance for every number of the draws."""
    if variance.shape != draws.shape:
        raise wrong(f"variances of the shape of the draws {draws.shape}", f"shape {variance.shape}", "pass one each")
    refuse_non_finite(variance, ids, "variances")
    if (variance <= 0).any():
        raise wrong("variances above zero", f"{variance.min():g}", "leave them out where there is no noise")


def wrong(expected: str, got: str, remedy: str) -> InvalidBagsError:
    """An error of this stage."""
    return InvalidBagsError("posterior", expected=expected, got=got, remedy=remedy)
