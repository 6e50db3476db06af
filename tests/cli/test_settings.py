"""Options that a folder remembers."""

from __future__ import annotations

import pytest

from baggraph.cli._app import run
from baggraph.cli._settings import remembered
from baggraph.errors import DataFileError, ParameterError


def test_what_the_folder_remembers_is_a_default_and_what_is_typed_wins(tmp_path, capsys):
    (tmp_path / "baggraph.toml").write_text('[datasets]\n[report]\noutput = "kept.html"\ntitle = "Remembered"\n')
    folder = tmp_path / "run"
    folder.mkdir()
    from baggraph.report.content import Content

    Content(title="Written").save(folder)
    assert run(["report", "run"]) == 0
    assert "<h1>Remembered</h1>" in (tmp_path / "kept.html").read_text(encoding="utf-8")
    assert run(["report", "run", "-o", "typed.html", "--title", "Typed"]) == 0
    assert "<h1>Typed</h1>" in (tmp_path / "typed.html").read_text(encoding="utf-8")
    capsys.readouterr()


def test_no_file_no_defaults(tmp_path):
    assert remembered({"fit": {"bag"}}, tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("[fti]\nbag = 1", ParameterError, "expected tables named after verbs, got 'fti'; did you mean 'fit'?"),
        ("bag = 1", ParameterError, r"expected tables named after verbs, got 'bag'"),
        ("[fit]\nbga = 1", ParameterError, "expected options of fit, got 'bga'; did you mean 'bag'?"),
        ("[fit\n", DataFileError, "expected TOML, got "),
    ],
)
def test_slips_in_the_file_are_named(tmp_path, text, error, said):
    (tmp_path / "baggraph.toml").write_text(text)
    with pytest.raises(error, match=said.replace("?", r"\?")):
        remembered({"fit": {"bag", "target"}, "report": {"output"}}, tmp_path)
