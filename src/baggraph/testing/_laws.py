"""The laws of :func:`baggraph.testing.checks.check_bag_estimator`, one function each."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from baggraph.data.bags import Bags
from baggraph.data.splits import hide_labels

N_BAGS, N_FEATURES = 30, 3
TOLERANCE = 1e-4  # of answers that should be equal: encoders may compute in float32

# ---------------------------------------------------------------------- what they are checked on


def _some(estimator: Any, seed: int = 0, *, size: int | None = None, labels: Any = None) -> Bags:
    """Bags of 1 to 5 instances, or all of one size, whose place follows from their label."""
    random = np.random.default_rng(seed)
    code = np.arange(N_BAGS) % 2
    y = code if is_classifier(estimator) else np.linspace(-1, 1, N_BAGS)[random.permutation(N_BAGS)]
    sizes = random.integers(1, 6, size=N_BAGS) if size is None else np.full(N_BAGS, size)
    parts = [random.normal(3 * place, 1, size=(n, N_FEATURES)) for place, n in zip(y, sizes, strict=True)]
    return Bags.from_list(parts, y=y if labels is None else np.asarray(labels, dtype=object)[code])


def _asked(estimator: Any) -> Bags:
    """New bags, without labels."""
    return _some(estimator, seed=1).replace(y=None)


def _arrays(bags: Bags) -> list[Any]:
    return [np.asarray(bag) for bag in bags]


def _answer(model: Any, asked: Any) -> np.ndarray:
    """Numbers that a model says of bags: the finest that it has."""
    if not is_classifier(model):
        return np.asarray(model.predict(asked), dtype=np.float64)
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(asked))
    return np.searchsorted(model.classes_, model.predict(asked)).astype(np.float64)


def _same(got: Any, wanted: Any, what: str) -> None:
    np.testing.assert_allclose(got, wanted, rtol=TOLERANCE, atol=TOLERANCE, err_msg=what)


def _refuses(call: Callable[[], Any], what: str, kind: type[Exception] = ValueError) -> None:
    try:
        call()
    except kind:
        return
    raise AssertionError(f"expected a {kind.__name__} of {what}, got none")


def _demand(fine: Any, otherwise: str) -> None:
    """An assertion that ``python -O`` does not drop."""
    if not fine:
        raise AssertionError(otherwise)


# ---------------------------------------------------------------------- forms of input


def check_forms_of_bags(estimator: Any) -> None:
    """Bags, a list of arrays and a 3-D array are the same."""
    bags, asked = (_some(estimator, seed, size=4) for seed in (0, 1))
    wanted = _answer(clone(estimator).fit(bags), asked)
    for form in (_arrays, lambda some: np.stack(_arrays(some))):
        _same(_answer(clone(estimator).fit(form(bags), bags.y), form(asked)), wanted, "answers differ between forms")


def check_table_is_bags_of_one(estimator: Any) -> None:
    """A 2-D array is bags of one instance each."""
    bags, asked = (_some(estimator, seed, size=1) for seed in (0, 1))
    model = clone(estimator).fit(np.vstack(_arrays(bags)), bags.y)
    _same(_answer(model, np.vstack(_arrays(asked))), _answer(clone(estimator).fit(bags), asked), "answers differ")


def check_labels_given_or_carried(estimator: Any) -> None:
    """Labels may come with the bags or beside them."""
    bags = _some(estimator)
    wanted = _answer(clone(estimator).fit(bags), _asked(estimator))
    got = _answer(clone(estimator).fit(bags.replace(y=None), bags.y), _asked(estimator))
    np.testing.assert_array_equal(got, wanted)


# ---------------------------------------------------------------------- laws


def check_order_of_instances(estimator: Any) -> None:
    """In bags that are asked about, instances may stand in any order."""
    random, asked = np.random.default_rng(2), _asked(estimator)
    shuffled = Bags.from_list([random.permutation(array) for array in _arrays(asked)])
    model = estimator.fit(_some(estimator))
    _same(_answer(model, shuffled), _answer(model, asked), "the order of instances matters")


def check_order_and_company_of_bags(estimator: Any) -> None:
    """A bag is answered alike alone, among others, and in any order."""
    asked, model = _asked(estimator), estimator.fit(_some(estimator))
    together = _answer(model, asked)
    _same(_answer(model, asked[::-1])[::-1], together, "the order of bags matters")
    alone = np.concatenate([_answer(model, asked[[b]]) for b in range(0, N_BAGS, 7)])
    _same(alone, together[::7], "the company of a bag matters")


def check_bags_without_labels(estimator: Any) -> None:
    """Bags without a label are taken, whether it is missing in the bags or in ``y``."""
    bags = _some(estimator)
    partly = hide_labels(bags, np.arange(N_BAGS) < 20)
    one = _answer(clone(estimator).fit(partly), _asked(estimator))
    other = _answer(clone(estimator).fit(bags.replace(y=None), partly.y), _asked(estimator))
    _demand(np.isfinite(one).all(), "answers are not finite")
    np.testing.assert_array_equal(one, other)


def check_hidden_labels_change_nothing(estimator: Any) -> None:
    """Labels that a mask hides are not looked at: no bit of the posterior changes with them."""
    bags = _some(estimator)
    masks = np.random.default_rng(3).random((2, N_BAGS)) < 0.6
    masks[:, :2] = True
    hidden = np.logical_not(masks.any(axis=0))
    other = bags.replace(y=np.where(hidden, bags.y[::-1] if is_classifier(estimator) else 1e3, bags.y))
    for one, two in zip(estimator.posteriors(bags, masks), estimator.posteriors(other, masks), strict=True):
        np.testing.assert_array_equal(one.draws, two.draws)


def check_same_seed_same_answer(estimator: Any) -> None:
    """A second fit, of the same instance or of a clone, gives the same to the last bit."""
    bags, asked = _some(estimator), _asked(estimator)
    first = _answer(estimator.fit(bags), asked)
    np.testing.assert_array_equal(_answer(estimator.fit(bags), asked), first)
    np.testing.assert_array_equal(_answer(clone(estimator).fit(bags), asked), first)


# ---------------------------------------------------------------------- manners


def check_parameters_are_kept(estimator: Any) -> None:
    """``fit`` changes neither parameters nor bags, returns the estimator, and notes the number of features."""
    before, bags = deepcopy(estimator.get_params(deep=False)), _some(estimator)
    block, y = bags.instances.copy(), bags.y.copy()
    _demand(estimator.fit(bags) is estimator, "fit returns something else")
    after = estimator.get_params(deep=False)
    _demand(set(after) == set(before), "fit changed the parameters")
    _demand(all(repr(after[name]) == repr(before[name]) for name in before), "fit changed a parameter")
    np.testing.assert_array_equal(bags.instances, block)
    np.testing.assert_array_equal(bags.y, y)
    _demand(estimator.n_features_in_ == N_FEATURES, f"n_features_in_ is {estimator.n_features_in_}")


def check_unknown_parameters(estimator: Any) -> None:
    """A parameter that does not exist is refused by ``set_params`` and the constructor."""
    _refuses(lambda: estimator.set_params(no_such_parameter=1), "set_params")
    if not any(p.kind is p.VAR_KEYWORD for p in inspect.signature(type(estimator)).parameters.values()):
        _refuses(lambda: type(estimator)(no_such_parameter=1), "the constructor", TypeError)


def check_not_fitted(estimator: Any) -> None:
    """Before ``fit``, ``predict`` says so."""
    _refuses(lambda: estimator.predict(_asked(estimator)), "predict before fit", NotFittedError)


def check_wrong_bags(estimator: Any) -> None:
    """No labels, labels of another length, another number of features: ValueError each."""
    bags, asked = _some(estimator), _asked(estimator)
    _refuses(lambda: clone(estimator).fit(bags.replace(y=None)), "bags without labels")
    _refuses(lambda: clone(estimator).fit(bags, bags.y[:-1]), "labels of another length")
    model = estimator.fit(bags)
    wider = [np.hstack([array, array]) for array in _arrays(asked)]
    _refuses(lambda: model.predict(wider), "bags with more features than in fit")


def check_pickling(estimator: Any) -> None:
    """A fitted model survives being sent to another process."""
    model, asked = estimator.fit(_some(estimator)), _asked(estimator)
    np.testing.assert_array_equal(_answer(pickle.loads(pickle.dumps(model)), asked), _answer(model, asked))  # noqa: S301


# ---------------------------------------------------------------------- classes


def check_names_of_classes(estimator: Any) -> None:
    """Text is a label like any other, and comes back."""
    names, asked = ("no", "yes"), _asked(estimator)
    model = clone(estimator).fit(_some(estimator, labels=names))
    numbered = clone(estimator).fit(_some(estimator))
    _demand(list(model.classes_) == list(names), f"classes_ are {list(model.classes_)}")
    _demand(list(model.predict(asked)) == [names[int(code)] for code in numbered.predict(asked)], "answers differ")


def check_probabilities(estimator: Any) -> None:
    """Rows of ``predict_proba`` are probabilities of ``classes_``."""
    if not hasattr(estimator, "predict_proba"):
        return
    shares = estimator.fit(_some(estimator)).predict_proba(_asked(estimator))
    _demand(shares.shape == (N_BAGS, len(estimator.classes_)), f"shape {shares.shape}")
    _demand((shares >= 0).all(), "negative probabilities")
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-6)


def check_one_class(estimator: Any) -> None:
    """A single class is nothing to learn: ValueError."""
    bags = _some(estimator)
    _refuses(lambda: estimator.fit(bags, np.zeros(N_BAGS, dtype=int)), "labels of one class")
