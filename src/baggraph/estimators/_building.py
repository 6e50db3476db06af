"""From the parameters of an estimator to a network, a wiring and a plan."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import nn

from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.data.scaling import InstanceScaler
from baggraph.errors import InvalidGraphError, ParameterError, closest
from baggraph.graphs.learned import LearnedGraph
from baggraph.graphs.reweighted import ReweightedWiring
from baggraph.graphs.wiring import AbstractWiring, GivenWiring, LearnedWiring, NearestWiring
from baggraph.inference._device import chosen_device
from baggraph.inference.bag_graph import Plan
from baggraph.nn.encoders import ENCODERS, encoder
from baggraph.nn.gcn import GraphConvolution
from baggraph.nn.heads import Head, PassHead
from baggraph.nn.losses import AbstractLoss
from baggraph.nn.network import Network
from baggraph.nn.own_neighbors import OwnNeighbors

GRAPHS = ("given", "knn", "learned", "reweighted")
HEADS = ("gcn", "gp", "linear", "restart", "sage")


def build_network(estimator: Any, n_features: int, loss: AbstractLoss) -> Network:
    """A network for one member."""
    options = dict(estimator.encoder_options or {})
    given = estimator.encoder
    if isinstance(given, nn.Module):
        if options or estimator.pooling is not None:
            got = "a module beside pooling or encoder_options"
            raise wrong(estimator, "options only for an encoder by name", got, "configure the module itself")
        own = copy.deepcopy(given)
        return Network(own, _head(estimator, _level_widths(estimator, own, n_features), loss))
    if estimator.pooling is not None:
        options["pooling"] = estimator.pooling
    if given == "mi-net":
        _refuse_with_pass(estimator)
        options["n_outputs"] = loss.n_outputs
    made = _called(estimator, encoder, given, n_features, **options)
    return Network(
        made, PassHead() if given == "mi-net" else _head(estimator, _level_widths(estimator, made, n_features), loss)
    )


def _called(estimator: Any, make: Callable[..., nn.Module], name: Any, n_features: int, **options: Any) -> nn.Module:
    if name not in ENCODERS:
        raise wrong(estimator, "the name of an encoder, or a module", repr(name), closest(str(name), ENCODERS))
    try:
        return make(name, n_features, **options)
    except TypeError as error:
        raise wrong(estimator, f"options of {name!r}", str(error), "look at its page in the reference") from error


def _level_widths(estimator: Any, given: nn.Module, n_features: int) -> tuple[int, ...]:
    """Widths of the levels of an encoder; one that does not tell them has one level, as wide as two empty bags show."""
    told = getattr(given, "level_widths", None)
    if told:
        return tuple(told)
    device, floats = next(((p.device, p.dtype) for p in given.parameters()), (torch.device("cpu"), torch.float32))
    block, offsets = torch.zeros(2, n_features, device=device, dtype=floats), torch.arange(3, device=device)
    expected = f"an encoder from instances (N, {n_features}) and offsets (B + 1) to one row a bag (B, h)"
    try:
        with torch.no_grad():
            shape = tuple(copy.deepcopy(given).eval()(block, offsets).shape)
    except Exception as error:  # whatever a module of the user raises
        raise wrong(estimator, expected, f"{type(error).__name__}: {error}", "call it on two small bags") from error
    if len(shape) != 2 or shape[0] != 2:
        raise wrong(estimator, expected, f"shape {shape} for two bags", "pool the instances of every bag")
    return (shape[1],)


def _head(estimator: Any, widths: tuple[int, ...], loss: AbstractLoss) -> Head:
    kinds: dict[str, Callable[[int, int], nn.Module]] = {
        "restart": partial(OwnNeighbors, steps=int(estimator.steps), restart=float(estimator.restart)),
        "sage": OwnNeighbors,
    }
    return Head(
        widths,
        loss.n_outputs,
        dropout=estimator.dropout,
        hidden=tuple(estimator.hidden),
        layer=kinds.get(estimator.head, GraphConvolution),
        n_labels=loss.n_targets + 1 if estimator.label_inputs and estimator.graph is not None else 0,
    )


def _refuse_with_pass(estimator: Any) -> None:
    """The embedding of mi-Net is the output: there is no layer that could be another, or take labels."""
    if estimator.head in ("restart", "sage") or estimator.label_inputs:
        got = "label_inputs" if estimator.label_inputs else f"head={estimator.head!r}"
        raise wrong(estimator, "head='gcn' without label_inputs for encoder='mi-net'", got, "use encoder='mi-net-bag'")


def build_scaler(estimator: Any, bags: Bags) -> InstanceScaler:
    """The scaler, fitted on all bags that ``fit`` was given; ``"auto"`` keeps sparse instances sparse."""
    kind = estimator.scaling
    if kind == "auto":
        kind = "maxabs" if bags.is_sparse else "standard"
    return InstanceScaler(kind).fit(bags)


def build_wiring(estimator: Any, bags: Bags) -> AbstractWiring | None:
    """How the graph comes about; None for the base model."""
    _check_head(estimator)
    graph, k = estimator.graph, estimator.n_neighbors
    if graph is None or estimator.head == "linear":
        return None
    if isinstance(graph, LearnedGraph):
        return LearnedWiring(graph)
    if isinstance(graph, AbstractWiring):
        return graph
    if isinstance(graph, BagGraph) or graph == "given":
        return GivenWiring(known_graph(estimator, graph, bags))
    if graph == "reweighted":
        return ReweightedWiring(known_graph(estimator, "given", bags))
    if graph == "knn":
        return NearestWiring(k, str(chosen_device(estimator.device)))
    if graph == "learned":
        own = LearnedGraph(k, estimator.candidate_ratio, device=estimator.device, precision="float64")
        own.observed = _observed(estimator, bags)
        own.trust = 0.0 if own.observed is None else estimator.trust
        return LearnedWiring(own)
    raise wrong(
        estimator, f"graph to be None, a BagGraph, or one of {GRAPHS}", repr(graph), closest(str(graph), GRAPHS)
    )


def _check_head(estimator: Any) -> None:
    """The head is known, and what else is asked for goes with it."""
    if estimator.head not in HEADS:
        raise wrong(estimator, f"head to be one of {HEADS}", repr(estimator.head), closest(str(estimator.head), HEADS))
    if estimator.label_inputs and estimator.head in ("gp", "linear"):
        got, remedy = f"label_inputs with head={estimator.head!r}", "use head='gcn', 'sage' or 'restart'"
        raise wrong(estimator, "a head that hears neighbours for label_inputs", got, remedy)
    if estimator.smoothing is not None and estimator.head == "gp":
        remedy = "leave it out: the process has the graph already"
        raise wrong(estimator, "a head of layers for smoothing", "head='gp'", remedy)


def known_graph(estimator: Any, graph: BagGraph | str, bags: Bags) -> BagGraph:
    """The graph that was passed, or that the bags carry."""
    if isinstance(graph, BagGraph):
        return graph
    if bags.graph is None:
        stage = type(estimator).__name__
        remedy = "pass Bags with a graph, or a BagGraph"
        raise InvalidGraphError(stage, expected="bags with a graph of their own", got="none", remedy=remedy)
    return bags.graph


def _observed(estimator: Any, bags: Bags) -> BagGraph | None:
    observed = estimator.observed
    if observed is None:
        return None
    if not isinstance(observed, BagGraph) and observed != "given":
        raise wrong(estimator, "observed to be None, 'given' or a BagGraph", repr(observed), "pass one of these")
    return known_graph(estimator, observed, bags)


def build_plan(estimator: Any, network: Network, loss: AbstractLoss, bags: Bags) -> Plan:
    """Algorithm 1 with the settings of an estimator."""
    training: Mapping[str, Any] = {
        "lr": estimator.lr,
        "weight_decay": estimator.weight_decay,
        "epochs": estimator.epochs,
        "device": estimator.device,
        "precision": estimator.precision,
    }
    wiring = build_wiring(estimator, bags)
    wiring = None if estimator.head == "gp" else wiring
    return Plan(
        network=network,
        loss=loss,
        wiring=wiring,
        observed=None if wiring is None or not wiring.needs_embeddings else _observed(estimator, bags),
        embedding=estimator.embedding,
        rounds=estimator.rounds,
        setting=estimator.setting,
        n_draws=estimator.n_draws,
        n_graph_draws=estimator.n_graph_draws,
        training=training,
    )


def wrong(estimator: Any, expected: str, got: str, remedy: str) -> ParameterError:
    """An error that names the estimator."""
    return ParameterError(type(estimator).__name__, expected=expected, got=got, remedy=remedy)
