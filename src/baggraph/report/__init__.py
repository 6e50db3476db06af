"""From result tables, posteriors and graphs to what people look at: figures, tables, one offline page.

The room is callable, as ``baggraph.report(table, "report.html")`` is what people type:
:func:`baggraph.report.html.report` answers.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    def __call__(self, table: Any = None, path: str | Path = "report.html", **about: Any) -> Path:
        from baggraph.report.html import report

        return report(table, path, **about)


sys.modules[__name__].__class__ = _Room
