"""Comparisons: pairing, directions, several sets; runs that stop and go on; does the graph help?"""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

import baggraph as bg
from baggraph import BagGraphClassifier, BagGraphRegressor, datasets
from baggraph.baselines import MajorityClassifier, MIKernel, OneNumberClassifier, SummarySVM
from baggraph.data.results import ResultTable
from baggraph.errors import BagWarning, InvalidBagsError, ParameterError
from baggraph.evaluation.compare import compare
from baggraph.evaluation.cross_validate import cross_validate
from baggraph.evaluation.graph_help import does_the_graph_help, graph_controls
from baggraph.evaluation.resuming import cross_validate_into
from baggraph.graphs.shuffled import ShuffledWiring

METHODS = {"majority": MajorityClassifier(), "bag size": OneNumberClassifier(number="size"), "summary": SummarySVM()}


def made(values, *, metric="accuracy", counts=(90, 10)):
    """A table of scores by data set and method; a list is the folds of a repeat."""
    rows = [
        {"dataset": d, "method": m, "metric": metric, "fold": f, "value": v, "n_train": counts[0], "n_test": counts[1]}
        for d, methods in values.items()
        for m, folds in methods.items()
        for f, v in enumerate(folds)
    ]
    return ResultTable.from_rows(rows)


def many_sets(n=8, seed=0):
    rng = np.random.default_rng(seed)
    return {f"set {i}": {m: 0.5 + 0.1 * k + 0.02 * rng.normal(size=5) for k, m in enumerate("abc")} for i in range(n)}


# ---------------------------------------------------------------------- compare


def test_differences_are_paired_by_fold():
    level = np.linspace(0.2, 0.9, 10)
    table = made({"d": {"a": level, "b": level + 0.05 + 0.001 * np.resize([1, -1], 10)}})
    row = compare(table).differences.iloc[0]
    assert row["difference"] == pytest.approx(-0.05)
    assert row["p"] < 1e-6
    assert row["low"] < -0.05 < row["high"] < 0
    shuffled = table.frame().sample(frac=1, random_state=0)
    assert compare(ResultTable.from_frame(shuffled)).differences["p"].iloc[0] == pytest.approx(row["p"])


def test_intervals_use_the_counts_of_bags():
    values = {"d": {"a": [0.5, 0.6, 0.7, 0.6], "b": [0.4, 0.6, 0.5, 0.5]}}
    capped, even = (compare(made(values, counts=c)).scores.iloc[0] for c in ((24, 955), (50, 50)))
    assert capped["high"] == even["high"]  # the correction is not for splits that test nearly all bags
    wide, narrow = (compare(made(values, counts=c)).scores.iloc[0] for c in ((50, 50), (99, 1)))
    assert wide["high"] - wide["low"] > narrow["high"] - narrow["low"]
    error = np.sqrt((1 / 4 + 1 / 99) * np.var([0.5, 0.6, 0.7, 0.6], ddof=1))
    assert narrow["high"] - narrow["mean"] == pytest.approx(stats.t.ppf(0.975, 3) * error)


def test_smaller_errors_win():
    values = {f"set {i}": {"good": [0.1, 0.2], "bad": [0.5 + i, 0.6 + i]} for i in range(6)}
    found = compare(made(values, metric="rmse"))
    assert found.ranks.loc["good", "mean_rank"] == 1.0
    assert not found.larger_is_better
    row = found.pairs.iloc[0]
    assert (row["method"], row["wins"], row["losses"]) == ("good", 6, 0)
    assert compare(made(values)).ranks.loc["bad", "mean_rank"] == 1.0  # the same numbers as accuracies


def test_over_data_sets_the_tests_are_scipys():
    values = many_sets()
    found = compare(made(values))
    means = np.array([[np.mean(folds) for folds in methods.values()] for methods in values.values()])
    assert found.friedman.statistic == pytest.approx(stats.friedmanchisquare(*means.T).statistic)
    row = found.pairs.set_index(["method", "other"]).loc[("a", "c")]
    assert row["p_wilcoxon"] == pytest.approx(stats.wilcoxon(means[:, 0], means[:, 2]).pvalue)
    assert (row["wins"], row["ties"], row["losses"]) == (0, 0, 8)
    assert found.ranks["mean_rank"].tolist() == sorted(found.ranks["mean_rank"])
    assert found.ranks.index[0] == "c"


