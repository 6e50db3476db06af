"""Manners of scikit-learn: its own checks, and what is built on them."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import baggraph as bg
from baggraph.errors import BagError, ParameterError, UnknownParameterError

BOTH = (bg.BagGraphClassifier, bg.BagGraphRegressor)
FAST = {"epochs": 40, "n_draws": 3, "lr": 1e-2, "device": "cpu", "encoder_options": {"hidden": (16, 8)}}

WEIGHTS = (
    "a weight of zero hides a label, but the bag still takes part in scaling, graph and dropout, as a repeated one does"
)
CHECKS = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}
SKIPPED = {"check_array_api_input"}  # by scikit-learn, unless SCIPY_ARRAY_API is set before SciPy is imported


def some_bags(n: int = 24, seed: int = 0, kind=bg.BagGraphClassifier) -> bg.Bags:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2 if kind is bg.BagGraphClassifier else rng.permutation(np.linspace(-1, 1, n))
    return bg.Bags.from_list([rng.normal(2 * place, 1, size=(rng.integers(2, 6), 3)) for place in y], y=y)


@pytest.mark.parametrize("kind", BOTH)
def test_scikit_learn_is_content(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(kind(graph=None, **FAST), expected_failed_checks=CHECKS, on_fail=None)
    seen = {check["check_name"]: check for check in found}
    failed = {name: check["exception"] for name, check in seen.items() if check["status"] == "failed"}
    assert failed == {}
    assert {name for name, check in seen.items() if check["status"] == "skipped"} <= SKIPPED
    assert {name for name, check in seen.items() if check["status"] == "xfail"} == set(CHECKS)
    assert len(found) > 55


WHOLE = """
import warnings
warnings.simplefilter("ignore")
from sklearn.utils.estimator_checks import check_estimator
import baggraph as bg
for kind in (bg.BagGraphClassifier, bg.BagGraphRegressor):
    found = check_estimator(kind(**{fast!r}), expected_failed_checks={checks!r}, on_skip=None)
    print(len(found), sum(check["status"] == "passed" for check in found))
