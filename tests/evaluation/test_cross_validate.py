"""Cross-validation: the same folds for all, no look at hidden labels, nothing lost where something fails."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from baggraph import datasets
from baggraph.baselines import (
    BagMeanGP,
    MajorityClassifier,
    MeanRegressor,
    MIKernel,
    NeighborMeanClassifier,
    SummaryRidge,
    SummarySVM,
)
from baggraph.baselines.summary import summarise
from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.data.posterior import Posterior
from baggraph.data.results import ResultTable
from baggraph.data.splits import pairs, stratified_folds
from baggraph.data.stacked import AbstractStacked
from baggraph.errors import BagWarning, InvalidBagsError, ParameterError
from baggraph.evaluation._division import visible_and_tested
from baggraph.evaluation._running import Trial
from baggraph.evaluation.cross_validate import cross_validate
from baggraph.evaluation.grid import Grid


class StackedMeans(BaseEstimator, ClassifierMixin, AbstractStacked):
    """Nearest class mean of bag means, with draws that differ; trained on all masks in one call."""

    calls = 0

    def __init__(self, sharpness=1.0):
        self.sharpness = sharpness

    def posteriors(self, bags, masks):
        type(self).calls += 1
        means = summarise(bags)
        return [self._one(bags, means, mask) for mask in masks]

    def _one(self, bags, means, mask):
        classes = np.unique(bags.y[mask])
        centres = np.stack([means[mask & (bags.y == c)].mean(axis=0) for c in classes])
        distance = ((means[:, None] - centres[None]) ** 2).sum(axis=2)
        draws = [np.exp(-self.sharpness * k * (distance - distance.min(axis=1, keepdims=True))) for k in (1, 2)]
        return Posterior([d / d.sum(axis=1, keepdims=True) for d in draws], bags.ids, classes)


class Failing(BaseEstimator, ClassifierMixin):
    """Fails where the first bag is among those it is tested on."""

    def fit(self, bags, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, bags):
        if "0" in bags.ids:
            raise ZeroDivisionError("bag 0 is too much")
        return np.full(len(bags), self.classes_[0])


class Spy(BaseEstimator, ClassifierMixin):
    """Remembers what it was shown."""

    seen: list = []  # noqa: RUF012  (shared on purpose: estimators are cloned)
    transductive = False

    def fit(self, bags, y=None):
        Spy.seen.append(("fit", bags, y))
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, bags):
        Spy.seen.append(("predict", bags, None))
        return np.zeros(len(bags), dtype=int)


class TransductiveSpy(Spy):
    transductive = True


def made(n_bags=24, seed=0, text=False):
    rng = np.random.default_rng(seed)
    y = np.arange(n_bags) % 2
    sizes = rng.integers(1, 5, size=n_bags)
    x = rng.normal(size=(sizes.sum(), 3)) + np.repeat(y, sizes)[:, None]
    graph = BagGraph.from_edges([(i, i + 2) for i in range(n_bags - 2)], ids=range(n_bags))
    labels = np.array(["no", "yes"], dtype=object)[y] if text else y
    return Bags(x, np.concatenate([[0], np.cumsum(sizes)]), labels, graph=graph, metadata={"name": "made"})


METHODS = {
    "majority": MajorityClassifier(),
    "kernel": MIKernel(calibration_folds=3),
    "summary": SummarySVM(calibration_folds=3),
    "neighbours": NeighborMeanClassifier(),
    "stack": StackedMeans(),
    "grid": Grid(SummarySVM(calibration_folds=3), {"C": [0.1, 10.0]}, folds=3),
    "stacked grid": Grid(StackedMeans(), {"sharpness": [0.1, 1.0]}, folds=3, metric="nll"),
}


# ---------------------------------------------------------------------- scores


@pytest.mark.parametrize("text", [False, True])
def test_scores_are_those_of_a_loop_by_hand(text):
    bags = made(text=text)
    methods = {"kernel": MIKernel(calibration_folds=None), "summary": SummarySVM(calibration_folds=None)}
    table = cross_validate(methods, bags, folds=4, repeats=2, metrics=["accuracy"], setting="inductive")
    folds = stratified_folds(bags.y, folds=4, repeats=2)
    for name, method in methods.items():
        scores = [
            accuracy_score(bags.y[test], method.fit(bags.take(train)).predict(bags.take(test)))
            for train, test in pairs(folds)
        ]
        assert table.filter(method=name).frame()["value"].tolist() == pytest.approx(scores)
    frame = table.filter(method="kernel").frame()
    assert frame["repeat"].tolist() == [0] * 4 + [1] * 4
    assert frame["fold"].tolist() == [0, 1, 2, 3] * 2
    assert set(frame["n_test"]) == {6}
    assert set(frame["n_train"]) == {18}


def test_kernels_sliced_are_kernels_fitted_with_the_same_scaling():
    bags = made()
    method = MIKernel(scaling="none", gamma=0.5, calibration_folds=3)
    both = [
        cross_validate({"k": method}, bags, folds=4, repeats=1, setting=setting).frame()["value"]
        for setting in ("transductive", "inductive")
    ]
    np.testing.assert_allclose(*both)


def test_pipelines_of_scikit_learn_are_methods():
    bags = made(text=True)
    pipeline = make_pipeline(FunctionTransformer(summarise), LogisticRegression())
    table = cross_validate({"logistic": pipeline}, bags, folds=3, repeats=1)
    assert not len(table.failed)
    X = summarise(bags)
    train, test = next(pairs(stratified_folds(bags.y, folds=3, repeats=1)))
    expected = LogisticRegression().fit(X[train], bags.y[train]).score(X[test], bags.y[test])
    assert table.filter(metric="accuracy", fold=0).frame()["value"].item() == pytest.approx(expected)


def test_published_splits_and_given_splits():
    bags = made()
    folds = stratified_folds(bags.y, folds=4, repeats=1, random_state=3)
    known = bags.replace(splits={"paper": folds})
    tables = [
        cross_validate({"m": SummarySVM(calibration_folds=3)}, b, splits=s)
        for b, s in ((bags, folds), (known, "paper"))
    ]
    assert tables[0].frame()["value"].equals(tables[1].frame()["value"])
    single = np.where(np.arange(24) < 20, -1, 0)
    assert len(cross_validate({"m": MajorityClassifier()}, bags, splits=single, metrics=["accuracy"])) == 1


def test_regression_with_and_without_noise():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2))
    bags = Bags(x, range(31), x[:, 0] + 0.1 * rng.normal(size=30))
    methods = {"mean": MeanRegressor(), "ridge": SummaryRidge(), "process": BagMeanGP()}
    table = cross_validate(methods, bags, folds=3, repeats=1)
    assert table.names("task") == ["regression"]
    wide = table.pivot("rmse").loc["bags"]
    assert wide["ridge"] < wide["mean"]
    rows = table.filter(metric="nll").frame().set_index("method")
    assert rows.loc["ridge", "value"].isna().all()
    assert set(rows.loc["ridge", "note"]) == {"the method gives no noise variance"}
    assert rows.loc["process", "value"].notna().all()
    assert rows["error"].isna().all()


def test_classes_that_training_never_saw_are_wrong_and_not_an_error():
    bags = made().replace(y=[2] + [0, 1] * 11 + [0])
    splits = np.where(np.arange(24) < 4, 0, -1)
    table = cross_validate({"m": SummarySVM(calibration_folds=3)}, bags, splits=splits)
    assert not len(table.failed)
    assert table.filter(metric="nll").frame()["value"].item() > 27.6 / 4


def test_bags_without_a_label_are_neither_tested_nor_shown_with_one():
    bags = made().replace(y=[None if b % 5 == 0 else b % 2 for b in range(24)])
    table = cross_validate(METHODS, bags, folds=3, repeats=1, metrics=["accuracy"])
    assert not len(table.failed)
    assert table.filter(method="stack").frame()["n_test"].sum() == 19


# ---------------------------------------------------------------------- who sees what


def predictions(method, bags, folds, setting):
    trial = Trial(bags, setting == "transductive", classify=True, believe=True)
    return [outcome.answer for outcome in trial.run(method, visible_and_tested(bags, folds))]


@pytest.mark.parametrize("setting", ["transductive", "inductive"])
@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=6, deadline=None)
@given(flips=st.lists(st.booleans(), min_size=24, max_size=24), fold=st.integers(0, 2))
def test_labels_of_tested_bags_change_no_prediction(setting, name, flips, fold):
    if setting == "inductive" and ("stack" in name or name == "neighbours"):
        return  # they have no way to answer bags that were not there in training
    bags = made()
    folds = stratified_folds(bags.y, folds=3, repeats=1)
    tested = folds[0] == fold
    changed = bags.replace(y=np.where(tested & np.array(flips), 1 - bags.y, bags.y))
    before, after = (predictions(METHODS[name], b, folds, setting)[fold] for b in (bags, changed))
    assert np.array_equal(before.decided.draws, after.decided.draws)
    if before.believed is not None:
        assert np.array_equal(before.believed.draws, after.believed.draws)


def test_what_estimators_are_shown():
    bags = made()
    splits = np.where(np.arange(24) < 6, 0, -1)
    for spy, setting, shown in (
        (Spy(), "transductive", 18),
        (Spy(), "inductive", 18),
        (TransductiveSpy(), "transductive", 24),
        (TransductiveSpy(), "inductive", 18),
    ):
        Spy.seen.clear()
        cross_validate({"spy": spy}, bags, splits=splits, setting=setting, metrics=["accuracy"])
        (_, fitted, y), (_, asked, _) = Spy.seen
        assert len(fitted) == shown
        assert fitted.labelled.sum() == 18
        assert y is None or y.tolist() == bags.y[6:].tolist()
        assert asked.y is None
        assert asked.ids.tolist() == [str(b) for b in range(6)]


def test_stacks_are_trained_in_one_call():
    StackedMeans.calls = 0
    cross_validate({"stack": StackedMeans()}, made(), folds=4, repeats=3, metrics=["accuracy"])
    assert StackedMeans.calls == 1
    StackedMeans.calls = 0
    grid = Grid(StackedMeans(), {"sharpness": [0.01, 0.1, 1.0]}, folds=3)
    cross_validate({"grid": grid}, made(), folds=4, repeats=3, metrics=["accuracy"])
    assert StackedMeans.calls <= 3 + 3  # one a candidate on all inner folds, one for those that were chosen


def test_tables_of_pairs_are_computed_once(monkeypatch):
    counted = []
    original = MIKernel._evidence
    monkeypatch.setattr(MIKernel, "_evidence", lambda self, *a: counted.append(1) or original(self, *a))
    grid = Grid(MIKernel(calibration_folds=3), {"C": [0.1, 1.0, 10.0], "gamma": [0.1, "scale"]}, folds=3)
    cross_validate({"grid": grid}, made(), folds=4, repeats=2, metrics=["accuracy"])
    assert len(counted) == 2  # one a gamma; C asks nothing of bags


# ---------------------------------------------------------------------- processes


def test_processes_change_nothing():
    bags = made()
    steps = []
    tables = [
        cross_validate(METHODS, bags, folds=3, repeats=2, n_jobs=n_jobs, progress=lambda *step: steps.append(step))
        for n_jobs in (1, 2)
    ]
    timed = ["wall_time", "finished"]
    frames = [table.frame().drop(columns=timed) for table in tables]
    assert frames[0].equals(frames[1])
    total = len(METHODS) * 6
    assert [step[1] for step in steps] == [total] * len(steps)
    assert [step[0] for step in steps if step[0] == total] == [total, total]


# ---------------------------------------------------------------------- choosing


def test_grids_choose_by_inner_folds_alone():
    bags = made()
    grid = Grid(SummarySVM(calibration_folds=None), {"C": [1e-4, 1.0]}, folds=3, random_state=5)
    table = cross_validate({"grid": grid}, bags, folds=3, repeats=1, metrics=["accuracy"])
    for number, (train, _) in enumerate(pairs(stratified_folds(bags.y, folds=3, repeats=1))):
        inner = stratified_folds(bags.y[train], folds=3, repeats=1, random_state=5)
        means = []
        for C in (1e-4, 1.0):
            K = SummarySVM().gram(bags)
            scores = []
            for fit, held in pairs(inner):
                model = SummarySVM(C=C, calibration_folds=None)
                model.fit_gram(K.take(train[fit], train[fit]), bags.y[train[fit]])
                guess = model.predict_gram(K.take(train[held], train[fit]))
                scores.append((guess == bags.y[train[held]]).mean())
            means.append(np.mean(scores))
        chosen = json.loads(table.filter(fold=number).frame()["chosen"].item())
        assert chosen == {"C": [1e-4, 1.0][int(np.argmax(means))]}


def test_a_grid_that_finds_nothing_is_a_failure_of_that_method():
    grid = Grid(Failing(), {}, folds=3)
    with pytest.warns(BagWarning, match="failures of 'grid'"):
        table = cross_validate({"grid": grid, "m": MajorityClassifier()}, made(), folds=3, repeats=1)
    assert table.failed.names("method") == ["grid"]


@pytest.mark.parametrize(
    ("parameters", "more", "text"),
    [
        ({"c": [1.0]}, {}, "did you mean 'C'"),
        ({"C": []}, {}, "values to try"),
        ([], {}, "values to try, got none"),
        ([{"C": [1.0]}, {"c": [1.0]}], {}, "did you mean 'C'"),
        ({"kernel": "rbf"}, {}, "pass a list"),
        ({"C": [1.0]}, {"metric": "acuracy"}, "did you mean 'accuracy'"),
        ({"C": [1.0]}, {"metric": "width"}, "a score of which more, or less, is better"),
    ],
)
def test_wrong_grids(parameters, more, text):
    with pytest.raises(ParameterError, match=text):
        Grid(SummarySVM(), parameters, **more)


# ---------------------------------------------------------------------- failures and provenance


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_failures_keep_their_traceback(n_jobs):
    methods = {"failing": Failing(), "majority": MajorityClassifier()}
    with pytest.warns(BagWarning, match=r"failures of 'failing', the first of them 'ZeroDivisionError: bag 0"):
        table = cross_validate(methods, made(), folds=3, repeats=1, metrics=["accuracy", "nll"], n_jobs=n_jobs)
    assert len(table.failed) == 2  # one fold, two metrics
    assert "ZeroDivisionError: bag 0 is too much" in table.failed.frame()["error"].iloc[0]
    assert table.failed.frame()["value"].isna().all()
    assert table.filter(method="majority").frame()["value"].notna().all()
    notes = table.filter(method="failing", metric="nll").frame()
    assert set(notes.loc[notes["error"].isna(), "note"]) == {"the method gives decisions, and no probabilities"}


def test_a_stack_or_a_table_that_fails_fails_everywhere():
    class Broken(StackedMeans):
        def posteriors(self, bags, masks):
            raise MemoryError("no room")

    methods = {"broken": Broken(), "kernel": MIKernel(gamma="scael")}
    with pytest.warns(BagWarning, match="no room"):
        table = cross_validate(methods, made(), folds=3, repeats=1, metrics=["accuracy"])
    assert len(table.failed) == 6


def test_every_row_says_where_it_comes_from():
    bags = made()
    table = cross_validate(METHODS, bags, folds=3, repeats=1, metrics=["accuracy"])
    frame = table.frame()
    assert (
        frame[["code_version", "recipe_sha256", "data_sha256", "device", "libraries", "finished"]]
        .notna()
        .to_numpy()
        .all()
    )
    assert (frame["wall_time"] > 0).all()
    assert frame.groupby("method")["recipe_sha256"].nunique().eq(1).all()
    assert frame["recipe_sha256"].nunique() == len(METHODS)
    assert frame["dataset"].unique().tolist() == ["made"]
    other = cross_validate({"kernel": MIKernel(C=7.0)}, bags, folds=3, repeats=1, metrics=["accuracy"])
    assert other.frame()["recipe_sha256"].iloc[0] not in set(frame["recipe_sha256"])
    seeded = cross_validate({"s": SummarySVM(random_state=4)}, bags, folds=3, repeats=1, metrics=["accuracy"])
    assert seeded.names("seed") == [4]


def test_tables_survive_the_disk(tmp_path):
    table = cross_validate({"m": SummarySVM(calibration_folds=3)}, made(), folds=3, repeats=1)
    table.append(tmp_path)
    assert ResultTable.read(tmp_path) == table


class NotAMethod(BaseEstimator, RegressorMixin):
    pass


@pytest.mark.parametrize(
    ("methods", "more", "error", "text"),
    [
        ({}, {}, ParameterError, "methods by name"),
        ([MajorityClassifier()], {}, ParameterError, "methods by name"),
        ({"m": MajorityClassifier()}, {"setting": "induktive"}, ParameterError, "did you mean 'inductive'"),
        ({"m": MajorityClassifier()}, {"task": "ranking"}, ParameterError, "a task"),
        ({"m": MajorityClassifier(), "n": MeanRegressor()}, {}, ParameterError, "methods of one kind"),
        ({"m": MajorityClassifier()}, {"metrics": ["rmse"]}, ParameterError, "a metric of classification"),
        ({"m": MajorityClassifier()}, {"splits": [[0, 1]]}, InvalidBagsError, "splits of shape"),
        ({"m": MajorityClassifier()}, {"splits": [-1] * 24}, InvalidBagsError, "at least one bag to test"),
        ({"m": MajorityClassifier()}, {"splits": [0] * 24}, InvalidBagsError, "trains on none"),
    ],
)
def test_wrong_usage(methods, more, error, text):
    with pytest.raises(error, match=text):
        cross_validate(methods, made(), **more)


def test_bags_without_labels_are_refused():
    with pytest.raises(InvalidBagsError, match="bags with labels"):
        cross_validate({"m": MajorityClassifier()}, made().replace(y=None))


def test_what_is_no_method_fails_with_a_sentence():
    with pytest.warns(BagWarning, match="failures"):
        table = cross_validate({"m": NotAMethod()}, made(), folds=2, repeats=1, task="classification")
    assert "has no attribute 'fit'" in table.failed.frame()["error"].iloc[0]


def test_the_main_job_on_real_images():
    bags = datasets.load("digits-bags")
    methods = {"majority": MajorityClassifier(), "summary": SummarySVM(calibration_folds=None)}
    table = cross_validate(methods, bags, folds=5, repeats=1, metrics=["accuracy"])
    scores = table.pivot("accuracy").loc["digits-bags"]
    assert scores["majority"] == 0.5
    assert scores["summary"] > 0.6
