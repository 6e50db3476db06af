"""Commands that the documentation shows are run, on the data that the same page makes; its Python, between them."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from baggraph.cli._app import run

HOWTO = Path(__file__).parents[1] / "docs" / "howto"
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = sorted(path for path in HOWTO.glob("*.md") if BLOCK.search(path.read_text(encoding="utf-8")))


def steps(text: str) -> list[tuple[int, str, str]]:
    """Line, kind and source of every command and every example, in their order."""
    found = [(e.lineno, "python", e.source) for e in doctest.DocTestParser().get_examples(text) if not wrong(e)]
    for block in BLOCK.finditer(text):
        first = text[: block.start()].count("\n") + 1
        found += [(first + i, "shell", line) for i, line in enumerate(block.group(1).splitlines())]
    return sorted(found)


def wrong(example: doctest.Example) -> bool:
    return example.exc_msg is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_commands_of_a_page_do_what_it_says(page, capsys):
    names: dict[str, object] = {}
    commands = 0
    for line, kind, source in steps(page.read_text(encoding="utf-8")):
        if kind == "python":
            exec(compile(source, f"{page.name}:{line}", "single"), names)
            continue
        verb, *arguments = shlex.split(source, comments=True)
        assert verb == "baggraph", f"{page.name}, line {line}: {source}"
        code = run(arguments)
        assert code == 0, f"{page.name}, line {line}: {source}\n{capsys.readouterr().err}"
        commands += 1
    assert commands
