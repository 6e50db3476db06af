"""Which model ``baggraph fit`` fits: the committee, unless something is asked that only a network has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from baggraph.cli._reading import Input, task_of
from baggraph.errors import ParameterError, closest

if TYPE_CHECKING:
    from baggraph.data.bags import Bags

MODELS = ("auto", "bag-graph")
GRAPHS = ("learned", "knn", "none", "given")
OF_NETWORKS = ("encoder", "pooling", "epochs", "lr", "weight_decay", "n_draws", "n_members", "calibration", "device")
FEWEST = {"classes": 3, "numbers": 10, "shares": 10}  # labelled bags (of a class), that inner folds can be made of
MOST = {"classes": 3000, "numbers": 1000, "shares": 1000}  # bags; five folds of more take a core above half an hour
MOST_BYTES = 16e9


@dataclass(frozen=True)
class Choice:
    """What the user said; ``given`` names the options that were typed or remembered."""

    task: str
    model: str | None
    graph: str | None
    coords: str | None
    given: frozenset[str]


@dataclass(frozen=True)
class Chosen:
    """A model; in words, which and why, and what its graph is; and what ``predict`` must know of it."""

    model: Any
    task: str
    name: str
    why: str
    graph: str
    notes: dict[str, Any]


def choose(found: Input, choice: Choice, settings: dict[str, Any]) -> Chosen:
    """The estimator for these bags."""
    task = task_of(found.bags, choice.task)
    name, why = kind_of(found.bags, task, choice)
    known = choice.graph or ("given" if name == "auto" else "learned")
    graph, text, notes = _graph(found, known, choice, settings["n_neighbors"])
    if name == "auto":
        model: Any = committee(task, graph, found.roles, settings["random_state"])
        return Chosen(model, task, name, why, text, notes)
    from baggraph.estimators import BagGraphClassifier, BagGraphRegressor

    if task == "classes":
        model = BagGraphClassifier(graph=graph, **settings)
    else:
        model = BagGraphRegressor(graph=graph, loss="bce" if task == "shares" else "squared", **settings)
    model._check_parameters()
    _check_names(settings, found.bags.n_features)
    return Chosen(model, task, name, why, text, notes)


def _check_names(settings: dict[str, Any], n_features: int) -> None:
    """Wrong words show before any fold is trained, and not as failures of folds."""
    from baggraph.inference._device import chosen_device
    from baggraph.nn.encoders import encoder

    pooling = {} if settings["pooling"] is None else {"pooling": settings["pooling"]}
    options = {"n_outputs": 1} if settings["encoder"] == "mi-net" else {}
    try:
        encoder(settings["encoder"], n_features, **pooling, **options)
    except TypeError as error:
        expected, got = f"options that {settings['encoder']} has", f"--pooling {settings['pooling']}"
        raise ParameterError("fit", expected=expected, got=got, remedy="leave it out") from error
    chosen_device(settings["device"])


def committee(task: str, graph: Any, roles: dict[str, Any], random_state: int) -> Any:
    """For classes or for numbers."""
    from baggraph import AutoBagClassifier, AutoBagRegressor

    if task == "classes":
        return AutoBagClassifier(graph=graph, random_state=random_state)
    return AutoBagRegressor(graph=graph, geographic=bool(roles.get("geographic")), random_state=random_state)


def kind_of(bags: Bags, task: str, choice: Choice) -> tuple[str, str]:
    """Which model, and why this one."""
    asked = choice.model
    if asked is not None and asked not in MODELS:
        remedy = closest(asked, MODELS)
        raise ParameterError("fit", expected=f"--model {' or '.join(MODELS)}", got=repr(asked), remedy=remedy)
    options = [f"--{name.replace('_', '-')}" for name in OF_NETWORKS if name in choice.given]
    options += [f"--graph {choice.graph}"] if choice.graph in ("learned", "knn") else []
    if asked == "auto" and options:
        got, remedy = options[0], "leave it out, or pass --model bag-graph"
        raise ParameterError("fit", expected="options of the committee", got=got, remedy=remedy)
    if asked is not None:
        return asked, "as asked"
    if options:
        return "bag-graph", f"{options[0]} is an option of networks"
    hindrance = unfit_for_committee(bags, task)
    return ("auto", "") if hindrance is None else ("bag-graph", hindrance)


def unfit_for_committee(bags: Bags, task: str) -> str | None:
    """Why these bags are no case for the committee, or None."""
    from baggraph.estimators._auto_tables import bytes_of_tables

    labels = bags.y[bags.labelled]
    fewest = min(np.unique(labels, return_counts=True)[1]) if task == "classes" else len(labels)
    if fewest < FEWEST[task]:
        return f"fewer than {FEWEST[task]} labelled bags" + (" of a class" if task == "classes" else "")
    if len(bags) > MOST[task]:
        return f"more than {MOST[task]:,} bags take a committee very long"
    if bytes_of_tables(bags) > MOST_BYTES:
        return f"tables of a committee would take {bytes_of_tables(bags) / 1e9:.0f} GB"
    return None


def _graph(found: Input, graph: str, choice: Choice, k: int) -> tuple[Any, str, dict[str, Any]]:
    """What the estimator takes as its graph, in words, and what ``predict`` must know of it."""
    from baggraph.data.graph import BagGraph
    from baggraph.data.readers.edges import read_edges

    bags = found.bags
    if choice.coords is not None:
        if choice.graph not in (None, "learned"):
            got = f"--coords beside --graph {graph}"
            raise ParameterError("fit", expected="one graph", got=got, remedy="leave one of them out")
        if bags.coords is None:
            raise ParameterError("fit", expected="places of bags", got="none", remedy="read them from a table")
        geographic = bool(found.roles.get("geographic"))
        made = BagGraph.from_coordinates(bags.coords, bags.ids, n_neighbors=k, geographic=geographic)
        where = "on the globe" if geographic else "in the plane"
        places = {"coords": bags.coords.tolist(), "n_neighbors": k, "geographic": geographic}
        return made, f"the {k} nearest places {where}: {made.n_edges:,} edges", {"places": places}
    if Path(graph).suffix in (".csv", ".parquet"):
        table, weight = read_edges(Path(graph))
        edges = BagGraph.from_table(table, bags.ids, weight=weight)
        return edges, f"{graph}: {edges.n_edges:,} edges", {}
    if graph not in GRAPHS:
        expected = f"--graph {', '.join(GRAPHS)} or a table of edges"
        raise ParameterError("fit", expected=expected, got=repr(graph), remedy=closest(graph, GRAPHS))
    if graph in ("none", "given"):
        known = graph == "given" and (bags.graph is not None or choice.graph is not None)
        return (graph if graph == "given" else None), "given" if known else "none", {}
    return graph, f"{graph}, about {k} a bag", {}
