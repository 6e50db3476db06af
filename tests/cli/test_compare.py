"""``baggraph compare`` as a person meets it."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

from baggraph.baselines import OneNumberClassifier
from baggraph.data.results import ResultTable

QUICK = ("--folds", "3", "--repeats", "1")


@pytest.fixture
def run(command, monkeypatch, tmp_path):
    """Run ``compare`` without data or network."""
    monkeypatch.setenv("BAGGRAPH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BAGGRAPH_OFFLINE", "1")
    return partial(command, "compare")


def test_plain_methods_on_a_data_set(run, tmp_path):
    code, out, err = run("digits-bags", *QUICK, "-o", str(tmp_path / "run"))
    assert code == 0
    assert out.startswith("accuracy of 6 methods on 1 data set; larger is better\n")
    assert "Differences on the same folds: corrected t-test, Holm for 15 tests" in out
    assert "6 methods, 1 x 3 folds" in err
    assert set(ResultTable.read(tmp_path / "run").names("fold")) == {0, 1, 2}


def test_targets_get_regressors(run, tmp_path):
    code, out, _ = run("synthetic", *QUICK, "-o", str(tmp_path / "run"))
    assert code == 0
    assert out.startswith("rmse of 6 methods on 1 data set; smaller is better\n")


def test_the_committee_is_asked_by_name_and_left_out_of_very_many(run, tmp_path, monkeypatch):
    code, out, _ = run("synthetic", *QUICK, "--methods", "mean, auto", "-q", "-o", str(tmp_path / "run"))
    assert code == 0
    assert "auto" in out
    monkeypatch.setattr("baggraph.cli._models.MOST", {"classes": 10})
    code, out, err = run("digits-bags", *QUICK, "-o", str(tmp_path / "other"))
    assert code == 0
    assert out.startswith("accuracy of 5 methods")
    assert "auto is left out: more than 10 bags" in err


def test_methods_by_their_printed_names_in_json(run, tmp_path):
    names = "majority, bag size, summary SVM"
    code, out, _ = run(
        "digits-bags", "--methods", names, "--against", "majority", "--json", "-q", *QUICK, "-o", str(tmp_path / "run")
    )
    facts = json.loads(out)
    assert code == 0
    assert [row["method"] for row in facts["scores"]] == ["majority", "bag size", "summary SVM"]
    assert {row["other"] for row in facts["differences"]} == {"majority"}


def test_a_table_is_read_with_its_roles_guessed(run, tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"]).assign(
        slide=np.repeat([f"s{i}" for i in range(30)], 4)
    )
    table["tumour"] = np.repeat(np.resize(["yes", "no"], 30), 4)
    table.to_csv(tmp_path / "slides.csv", index=False)
    code, out, err = run(
        str(tmp_path / "slides.csv"), *QUICK, "--methods", "majority, summary SVM", "-o", str(tmp_path / "run")
    )
    assert code == 0
    assert "slide" in err
    assert "tumour" in err
    assert "slides" in out


def test_a_stopped_run_leaves_with_5_and_goes_on(run, tmp_path, monkeypatch):
    arguments = ("digits-bags", "--methods", "majority, bag size", *QUICK, "-o", str(tmp_path / "run"))
    with monkeypatch.context() as patched:
        patched.setattr(OneNumberClassifier, "fit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        code, out, err = run(*arguments)
    assert (code, out) == (5, "")
    assert "the same command goes on" in err
    assert ResultTable.read(tmp_path / "run").names("method") == ["majority"]
    monkeypatch.setattr("baggraph.baselines.MajorityClassifier.fit", None)  # what was done is not done again
    assert run(*arguments)[0] == 0


def test_a_method_that_fails_is_told_and_leaves_with_4(run, tmp_path, monkeypatch):
    monkeypatch.setattr(OneNumberClassifier, "fit", lambda *_: 1 / 0)
    names = "majority, bag size, summary SVM"
    code, out, err = run("digits-bags", "--methods", names, *QUICK, "-o", str(tmp_path / "run"))
    assert code == 4
    assert "failures of 'bag size'" in err
    assert "summary SVM" in out


def test_does_the_graph_help(run, tmp_path, monkeypatch):
    from baggraph.estimators import printed

    quick = lambda dataset: printed.BagGraphClassifier(epochs=2, n_draws=2, device="cpu")  # noqa: E731
    monkeypatch.setitem(printed._MAKERS, "B-rFF+pool-GCN", quick)
    code, out, _ = run("digits-bags", "--graph-of", "B-rFF+pool-GCN", *QUICK, "-o", str(tmp_path / "run"))
    assert code == 0
    assert "accuracy of 4 methods" in out
    assert "Does the graph help?\nk-NN graph: " in out


@pytest.mark.parametrize(
    ("arguments", "code", "hint"),
    [
        (["digit-bags"], 2, "did you mean 'digits-bags'?"),
        (["digits-bags", "--methods", "majority, mi-SVN"], 2, "did you mean 'mi-SVM'?"),
        (["digits-bags", "--methods", "majority"], 2, "at least 2 methods"),
        (["digits-bags", "--against", "nobody", *QUICK], 2, "--against one of the methods"),
        (["digits-bags", "--metric", "acuracy", *QUICK], 2, "did you mean 'accuracy'?"),
        (["synthetic", "--methods", "majority, mi-SVM"], 2, "methods for real targets, got classifiers"),
        (["digits-bags", "--graph-of", "majority"], 2, "a model with a graph"),
        (["musk1"], 3, "baggraph datasets get musk1"),
    ],
)
def test_mistakes_are_answered(run, tmp_path, arguments, code, hint):
    found, out, err = run(*arguments, "-o", str(tmp_path / "run"))
    assert (found, out) == (code, "")
    assert hint in err


def test_a_dry_run_times_a_fold_of_every_method_and_writes_nothing(run, tmp_path):
    code, out, err = run("digits-bags", *QUICK, "--dry-run", "-o", str(tmp_path / "run"))
    assert code == 0
    assert [line.split("  ")[0].strip() for line in out.splitlines()[1:6]] == ["majority", "bag size", "largest norm", "summary SVM", "MI-Kernel"]  # fmt: skip
    assert "s for 1 x 3 folds, at most" in err
    facts = json.loads(run("digits-bags", *QUICK, "--dry-run", "--json", "-q", "-o", str(tmp_path / "run"))[1])
    assert facts["repeats"] == 1
    assert facts["seconds"].keys() >= {"majority", "MI-Kernel"}
    assert not (tmp_path / "run").exists()


def test_mistakes_cost_no_work(run, tmp_path):
    for wrong in (["--against", "nobody"], ["--metric", "acuracy"], ["--methods", "majority, mi-SVN"]):
        assert run("digits-bags", *wrong, "-o", str(tmp_path / "run"))[0] == 2
    assert not (tmp_path / "run").exists()