def test_ties_share_ranks_and_are_counted():
    values = {f"set {i}": {"a": [0.5, 0.7], "b": [0.6, 0.6], "c": [0.1, 0.1]} for i in range(4)}
    found = compare(made(values))
    assert found.ranks["mean_rank"].to_dict() == {"a": 1.5, "b": 1.5, "c": 3.0}
    row = found.pairs.iloc[0]
    assert (row["wins"], row["ties"], row["losses"], row["p_wilcoxon"]) == (0, 4, 0, 1.0)


def test_against_one_method_fewer_tests_are_corrected():
    table = made(many_sets())
    one, every = compare(table, against="a"), compare(table)
    assert set(one.differences["other"]) == {"a"}
    assert len(one.pairs) == 2
    assert len(every.pairs) == 3
    merged = one.differences.assign(key=one.differences["dataset"] + one.differences["method"])
    assert (merged["p_holm"] <= 16 * merged["p"] + 1e-12).all()


def test_folds_that_failed_are_left_out_and_told():
    values = {"d": {"a": [0.5, 0.6, 0.7, np.nan], "b": [0.4, 0.5, 0.6, 0.1], "lost": [np.nan] * 4}}
    with pytest.warns(BagWarning, match=r"none from 'a', 'lost' on 4 of 4"):
        found = compare(made(values))
    assert found.scores["method"].tolist() == ["a", "b"]
    assert found.scores["n"].tolist() == [3, 3]
    assert found.differences["difference"].tolist() == pytest.approx([0.1])


def test_seeds_are_averaged_before_folds_are_paired():
    table = made({"d": {"a": [0.5, 0.7], "b": [0.4, 0.5]}}).frame()
    other = table.assign(seed=1, value=table["value"] + 0.2)
    import pandas as pd

    both = ResultTable.from_frame(pd.concat([table, other]))
    assert compare(both).scores["n"].tolist() == [2, 2]
    assert compare(both).scores["mean"].tolist() == pytest.approx([0.7, 0.55])


def test_text_and_json_hold_all_tables():
    found = compare(made(many_sets()))
    text = str(found)
    assert all(word in text for word in ("Friedman", "Nemenyi", "Holm", "set 7", "mean_rank"))
    facts = json.loads(found.to_json())
    assert len(facts["scores"]) == 24
    assert facts["critical_difference"] == pytest.approx(found.critical_difference)
    single = compare(made({"d": many_sets(1)["set 0"]}))
    assert (single.friedman, single.critical_difference, len(single.pairs)) == (None, None, 0)
    assert "Friedman" not in str(single)


def test_tables_that_cannot_be_compared_are_refused():
    table = made(many_sets(2))
    with pytest.raises(InvalidBagsError, match="a ResultTable, got a DataFrame"):
        compare(table.frame())
    with pytest.raises(ParameterError, match="did you mean 'accuracy'"):
        compare(table, "acuracy")
    with pytest.raises(ParameterError, match="a method of the table"):
        compare(table, against="z")
    with pytest.raises(ParameterError, match="alpha"):
        compare(table, alpha=0)
    with pytest.raises(InvalidBagsError, match="at least 2 methods"):
        compare(table.filter(method="a"))
    with pytest.raises(InvalidBagsError, match="at least 2 folds"):
        compare(made({"d": {"a": [0.5], "b": [0.6]}}))
    with pytest.raises(ParameterError, match="more or less is better"):
        compare(made(many_sets(2), metric="width"), "width")


# ---------------------------------------------------------------------- runs that stop


def test_a_run_into_a_folder_has_the_scores_of_one_call(tmp_path):
    bags = datasets.load("digits-bags", n_bags=60)
    methods = METHODS | {"kernel": MIKernel()}
    whole = cross_validate(methods, bags, folds=4, repeats=2, metrics=["accuracy"])
    parts = cross_validate_into(tmp_path, methods, bags, folds=4, repeats=2, metrics=["accuracy"])
    keys = ["method", "repeat", "fold", "value"]
    one, other = (t.frame()[keys].sort_values(keys[:3]).reset_index(drop=True) for t in (whole, parts))
    assert one.equals(other)


def test_a_stopped_run_goes_on(tmp_path):
    bags, seen = datasets.load("digits-bags", n_bags=40), []

    def stop(done, total, name):
        seen.append(done)
        if done == 3 and len(seen) < 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cross_validate_into(tmp_path, METHODS, bags, folds=3, repeats=2, progress=stop)
    assert len(ResultTable.read(tmp_path)) > 0
    seen.clear()
    cross_validate_into(tmp_path, METHODS, bags, folds=3, repeats=2, progress=lambda done, *_: seen.append(done))
    assert seen == [3, 4, 5]  # a table of kernel values is one block


