"""A battery of laws that every estimator of bags should keep, ours and yours."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from sklearn.base import clone, is_classifier

from baggraph.data.stacked import AbstractStacked
from baggraph.errors import ParameterError, closest
from baggraph.testing import _laws

__all__ = ["check_bag_estimator"]

Check = Callable[[Any], None]
CHECKS: dict[str, Check] = {name: law for name, law in vars(_laws).items() if name.startswith("check_")}
ONLY_CLASSES = ("check_names_of_classes", "check_probabilities", "check_one_class")
ONLY_STACKED = ("check_hidden_labels_change_nothing",)


def check_bag_estimator(estimator: Any, *, expected_failed_checks: Mapping[str, str] | None = None) -> list[str]:
    """Check an estimator of bags against laws that hold whatever it computes; an AssertionError names all it breaks.

    ``fit(X, y=None)`` and ``predict(X)`` must take Bags, a list of (n, d) arrays and a (B, n, d) array alike; neither
    the order of instances, nor that of bags, nor their company may matter in prediction; bags without a label must be
    taken, and their hidden labels must change nothing; and scikit-learn's manners must be kept.

    Parameters
    ----------
    estimator
        An instance, which is cloned and never fitted itself.  Fast settings will do: the laws need no good fit.
    expected_failed_checks : mapping of check to reason, optional
        Checks that are known to fail.  One that does not fail any more is an error too.

    Returns
    -------
    list of str
        Names of the checks that passed.

    Examples
    --------
    >>> from baggraph.baselines import MIKernel
    >>> len(check_bag_estimator(MIKernel(calibration_folds=2)))
    15

    """
    expected = dict(expected_failed_checks or {})
    for name in expected:
        if name not in CHECKS:
            remedy = closest(name, CHECKS)
            raise ParameterError("check_bag_estimator", expected="the name of a check", got=repr(name), remedy=remedy)
    found = {name: _failure(check, estimator) for name, check in CHECKS.items() if _applies(name, estimator)}
    broken = [f"{name}: {type(e).__name__}: {e}" for name, e in found.items() if e is not None and name not in expected]
    broken += [
        f"{name}: was expected to fail ({expected[name]}), and passes" for name in expected if not found.get(name)
    ]
    if broken:
        raise AssertionError("\n".join([f"{len(broken)} of {len(found)} laws are broken", *broken]))
    return [name for name, error in found.items() if error is None]


def _applies(name: str, estimator: Any) -> bool:
    """Whether a check is about this kind of estimator."""
    if name in ONLY_CLASSES:
        return bool(is_classifier(estimator))
    return name not in ONLY_STACKED or isinstance(estimator, AbstractStacked)


def _failure(check: Check, estimator: Any) -> Exception | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(clone(estimator))
    except Exception as error:  # whatever it was, it broke the law
        return error
    return None
