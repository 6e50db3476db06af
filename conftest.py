"""For all tests and doctests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

collect_ignore_glob = ["docs/_*.py", "docs/conf.py"]  # they belong to the site, and need what it is built with

settings.register_profile("thorough", max_examples=500)  # pytest --hypothesis-profile thorough


@pytest.fixture(autouse=True)
def _leave_nothing_behind(tmp_path, monkeypatch):
    """What an example writes into the current folder lands in a temporary one."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def real(request):
    """The folder of real data, for tests that name the path they need: ``@pytest.mark.needs("mil_benchmark/raw")``."""
    folder, needed = os.environ.get("BAGGRAPH_DATA"), request.node.get_closest_marker("needs").args[0]
    if not folder or not (Path(folder) / needed).exists():
        pytest.skip(f"BAGGRAPH_DATA names no folder with {needed}")
    return Path(folder)
