"""``baggraph fit`` and ``baggraph predict`` as people with four kinds of files meet them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import baggraph as bg
from baggraph.cli import main
from baggraph.data.readers.guessing import guess_roles

SHORT = ["--epochs", 3, "--n-draws", 3, "--folds", 0]


def names(folder="."):
    return sorted(path.name for path in Path(folder).iterdir())


@pytest.fixture
def run(command, monkeypatch, tmp_path):
    """Run one command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return command


def people(name, first, count, *, target="label", value=None, places=False):
    """A long table: text and counters among the columns, rows of bags not together."""
    rng, rows = np.random.default_rng(first), []
    for b in range(first, first + count):
        where = {"lat": 40 + (b % 7) / 10, "lon": -75 - (b % 5) / 10} if places else {}
        label = {} if target is None else {target: value(b) if value else ("high" if b % 2 else "low")}
        for i in range(3 + b % 3):
            features = dict(zip("fgh", rng.normal(size=3) + b % 2, strict=True))
            rows.append({"region": f"{b:03d}", "person_id": 100 * b + i, "job": "none" if i else "clerk", **where, **label, **features})  # fmt: skip
    pd.DataFrame(rows).sort_values("person_id", key=lambda c: c % 100, kind="stable").to_csv(name, index=False)


def slides(folder, first, count):
    import h5py

    rng = np.random.default_rng(first)
    Path(folder).mkdir()
    for b in range(first, first + count):
        with h5py.File(f"{folder}/s{b}.h5", "w") as file:
            file["features"] = (rng.normal(size=(4 + b % 3, 5)) + b % 2).astype(np.float32)


# ---------------------------------------------------------------------- four new users


def test_a_long_table_with_text_labels(run, tmp_path):
    people("people.csv", 0, 16)
    people("new.csv", 90, 4, target=None)
    code, _, err = run("fit", "people.csv", "-o", "model", *SHORT)
    assert code == 0
    told = {line.split()[0]: line for line in err.splitlines()}
    assert "guessed: called 'region', values repeat; --bag says otherwise" in told["bag"]
    assert "guessed: called 'label', equal within bags" in told["target"]
    assert "3: f, g, h" in told["features"]
    assert "person_id (a number that names something), job (text)" in err
    assert "classes: high ×8, low ×8" in told["labels"]
    code, out, err = run("predict", "model", "new.csv", "-o", "found.csv")
    assert (code, out) == (0, "")
    found = pd.read_csv("found.csv", dtype={"bag": str})
    assert found["bag"].tolist() == ["090", "091", "092", "093"]
    assert np.allclose(found["p_high"] + found["p_low"], 1)
    model = bg.load("model")
    new = bg.read("new.csv", bag="region", features=["f", "g", "h"])
    assert np.array_equal(found["p_high"], model.predict_proba(new)[:, 0])
    assert found["prediction"].tolist() == model.predict(new).tolist()
    assert model.posterior_.frame()["p_low"].tolist() == pd.read_parquet("model/posterior.parquet")["p_low"].tolist()


def test_a_folder_of_features_with_a_table_of_labels(run):
    pytest.importorskip("h5py")
    slides("slides", 0, 20)
    slides("more", 50, 3)
    rows = [{"slide_id": f"s{b}", "hospital": "A", "diagnosis": "tumour" if b % 2 else "normal"} for b in range(18)]
    pd.DataFrame(rows).to_csv("slides.csv", index=False)
    code, out, err = run("fit", "slides", "-o", "model", "--calibration", 0.5, "--encoder", "attention", *SHORT)
    assert (code, out) == (0, "")
    assert "20, 18 labelled" in err
    assert "called 'diagnosis'" in err
    code, out, err = run("predict", "model", "more", "--coverage", 0.8)
    assert code == 0
    assert out.splitlines()[0].endswith("entropy,mutual_information,set")
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == ["s50", "s51", "s52"]
    _, _, err = run("predict", "model", "more", "--coverage", 0.99)
    assert "bags held out promise a coverage of 0.9" in err


