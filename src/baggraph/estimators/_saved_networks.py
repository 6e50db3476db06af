"""What saving and loading ask of models with a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor, nn

from baggraph.errors import DataFileError, ParameterError
from baggraph.estimators._building import build_network
from baggraph.estimators._fitted import Fitted
from baggraph.estimators._gp_head import graphs_of
from baggraph.estimators._packing import Packer, Unpacker
from baggraph.inference._members import Layout
from baggraph.nn.network import Network

DERIVED = ("graph_", "graphs_", "transduction_", "embedding_")  # follow from the rest


def more_facts(model: Any, packer: Packer) -> dict[str, Any]:
    """Buffers of the network, which is built anew from the parameters: these must still be those of the fit."""
    plan = model._fitted.plan
    if str(build_network(model, model.n_features_in_, plan.loss)) != str(plan.network):
        got, remedy = "others, set since then", "fit again, or set them back"
        raise ParameterError("save", expected="the parameters of the fit", got=got, remedy=remedy)
    return {"buffers": packer.pack(dict(plan.network.named_buffers()), "buffers")}


def restore(kind: Any, facts: dict[str, Any], unpacker: Unpacker, encoder: nn.Module | None) -> tuple[Any, Network]:
    """An estimator with its parameters, and the network that stands where the state has one."""
    own = _own_encoder(facts["parameters"]["encoder"], encoder)
    model = kind(**{name: unpacker.unpack(fact, module=own) for name, fact in facts["parameters"].items()})
    model._check_parameters()
    state = facts["state"]
    loss = unpacker.unpack(state["_fitted"]["plan"]["loss"])
    network = build_network(model, int(unpacker.unpack(state["n_features_in_"])), loss)
    _fill_buffers(network, unpacker.unpack(facts["buffers"]))
    return model, network


def _own_encoder(fact: Any, encoder: nn.Module | None) -> nn.Module | None:
    """The module that the user has to bring along, or None where the encoder has a name."""
    needed = isinstance(fact, dict) and fact["is"] == "module"
    if needed and encoder is None:
        expected, got = f"the encoder that the model was fitted with ({fact['class']})", "none"
        raise ParameterError("load", expected=expected, got=got, remedy="pass encoder=, a new one of the same make")
    if encoder is not None and not needed:
        got = f"an encoder for a model with {fact!r}"
        raise ParameterError("load", expected="no encoder", got=got, remedy="leave it out")
    return encoder


def _fill_buffers(network: Network, buffers: dict[str, Tensor]) -> None:
    known = dict(network.named_buffers())
    _same_shapes(known, {name: tuple(value.shape) for name, value in buffers.items()})
    for name, value in buffers.items():
        known[name].copy_(value)


def _same_shapes(made: Mapping[str, Tensor], saved: Mapping[str, tuple[int, ...]], *front: int) -> None:
    """What is in the files must be what a network of these parameters has, ``front`` members of it."""
    shapes = {name: (*front, *value.shape) for name, value in made.items()}
    wrong = [name for name in {**shapes, **saved} if shapes.get(name) != saved.get(name)]
    if wrong:
        expected = f"{wrong[0]} of shape {shapes.get(wrong[0])}, as the parameters of the model say"
        remedy = "pass the encoder that it was fitted with" if wrong[0].startswith("encoder") else "fit it again"
        raise DataFileError("load", expected=expected, got=f"{saved.get(wrong[0])}", remedy=remedy)


def _lay_out(fitted: Fitted) -> None:
    """Parameters in rows of one block, as while training: where numbers lie can decide how products are rounded."""
    layout = Layout.of(fitted.plan.network)
    for given in [fitted.parameters] + ([] if fitted.sources is None else [fitted.sources]):
        shapes = {name: tuple(value.shape) for name, value in given.items()}
        _same_shapes(dict(fitted.plan.network.named_parameters()), shapes, len(fitted.seeds))
        block = fitted.embedding.new_zeros(len(fitted.seeds), layout.width)
        views = layout.views(block)
        for name, value in given.items():
            views[name].copy_(value)
            given[name] = views[name]


def complete(model: Any) -> list[tuple[str, bool]]:
    """Set what follows from the rest, and say what must hold, and whether it does."""
    fitted: Fitted = model._fitted
    _lay_out(fitted)
    members, bags = fitted.embedding.shape[:2]
    wired = fitted.wired
    graphs = None if wired is None else [one.graph for one in wired]
    if model.head == "gp":
        graphs = graphs_of(model._heads)
    same_ids = [model.posterior_.ids, *([] if graphs is None else [graph.ids for graph in graphs])]
    model.transduction_ = model.posterior_.prediction
    model.graphs_ = graphs
    model.graph_ = None if graphs is None else graphs[0]
    model.embedding_ = fitted.embedding[0].numpy()
    return [
        ("as many members as seeds", members == len(fitted.seeds)),
        ("a graph a member", wired is None or len(wired) == members),
        ("an embedding a bag", bags == len(fitted.ids)),
        ("the same bags in posterior, embedding and graph", all(np.array_equal(i, fitted.ids) for i in same_ids)),
        (f"a scaler of {model.n_features_in_} features", _scales(model.scaler_.center_, model.n_features_in_)),
        ("classes as in the posterior", _same_classes(model)),
    ]


def _scales(center: Any, n_features: int) -> bool:
    return center is None or len(center) == n_features


def _same_classes(model: Any) -> bool:
    return np.array_equal(getattr(model, "classes_", None), model.posterior_.classes)  # type: ignore[arg-type]
