"""What is said to people who slip: one line that names the slip and the way out, and the exit code of its kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SLIPS = {
    # ------------------------------------------------------------------ files
    "fit nothing.csv": (2, "bags: expected a file, a folder or the name of a data set, got 'nothing.csv'; there is no such file"),
    "fit sildes.csv": (2, "bags: expected a file, a folder or the name of a data set, got 'sildes.csv'; did you mean 'slides.csv'?"),
    "fit slides.xlsx": (3, "read: expected a file of a known kind, got slides.xlsx; convert it to one of .csv, .tsv, .csv.gz, .tsv.gz, .parquet, .npz, .mat, .data, .svm, .svmlight, .libsvm, or pass a folder of .h5, .npy or .pt files"),
    "fit empty.csv": (3, "table: expected a table in empty.csv, got No columns to parse from file; check the file"),
    "fit head.csv": (2, "columns: expected at least one row in head.csv, got none; check the file"),
    "fit semicolons.csv": (2, "columns: expected columns of semicolons.csv parted by commas, got one column: 'slide;patient;f;g;label', with ';' in it; write the table with commas, or with tabs as .tsv"),
    "fit void": (2, "columns: expected feature files (.h5, .hdf5, .npy, .pt) in void, got none; check the folder"),
    "fit pipeline": (2, "columns: expected feature files (.h5, .hdf5, .npy, .pt) in pipeline, got none; pass the folder in it: 'h5_files'"),
    "fit features --labels no.csv": (2, "columns: expected a table of labels, got no file at no.csv; check the path"),
    "fit features --labels strange.csv": (2, "columns: expected a column with the names of the files, without suffix, got 'slide', 'grade' in strange.csv, and files such as 's00', 's01' and 4 more; pass --bag COLUMN"),
    "fit features --labels twice.csv --target grade": (3, "features: expected one row a bag in the table of labels, got 's00' twice; drop one"),
    "fit slides.csv --labels labels.csv": (2, "columns: expected --labels beside a folder, got a file: slides.csv; the table itself has them: pass --target COLUMN"),
    # ------------------------------------------------------------------ columns
    "fit slides.csv --bag slid": (2, "columns: expected a column of the table, got 'slid'; did you mean 'slide'?"),
    "fit slides.csv --target lable": (2, "columns: expected a column of the table, got 'lable'; did you mean 'label'?"),
    "fit slides.csv --groups patiant": (2, "columns: expected a column of the table, got 'patiant'; did you mean 'patient'?"),
    "fit slides.csv --coords f": (2, "columns: expected --coords of two columns or three, got 'f'; pass --coords lat,lon, or --coords x,y"),
    "fit new.csv": (2, "columns: expected a column of labels, got none that is equal in all rows of every 'slide'; pass --target COLUMN"),
    "fit features_none.csv": (2, "columns: expected a column of numbers, to be a feature, got none; left out: patient; write text as numbers, a column a word"),
    "fit slip.csv": (2, "columns: expected numbers in column 'f', got '0,5' in row 2; mend it, or pass --leave-out f"),
    "fit nameless.csv": (2, "columns: expected a bag in every row of 'slide', got none in row 1; fill it in, or pass --bag COLUMN"),
    "fit rows.csv --target label": (2, "columns: expected one value of 'label' a bag, got several in bags of 'slide'; name another --target, or the bags with --bag COLUMN"),
    "fit differ.csv --bag slide --target label": (3, "table: expected one value of 'label' a bag, got odd and low in bag 's00'; correct the table, or name another column"),
    "fit digits-bags --groups patient": (2, "groups: expected a fact that the bags carry, got 'patient'; leave out --groups"),
    # ------------------------------------------------------------------ labels and folds
    "fit one.csv --target label": (3, "fit: expected labels of two classes or more, got only 'same'; add bags of another, or name another column with --target"),
    "fit unlabelled.csv --target label": (3, "fit: expected bags with a label, got none; fill some in, or name another column with --target"),
    "fit slides.csv --task regression": (2, "fit: expected --task auto, classes, numbers, shares, got 'regression'; did you mean 'numbers'?"),
    "fit slides.csv --encoder atention": (2, "encoder: expected the name of an encoder, got 'atention'; did you mean 'attention'?"),
    "fit slides.csv --pooling median": (2, "encoder: expected a pooling, got 'median'; did you mean 'mean'?"),
    "fit slides.csv --encoder gated-attention --pooling max": (2, "fit: expected options that gated-attention has, got --pooling max; leave it out"),
    "fit slides.csv --device gpu": (2, "device: expected the name of a device, got 'gpu'; did you mean 'cpu'?"),
    "fit slides.csv --folds 1": (2, "fit: expected --folds 0, or from 2, got 1; pass 5"),
    "compare slides.csv --folds 40": (2, "stratified folds: expected at most as many folds as labelled bags, got folds=40 for 12; lower folds"),
    "compare slides.csv --groups patient --folds 10": (3, "groups: expected at least 10 groups for 10 folds, got 6 in 'patient'; pass --folds 6"),
    # ------------------------------------------------------------------ models and runs
    "compare slides.csv --methods mi-SVN,majority": (2, "make: expected the printed name of an algorithm, got 'mi-SVN'; did you mean 'mi-SVM'?"),
    "compare slides.csv --metric acuracy": (2, "metrics: expected a metric of classification, got 'acuracy'; did you mean 'accuracy'?"),
    "predict nowhere new.csv": (3, "load: expected a folder that save wrote, got no folder nowhere; check the path"),
    "report nothing": (3, "report: expected a folder with page.json or scores, got nothing; make it with baggraph compare ... -o RUN"),
    "reproduce benchmrk": (2, "reproduce: expected an experiment, got 'benchmrk'; did you mean 'benchmark'?"),
}  # fmt: skip
USAGE = {
    "fitt slides.csv": "No such command 'fitt'. Did you mean 'fit'?",
    "fit slides.csv --taget label": "No such option: --taget",
    "fit slides.csv --folds many": "Invalid value for '--folds'",
    "predict model": "Missing argument 'TABLE|FOLDER|NAME'",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with everything that people slip on."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BAGGRAPH_OFFLINE", "1")
    rng = np.random.default_rng(0)
    rows = [
        {"slide": f"s{b:02d}", "patient": f"p{b // 2}", "f": rng.normal(), "g": rng.normal(), "label": ("low", "high")[b % 2]}
        for b in range(12)
        for _ in range(3)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    words = table["f"].astype(str)
    tables = {
        "slides": table,
        "new": table.drop(columns="label"),
        "one": table.assign(label="same"),
        "unlabelled": table.assign(label=np.nan),
        "differ": table.assign(label=["odd", *table["label"][1:]]),
        "slip": table.assign(f=[words[0], "0,5", *words[2:]]),
        "nameless": table.assign(slide=[None, *table["slide"][1:]]),
        "rows": table.assign(label=rng.normal(size=36)),
        "features_none": table[["slide", "patient", "label"]],
        "labels": table[["slide", "label"]].drop_duplicates(),
        "strange": pd.DataFrame({"slide": ["A", "B"], "grade": [1, 0]}),
        "twice": pd.DataFrame({"slide": ["s00", "s00"], "grade": [1, 0]}),
        "head": table[:0],
    }
    for name, shown in tables.items():
        shown.to_csv(f"{name}.csv", index=False)
    table.to_csv("semicolons.csv", index=False, sep=";")
    Path("empty.csv").write_text("")
    Path("slides.xlsx").write_bytes(b"PK")
    Path("void").mkdir()
    for folder in ("features", "pipeline/h5_files"):
        Path(folder).mkdir(parents=True)
        for b in range(6):
            np.save(f"{folder}/s{b:02d}.npy", rng.normal(size=(4, 3)))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("line", SLIPS)
def test_a_slip_is_named_with_the_way_out(command, line):
    code, told = SLIPS[line]
    verb = line.split()[0]
    more = ["-o", "out", *(["-q"] if verb == "compare" else [])] if verb in ("fit", "compare", "reproduce") else []
    assert command(*line.split(), *more) == (code, "", f"error {told}\n")
    assert not Path("out").exists()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("line", USAGE)
def test_a_wrong_word_shows_the_usage(command, line):
    code, out, err = command(*line.split(), *(["-o", "out"] if line.startswith("fit") else []))
    assert (code, out) == (2, "")
    assert "Usage: baggraph" in err
    assert USAGE[line] in " ".join(err.replace("│", " ").split())


@pytest.mark.usefixtures("here")
def test_fewer_folds_than_asked_are_told(command):
    code, _, err = command("fit", "slides.csv", "--folds", 9, "--epochs", 2, "--n-draws", 2, "-q", "-o", "out")
    assert code == 0
    assert err == "warning 6 folds in place of 9, as there are no more groups, or bags of a class, than that\n"


@pytest.mark.usefixtures("here")
def test_groups_stay_on_one_side_and_the_card_says_so(command):
    asked = ["fit", "slides.csv", "--groups", "patient", "--folds", 3, "--epochs", 2, "--n-draws", 2]
    code, _, err = command(*asked, "-o", "out")
    assert code == 0
    assert "scores from 3 folds that keep every patient whole" in err
    assert "folds that keep every patient whole" in Path("out/card.md").read_text(encoding="utf-8")
    assert (
        "patient (text, shared by bags: --groups patient keeps them together)"
        in command("fit", "slides.csv", "--dry-run", "-o", "other")[2]
    )


@pytest.mark.usefixtures("here")
def test_a_run_keeps_its_page(command):
    quick = ["--folds", 3, "--repeats", 1, "--groups", "patient", "--methods", "majority, bag size"]
    assert command("compare", "slides.csv", *quick, "-o", "run", "--report", "first.html")[0] == 0
    assert command("report", "run", "-o", "again.html")[0] == 0
    assert Path("first.html").read_bytes() == Path("again.html").read_bytes()
    fitted = ["fit", "slides.csv", "--folds", 2, "--epochs", 2, "--n-draws", 2, "-o", "model"]
    assert command(*fitted)[0] == 0
    code, _, err = command("report", "model")
    assert (code, "make it with baggraph fit ... --report PAGE" in err) == (3, True)
    assert command(*fitted, "--force", "--report", "page.html")[0] == 0
    assert command("report", "model", "-o", "again.html")[0] == 0
    assert Path("page.html").read_bytes() == Path("again.html").read_bytes()