def test_shares_of_regions_with_places(run):
    people("people.csv", 0, 20, target="left_share", value=lambda b: 0.2 + 0.6 * (b % 5) / 5, places=True)
    people("new.csv", 50, 3, target=None, places=True)
    code, out, err = run("fit", "people.csv", "--coords", "lat,lon", "-k", 2, "--json", "-o", "model", *SHORT)
    facts = json.loads(out)
    assert code == 0
    assert facts["task"] == "shares"
    assert facts["roles"]["coords"] == ["lon", "lat"]
    assert "nearest places on the globe" in facts["graph"]
    code, out, _ = run("predict", "model", "new.csv", "--json")
    found = json.loads(out)
    assert [row["bag"] for row in found] == ["050", "051", "052"]
    assert all(0 <= row["lower"] <= row["prediction"] <= row["upper"] <= 1 for row in found)
    table = pd.read_csv("new.csv").drop(columns=["lat"])
    table.to_csv("nowhere.csv", index=False)
    code, _, err = run("predict", "model", "nowhere.csv")
    assert code == 2
    assert "expected column 'lat' of the data that the model was fitted on" in err


def test_a_data_set_by_name(run):
    code, out, _ = run("fit", "digits-bags", "-o", "model", "--epochs", 3, "--folds", 2, "--n-draws", 2)
    assert code == 0
    assert out.startswith("accuracy ")
    assert "constant 0.5" in out
    card = Path("model/card.md").read_text()
    assert card.startswith("# BagGraphClassifier\n")
    assert "| bags | 160, 160 labelled; 1,586 instances, 64 features |" in card
    assert "2 random folds" in card
    assert "| `epochs` | `3` (not the default) |" in card
    assert f"| baggraph | {bg.__version__} |" in card
    code, out, err = run("predict", "model", "digits-bags")
    assert code == 0
    assert len(out.splitlines()) == 161
    assert "160 bags have the id of one in the fit" in err


def test_a_page_beside_the_model(run, tmp_path):
    people("people.csv", 0, 20)
    code, out, err = run("fit", "people.csv", "-o", "model", "--report", "page.html", "--json", *SHORT)
    assert code == 0, err
    assert json.loads(out)["report"] == "page.html"
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What to be careful about" in page
    assert '"instances":{"' in page
    assert "baggraph " in page


def test_known_edges(run):
    people("people.csv", 0, 12)
    people("new.csv", 90, 2, target=None)
    Path("borders.csv").write_text("from,to\n" + "\n".join(f"{b:03d},{b + 1:03d}" for b in range(11)))
    assert run("fit", "people.csv", "--graph", "borders.csv", "-o", "model", *SHORT)[0] == 0
    code, _, err = run("predict", "model", "new.csv")
    assert code == 3
    assert "expected links from new bags" in err
    Path("more.csv").write_text("source,target,weight\n090,000,1.0\n091,003,2.0\n091,777,1.0\n")
    code, out, err = run("predict", "model", "new.csv", "--graph", "more.csv")
    assert code == 0
    assert "1 edges of more.csv name a bag that is neither here nor in the fit" in err
    links = np.zeros((2, 12))
    ids = bg.load("model").posterior_.ids.tolist()
    links[0, ids.index("000")], links[1, ids.index("003")] = 1, 2
    new = bg.read("new.csv", bag="region", features=["f", "g", "h"])
    wanted = bg.load("model").predict_posterior(new, links=links).mean[:, 0]
    assert np.allclose([float(line.split(",")[2]) for line in out.splitlines()[1:]], wanted)


# ---------------------------------------------------------------------- the committee


def test_without_options_of_networks_the_committee_is_fitted(run, tmp_path):
    people("people.csv", 0, 24)
    people("new.csv", 90, 4, target=None)
    code, out, err = run("fit", "people.csv", "-o", "model", "--folds", 3, "--report", "page.html")
    assert code == 0, err
    assert "model       auto, a committee with nothing to tune  (--model bag-graph fits a network)" in err
    assert "network  " not in err
    assert out.startswith("accuracy ")
    card = Path("model/card.md").read_text(encoding="utf-8")
    assert card.startswith("# AutoBagClassifier\n")
    assert "| average kernel | 0." in card
    assert "Calibrated on 24 labelled bags" in card
    assert "`model.explain(bags)`" in card
    page = Path("page.html").read_text(encoding="utf-8")
    assert "average kernel" in page
    assert "The instances that tell most" in page
    assert run("report", "model", "-o", "again.html")[0] == 0
    assert "The instances that tell most" in Path("again.html").read_text(encoding="utf-8")
    code, out, _ = run("predict", "model", "new.csv", "--json", "--coverage", 0.8)
    found = json.loads(out)
    model, new = bg.load("model"), bg.read("new.csv", bag="region", features=["f", "g", "h"])
    assert list(found[0]) == ["bag", "prediction", "p_high", "p_low", "entropy", "set"]
    assert np.array_equal([row["p_high"] for row in found], model.predict_proba(new)[:, 0])
    sets = model.predict_set(new, coverage=0.8)
    assert [row["set"] for row in found] == ["|".join(model.classes_[row]) for row in sets]
    assert "std_high" not in pd.read_parquet("model/posterior.parquet").columns


