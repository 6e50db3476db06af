"""Progress of a fit, for people who watch a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from baggraph.inference.bag_graph import Progress

EVERY = 2.0  # seconds between lines


def teller(verbose: int | bool | Progress) -> Progress | None:
    """What is called as ``(phase, done, total)``: nothing, lines on standard error, or a function of the caller."""
    if callable(verbose):
        return verbose
    return _lines() if verbose else None


def _lines(clock: Callable[[], float] = time.monotonic) -> Progress:
    current, begun, told = "", clock(), clock()

    def tell(phase: str, done: int, total: int) -> None:
        nonlocal current, begun, told
        now = clock()
        if phase != current:
            current, begun, told = phase, now, now
        if now - told < EVERY and done < total:
            return
        told, passed = now, now - begun
        left = passed / max(done, 1) * (total - done)
        rate = done / passed if passed else 0.0
        text = f"{phase}: {done:,} of {total:,}, {rate:,.0f} a second, {left:.0f} s left"
        sys.stderr.write(text + "\n")

    return tell


def counter(verbose: int | bool | Progress, phase: str, total: int) -> Callable[[str], None] | None:
    """What is called when one of so many parts is done, whatever its name; None where nobody listens."""
    tell = teller(verbose)
    if tell is None:
        return None
    done = 0

    def count(_name: str) -> None:
        nonlocal done
        done += 1
        tell(phase, done, total)

    return count
