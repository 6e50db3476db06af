"""From the name of a row to an estimator, for one set."""

from __future__ import annotations

from typing import Any

from baggraph.data.stacked import AbstractSeededStack, AbstractStacked
from baggraph.errors import ParameterError, closest
from baggraph.estimators.auto import AutoBagClassifier
from baggraph.estimators.auto_regressor import AutoBagRegressor
from baggraph.estimators.printed import make
from baggraph.estimators.process import BagProcessRegressor
from baggraph.evaluation._tasks import task_of_labels
from baggraph.evaluation.metrics import Metric
from baggraph.experiments import classical
from baggraph.experiments._material import Material
from baggraph.experiments._published import PublishedRents
from baggraph.experiments._scores import SCORES
from baggraph.experiments._winner import Winner
from baggraph.experiments.recipe import Method, Recipe, Tier
from baggraph.graphs.shuffled import ShuffledWiring

__all__ = ["estimator", "metrics_of"]

ENGINES = ("make", "auto", "classical", "published", "winner", "process")


def estimator(method: Method, dataset: str, material: Material, tier: Tier, seed: int) -> Any:
    """The estimator, or grid of estimators, behind a row."""
    name = method.make or method.name
    if method.engine not in ENGINES:
        remedy = closest(method.engine, ENGINES)
        raise ParameterError("recipe", expected="an engine", got=repr(method.engine), remedy=remedy)
    if method.engine == "classical":
        return classical.methods(material.bags)[name]
    if method.engine == "published":
        made: Any = PublishedRents(**method.parameters)
    elif method.engine == "winner":
        made = Winner(make(name, **method.parameters))
    elif method.engine == "auto":
        made = _committee(material)(**method.parameters)
    elif method.engine == "process":
        made = BagProcessRegressor(**method.parameters)
    else:
        made = make(name, dataset=dataset, **method.parameters)
    if isinstance(made, AbstractStacked):
        _seeded(made, seed, tier)
    if method.graph is not None:
        made.set_params(**_wired(made, method.graph, material))
    return made


def _committee(material: Material) -> Any:
    return AutoBagClassifier if task_of_labels(material.bags) == "classification" else AutoBagRegressor


def is_network(method: Method) -> bool:
    """Whether a row is trained as a stack whose members have seeds of their own."""
    return method.engine == "make" and isinstance(make(method.make or method.name), AbstractSeededStack)


def _seeded(made: Any, seed: int, tier: Tier) -> None:
    made.set_params(random_state=seed, **_known(made, tier.networks))


def _known(made: Any, overruling: Any) -> dict[str, Any]:
    """What a tier overrules of a network; draws only where it has some."""
    if "epochs" not in made.get_params():
        return {}
    return {name: value for name, value in overruling.items() if name != "n_draws" or getattr(made, name, 0)}


def _wired(made: Any, name: str, material: Material) -> dict[str, Any]:
    """Parameters that give a method a known graph, or its own with the bags exchanged."""
    if name != "shuffled":
        graph = material.graph(name)
        takes_observed = getattr(made, "observed", None) is not None
        return {"observed": graph} if takes_observed else {"graph": graph}
    from baggraph.estimators._building import build_wiring

    inner = build_wiring(made, material.bags)
    if inner is None:
        remedy = "leave graph='shuffled' out"
        raise ParameterError("recipe", expected="a method with a graph", got="none", remedy=remedy)
    return {"graph": ShuffledWiring(inner)}


def metrics_of(recipe: Recipe, method: Method, made: Any) -> list[Metric]:
    """Scores of a row: probabilities are asked of networks alone, as those of machines cost five further fits."""
    scores = [SCORES[name] for name in method.metrics or recipe.metrics]
    if isinstance(made, AbstractStacked) or scores[0].task == "regression":
        return scores
    return [metric for metric in scores if metric.needs == "decisions"]
