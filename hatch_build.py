"""Puts the built front end of the report page into wheels and source archives."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "src/baggraph/report/assets/page.js"


class PageHook(BuildHookInterface):
    """Builds the page's script where it is missing; without Node.js, pages are made without their live part."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it packs; a checkout in use is left alone."""
        if version == "editable":
            return
        root = Path(self.root)
        if not (root / PAGE).is_file():
            try:
                runpy.run_path(str(root / "frontend" / "bundle.py"))["bundle"]()
            except (OSError, subprocess.CalledProcessError) as error:
                self.app.display_warning(f"reports will have no live graph: {error}")
                return
        build_data["artifacts"].append(PAGE)
