"""Where a number comes from."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

import baggraph
from baggraph.data._fingerprint import digest, plain
from baggraph.evaluation._running import Outcome
from baggraph.evaluation.metrics import Metric

LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "torch")


def provenance(name: str, method: Any, division: NDArray[np.int16], setting: str) -> dict[str, Any]:
    """What all rows of one method share."""
    estimator = method.estimator if hasattr(method, "run_in") else method
    seed = getattr(estimator, "random_state", 0)
    return {
        "method": name,
        "seed": seed if isinstance(seed, int | np.integer) and not isinstance(seed, bool) else 0,
        "code_version": baggraph.__version__,
        "recipe_sha256": digest({"method": method, "splits": division, "setting": setting}),
        "device": str(getattr(estimator, "device", None) or "cpu"),
        "libraries": library_versions(),
    }


@cache
def library_versions() -> str:
    """Versions of what the numbers are computed with, as JSON.

    >>> sorted(json.loads(library_versions()))[:2]
    ['numpy', 'pandas']
    """
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return json.dumps(found)


def rows_of(
    known: dict[str, Any], outcome: Outcome, metrics: Iterable[Metric], labels: NDArray[Any]
) -> list[dict[str, Any]]:
    """A row a metric of one division."""
    chosen = None if outcome.chosen is None else json.dumps(plain(outcome.chosen))
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    known = known | {"wall_time": outcome.seconds, "chosen": chosen, "finished": finished, "error": outcome.error}
    rows = []
    for metric in metrics:
        value, note = (np.nan, None) if outcome.answer is None else outcome.answer.score(metric, labels)
        rows.append(known | {"metric": metric.name, "value": value, "note": note})
    return rows
