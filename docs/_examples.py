"""The directive ``example``: runs a script of ``examples/`` while the site is built, and shows what came of it.

Pictures and printed lines lie in ``_build/gallery`` and are made anew when the script is newer.  A script whose data
are not at hand (``:needs:``, below BAGGRAPH_DATA) is shown without them, and the page says so.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective
from sphinx.util.logging import getLogger

FOLDER = "_build/gallery"


class Example(SphinxDirective):
    """The command, what it prints, its picture, and the script."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {
        "arguments": directives.unchanged,
        "needs": directives.unchanged,
        "alt": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """As docutils calls it."""
        script = Path(self.env.srcdir).parent / "examples" / self.arguments[0]
        self.env.note_dependency(str(script))
        arguments = self.options.get("arguments", "")
        command = f"python examples/{script.name} {arguments}".strip()
        shown: list[nodes.Node] = [nodes.literal_block(command, command, language="sh")]
        needed = self.options.get("needs")
        if needed and not (Path(os.environ.get("BAGGRAPH_DATA", "nowhere")) / needed).exists():
            text = "This page was built where the data were not at hand, so its picture is missing."
            shown.append(nodes.paragraph(text, text))
        else:
            shown += self._results(script, arguments)
        code = script.read_text(encoding="utf-8")
        return [*shown, nodes.literal_block(code, code, language="python")]

    def _results(self, script: Path, arguments: str) -> list[nodes.Node]:
        """What it prints, and its picture."""
        folder = Path(self.env.srcdir) / FOLDER
        picture, printed = folder / f"{script.stem}.png", folder / f"{script.stem}.txt"
        if not picture.is_file() or picture.stat().st_mtime < script.stat().st_mtime:
            folder.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, str(script), *shlex.split(arguments), "-o", str(picture)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- a script of ours
            if done.returncode:
                getLogger(__name__).warning("%s failed: %s", script.name, done.stderr.strip().splitlines()[-1:])
                return []
            said = [line for line in done.stdout.splitlines() if str(folder) not in line]
            printed.write_text("\n".join(said), encoding="utf-8")
        text = printed.read_text(encoding="utf-8")
        image = nodes.image(uri=f"/{FOLDER}/{picture.name}", alt=self.options["alt"])
        return [nodes.literal_block(text, text, language="text"), image]


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("example", Example)
    return {"parallel_read_safe": False}
