"""What saving and loading ask of Gaussian processes, which are plain numbers from the parameters on."""

from __future__ import annotations

from typing import Any

import numpy as np

from baggraph.errors import ParameterError
from baggraph.estimators._packing import Packer, Unpacker

DERIVED = ("transduction_",)


def more_facts(_model: Any, _packer: Packer) -> dict[str, Any]:
    """None."""
    return {}


def restore(kind: Any, facts: dict[str, Any], unpacker: Unpacker, encoder: Any) -> tuple[Any, None]:
    """An estimator with its parameters."""
    if encoder is not None:
        got, remedy = f"an encoder for a {kind.__name__}", "leave it out"
        raise ParameterError("load", expected="no encoder", got=got, remedy=remedy)
    return kind(**{name: unpacker.unpack(fact) for name, fact in facts["parameters"].items()}), None


def complete(model: Any) -> list[tuple[str, bool]]:
    """Set what follows from the rest, and say what must hold, and whether it does."""
    model.transduction_ = model._shaped(model.posterior_)
    rows = model.fitted_.description.rows
    classes = getattr(model, "classes_", None)
    graph = model.graph_
    return [
        ("the same bags in posterior and graph", graph is None or np.array_equal(graph.ids, model._ids)),
        ("the same bags in posterior and fit", np.array_equal(model.posterior_.ids, model._ids)),
        ("a row a bag", all(len(values) == len(model._ids) for values in rows.values())),
        ("classes as in the posterior", np.array_equal(classes, model.posterior_.classes)),  # type: ignore[arg-type]
    ]
