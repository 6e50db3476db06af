"""Encoder and linear head as an ONNX graph for one bag, which runs without Python, torch or this package.

The graph is written down operation by operation, as the ragged operations of training have no counterpart there: for a
single bag, pooling is a reduction of the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

import baggraph
from baggraph.errors import MissingDependencyError, ParameterError
from baggraph.estimators._fitted import Fitted
from baggraph.nn.dropout import Dropout
from baggraph.nn.encoders import Attention, DeepSets, MiNet, ResPool, RffPool
from baggraph.nn.encoders._pooling import AttentionPooling, FixedPooling
from baggraph.nn.gcn import GraphConvolution
from baggraph.nn.heads import Head, PassHead
from baggraph.nn.losses import BinaryCrossEntropy, CrossEntropy

OPSET, IR_VERSION = 20, 10
ACTIVATIONS = {nn.ReLU: "Relu", nn.Tanh: "Tanh", nn.GELU: "Gelu", nn.ELU: "Elu"}
REDUCTIONS = {"max": "ReduceMax", "mean": "ReduceMean", "sum": "ReduceSum"}


def to_onnx(model: Any, path: str | Path) -> Path:
    """See :meth:`BagGraphClassifier.to_onnx`."""
    check_is_fitted(model, "posterior_")
    try:
        import onnx
    except ImportError as error:
        remedy = "pip install 'baggraph[onnx]'"
        raise MissingDependencyError("onnx", expected="the package onnx", got="none", remedy=remedy) from error
    fitted = model._fitted
    if not isinstance(fitted, Fitted) or fitted.wired is not None:
        got, remedy = "a model that asks other bags", "fit with graph=None, or use predict"
        raise ParameterError("onnx", expected="a model without a graph", got=got, remedy=remedy)
    from onnx import TensorProto, helper

    writer = _Writer(onnx)
    scaled = _scaling(writer, model.scaler_, "instances")
    members = [_member(writer, model, m, scaled) for m in range(len(fitted.seeds))]
    writer.op("Mean", *(prediction for prediction, _ in members), name="prediction")
    writer.op("Identity", members[0][1], name="embedding")
    instances = helper.make_tensor_value_info("instances", TensorProto.FLOAT, ["n_instances", model.n_features_in_])
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, None]) for name in ("prediction", "embedding")
    ]
    graph = helper.make_graph(writer.nodes, "bag", [instances], outputs, writer.initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    made.producer_name, made.producer_version = "baggraph", baggraph.__version__
    classes = getattr(model, "classes_", None)
    helper.set_model_props(made, {"classes": json.dumps(None if classes is None else classes.tolist())})
    onnx.checker.check_model(made, full_check=True)
    Path(path).write_bytes(made.SerializeToString())
    return Path(path)


class _Writer:
    """Operations and constants, in order."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def op(self, kind: str, *inputs: str, name: str | None = None, **settings: Any) -> str:
        """Add an operation of one output, and return the name of that."""
        name = name or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **settings))
        return name

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        """Add a constant, and return its name."""
        array = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        name = f"constant_{len(self.initializers)}"
        self.initializers.append(self.onnx.numpy_helper.from_array(np.array(array, dtype=dtype, order="C"), name))
        return name

    def cast(self, x: str, dtype: str) -> str:
        """Another type of number."""
        return self.op("Cast", x, to=getattr(self.onnx.TensorProto, dtype))

    def reduce(self, kind: str, x: str) -> str:
        """Over the instances: (n, h) to (1, h)."""
        return self.op(kind, x, self.constant([0], np.int64), keepdims=1)

    def count(self, x: str) -> str:
        """How many instances there are, as a number."""
        return self.cast(self.op("Gather", self.op("Shape", x), self.constant(0, np.int64)), "FLOAT")


def _scaling(w: _Writer, scaler: Any, x: str) -> str:
    """In double precision, as the scaler does it."""
    if scaler.kind == "none":
        return x
    x = w.cast(x, "DOUBLE")
    if scaler.kind == "unit-norm":
        norm = w.op("ReduceL2", x, w.constant([1], np.int64), keepdims=1)
        empty = w.op("Equal", norm, w.constant(0.0, np.float64))
        return w.cast(w.op("Div", x, w.op("Where", empty, w.constant(1.0, np.float64), norm)), "FLOAT")
    moved = w.op("Sub", x, w.constant(scaler.center_, np.float64))
    return w.cast(w.op("Div", moved, w.constant(scaler.scale_, np.float64)), "FLOAT")


def _member(w: _Writer, model: Any, m: int, x: str) -> tuple[str, str]:
    """Names of the prediction and of the embedding of one network."""
    fitted = model._fitted
    network = fitted.network
    network.load_state_dict({name: value[m] for name, value in fitted.parameters.items()}, strict=False)
    embedding = _encoder(w, network.encoder, x)
    outputs = [_meaning(w, fitted.plan.loss, output) for output in _head(w, network.head, embedding)]
    mean = w.op("Mean", *outputs)
    if hasattr(model, "classes_"):
        if fitted.plan.loss.n_outputs == 1:
            mean = w.op("Concat", w.op("Sub", w.constant(1.0), mean), mean, axis=1)
        return _tempered(w, mean, float(model.temperature_)), embedding
    if model._scales is not None:
        center, scale = (part[0, 0] for part in model._scales)
        mean = w.op("Add", w.op("Mul", mean, w.constant(scale)), w.constant(center))
    return mean, embedding


