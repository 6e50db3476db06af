"""What all tests of the command line run it by."""

from __future__ import annotations

import pytest

from baggraph.cli import main


@pytest.fixture
def command(capsys):
    """Run ``baggraph`` with these arguments; returns exit code, standard output, standard error."""

    def call(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        seen = capsys.readouterr()
        return left.value.code, seen.out, seen.err

    return call