def test_what_changed_is_computed_again(tmp_path):
    bags, calls = datasets.load("digits-bags", n_bags=40), []

    def run(**changes):
        calls.clear()
        options = {"folds": 3, "repeats": 1, "metrics": ["accuracy"], "progress": lambda done, *_: calls.append(done)}
        options |= changes
        data = options.pop("bags", bags)
        cross_validate_into(tmp_path, options.pop("methods", METHODS), data, **options)
        return len(calls) - 1

    assert run() == 3
    assert run() == 0
    assert run(methods=METHODS | {"summary": SummarySVM(C=7.0)}) == 1
    assert run(bags=bags.replace(y=1 - bags.y)) == 3
    assert run(metrics=["accuracy", "auc"]) == 3
    assert run(folds=4) == 3
    assert run(setting="inductive") == 3


# ---------------------------------------------------------------------- does the graph help?


def test_controls_differ_by_their_graph_alone():
    bags = datasets.load("synthetic", n_bags=30)
    model = BagGraphRegressor(graph="given", n_draws=7, n_members=2, epochs=3)
    found = graph_controls(model, bags)
    assert list(found) == ["no graph", "shuffled graph", "k-NN graph", "learned graph", "given graph"]
    for one in found.values():
        ours, theirs = one.get_params(), model.get_params()
        assert {k for k in ours if ours[k] is not theirs[k] and ours[k] != theirs[k]} <= {"graph"}
    inner = bags.graph
    shuffled = found["shuffled graph"].graph.graphs(np.zeros((1, 30, 1)), bags.ids)[0]
    assert sorted(shuffled.degree) == sorted(inner.degree)
    assert (shuffled.adjacency != inner.adjacency).nnz > 0


def test_models_without_a_graph_get_a_learned_one_and_others_are_refused():
    bags = datasets.load("digits-bags", n_bags=20)
    assert isinstance(graph_controls(BagGraphClassifier(graph=None), bags)["shuffled graph"].graph, ShuffledWiring)
    with pytest.raises(ParameterError, match="a model with a graph"):
        graph_controls(SummarySVM(), bags)
    with pytest.raises(ParameterError, match="a graph of its own"):
        graph_controls(BagGraphClassifier(head="linear"), bags)


def test_a_graph_that_is_the_truth_helps():
    """Labels are smooth on the graph and instances say almost nothing: only the given graph can help."""
    bags = datasets.load("synthetic", n_bags=60, n_features=2, bag_size=2, noise=6.0, smoothness=0.02)
    model = BagGraphRegressor(encoder="deep-sets", graph="given", epochs=25, lr=1e-2, n_draws=2, device="cpu")
    found = does_the_graph_help(model, bags, folds=3, repeats=1)
    means = found.comparison.scores.set_index("method")["mean"]
    assert means["given graph"] < means["shuffled graph"]
    assert set(found.verdicts) == {"k-NN graph", "learned graph", "given graph"}
    assert str(found).startswith("Does the graph help?\nk-NN graph: ")


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        ({"no graph": 0.5, "shuffled graph": 0.5, "learned graph": 0.8}, "helps"),
        (
            {"no graph": 0.5, "shuffled graph": 0.8, "learned graph": 0.8},
            "better than no graph, but so may be a shuffled one",
        ),
        ({"no graph": 0.8, "shuffled graph": 0.5, "learned graph": 0.5}, "hurts: worse than no graph"),
        ({"no graph": 0.5, "shuffled graph": 0.3, "learned graph": 0.5}, "no difference to no graph can be told"),
    ],
)
def test_verdicts(scores, verdict):
    from baggraph.evaluation.graph_help import GraphHelp

    rng = np.random.default_rng(1)
    table = made({"d": {name: level + 0.02 * rng.normal(size=8) for name, level in scores.items()}})
    assert GraphHelp(table, compare(table)).verdicts == {"learned graph": verdict}
    errors = made(
        {"d": {name: -level + 0.02 * rng.normal(size=8) + 1 for name, level in scores.items()}}, metric="rmse"
    )
    assert GraphHelp(errors, compare(errors)).verdicts == {"learned graph": verdict}


def test_public_names():
    assert bg.compare is compare
    assert bg.audit.__name__ == "audit"