def _tempered(w: _Writer, probabilities: str, temperature: float) -> str:
    if temperature == 1.0:
        return probabilities
    logs = w.op("Log", w.op("Max", probabilities, w.constant(np.finfo(np.float32).tiny)))
    return w.op("Softmax", w.op("Div", logs, w.constant(temperature)), axis=1)


def _meaning(w: _Writer, loss: Any, x: str) -> str:
    """As ``loss.mean``."""
    if isinstance(loss, BinaryCrossEntropy):
        return w.op("Sigmoid", x)
    if isinstance(loss, CrossEntropy):
        return w.op("Softmax", x, axis=1)
    ends = (w.constant([0], np.int64), w.constant([loss.n_targets], np.int64), w.constant([1], np.int64))
    return w.op("Slice", x, *ends)


def _head(w: _Writer, head: nn.Module, embedding: str) -> list[str]:
    if isinstance(head, PassHead):
        return [embedding]
    if not isinstance(head, Head):
        raise _unknown(head)
    outputs, start = [], 0
    for width, layers in zip(head.level_widths, head.levels, strict=True):
        x = w.op("Slice", embedding, *(w.constant([place], np.int64) for place in (start, start + width, 1)))
        for number, layer in enumerate(cast(Iterable[GraphConvolution], layers)):
            x = w.op("Relu", x) if number else x
            x = w.op("Gemm", x, w.constant(layer.linear.weight), w.constant(layer.bias), transB=1)
        outputs.append(x)
        start += width
    return outputs


# ---------------------------------------------------------------------- encoders


def _encoder(w: _Writer, encoder: nn.Module, x: str) -> str:
    """(n, d) to (1, h)."""
    if isinstance(encoder, RffPool | ResPool):
        levels = []
        for layer in encoder.layers:
            x = _layer(w, layer, x)
            levels.append(x)
        pooled = [_pool(w, p, level) for p, level in zip(encoder.pools, levels[-len(encoder.pools) :], strict=True)]
        return w.op("Concat", *pooled, axis=1) if isinstance(encoder, RffPool) else w.op("Sum", *pooled)
    if isinstance(encoder, Attention):
        return _pool(w, encoder.pool, _layer(w, encoder.layers, x))
    if isinstance(encoder, DeepSets):
        return _layer(w, encoder.rho, _pool(w, encoder.pool, _layer(w, encoder.phi, x)))
    if isinstance(encoder, MiNet) and encoder.pooling in ("max", "mean"):
        scores = _layer(w, encoder.scores, x)
        if encoder.pooling == "max":
            return w.reduce("ReduceMax", scores)
        # log mean p - log mean (1 - p), with log p = -softplus(-s) and log (1 - p) = -softplus(s)
        logs = [w.op("Neg", w.op("Softplus", signed)) for signed in (w.op("Neg", scores), scores)]
        return w.op("Sub", *(w.reduce("ReduceLogSumExp", log) for log in logs))
    raise _unknown(encoder)


def _layer(w: _Writer, layer: nn.Module, x: str) -> str:
    if isinstance(layer, nn.Sequential):
        for part in layer:
            x = _layer(w, part, x)
        return x
    if isinstance(layer, nn.Identity | Dropout):
        return x
    if isinstance(layer, nn.Linear):
        return w.op("Gemm", x, w.constant(layer.weight), w.constant(layer.bias), transB=1)
    if type(layer) in ACTIVATIONS:
        return w.op(ACTIVATIONS[type(layer)], x)
    raise _unknown(layer)


def _pool(w: _Writer, pool: nn.Module, x: str) -> str:
    if isinstance(pool, FixedPooling):
        if pool.name in REDUCTIONS:
            return w.reduce(REDUCTIONS[pool.name], x)
        return w.op("Sub", w.reduce("ReduceLogSumExp", x), w.op("Log", w.count(x)))
    if isinstance(pool, AttentionPooling):
        hidden = w.op("Tanh", _layer(w, pool.hidden, x))
        if pool.gate is not None:
            hidden = w.op("Mul", hidden, w.op("Sigmoid", _layer(w, pool.gate, x)))
        scores = w.op("MatMul", hidden, w.constant(pool.score.weight.T))
        return w.reduce("ReduceSum", w.op("Mul", w.op("Softmax", scores, axis=0), x))
    raise _unknown(pool)


def _unknown(module: nn.Module) -> ParameterError:
    got = f"{type(module).__name__}" + (f" with {module.extra_repr()}" if module.extra_repr() else "")
    remedy = "use rff-pool, res-pool, deep-sets, attention or mi-net, or export your module with torch.onnx"
    return ParameterError("onnx", expected="an encoder whose operations ONNX has", got=got, remedy=remedy)
