"""What holds for every method, whatever it computes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

import baggraph as bg
from baggraph import baselines
from baggraph.errors import BagError

CLASSIFIERS = (
    "mi-SVM", "MI-SVM", "MI-Kernel", "mi-Graph", "EM-DD", "MI-VLAD", "mi-FV", "MILES", "summary SVM", "bag size",
    "largest norm",
)  # fmt: skip
REGRESSORS = (
    "distribution regression", "GP on bag means", "summary ridge", "mean", "bag size (regression)",
    "largest norm (regression)",
)  # fmt: skip
TABLES = ("mi-SVM", "MI-SVM", "MI-Kernel", "mi-Graph", "MILES", "summary SVM")


def make(name, **parameters):
    """A method; EM-DD starts everywhere, so that the order of instances decides nothing."""
    return baselines.make(name, **({"n_starts": 1000} if name == "EM-DD" else {}), **parameters)


def toy(n_bags=24, n_classes=2, seed=0):
    """Bags of 2 to 5 instances in the plane; a bag of class c has a witness in a direction of its own."""
    random = np.random.default_rng(seed)
    y = np.arange(n_bags) % n_classes
    arrays = [random.normal(size=(random.integers(2, 6), 2)) for _ in y]
    for bag, angle in zip(arrays, 2 * np.pi * y / n_classes, strict=True):
        bag[0] += 4 * np.array([np.cos(angle), np.sin(angle)])
    return bg.Bags.from_list(arrays, y=y)


def shuffled(bags, seed=1):
    """The same bags with their instances in another order."""
    random = np.random.default_rng(seed)
    return bg.Bags.from_list([random.permutation(np.asarray(bag)) for bag in bags], y=bags.y)


@pytest.fixture(scope="module")
def fitted():
    bags = toy()
    return {name: make(name).fit(bags) for name in CLASSIFIERS}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_order_of_instances_in_asked_bags_does_not_matter(name, fitted):
    asked = toy(seed=5)
    expected = fitted[name].decision_function(asked)
    np.testing.assert_allclose(fitted[name].decision_function(shuffled(asked)), expected, atol=1e-9)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_order_of_instances_in_training_bags_does_not_matter(name):
    # Book learning starts at random instances, and the solver of the SVM stops within its tolerance.
    parameters = {"MI-VLAD": {"n_centers": 1}, "mi-FV": {"n_components": 1}}.get(name, {})
    bags, asked = toy(), toy(seed=5)
    one, other = (make(name, **parameters).fit(b).decision_function(asked) for b in (bags, shuffled(bags)))
    np.testing.assert_allclose(one, other, atol=2e-2 * np.abs(one).max())


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_bag_is_answered_alike_alone_and_among_others(name, fitted):
    asked = toy(seed=5)
    together = fitted[name].decision_function(asked)
    alone = np.concatenate([fitted[name].decision_function(asked[[b]]) for b in range(len(asked))])
    np.testing.assert_allclose(alone, together, atol=1e-9)
    np.testing.assert_allclose(fitted[name].decision_function(asked[::-1])[::-1], together, atol=1e-9)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_bags_without_a_label_change_nothing(name, fitted):
    bags, asked = toy(), toy(seed=5)
    more = bg.Bags.from_list([np.asarray(b) for b in [*bags, *asked]], y=[*bags.y, *[None] * len(asked)])
    given = make(name).fit(more, y=np.concatenate([bags.y, np.full(len(asked), np.nan)]))
    for model in (make(name).fit(more), given):
        np.testing.assert_array_equal(model.decision_function(asked), fitted[name].decision_function(asked))
        np.testing.assert_array_equal(model.predict_proba(asked), fitted[name].predict_proba(asked))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_text_is_a_label_like_any_other(name, fitted):
    bags, asked = toy(), toy(seed=5)
    words = np.array(["no", "yes"], dtype=object)
    model = make(name).fit(bags, words[bags.y])
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(model.predict(asked), words[fitted[name].predict(asked)])


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_three_classes(name):
    model = make(name).fit(toy(n_bags=30, n_classes=3))
    asked = toy(n_bags=30, n_classes=3, seed=5)
    scores, shares = model.decision_function(asked), model.predict_proba(asked)
    assert scores.shape == shares.shape == (30, 3)
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(asked), scores.argmax(axis=1))
    # A direction is something that sizes and norms do not see, nor one concept what lies between two.
    at_least = {"bag size": 0, "largest norm": 0}.get(name, 0.8)
    assert model.score(asked, asked.y) >= at_least


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_probabilities_order_bags_as_scores_do(name, fitted):
    asked = toy(seed=5)
    shares = fitted[name].predict_proba(asked)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    order = np.argsort(fitted[name].decision_function(asked))
    assert (np.diff(shares[order, 1]) >= 0).all()


@pytest.mark.parametrize("name", CLASSIFIERS + REGRESSORS)
def test_the_same_seed_gives_the_same_result(name):
    bags, asked = toy(), toy(seed=5)
    one, other = (baselines.make(name).fit(bags) for _ in range(2))
    np.testing.assert_array_equal(one.predict(asked), other.predict(asked))
    np.testing.assert_array_equal(one.fit(bags).predict(asked), other.predict(asked))


@pytest.mark.parametrize("name", baselines.printed_names())
def test_parameters_are_kept_as_given(name):
    model = baselines.make(name)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    for parameter, value in model.get_params().items():
        assert getattr(copy.set_params(**{parameter: value}), parameter) is value


def test_every_method_has_a_printed_name():
    made = {type(baselines.make(name)).__name__ for name in baselines.printed_names()}
    assert made == set(baselines.__all__) - {"make", "printed_names", "summarise"}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_answers_as_bags_do(name, fitted):
    bags, asked = toy(), toy(seed=5)
    model = make(name)
    table, among = model.gram(bags), model.gram(asked, bags)
    model.fit_gram(table, bags.y)
    np.testing.assert_allclose(model.decide_gram(among), fitted[name].decision_function(asked), atol=1e-9)
    np.testing.assert_array_equal(model.predict_gram(among), fitted[name].predict(asked))
    np.testing.assert_allclose(model.predict_proba_gram(among), fitted[name].predict_proba(asked), atol=1e-9)
    with pytest.raises(NotFittedError):
        model.predict(asked)


@pytest.mark.parametrize("name", TABLES)
def test_a_slice_of_a_table_is_the_table_of_a_slice(name):
    bags = toy()
    model, train, test = make(name, scaling="none"), np.arange(12), np.arange(12, 24)
    if "gamma" in model.get_params():
        model.set_params(gamma=0.5)
    whole = model.gram(bags)
    for rows, columns in ((train, train), (test, train), (np.arange(24) > 11, train)):
        expected = model.gram(bags[rows], bags[columns])
        np.testing.assert_allclose(whole.take(rows, columns).values, expected.values, atol=1e-12)
    hidden = bags.y.astype(float)
    hidden[test] = np.nan
    by_mask = make(name).fit_gram(whole, hidden).decide_gram(whole)
    by_slice = make(name).fit_gram(whole.take(train, train), bags.y[train]).decide_gram(whole.take(range(24), train))
    np.testing.assert_array_equal(by_mask, by_slice)


@pytest.mark.parametrize("as_list", [False, True])
def test_grid_search(as_list):
    bags = toy()
    data = [np.asarray(bag) for bag in bags] if as_list else bags
    search = GridSearchCV(make("MI-Kernel"), {"C": [0.1, 10.0], "gamma": ["scale", 2.0]}, cv=3).fit(data, bags.y)
    assert search.best_score_ > 0.8


WORDING = "the message has the form of this package"
CHECKS = {
    "check_n_features_in_after_fitting": WORDING,
    "check_complex_data": WORDING,
    "check_dtype_object": "numbers in arrays of objects are refused by Bags, as text and dates would be",
    "check_estimators_empty_data_messages": WORDING,
    "check_estimator_sparse_array": "standard scaling refuses sparse bags, and says which scaling does not",
    "check_estimator_sparse_matrix": "as above",
    "check_estimator_sparse_tag": "as above, or the method looks at no instance",
    "check_classifiers_train": "labels come from scores, probabilities from sigmoids that may cross 1/2 elsewhere",
    "check_classifiers_regression_target": WORDING,
    "check_supervised_y_2d": "a column of labels is taken without a warning",
    "check_fit2d_1sample": WORDING,
    "check_fit2d_predict1d": WORDING,
    "check_requires_y_none": WORDING,
    "check_non_transformer_estimators_n_iter": "several machines are trained; converged_ tells of all",
}


@pytest.mark.parametrize("name", ["MI-Kernel", "mi-SVM", "mi-FV", "majority", "mean", "summary ridge"])
def test_scikit_learn_is_content(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(baselines.make(name), expected_failed_checks=CHECKS, on_skip=None)


BAD = [
    ("mi-SVM", {"C": 0}, r"InstanceMarginSVM: expected C above 0, got C=0; pass 1.0"),
    ("mi-SVM", {"max_iter": 0}, r"expected max_iter of 1 or more, got max_iter=0"),
    ("MI-SVM", {"class_weight": "even"}, r"expected a known class_weight, got class_weight='even'; pass \"balanced\""),
    ("MI-Kernel", {"kernel": "poly"}, r"expected a known kernel, got 'poly'; choose from 'linear', 'rbf'"),
    ("MI-Kernel", {"gamma": "auto"}, r"expected \"scale\" or a number above 0, got gamma='auto'"),
    ("MI-Kernel", {"kernel": "linear", "power": 1.5}, r"expected a whole power of the linear kernel, got power=1.5"),
    ("mi-Graph", {"radius": -1.0}, r"expected radius above 0, got radius=-1.0"),
    ("MI-VLAD", {"n_centers": 0}, r"expected n_centers of 1 or more, got n_centers=0"),
    ("MI-VLAD", {"n_centers": 999}, r"expected an instance an entry at least, got \d+ instances for a codebook of 999"),
    ("mi-FV", {"energy": 1.5}, r"expected a share of the variance up to 1, got energy=1.5"),
    ("EM-DD", {"n_starts": 1.5}, r"expected n_starts of 1 or more, got n_starts=1.5"),
    ("bag size", {"number": "sizes"}, r"expected a known number, got 'sizes'"),
    ("summary SVM", {"statistics": ["meen"]}, r"did you mean 'mean'\?"),
    ("summary SVM", {"scaling": "standart"}, r"did you mean 'standard'\?"),
    ("MILES", {"calibration_folds": 1}, r"expected calibration_folds of 2 or more, got calibration_folds=1"),
    ("MILES", {"random_state": None}, r"expected a seed, an integer from 0, got random_state=None"),
    ("summary ridge", {"alphas": []}, r"expected a sequence of penalties, got alphas=\[\]"),
    ("summary ridge", {"alphas": [-1.0]}, r"expected alphas above 0"),
    ("summary ridge", {"link": "probit"}, r"expected a known link, got 'probit'"),
    ("summary ridge", {"link": "log"}, r"expected targets above 0, got 0; pass link=\"identity\""),
    ("distribution regression", {"n_components": 0}, r"expected n_components of 1 or more"),
    ("distribution regression", {"random_state": -1}, r"expected a seed, an integer from 0, got random_state=-1"),
    ("GP on coordinates", {}, r"expected bags with coordinates, got none; pass coords to Bags"),
    ("label propagation", {}, r"expected bags with a graph, got none; pass one: bags.replace\(graph=...\)"),
]


@pytest.mark.parametrize(("name", "parameters", "message"), BAD)
def test_bad_parameters_are_named(name, parameters, message):
    with pytest.raises(BagError, match=message):
        baselines.make(name).set_params(**parameters).fit(toy())


def test_bad_data_are_named():
    bags, model = toy(), make("MI-Kernel")
    with pytest.raises(BagError, match="MIKernel: expected labelled bags, got none; pass y, or bags with y"):
        model.fit(bags.replace(y=None))
    with pytest.raises(BagError, match="expected bags of two classes or more, got only 1; add bags of another"):
        model.fit(bags, np.ones(24, dtype=int))
    with pytest.raises(BagError, match=r"expected classes, got real targets such as 0\.5; use a regressor"):
        model.fit(bags, np.arange(24) + 0.5)
    with pytest.raises(BagError, match="expected one class a bag, got 2 targets"):
        model.fit(bags, np.ones((24, 2)))
    with pytest.raises(
        BagError, match="expected 2 labelled bags of every class, got 1 of some class; add bags, or pass"
    ):
        model.fit(bags, [1] + [0] * 23)
    with pytest.raises(BagError, match="expected numbers as targets, got text such as 'a'; use a classifier"):
        make("summary ridge").fit(bags, ["a", "b"] * 12)
    with pytest.raises(BagError, match=r"expected Bags, a list of 2-D arrays, .* got a list; make them with"):
        model.fit([[1.0], [2.0, 3.0]], [0, 1])
    model.fit(bags)
    with pytest.raises(BagError, match="expected 2 features, as in fit, got 3; choose the columns"):
        model.predict(np.zeros((4, 3)))
    with pytest.raises(BagError, match=r"expected Bags, a list of 2-D arrays, .* got a list"):
        model.predict([])
    with pytest.raises(BagError, match="expected a calibrated method, got calibration_folds=None; fit with"):
        make("MI-Kernel", calibration_folds=None).fit(bags).predict_proba(bags)
    with pytest.raises(BagError, match="expected a square table, and labels"):
        model.fit_gram(model.gram(bags).take([0, 1], [0, 1, 2]), [0, 1])
    with pytest.raises(BagError, match="expected 24 columns, got 3; slice the table as for fit_gram"):
        model.fit_gram(model.gram(bags), bags.y).predict_gram(np.zeros((1, 3)))
    with pytest.raises(BagError, match="expected a table of pairs, got shape"):
        model.fit_gram(np.zeros(3), [0, 1, 0])
    with pytest.raises(BagError, match="expected a printed name, got 'mi-Grape'; did you mean 'mi-Graph'"):
        baselines.make("mi-Grape")