def test_the_committee_on_known_edges_and_on_places(run):
    people("people.csv", 0, 24)
    people("new.csv", 90, 2, target=None)
    Path("borders.csv").write_text("from,to\n" + "\n".join(f"{b:03d},{b + 2:03d}" for b in range(22)))
    Path("more.csv").write_text("source,target,weight\n090,000,1.0\n091,003,2.0\n")
    assert run("fit", "people.csv", "--graph", "borders.csv", "-o", "model", "--folds", 0)[0] == 0
    code, out, _ = run("predict", "model", "new.csv", "--graph", "more.csv", "--json")
    links = np.zeros((2, 24))
    ids = bg.load("model").posterior_.ids.tolist()
    links[0, ids.index("000")], links[1, ids.index("003")] = 1, 2
    new = bg.read("new.csv", bag="region", features=["f", "g", "h"])
    wanted = bg.load("model").predict_posterior(new, links=links).mean[:, 0]
    assert code == 0
    assert [row["p_high"] for row in json.loads(out)] == wanted.tolist()
    people("regions.csv", 0, 20, target="left_share", value=lambda b: 0.2 + 0.6 * (b % 5) / 5 + b / 200, places=True)
    people("newer.csv", 50, 3, target=None, places=True)
    code, _, err = run("fit", "regions.csv", "--coords", "lat,lon", "-k", 2, "-o", "regions", "--folds", 0)
    assert code == 0, err
    assert "nearest places on the globe" in err
    assert isinstance(bg.load("regions"), bg.AutoBagRegressor)
    found = json.loads(run("predict", "regions", "newer.csv", "--json")[1])
    assert all(0 <= row["lower"] <= row["prediction"] <= row["upper"] <= 1 for row in found)


WHICH = {
    "an option of networks": (24, ["--lr", 0.01], "bag-graph  (--lr is an option of networks)"),
    "a graph of networks": (24, ["--graph", "knn"], "bag-graph  (--graph knn is an option of networks)"),
    "asked for": (24, ["--model", "bag-graph"], "bag-graph  (as asked)"),
    "too few": (4, [], "bag-graph  (fewer than 3 labelled bags of a class)"),
    "an option of both": (24, ["--random-state", 3], "auto, a committee"),
}


@pytest.mark.parametrize("name", WHICH)
def test_which_model_it_is_and_why(run, name):
    count, arguments, wanted = WHICH[name]
    people("people.csv", 0, count)
    code, out, err = run("fit", "people.csv", "-o", "model", "--dry-run", "--folds", 0, *arguments)
    assert (code, out) == (0, "")
    assert f"model       {wanted}" in err


def test_too_many_bags_for_a_committee(run, monkeypatch):
    people("people.csv", 0, 12)
    monkeypatch.setattr("baggraph.cli._models.MOST", {"classes": 10})
    assert "more than 10 bags take a committee very long" in run("fit", "people.csv", "-o", "m", "--dry-run")[2]
    monkeypatch.setattr("baggraph.cli._models.MOST", {"classes": 20})
    monkeypatch.setattr("baggraph.cli._models.MOST_BYTES", 10.0)
    assert "tables of a committee would take" in run("fit", "people.csv", "-o", "m", "--dry-run")[2]


# ---------------------------------------------------------------------- manners


def test_a_dry_run_shows_the_plan_and_its_cost_and_writes_nothing(run, tmp_path):
    people("people.csv", 0, 12)
    code, out, err = run("fit", "people.csv", "-o", "model", "--dry-run")
    assert (code, out) == (0, "")
    assert "s of fitting" in err
    assert names() == ["people.csv"]
    assert json.loads(run("fit", "people.csv", "-o", "model", "--dry-run", "--json")[1])["seconds"] >= 0


def test_quiet_says_nothing_but_results(run):
    people("people.csv", 0, 12)
    code, out, err = run("fit", "people.csv", "-o", "model", "-q", *SHORT)
    assert (code, out, err) == (0, "", "")
    assert run("predict", "model", "people.csv", "-q", "-o", "found.parquet")[1] == ""