"""


@pytest.mark.slow
def test_scikit_learn_is_content_without_skipping_any_check():
    """With the array API switched on, which must happen in a new process; on the default, learned graph."""
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    code = WHOLE.format(fast=FAST, checks=CHECKS)
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    counts = [tuple(map(int, line.split())) for line in ran.stdout.splitlines()]
    assert len(counts) == 2
    assert all(passed == total - len(CHECKS) > 50 for total, passed in counts)


# ---------------------------------------------------------------------- what is built on it


@pytest.mark.parametrize(("kind", "as_list"), [(bg.BagGraphClassifier, False), (bg.BagGraphRegressor, True)])
def test_grid_search_and_cross_validation(kind, as_list):
    bags = some_bags(kind=kind)
    data = [np.asarray(bag) for bag in bags] if as_list else bags
    search = GridSearchCV(kind(**FAST), {"graph": [None, "knn"], "lr": [1e-9, 1e-2]}, cv=2).fit(data, bags.y)
    assert search.best_params_["lr"] == 1e-2
    assert search.predict(data).shape == (24,)
    assert cross_val_score(kind(**FAST), data, bags.y, cv=3).mean() > 0.3
    assert cross_val_predict(kind(**FAST), data, bags.y, cv=3).shape == (24,)


def test_pipeline_of_a_table():
    table = np.random.default_rng(0).normal(size=(40, 3))
    y = (table[:, 0] > 0).astype(int)
    model = make_pipeline(StandardScaler(), bg.BagGraphClassifier(**FAST)).fit(table, y)
    assert model.score(table, y) > 0.8
    assert model.set_params(baggraphclassifier__n_neighbors=5)[-1].n_neighbors == 5


def test_pipeline_of_bags():
    from sklearn.base import BaseEstimator, TransformerMixin

    class Norms(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            self.fitted_ = True
            return self

        def transform(self, X):
            return X.replace(instances=np.linalg.norm(X.instances, axis=1, keepdims=True), offsets=X.offsets)

    bags = some_bags()
    model = Pipeline([("norms", Norms()), ("model", bg.BagGraphClassifier(**FAST))]).fit(bags, bags.y)
    assert model["model"].n_features_in_ == 1
    assert cross_val_score(model, bags, bags.y, cv=3).shape == (3,)


def test_cross_validation_keeps_ids_and_graph():
    """Bags are divided as Bags, so that a graph over all of them can be given."""
    bags = some_bags()
    known = bg.BagGraph.from_edges([(bags.ids[i], bags.ids[i + 2]) for i in range(22)], bags.ids)
    assert cross_val_score(bg.BagGraphClassifier(**FAST, graph=known), bags, bags.y, cv=3).mean() > 0.5


@pytest.mark.parametrize("kind", BOTH)
def test_clone_keeps_every_parameter(kind):
    changed = {"n_neighbors": 7, "encoder_options": {"hidden": (4,)}, "graph": None, "hidden": (3, 2), "verbose": 1}
    model = kind(**changed)
    copy = clone(model)
    assert copy.get_params(deep=False) == model.get_params(deep=False)
    assert all(copy.get_params()[name] == value for name, value in changed.items())
    assert all(
        getattr(copy.set_params(**{name: value}), name) is value for name, value in copy.get_params(deep=False).items()
    )


def test_repr_shows_what_differs_from_the_defaults():
    assert repr(bg.BagGraphClassifier()) == "BagGraphClassifier()"
    assert repr(bg.BagGraphRegressor(n_neighbors=5, loss="bce")) == "BagGraphRegressor(loss='bce', n_neighbors=5)"


def test_a_subclass_has_the_parameters_of_both():
    class Mine(bg.BagGraphClassifier):
        def __init__(self, *, flavour="plain", **common):
            super().__init__(**common)
            self.flavour = flavour

    class Same(bg.BagGraphClassifier):
        pass

    assert Same(class_weight="balanced", epochs=3).get_params()["class_weight"] == "balanced"
    assert Mine(flavour="hot", class_weight="balanced", epochs=3).get_params()["class_weight"] == "balanced"


@pytest.mark.parametrize("kind", BOTH)
def test_a_typo_is_answered_with_the_nearest_name(kind):
    with pytest.raises(
        UnknownParameterError, match=f"{kind.__name__}: .* got 'n_neighbours'; did you mean 'n_neighbors'"
    ):
        kind(n_neighbours=3)
    with pytest.raises(TypeError, match="got 'encodr'; did you mean 'encoder'"):
        kind(encodr="rff-pool")
    with pytest.raises(ParameterError, match="got 'epoch'; did you mean 'epochs'"):
        kind().set_params(epoch=3)
    with pytest.raises(ValueError, match="expected a known parameter"):
        GridSearchCV(kind(), {"learning_rate": [1.0]}, cv=2, error_score="raise").fit(
            some_bags(kind=kind), some_bags(kind=kind).y
        )


BAD = [
    ({"encoder": "rff-pol"}, r"expected the name of an encoder, or a module, got 'rff-pol'; did you mean 'rff-pool'"),
    ({"encoder_options": {"hiden": (3,)}}, r"expected options of 'rff-pool', got .*hiden"),
    ({"pooling": "maxx"}, r"did you mean 'max'"),
    ({"head": "gnc"}, r"got 'gnc'; did you mean 'gcn'"),
    ({"graph": "lerned"}, r"got 'lerned'; did you mean 'learned'"),
    ({"graph": "given"}, r"expected bags with a graph of their own, got none; pass Bags with a graph, or a BagGraph"),
    ({"observed": "seen"}, r"expected observed to be None, 'given' or a BagGraph, got 'seen'"),
    ({"n_neighbors": 0}, r"expected n_neighbors a whole number from 1, got 0"),
    ({"candidate_ratio": 1.5}, r"expected candidate_ratio a whole number from 1, got 1.5"),
    ({"epochs": True}, r"expected epochs a whole number from 1, got True"),
    ({"n_members": 0}, r"expected n_members a whole number from 1, got 0"),
    ({"rounds": 0}, r"expected rounds a whole number from 1, got 0"),
    ({"n_draws": -1}, r"expected n_draws a whole number from 0, got -1"),
    ({"dropout": 1.0}, r"expected dropout from 0 to below 1, got 1.0"),
    ({"trust": 2}, r"expected trust from 0 to 1, got 2"),
    ({"calibration": "much"}, r"expected calibration from 0 to below 1, got 'much'"),
    ({"lr": -1}, r"expected lr from 0, got -1"),
    ({"weight_decay": float("nan")}, r"expected weight_decay from 0, got nan"),
    ({"embedding": "al"}, r"did you mean 'all'"),
    ({"setting": "inductive"}, r"expected setting to be one of"),
    ({"scaling": "standart"}, r"did you mean 'standard'"),
    ({"precision": "float46"}, r"did you mean 'float64'"),
    ({"random_state": "seed"}, r"expected random_state None or a whole number from 0, got 'seed'"),
    ({"random_state": -1}, r"expected random_state None or a whole number from 0, got -1"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_bad_parameters_are_named_in_fit(changes, message):
    with pytest.raises(BagError, match=message):
        bg.BagGraphClassifier(**FAST | changes).fit(some_bags())


def test_bad_weights_of_classes_and_losses():
    with pytest.raises(BagError, match=r"class_weight for classes \[0, 1\], got \['yes'\]; use the names in y"):
        bg.BagGraphClassifier(class_weight={"yes": 2}, **FAST).fit(some_bags())
    with pytest.raises(BagError, match="expected class_weight None, 'balanced' or a mapping, got 'even'"):
        bg.BagGraphClassifier(class_weight="even", **FAST).fit(some_bags())
    with pytest.raises(BagError, match="got 'gausian'; did you mean 'gaussian'"):
        bg.BagGraphRegressor(loss="gausian", **FAST).fit(some_bags(kind=bg.BagGraphRegressor))


def test_bad_data_are_named():
    bags, model = some_bags(), bg.BagGraphClassifier(**FAST)
    for weights, message in (
        (np.ones(3), r"expected sample_weight of 24 numbers from 0, got shape \(3,\)"),
        (-np.ones(24), "got negative or missing ones"),
        (np.full(24, np.nan), "got negative or missing ones"),
        (np.zeros(24), "expected a sample_weight above zero, got zeros only"),
    ):
        with pytest.raises(BagError, match=message):
            model.fit(bags, sample_weight=weights)
    with pytest.raises(BagError, match="expected a labelled bag to train on, got weights of zero only"):
        model.fit(bags.replace(y=[0, 1] + [None] * 22), sample_weight=[0, 0] + [1] * 22)
    with pytest.raises(BagError, match="expected bags of two classes or more, got only 1"):
        model.fit(bags, np.ones(24, dtype=int))
    with pytest.raises(BagError, match="expected labelled bags, got missing labels only"):
        model.fit(bags, np.full(24, np.nan))
    with pytest.raises(BagError, match="expected a label a bag, got 3 labels for 24 bags"):
        model.fit(bags, [0, 1, 0])
    with pytest.raises(BagError, match="expected one class a bag, got 2 targets"):
        model.fit(bags, np.ones((24, 2)))
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        model.fit(bags, bags.y[:, None])
    with pytest.raises(BagError, match=r"expected masks of shape \(members, 24\), got shape \(24,\)"):
        model.posteriors(bags, np.ones(24, dtype=bool))
    with pytest.raises(BagError, match=r"weights of zero only \(member 1\)"):
        model.posteriors(bags, np.arange(2)[:, None] < np.ones((1, 24)))
    with pytest.raises(BagError, match="expected numbers as targets, got text such as 'a'"):
        bg.BagGraphRegressor(**FAST).fit(bags, ["a", "b"] * 12)
    for ask in ("predict", "predict_posterior", "predict_proba", "predict_set"):
        with pytest.raises(NotFittedError):
            getattr(bg.BagGraphClassifier(), ask)(bags)


def test_progress_is_lines_or_a_function_of_the_caller(capsys):
    heard = []
    bg.BagGraphClassifier(**FAST, verbose=lambda *told: heard.append(told)).fit(some_bags())
    assert {phase for phase, _, _ in heard} == {"base model", "bag graph"}
    assert heard[-1] == ("bag graph", 40, 40)
    assert capsys.readouterr().err == ""
    bg.BagGraphClassifier(**FAST, verbose=1).fit(some_bags())
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["base model", "bag graph"]
    assert "40 of 40, " in lines[0]


def test_seeds():
    bags, masks = some_bags(), np.ones((1, 24), dtype=bool)

    def draws(seed):
        return bg.BagGraphClassifier(**FAST, random_state=seed).posteriors(bags, masks)[0].draws

    assert np.array_equal(draws(1), draws(1))
    assert not np.array_equal(draws(1), draws(2))
    assert not np.array_equal(draws(None), draws(None))
    assert np.array_equal(draws(np.random.RandomState(3)), draws(np.random.RandomState(3)))


def test_rows_of_a_stack_may_have_seeds_of_their_own():
    bags, masks = some_bags(), np.arange(24) % np.array([[3], [4], [3]]) > 0
    settings = FAST | {"n_members": 2, "calibration": 0.3}
    stack = bg.BagGraphClassifier(**settings).posteriors(bags, masks, [5, 6, 7])
    for mask, seed, found in zip(masks, [5, 6, 7], stack, strict=True):
        (alone,) = bg.BagGraphClassifier(**settings, random_state=seed).posteriors(bags, mask[None])
        assert np.array_equal(found.draws, alone.draws)
    assert not np.array_equal(stack[0].draws, stack[2].draws)
    with pytest.raises(ParameterError, match="expected a random state a row of masks, got 2 for 3 rows"):
        bg.BagGraphClassifier(**FAST).posteriors(bags, masks, [5, 6])
