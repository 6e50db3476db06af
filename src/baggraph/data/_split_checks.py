"""What all splits ask of their parameters, and the random bits they draw.

Every order is a stable sort by keys from the bit stream of PCG64.  NumPy guarantees bit streams for good,
but not what the methods of its generators make of them (NEP 19).
"""

from __future__ import annotations

import numpy as np

from baggraph.errors import InvalidBagsError, ParameterError

MOST_FOLDS = int(np.iinfo(np.int16).max)


def is_count(value: object) -> bool:
    """Whether it is an integer, and no boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_counts(stage: str, folds: int, repeats: int, available: int, what: str) -> None:
    """Raise unless that many folds of what is available can be made."""
    if not is_count(folds) or not 2 <= folds <= MOST_FOLDS:
        raise bad_parameter(stage, f"folds from 2 to {MOST_FOLDS}", f"folds={folds!r}", "10 is customary")
    if not is_count(repeats) or repeats < 1:
        raise bad_parameter(stage, "repeats of 1 or more", f"repeats={repeats!r}", "pass repeats=1")
    if folds > available:
        raise bad_parameter(stage, f"at most as many folds as {what}", f"folds={folds} for {available}", "lower folds")


def bit_stream(stage: str, random_state: int) -> np.random.PCG64:
    """Random bits of a seed."""
    if not is_count(random_state) or random_state < 0:
        got = f"random_state={random_state!r}"
        raise bad_parameter(stage, "a seed, an integer from 0", got, "pass random_state=0")
    return np.random.PCG64(int(random_state))


def bag_at(position: int) -> str:
    """How errors name a bag without an id."""
    return f"bag {position}"


def bad_data(stage: str, expected: str, got: str, remedy: str) -> InvalidBagsError:
    """An error about labels, groups or coordinates."""
    return InvalidBagsError(stage, expected=expected, got=got, remedy=remedy)


def bad_parameter(stage: str, expected: str, got: str, remedy: str) -> ParameterError:
    """An error about a number or a name."""
    return ParameterError(stage, expected=expected, got=got, remedy=remedy)