def test_what_stands_there_is_not_written_over(run):
    people("people.csv", 0, 12)
    Path("work").mkdir()
    Path("work/notes.txt").write_text("mine")
    assert run("fit", "people.csv", "-o", "work", *SHORT)[0] == 2
    assert run("fit", "people.csv", "-o", "work", "--force", *SHORT)[0] == 3
    assert names("work") == ["notes.txt"]
    assert run("fit", "people.csv", "-o", "model", *SHORT)[0] == 0
    assert run("fit", "people.csv", "-o", "model", *SHORT)[0] == 2
    assert run("fit", "people.csv", "-o", "model", "--force", *SHORT)[0] == 0


MISTAKES = {
    "no such source": (["nothing.csv"], 2, "expected a file, a folder or the name of a data set, got 'nothing.csv'"),
    "almost a file": (["peple.csv"], 2, "did you mean 'people.csv'?"),
    "almost a name": (["digits-bag"], 2, "did you mean 'digits-bags'?"),
    "wrong bag column": (["people.csv", "--bag", "regoin"], 2, "did you mean 'region'?"),
    "wrong target column": (["people.csv", "--target", "lable"], 2, "did you mean 'label'?"),
    "wrong coordinates": (["people.csv", "--coords", "lat,long"], 2, "expected a column of the table, got 'lat'"),
    "wrong model": (["people.csv", "--model", "bag-grap"], 2, "did you mean 'bag-graph'?"),
    "an option of the other model": (["people.csv", "--model", "auto"], 2, "got --epochs; leave it out, or pass --model bag-graph"),
    "two graphs": (["places.csv", "--coords", "lat,lon", "--graph", "knn"], 2, "expected one graph"),
    "wrong graph": (["people.csv", "--graph", "learnd"], 2, "did you mean 'learned'?"),
    "no table of edges": (["people.csv", "--graph", "none.csv"], 3, "no file at none.csv"),
    "wrong task": (["people.csv", "--task", "class"], 2, "did you mean 'classes'?"),
    "wrong encoder": (["people.csv", "--encoder", "rff"], 2, "expected the name of an encoder"),
    "one class": (["one.csv"], 3, "labels of two classes or more"),
    "numbers asked of text": (["people.csv", "--task", "numbers"], 2, "got text such as 'low'; leave out --task, or pass --task classes"),
    "labels that differ": (["differ.csv", "--bag", "region", "--target", "label"], 3, "one value of 'label' a bag"),
    "no column that repeats": (["flat.csv"], 2, "pass --bag COLUMN"),
    "empty": (["empty.csv"], 3, "empty.csv"),
    "folder of nothing": (["void"], 2, "feature files (.h5, .hdf5, .npy, .pt) in void"),
    "one fold": (["people.csv", "--folds", "1"], 2, "--folds 0, or from 2"),
    "epochs of zero": (["people.csv", "--epochs", "0"], 2, "epochs a whole number from 1"),
    "a word for a number": (["people.csv", "--epochs", "many"], 2, "Invalid value for '--epochs'"),
    "a missing value": (["hole.csv"], 3, "NaN in bag '000', column 'f'; fill in the holes, or pass --leave-out COLUMN"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(run, name):
    people("people.csv", 0, 8)
    people("places.csv", 0, 8, places=True)
    people("one.csv", 0, 8, value=lambda b: "same")
    table = pd.read_csv("people.csv", dtype={"region": str})
    table.assign(label=[*("odd",), *table["label"][1:]]).to_csv("differ.csv", index=False)
    table.assign(f=[np.nan, *table["f"][1:]]).to_csv("hole.csv", index=False)
    table[["f", "g"]].to_csv("flat.csv", index=False)
    Path("empty.csv").write_text("")
    Path("void").mkdir()
    arguments, wanted, text = MISTAKES[name]
    if name == "one class":
        arguments = [*arguments, "--target", "label"]
    code, out, err = run("fit", *arguments, "-o", "model", *([] if "--epochs" in arguments else SHORT[:4]))
    assert (code, out) == (wanted, "")
    assert text in " ".join(err.replace("│", " ").split()), err
    assert "Traceback" not in err
    assert not Path("model").exists()


PREDICTED = {
    "no model": (["nowhere", "people.csv"], 3, "no folder nowhere"),
    "a damaged model": (["broken", "people.csv"], 3, "arrays.safetensors as it was saved"),
    "other features": (["model", "narrow.csv"], 2, "expected column 'h' of the data that the model was fitted on"),
    "another number of features": (["model", "digits-bags"], 3, "expected 3 features, as in fit, got 64"),
    "wrong output": (["model", "people.csv", "-o", "found.txt"], 2, "must end in .parquet or .csv"),
    "wrong coverage": (["model", "people.csv", "--coverage", "90"], 2, "must lie between 0 and 1"),
    "edges for a learned graph": (["model", "people.csv", "--graph", "e.csv"], 3, "expected edges to bags in the fit"),
}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    here = Path.cwd()
    os.chdir(folder)
    try:
        people("people.csv", 0, 8)
        with pytest.raises(SystemExit):
            main(["fit", "people.csv", "-o", "model", "-q", *map(str, SHORT)])
    finally:
        os.chdir(here)
    return folder


@pytest.mark.parametrize("name", PREDICTED)
def test_mistakes_of_predict(run, fitted, name):
    import shutil

    shutil.copytree(fitted, ".", dirs_exist_ok=True)
    shutil.copytree("model", "broken")
    Path("broken/arrays.safetensors").write_bytes(b"")
    pd.read_csv("people.csv", dtype={"region": str}).drop(columns="h").to_csv("narrow.csv", index=False)
    Path("e.csv").write_text("source,target\nx,y\n")
    arguments, wanted, text = PREDICTED[name]
    code, out, err = run("predict", *arguments)
    assert (code, out) == (wanted, "")
    assert text in " ".join(err.replace("│", " ").split()), err
    assert "Traceback" not in err


@pytest.mark.filterwarnings("ignore")
def test_a_fit_that_diverges_leaves_with_four(run):
    people("people.csv", 0, 8)
    code, _, err = run(
        "fit", "people.csv", "-o", "model", "--lr", 1e30, "--epochs", 20, "--folds", 0, "--graph", "none"
    )
    assert code == 4
    assert "lower lr" in err
    assert not Path("model").exists()


def test_a_stopped_fit_leaves_with_five_and_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people("people.csv", 0, 8)
    asked = ["fit", "people.csv", "-o", "model", "--epochs", "1000000", "--folds", "0"]
    command = [sys.executable, "-c", "from baggraph.cli import main; main()", *asked]
    heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731 -- tests in the background do not hear it
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "NO_COLOR": "1"}, preexec_fn=heard
    ) as work:
        deadline = threading.Timer(120, work.kill)
        deadline.start()
        seen = ""
        while "scores from" not in seen:
            line = work.stderr.readline()
            assert line, seen
            seen += line
        time.sleep(1.0)
        work.send_signal(signal.SIGINT)
        seen += work.stderr.read()
        deadline.cancel()
    assert work.returncode == 5, seen
    assert "interrupted; nothing was written" in seen
    assert "\x1b" not in seen
    assert names(tmp_path) == ["people.csv"]


