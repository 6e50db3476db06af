"""baggraph: multiple-instance learning when bags are related to one another.

Bags are embedded, embeddings are wired into a graph, network and graph are inferred into a
posterior, posteriors are scored into a result table.  The public names below load on first use, so
that ``import baggraph`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "AutoBagClassifier": "baggraph.estimators.auto",
    "AutoBagRegressor": "baggraph.estimators.auto_regressor",
    "Bag": "baggraph.data.bags",
    "BagGraph": "baggraph.data.graph",
    "BagGraphClassifier": "baggraph.estimators.classifier",
    "BagGraphRegressor": "baggraph.estimators.regressor",
    "BagProcessClassifier": "baggraph.estimators.process",
    "BagProcessRegressor": "baggraph.estimators.process",
    "Bags": "baggraph.data.bags",
    "LearnedGraph": "baggraph.graphs.learned",
    "Posterior": "baggraph.data.posterior",
    "ResultTable": "baggraph.data.results",
    "audit": "baggraph.evaluation.audit",
    "compare": "baggraph.evaluation.compare",
    "cross_validate": "baggraph.evaluation.cross_validate",
    "algorithms": "baggraph.estimators.printed",
    "datasets": "baggraph.datasets",
    "errors": "baggraph.errors",
    "load": "baggraph.estimators._saving",
    "make": "baggraph.estimators.printed",
    "read": "baggraph.data.readers",
    "report": "baggraph.report",
}

__all__ = sorted([*_HOME, "__version__"])

if TYPE_CHECKING:
    from baggraph import datasets as datasets
    from baggraph import errors as errors
    from baggraph import report as report
    from baggraph.data.bags import Bag as Bag
    from baggraph.data.bags import Bags as Bags
    from baggraph.data.graph import BagGraph as BagGraph
    from baggraph.data.posterior import Posterior as Posterior
    from baggraph.data.readers import read as read
    from baggraph.data.results import ResultTable as ResultTable
    from baggraph.estimators._saving import load as load
    from baggraph.estimators.auto import AutoBagClassifier as AutoBagClassifier
    from baggraph.estimators.auto_regressor import AutoBagRegressor as AutoBagRegressor
    from baggraph.estimators.classifier import BagGraphClassifier as BagGraphClassifier
    from baggraph.estimators.printed import algorithms as algorithms
    from baggraph.estimators.printed import make as make
    from baggraph.estimators.process import BagProcessClassifier as BagProcessClassifier
    from baggraph.estimators.process import BagProcessRegressor as BagProcessRegressor
    from baggraph.estimators.regressor import BagGraphRegressor as BagGraphRegressor
    from baggraph.evaluation.audit import audit as audit
    from baggraph.evaluation.compare import compare as compare
    from baggraph.evaluation.cross_validate import cross_validate as cross_validate
    from baggraph.graphs.learned import LearnedGraph as LearnedGraph


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        from baggraph.errors import closest

        raise AttributeError(f"module 'baggraph' has no attribute {name!r}; {closest(name, _HOME)}")
    module = import_module(_HOME[name])
    value = module if module.__name__ == f"baggraph.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
