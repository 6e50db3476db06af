"""What every method of this room asks of bags and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data._split_checks import is_count
from baggraph.data.bags import Bags
from baggraph.data.splits import MOST_CLASSES
from baggraph.errors import InvalidBagsError, ParameterError, name_some

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def as_bags(X: Any, stage: str, n_features: int | None = None) -> Bags:
    """Bags from Bags, a list of 2-D arrays, a 3-D array, or a 2-D array (every row a bag of one instance).

    >>> as_bags(np.zeros((3, 2)), "demo").sizes.tolist(), as_bags(np.zeros((3, 4, 2)), "demo").sizes.tolist()
    ([1, 1, 1], [4, 4, 4])
    """
    bags = X if isinstance(X, Bags) else _from_arrays(X, stage)
    if not len(bags):
        raise InvalidBagsError(stage, expected="at least one bag", got="none", remedy="pass some")
    if n_features is not None and bags.n_features != n_features:
        got, remedy = f"{bags.n_features}", "choose the columns that the method was fitted on"
        raise InvalidBagsError(stage, expected=f"{n_features} features, as in fit", got=got, remedy=remedy)
    return bags


def _from_arrays(X: Any, stage: str) -> Bags:
    listed = isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1)
    if listed and len(X) and all(np.ndim(bag) == 2 or sp.issparse(bag) for bag in X):
        return Bags.from_list(list(X))
    block: Any = X if sp.issparse(X) else np.asarray(X) if not listed or _is_even(X) else np.zeros(0)
    if block.ndim == 2 and block.shape[1]:
        return Bags(block, np.arange(block.shape[0] + 1))
    if block.ndim == 3 and block.shape[1] and block.shape[2]:
        return Bags(block.reshape(-1, block.shape[2]), np.arange(block.shape[0] + 1) * block.shape[1])
    expected = "Bags, a list of 2-D arrays, a 3-D array, or a 2-D array of bags of one instance"
    got = f"a {type(X).__name__} of shape {block.shape}" if hasattr(X, "shape") else f"a {type(X).__name__}"
    raise InvalidBagsError(stage, expected=expected, got=got, remedy="make them with Bags.from_list")


def _is_even(rows: Sequence[Any]) -> bool:
    return len({np.shape(row) for row in rows}) == 1


def with_labels(X: Any, y: Any, stage: str) -> Bags:
    """Bags whose ``y`` is the one given or, without one, their own; at least one bag is labelled."""
    bags = as_bags(X, stage)
    if y is not None:
        y = y if hasattr(y, "__len__") else np.asarray(y)
        if getattr(y, "ndim", 1) == 1 and len(y) != len(bags):
            got = f"{len(y)} labels for {len(bags)} bags"
            raise InvalidBagsError(stage, expected="a label a bag", got=got, remedy="pass inconsistent lengths no more")
        bags = bags.replace(y=y)
    if bags.y is None:
        remedy = "pass y, or bags with y (it requires y to be passed, but the target y is None)"
        raise InvalidBagsError(stage, expected="labelled bags", got="none", remedy=remedy)
    if not bags.labelled.any():
        raise InvalidBagsError(stage, expected="labelled bags", got="missing labels only", remedy="label some")
    return bags


def labelled_part(X: Any, y: Any, stage: str) -> Bags:
    """The labelled bags alone: what a method without a use for the others is trained on."""
    bags = with_labels(X, y, stage)
    return bags if bags.labelled.all() else bags.take(bags.labelled)


def class_codes(labels: NDArray[Any], stage: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Sorted classes and the position of every label (B,) among them; real targets and single classes are refused.

    >>> [part.tolist() for part in class_codes(np.array(["b", "a", "b"], dtype=object), "demo")]
    [['a', 'b'], [1, 0, 1]]
    """
    remedy = "use a regressor, or make classes of them"
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1:
        raise InvalidBagsError(stage, expected="one class a bag", got=f"{labels.shape[1]} targets", remedy=remedy)
    classes, codes = np.unique(labels, return_inverse=True)
    if labels.dtype.kind == "f" and ((classes % 1).any() or len(classes) > MOST_CLASSES):
        raise InvalidBagsError(stage, expected="classes", got=f"real targets such as {labels[0]:g}", remedy=remedy)
    if len(classes) < 2:
        got = f"only {name_some(classes)}"
        raise InvalidBagsError(stage, expected="bags of two classes or more", got=got, remedy="add bags of another")
    return classes, codes


def real_targets(labels: NDArray[Any], stage: str) -> Matrix:
    """Targets as float64 (B, t); text is refused."""
    if labels.dtype.kind == "O":
        got, remedy = f"text such as {labels[0]!r}", "use a classifier"
        raise InvalidBagsError(stage, expected="numbers as targets", got=got, remedy=remedy)
    return np.asarray(labels, dtype=np.float64).reshape(len(labels), -1)


def check_choice(stage: str, name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise unless a parameter is one of the words it may be."""
    if value not in choices:
        remedy = f"choose from {', '.join(map(repr, choices))}"
        raise ParameterError(stage, expected=f"a known {name}", got=repr(value), remedy=remedy)


def check_positive(stage: str, **values: Any) -> None:
    """Raise unless every parameter is a finite number above zero."""
    for name, value in values.items():
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number or not 0 < value < np.inf:
            raise ParameterError(stage, expected=f"{name} above 0", got=f"{name}={value!r}", remedy="pass 1.0")


def check_count(stage: str, **values: Any) -> None:
    """Raise unless every parameter is an integer of 1 or more."""
    for name, value in values.items():
        if not is_count(value) or value < 1:
            raise ParameterError(stage, expected=f"{name} of 1 or more", got=f"{name}={value!r}", remedy="pass 1")


def dense_rows(bags: Bags) -> Matrix:
    """All instances (N, d), dense and in float64."""
    block = bags.instances.toarray() if bags.is_sparse else bags.instances
    return np.asarray(block, dtype=np.float64)
