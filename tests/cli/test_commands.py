"""Commands as a person meets them: output, errors, exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

import baggraph as bg
from baggraph import datasets


@pytest.fixture
def run(command, monkeypatch, tmp_path):
    """Run one command without data or network."""
    monkeypatch.setenv("BAGGRAPH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BAGGRAPH_OFFLINE", "1")
    monkeypatch.delenv("BAGGRAPH_MIRROR", raising=False)
    return command


def test_version(run):
    assert run("--version") == (0, f"baggraph {bg.__version__}\n", "")


def test_list_names_every_set(run):
    code, out, _ = run("datasets", "list")
    assert code == 0
    assert all(name in out for name in datasets.names())
    assert "embedded" in out
    code, out, _ = run("datasets", "list", "--json")
    facts = {fact["name"]: fact for fact in json.loads(out)}
    assert set(facts) == set(datasets.names())
    assert facts["musk1"]["files"] == "to fetch"
    assert facts["newsgroups/sci.med"]["files"] == "by hand"


def test_info_tells_the_card(run):
    code, out, _ = run("datasets", "info", "elephant")
    assert code == 0
    assert "The smallest bag has 2 instances; the paper's table says 3." in out
    assert datasets.card("elephant").files[0].sha256 in out
    assert "citation" in json.loads(run("datasets", "info", "elephant", "--json")[1])


def test_check_lays_counts_beside_those_of_the_paper(run):
    code, out, err = run("datasets", "check")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[1] == ["digits-bags", "not", "in", "the", "paper", "160", "1,586", "64", "5", "14", "80"]
    assert (
        err
        == f"{len(datasets.names()) - 2} sets were not checked, as their files are not here: baggraph datasets list\n"
    )
    assert run("datasets", "check", "synthetic")[2] == ""
    assert run("datasets", "check", "fox")[0] == 3


def test_get_shows_the_bags_and_writes_them(run, tmp_path):
    code, out, err = run("datasets", "get", "digits-bags", "-o", str(tmp_path / "digits.parquet"))
    assert code == 0
    assert out == str(datasets.load("digits-bags")) + "\n"
    assert err == f"wrote {tmp_path / 'digits.parquet'}\n"
    assert bg.read(tmp_path / "digits.parquet") == datasets.load("digits-bags")


def test_get_tells_how_to_supply_what_is_missing(run, tmp_path):
    code, out, err = run("datasets", "get", "musk1")
    assert (code, out) == (3, "")
    assert err.startswith("error fetch: expected a source of mil_benchmark/raw/musk1.mat, got no network")
    assert "baggraph datasets get musk1 --from-file FILE" in err
    (tmp_path / "musk1.mat").write_text("not it")
    code, _, err = run("datasets", "get", "musk1", "--from-file", str(tmp_path / "musk1.mat"))
    assert code == 3
    assert "sha256" in err
    code, _, err = run("datasets", "get", "musk1", "--from-file", str(tmp_path / "nowhere.mat"))
    assert (code, err) == (
        3,
        f"error supply: expected a file, got none at {tmp_path / 'nowhere.mat'}; check the path\n",
    )


def test_get_refuses_an_unknown_kind_of_output_before_it_fetches(run, tmp_path):
    code, out, err = run("datasets", "get", "musk1", "-o", str(tmp_path / "musk1.csv"))
    assert (code, out) == (2, "")
    assert "must end in .parquet or .npz" in err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["datasets", "info", "musk"], "did you mean"),
        (["datasets", "inf"], "Did you mean 'info'?"),
        (["demoo"], "Did you mean 'demo'?"),
        (["datasets", "get"], "Missing argument"),
    ],
)
def test_wrong_usage_is_answered_with_the_nearest(run, arguments, hint):
    code, _, err = run(*arguments)
    assert code == 2
    assert hint in err


VERBS = ["demo", "audit", "compare", "fit", "predict", "graph", "report", "reproduce"]
BELOW = ["list", "info", "get", "check"]


@pytest.mark.parametrize("verb", [*VERBS, *(f"datasets {name}" for name in BELOW)])
def test_help_has_words_examples_a_line_each_and_json(run, verb):
    code, out, _ = run(*verb.split(), "--help")
    assert code == 0
    _, _, examples = out.partition("Examples:")
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    assert len([line for line in lines if line.startswith(f"baggraph {verb}")]) >= 2
    assert "  |  " not in examples
    assert "--json" in out


def test_help_of_all_says_where_to_start_and_what_codes_mean(run):
    code, out, _ = run("--help")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines() if re.match(r"│ (\w+) +[A-Z]", line)] == [*VERBS, "datasets"]
    assert "Start with: baggraph demo" in out
    assert "5 interrupted" in " ".join(out.split())


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("baggraph.evaluation.audit.audit", ["audit", "digits-bags"]), ("baggraph.datasets.card", ["datasets", "list"])],
)
def test_a_stop_leaves_with_5_wherever_it_falls(run, monkeypatch, name, arguments):
    monkeypatch.setattr(name, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    code, out, err = run(*arguments)
    assert (code, out) == (5, "")
    assert err.endswith("error interrupted\n")


def test_the_shell_completes_verbs(monkeypatch):
    for name, value in {"_BAGGRAPH_COMPLETE": "complete_bash", "COMP_WORDS": "baggraph re", "COMP_CWORD": "1"}.items():
        monkeypatch.setenv(name, value)
    assert python("from baggraph.cli import main; main([])").stdout.split() == ["report", "reproduce"]


def test_demo_audits_compares_and_writes_a_page(run, monkeypatch, tmp_path):
    from baggraph.cli import demo

    monkeypatch.setattr(demo, "EPOCHS", 3)
    code, out, _ = run("demo")
    assert code == 0
    rows = dict(re.findall(r"^(\S.*?) +(\d+\.\d) +[-\d.]+ to", out, re.M))
    assert float(rows["majority"]) == 50.0
    assert float(rows["summary SVM"]) > 60
    assert set(rows) >= {"bag size", "MI-Kernel", "network", "auto", "no graph", "learned graph"}
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "54 others" in page
    assert "Does the graph help?" in page
    assert page.count("data:image/png;base64") > 100


@pytest.mark.slow
def test_demo_guesses_the_hidden_labels(run):
    code, out, _ = run("demo")
    assert code == 0
    rows = {name: float(mean) for name, mean in re.findall(r"^(\S.*?) +(\d+\.\d) +[-\d.]+ to", out, re.M)}
    assert rows["learned graph"] > rows["summary SVM"] + 10
    assert float(re.search(r"guesses ([\d.]+) %", out).group(1)) > 85


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )


def test_import_is_light():
    heavy = ("torch", "matplotlib", "ray", "pandas", "scipy", "sklearn", "numpy")
    code = f"import sys, time; t = time.process_time(); import baggraph; t = time.process_time() - t; print(t, *[m for m in {heavy} if m in sys.modules])"
    seconds, *loaded = python(code).stdout.split()
    assert float(seconds) < 0.3
    assert loaded == []


def test_reading_bags_loads_no_torch():
    code = "import sys, baggraph as bg; bg.datasets.load('digits-bags'); print('torch' in sys.modules, 'matplotlib' in sys.modules, 'requests' in sys.modules)"
    assert python(code).stdout.split() == ["False", "False", "False"]


def test_unknown_public_names_are_answered_with_the_nearest():
    with pytest.raises(AttributeError, match=r"has no attribute 'Bgas'; did you mean 'Bags'\?"):
        _ = bg.Bgas


def test_a_closed_pipe_is_no_crash():
    command = f"{sys.executable} -c 'from baggraph.cli import main; main()' datasets list | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.startswith("name")
