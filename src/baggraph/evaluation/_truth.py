"""The labelled bags, and what is believed of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.data._columns import canonical_column, missing_mask
from baggraph.data.posterior import Posterior
from baggraph.errors import InvalidBagsError

Array = NDArray[np.float64]


def known_part(y: Any, posterior: Posterior) -> tuple[NDArray[Any], Posterior]:
    """Labels and posterior of the bags that have a label.

    >>> labels, part = known_part([1.0, None], Posterior([[[1.0], [2.0]]], ids=["a", "b"]))
    >>> labels.tolist(), part.ids.tolist()
    ([1.0], ['a'])
    """
    labels = canonical_column(y, "label", len(posterior), lambda b: f"bag {posterior.ids[b]!r}", finite=True)
    known = np.flatnonzero(~missing_mask(labels))
    if len(known) == len(labels):
        return labels, posterior
    variance = None if posterior.variance is None else posterior.variance[:, known]  # take refuses to leave no bag
    part = Posterior(posterior.draws[:, known], posterior.ids[known], posterior.classes, variance)
    return labels[known], part


def classes_of(y: Any, posterior: Posterior) -> tuple[NDArray[np.int64], Posterior]:
    """Class numbers (n,) of the labelled bags, and their posterior."""
    if not posterior.is_classification:
        raise _wrong("a posterior over classes", repr(posterior), "score real targets with rmse, mae or nll")
    labels, part = known_part(y, posterior)
    return part.codes(labels).astype(np.int64), part


def targets_of(y: Any, posterior: Posterior) -> tuple[Array, Posterior]:
    """Targets (n, t) of the labelled bags, and their posterior."""
    if posterior.is_classification:
        raise _wrong("a posterior over real targets", repr(posterior), "score classes with accuracy, auc or nll")
    labels, part = known_part(y, posterior)
    if labels.dtype.kind == "O" and len(labels):
        raise _wrong("numbers as targets", f"text such as {labels[:1].tolist()}", "score a classifier instead")
    values = np.asarray(labels, dtype=np.float64).reshape(len(labels), -1 if len(labels) else part.mean.shape[1])
    if values.shape != part.mean.shape:
        raise _wrong(f"{part.mean.shape[1]} targets a bag", f"{values.shape[1]}", "pass them all")
    return values, part


def negative_log_likelihood(y: Any, posterior: Posterior) -> float:
    """Mean of ``-log p(y_b)`` in nats, of the average over draws; NaN for real targets without a noise variance.

    >>> round(negative_log_likelihood(["a"], Posterior([[[0.25, 0.75]]], classes=["a", "b"])), 3)
    1.386
    """
    if not posterior.is_classification and not posterior.has_noise:
        return math.nan
    labels, part = known_part(y, posterior)
    return mean(-part.log_density(labels)) if len(labels) else math.nan


def mean(values: Any) -> float:
    """The mean as a float, NaN of nothing.

    >>> mean(np.array([1.0, 2.0])), mean(np.zeros(0))
    (1.5, nan)
    """
    return float(np.mean(values)) if np.size(values) else math.nan


def _wrong(expected: str, got: str, remedy: str) -> InvalidBagsError:
    return InvalidBagsError("metrics", expected=expected, got=got, remedy=remedy)
