"""Pages of runs: what they show is kept in the folder, so that ``baggraph report`` draws them again."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from baggraph.cli._console import err

if TYPE_CHECKING:
    from baggraph.data.bags import Bags
    from baggraph.data.results import ResultTable

PAGE = "page"  # folder beside a model


def command_line() -> str:
    """What was typed, to be typed again."""
    return "baggraph " + shlex.join(sys.argv[1:])


def write_run(
    folder: Path, table: ResultTable | None, bags: Bags, page: Path, *, quiet: bool = False, **about: Any
) -> Path:
    """Audit the bags, keep all that the page shows in the folder, and write the page."""
    from baggraph.evaluation.audit import audit
    from baggraph.report.content import Content
    from baggraph.report.html import write_page

    with err.status("audit and page"):
        content = Content.of(bags, audit=audit(bags), commands=[command_line()], **about)
        content.save(folder)
        written = write_page(content, table, page)
    if not quiet:
        err.print(f"{written}: one file, open it in a browser", markup=False)
    return written
