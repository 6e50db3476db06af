"""The command line: ``baggraph VERB``.  One file a verb, and no decision that a Python user could not make."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with an exit code that means something.

    0 fine, 1 a bug of ours, 2 wrong usage, 3 data that cannot be read, fetched or trusted, 4 not converged, 5 stopped.
    """
    # Before torch is loaded: threads that wait for each other asleep cost nothing where other programs need the cores;
    # awake, as is the default, they made the demo three times dearer on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from baggraph.cli._app import run

    sys.exit(run(sys.argv[1:] if arguments is None else arguments))
