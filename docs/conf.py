"""How Sphinx builds this documentation: ``make docs``.  Nothing is fetched while it is built."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import baggraph

sys.path.insert(0, str(Path(__file__).parent))  # for the directive that runs the examples

project = "baggraph"
author = "The baggraph developers"
project_copyright = author
version = release = baggraph.__version__

extensions = ["_examples", "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"baggraph {version}"
html_show_copyright = False
html_show_sphinx = False

# The reference: one page a name, made from its docstring.
autosummary_generate = True
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template of a class lists them already

# A link to a name of ours must lead somewhere.  Names of other libraries, and short names, are shown without a
# link: the inventories of other libraries would have to come over the network.
nitpicky = True
nitpick_ignore = [("py:mod", "baggraph.data.readers")]  # a room; its names are on the page of the reference
nitpick_ignore_regex = [
    (r"py:.*", r"(?!baggraph\.).*"),
    (r"py:.*", r".*\._\w+(\..*)?"),  # what is ours may stand in a signature
    (r"py:.*", r".*\.[A-Z]"),  # type variables
]


def close_blocks_tightly(app: Any, page: str, source: list[str]) -> None:  # noqa: ARG001
    """Drop the blank line that ends a block: doctest needs it, or it would take the fence for output."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def skip_field_aliases(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool:  # noqa: ARG001
    """Leave out what a named tuple says of its fields ("Alias for field number 0"), and scikit-learn's routing."""
    routing = name == "get_metadata_routing" or (name.startswith("set_") and name.endswith("_request"))
    return skip or routing or type(value).__name__ == "_tuplegetter"


def write_factories(app: Any, *about: Any) -> tuple[str, str | None] | None:  # noqa: ARG001
    """Show the default of a field as it would be passed, so that Sphinx can read the signature."""
    signature, returns = about[-2:]
    return (signature.replace("<factory>", "{}"), returns) if signature and "<factory>" in signature else None


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", close_blocks_tightly)
    app.connect("autodoc-skip-member", skip_field_aliases)
    app.connect("autodoc-process-signature", write_factories, priority=400)  # before numpydoc, as the first answer wins
