"""The documentation knows every public name, links to files that exist, and lists the files of the registry."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import baggraph
from baggraph import datasets

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference.md"
DATASETS_PAGE = ROOT / "docs" / "guide" / "datasets.md"
ENTRY = re.compile(r"^   (baggraph(?:\.\w+)+)$", re.MULTILINE)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    path
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    if path.is_file() and "_build" not in path.parts
)


# ---------------------------------------------------------------------- public names


def resolve(dotted: str) -> Any:
    """What stands under a dotted name; its home is imported by name, as a function may hide a module."""
    home, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(home), name)


def public_modules() -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(baggraph.__path__, "baggraph."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            yield importlib.import_module(info.name)


def public_names() -> Iterator[str]:
    """Every name of an ``__all__``, and the readers and writers of single formats, which have none."""
    for module in [baggraph, *public_modules()]:
        names = getattr(module, "__all__", [])
        if not names and module.__name__.startswith("baggraph.data.readers."):
            defined = inspect.getmembers(module, inspect.isfunction)
            names = [n for n, f in defined if f.__module__ == module.__name__ and n.startswith(("read_", "write_"))]
        yield from (f"{module.__name__}.{name}" for name in names)


def test_public_names_are_found() -> None:
    found = set(public_names())
    assert {"baggraph.Bags", "baggraph.data.splits.pairs", "baggraph.data.readers.matlab.read_matlab"} <= found


@pytest.mark.parametrize("name", sorted(public_names()))
def test_reference_has_every_public_name(name: str) -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    value = resolve(name)
    if isinstance(value, ModuleType | str | Mapping):
        assert f"`{name}`" in text
    else:
        assert any(resolve(entry) is value for entry in ENTRY.findall(text)), f"add {name} to docs/reference.md"


def test_every_entry_of_the_reference_is_there_once_and_documented() -> None:
    entries = ENTRY.findall(REFERENCE.read_text(encoding="utf-8"))
    assert len(entries) == len({entry.lower() for entry in entries})  # pages are files, whose case may not matter
    assert [entry for entry in entries if not inspect.getdoc(resolve(entry))] == []


def test_root_lists_its_names_once() -> None:
    assert baggraph.__all__ == sorted(set(baggraph.__all__))
    assert dir(baggraph) == baggraph.__all__
    assert all(getattr(baggraph, name) is not None for name in baggraph.__all__)


def test_type_checkers_see_the_names_of_the_root() -> None:
    tree = ast.parse(Path(inspect.getfile(baggraph)).read_text(encoding="utf-8"))
    guarded = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [i for node in guarded for i in node.body if isinstance(i, ast.ImportFrom)]
    seen = {alias.asname: f"{i.module}.{alias.name}" for i in imports for alias in i.names}
    assert sorted(map(str, seen)) == [name for name in baggraph.__all__ if name != "__version__"]
    for name, home in seen.items():
        assert resolve(home) is getattr(baggraph, str(name))


def test_the_version_is_that_of_the_package() -> None:
    """The build reads it there as well; a citation has to repeat it."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", text, re.MULTILINE).group(1) == baggraph.__version__
    assert 'path = "src/baggraph/__init__.py"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


# ---------------------------------------------------------------------- links


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_lead_somewhere(page: Path) -> None:
    targets = [
        target for target in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))) if "://" not in target
    ]
    absent = [target for target in targets if not (page.parent / target.partition("#")[0]).exists()]
    assert absent == []


def test_every_page_is_reached_from_a_table_of_contents() -> None:
    listed = set()
    for page in PAGES:
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            names = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed |= {(page.parent / f"{name}.md").resolve() for name in names}
    pages = {page.resolve() for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert listed == pages - {ROOT / "docs" / "index.md"}


# ---------------------------------------------------------------------- the table of files


def table_of_files() -> str:
    """Every file of every card, the data sets that use it, and where it comes from."""
    users: dict[Any, list[str]] = {}
    for name in datasets.names():
        for file in datasets.card(name).files:
            users.setdefault(file, []).append(name)
    lines = ["| file | data set | comes from |", "|---|---|---|"]
    for file, names in users.items():
        families = {name.partition("/")[0] for name in names}
        shown = f"`{families.pop()}/*`" if len(names) > 3 and len(families) == 1 else ", ".join(f"`{n}`" for n in names)
        source = "a public address" if file.urls else "a mirror, or by hand"
        lines.append(f"| `{file.path}` | {shown} | {source}{'; optional' if file.optional else ''} |")
    return "\n".join(lines)


def test_table_of_files_is_that_of_the_cards() -> None:
    text = DATASETS_PAGE.read_text(encoding="utf-8")
    assert table_of_files() in text, f"put this table into docs/guide/datasets.md:\n{table_of_files()}"


@pytest.mark.parametrize("name", datasets.names())
def test_page_names_every_data_set(name: str) -> None:
    text = DATASETS_PAGE.read_text(encoding="utf-8")
    family, slash, _ = name.partition("/")
    assert f"`{name}`" in text or (slash and f"`{family}/" in text)
