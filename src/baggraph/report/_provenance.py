"""Where a page comes from: commands, bags, model, scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any

from baggraph import __version__
from baggraph.data.results import ResultTable
from baggraph.report._pieces import html_table
from baggraph.report.content import Content


def provenance(content: Content, table: ResultTable | None) -> str:
    """All that is needed to get the page again, and to know what it is about."""
    parts = []
    if content.commands:
        commands = escape("\n".join(content.commands))
        parts.append(f'<p>To get this page again:</p><pre tabindex="0">{commands}</pre>')
    facts: list[tuple[str, Mapping[str, Any]]] = [("The bags", content.data)]
    if table is not None and len(table):
        facts.append(("The scores", _origin(table)))
    tables = [_facts(title, about) for title, about in facts if about]
    parts.append(f'<div class="two">{"".join(tables)}</div>')
    if content.model:
        name = f"The model: {content.model.get('class', '')}, all parameters"
        parts.append(f"<details><summary>{escape(name)}</summary>{_facts('The model', content.model)}</details>")
    if content.version != __version__:
        parts.append(f"<p>Computed by baggraph {escape(content.version)}, drawn by {__version__}.</p>")
    return "\n".join(parts)


def _facts(title: str, about: Mapping[str, Any]) -> str:
    return html_table(["", title], [[k, _text(v)] for k, v in about.items()])


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _origin(table: ResultTable) -> dict[str, str]:
    names = ("code_version", "data_sha256", "device", "libraries", "setting")
    found = {name.replace("_", " "): "; ".join(_readable(str(v)) for v in table.names(name) if v) for name in names}
    return {name: value for name, value in found.items() if value}


def _readable(text: str) -> str:
    """Versions of libraries are kept as JSON.

    >>> _readable('{"numpy": "2.4.6"}'), _readable("cpu")
    ('numpy 2.4.6', 'cpu')
    """
    if not text.startswith("{"):
        return text
    return ", ".join(f"{name} {version}" for name, version in json.loads(text).items())
