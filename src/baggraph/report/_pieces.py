"""Pieces of a page: its assets, and tables from rows of text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any


def asset(name: str) -> str:
    """A file that lies beside this one."""
    return (files("baggraph.report") / "assets" / name).read_text(encoding="utf-8")


def bundle() -> str | None:
    """The built front end; None in a checkout where it was not built."""
    path = files("baggraph.report") / "assets" / "page.js"
    return path.read_text(encoding="utf-8") if path.is_file() else None


@cache
def environment() -> Any:
    """Templates that escape what they are given."""
    import jinja2

    return jinja2.Environment(loader=jinja2.FunctionLoader(asset), autoescape=True, trim_blocks=True)


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", *, right: int = 99) -> str:
    """Rows of text under named columns; those from number ``right`` on are numbers.

    >>> "<td>a &amp; b</td>" in html_table(["bag", "what"], [["1", "a & b"]])
    True
    """
    name = caption or columns[-1]
    template = environment().get_template("table.html.j2")
    return str(template.render(columns=columns, rows=rows, caption=caption, name=name, right=right))