# ---------------------------------------------------------------------- guesses


def guess(tmp_path, text, **given):
    (tmp_path / "t.csv").write_text(text)
    return guess_roles(tmp_path / "t.csv", **given)


def test_the_bag_is_a_column_in_which_the_target_is_constant(tmp_path):
    text = "hospital,slide,grade,f\nA,s1,1,0.5\nA,s1,1,0.25\nA,s2,2,0.1\nB,s3,1,0.2\nB,s3,1,0.3\n"
    found = guess(tmp_path, text)
    assert (found.bag, found.target, found.features) == ("slide", "grade", ("f",))
    assert found.left_out == {"hospital": "text"}


def test_what_is_said_stands(tmp_path):
    text = "a,b,c,d\nx,1,2,0.1\nx,1,2,0.2\ny,3,1,0.3\ny,3,1,0.1\n"
    found = guess(tmp_path, text, bag="a", target="b", leave_out=["d"])
    assert (found.bag, found.target, found.features, found.reasons) == ("a", "b", ("c",), {})
    assert found.left_out == {"d": "as asked"}


def test_labels_of_instances_are_no_features(tmp_path):
    found = guess(tmp_path, "bag,label,instance_label,f\na,1,0,0.5\na,1,1,0.1\nb,0,0,0.3\nb,0,0,0.4\n")
    assert (found.instance_y, found.features) == ("instance_label", ("f",))


def test_places_within_bags_are_features(tmp_path):
    found = guess(tmp_path, "bag,label,lon,lat\na,1,0.5,1.5\na,1,0.1,2.5\nb,0,0.3,1.0\nb,0,0.4,1.0\n")
    assert (found.coords, found.features) == ((), ("lon", "lat"))
