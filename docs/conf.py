"""How Sphinx builds this documentation: ``make docs``.  Nothing is fetched while it is built."""

from __future__ import annotations

from typing import Any

import baggraph

project = "baggraph"
author = "The baggraph developers"
project_copyright = author
version = release = baggraph.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
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
nitpick_ignore_regex = [(r"py:.*", r"(?!baggraph\.).*")]


def skip_field_aliases(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool:  # noqa: ARG001
    """Leave out what a named tuple says of its fields: "Alias for field number 0"."""
    return skip or type(value).__name__ == "_tuplegetter"


def plain_signature(
    app: Any,  # noqa: ARG001
    what: str,  # noqa: ARG001
    name: str,  # noqa: ARG001
    value: Any,  # noqa: ARG001
    options: Any,  # noqa: ARG001
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Write the default of a field as it would be passed, so that Sphinx can read the signature."""
    return signature and signature.replace("~typing.", "").replace("=<factory>", " = {}"), returns


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", plain_signature)
    app.connect("autodoc-skip-member", skip_field_aliases)
