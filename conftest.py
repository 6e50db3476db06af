"""For all tests and doctests."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("thorough", max_examples=500)  # pytest --hypothesis-profile thorough


@pytest.fixture(autouse=True)
def _leave_nothing_behind(tmp_path, monkeypatch):
    """What an example writes into the current folder lands in a temporary one."""
    monkeypatch.chdir(tmp_path)
