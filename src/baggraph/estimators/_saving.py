"""Saving fitted estimators, and loading them with every doubt spoken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from baggraph.errors import BagError, DataFileError, ParameterError
from baggraph.estimators._building import build_network
from baggraph.estimators._fitted import Fitted
from baggraph.estimators._packing import Packer, Unpacker
from baggraph.estimators._parcel import Parcel, read_parcel, write_parcel
from baggraph.inference._members import Layout
from baggraph.nn.network import Network

__all__ = ["load"]

SHOWN = ("graph_", "graphs_", "transduction_", "embedding_")  # follow from the rest
UNREADABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError, RecursionError)


def kinds() -> dict[str, Any]:
    """Estimators that can be saved, by the name that their files state."""
    from baggraph.estimators.classifier import BagGraphClassifier
    from baggraph.estimators.regressor import BagGraphRegressor

    return {kind.__name__: kind for kind in (BagGraphClassifier, BagGraphRegressor)}


def save(model: Any, folder: str | Path, *, overwrite: bool = False, notes: Any = None) -> Path:
    """See :meth:`BagGraphClassifier.save`."""
    check_is_fitted(model, "posterior_")
    if kinds().get(type(model).__name__) is not type(model):
        got, remedy = type(model).__name__, f"save one of {', '.join(kinds())}"
        raise ParameterError("save", expected="an estimator of this package", got=got, remedy=remedy)
    _refuse_changed(model)
    packer = Packer()
    parameters = {**model.get_params(deep=False), "verbose": 0}
    state = {name: value for name, value in vars(model).items() if name not in {*parameters, *SHOWN}}
    facts = {
        "kind": type(model).__name__,
        "parameters": {name: packer.pack(value, f"parameters/{name}") for name, value in parameters.items()},
        "state": {name: packer.pack(value, name.strip("_")) for name, value in state.items()},
        "buffers": packer.pack(dict(model._fitted.plan.network.named_buffers()), "buffers"),
        "notes": json.loads(json.dumps(notes)),
    }
    packer.parcel.facts = facts
    write_parcel(packer.parcel, Path(folder), overwrite=overwrite)
    return Path(folder)


def _refuse_changed(model: Any) -> None:
    """The network is built anew from the parameters, which must still be those of the fit."""
    plan = model._fitted.plan
    if str(build_network(model, model.n_features_in_, plan.loss)) != str(plan.network):
        got, remedy = "others, set since then", "fit again, or set them back"
        raise ParameterError("save", expected="the parameters of the fit", got=got, remedy=remedy)


def load(folder: str | Path, *, encoder: nn.Module | None = None) -> Any:
    """A fitted estimator from a folder that ``save`` wrote; its predictions are the same, bit for bit.

    Nothing in the folder is run: it holds numbers and text alone, and every file is compared with its digest.  What was
    noted while saving is in ``notes_``.

    Parameters
    ----------
    folder
        What ``save`` was given.
    encoder
        Where the model was fitted with an encoder of your own: a module of the same make; its weights do not matter.

    Examples
    --------
    >>> import tempfile
    >>> from baggraph.estimators import BagGraphClassifier
    >>> bags = [np.full((3, 2), float(label)) for label in (0, 2) * 10]
    >>> model = BagGraphClassifier(epochs=5, n_draws=3).fit(bags, ["calm", "stormy"] * 10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(model.save(folder + "/model"))
    >>> np.array_equal(again.predict_proba(bags), model.predict_proba(bags))
    True

    """
    parcel = read_parcel(Path(folder))
    try:
        model = _restore(parcel, encoder)
        _check(model)
    except (BagError, *UNREADABLE) as error:
        if isinstance(error, DataFileError | ParameterError) and error.stage == "load":
            raise
        got = " ".join(f"{type(error).__name__}: {error}".split())
        remedy = "the model is damaged or was altered: copy it again, or fit it again"
        raise DataFileError("load", expected="a model whose parts fit together", got=got, remedy=remedy) from error
    return model


def _restore(parcel: Parcel, encoder: nn.Module | None) -> Any:
    facts, unpacker = parcel.facts, Unpacker(parcel)
    kind = kinds().get(facts["kind"])
    if kind is None:
        remedy = "update baggraph, or fit the model again"
        raise DataFileError("load", expected=f"one of {', '.join(kinds())}", got=repr(facts["kind"]), remedy=remedy)
    own = _own_encoder(facts["parameters"]["encoder"], encoder)
    model = kind(**{name: unpacker.unpack(fact, module=own) for name, fact in facts["parameters"].items()})
    model._check_parameters()
    state = facts["state"]
    model.n_features_in_ = int(unpacker.unpack(state["n_features_in_"]))
    loss = unpacker.unpack(state["_fitted"]["plan"]["loss"])
    network = build_network(model, model.n_features_in_, loss)
    _fill_buffers(network, unpacker.unpack(facts["buffers"]))
    for name, fact in state.items():
        if hasattr(kind, name):
            raise KeyError(name)
        setattr(model, name, unpacker.unpack(fact, module=network))
    _lay_out(model._fitted)
    model.notes_ = facts["notes"]
    return model


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


def _check(model: Any) -> None:
    """Everything is about the same bags, features and members; and set what follows from the rest."""
    fitted: Fitted = model._fitted
    members, bags = fitted.embedding.shape[:2]
    wired = fitted.wired
    graphs = None if wired is None else [one.graph for one in wired]
    same_ids = [model.posterior_.ids, *([] if graphs is None else [graph.ids for graph in graphs])]
    for what, fine in (
        ("as many members as seeds", members == len(fitted.seeds)),
        ("a graph a member", wired is None or len(wired) == members),
        ("an embedding a bag", bags == len(fitted.ids)),
        ("the same bags in posterior, embedding and graph", all(np.array_equal(i, fitted.ids) for i in same_ids)),
        (f"a scaler of {model.n_features_in_} features", _scales(model.scaler_.center_, model.n_features_in_)),
        ("classes as in the posterior", _same_classes(model)),
    ):
        if not fine:
            remedy = "the model is damaged or was altered: copy it again, or fit it again"
            raise DataFileError("load", expected=what, got="parts of different models", remedy=remedy)
    model.transduction_ = model.posterior_.prediction
    model.graphs_ = graphs
    model.graph_ = None if graphs is None else graphs[0]
    model.embedding_ = fitted.embedding[0].numpy()


def _scales(center: Any, n_features: int) -> bool:
    return center is None or len(center) == n_features


def _same_classes(model: Any) -> bool:
    return np.array_equal(getattr(model, "classes_", None), model.posterior_.classes)  # type: ignore[arg-type]
