"""Python values as facts, arrays and graphs, and back: the few kinds that a model is made of, and no others.

What is not a plain value of JSON becomes ``{"is": kind, ...}``.  Classes are named, and looked up in the short list of
:data:`CLASSES`: nothing in a file can say what is to be imported or called.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from baggraph.baselines._codebook import Components
from baggraph.baselines._families import Anchor, View
from baggraph.baselines._kernels import InstanceKernel, Rows
from baggraph.baselines.mi_fv import Mixture
from baggraph.data.graph import BagGraph
from baggraph.data.posterior import Posterior
from baggraph.data.scaling import InstanceScaler
from baggraph.errors import DataFileError, ParameterError
from baggraph.estimators._auto_committee import Committee, Seat
from baggraph.estimators._auto_members import Expansion, ForestScorer, LatentScorer, SpreadScorer, Told
from baggraph.estimators._auto_networks import NetworkScorer
from baggraph.estimators._auto_tables import Maker
from baggraph.estimators._auto_targets import Council, Voice
from baggraph.estimators._fitted import Fitted
from baggraph.estimators._forest import Forest
from baggraph.estimators._gp_head import ProcessHead
from baggraph.estimators._joint_head import JointHead
from baggraph.estimators._parcel import Parcel
from baggraph.estimators._smoothing import Smoother
from baggraph.graphs._attach import NearestRule, OneNodeRule
from baggraph.graphs.learned import LearnedGraph
from baggraph.graphs.reweighted import EdgeRule, ReweightedWiring
from baggraph.graphs.wiring import GivenWiring, LearnedWiring, NearestWiring, Wired
from baggraph.inference.bag_graph import Plan
from baggraph.inference.calibration import Conformal
from baggraph.inference.gp import FittedProcess, Process
from baggraph.inference.gp_bags import Description, Settings
from baggraph.inference.gp_joint import JointRegression
from baggraph.inference.gp_kernels import Constant, Linear, Parameter, Spectral, Stationary
from baggraph.inference.gp_laplace import FittedClasses, FittedSide
from baggraph.inference.gp_regression import FittedRegression
from baggraph.inference.gp_scale import Scale
from baggraph.nn.losses import BinaryCrossEntropy, CrossEntropy, Gaussian, SquaredError

DATA = (InstanceScaler, Posterior, Conformal, Smoother)
NETWORKS = (Fitted, Plan, BinaryCrossEntropy, CrossEntropy, Gaussian, SquaredError)
RULES = (OneNodeRule, NearestRule, EdgeRule)
GRAPHS = (Wired, GivenWiring, LearnedWiring, NearestWiring, ReweightedWiring, LearnedGraph, *RULES)
KERNELS = (Parameter, Constant, Linear, Stationary, Spectral, Process, FittedProcess)
PROCESSES = (Settings, Description, Scale, FittedRegression, FittedSide, FittedClasses, JointRegression)
HEADS = (ProcessHead, JointHead)
TABLES = (Maker, Anchor, View, Rows, InstanceKernel, Components, Mixture)
SCORERS = (Expansion, ForestScorer, Forest, Told, SpreadScorer, LatentScorer, NetworkScorer)
COMMITTEES = (*TABLES, *SCORERS, Committee, Seat, Council, Voice)
KINDS = (*DATA, *NETWORKS, *GRAPHS, *KERNELS, *PROCESSES, *HEADS, *COMMITTEES)
CLASSES: dict[str, type] = {kind.__name__: kind for kind in KINDS}
PLAIN = (str, int, float, bool, type(None))


def parts_of(kind: type) -> list[str]:
    """Names of what an object of this class is made from."""
    if is_dataclass(kind):
        return [f.name for f in fields(kind)]
    return list(inspect.signature(kind).parameters)


@dataclass
class Packer:
    """Values to a parcel; an array or graph that is met twice is kept once.  ``prefix`` begins names of arrays."""

    parcel: Parcel = field(default_factory=Parcel)
    prefix: str = ""
    seen: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    def pack(self, value: Any, path: str) -> Any:
        """A value as JSON can hold it; ``path`` names its arrays."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, PLAIN):
            return value
        if isinstance(value, Mapping):
            return {"is": "dict", "items": [[key, self.pack(value[key], f"{path}/{key}")] for key in value]}
        if isinstance(value, list | tuple):
            items = [self.pack(item, f"{path}/{number}") for number, item in enumerate(value)]
            return items if isinstance(value, list) else {"is": "tuple", "items": items}
        if id(value) not in self.seen:
            self.seen[id(value)] = (value, self._pack_object(value, path))  # the value stays alive, and its id taken
        return self.seen[id(value)][1]

    def _pack_object(self, value: Any, path: str) -> Any:
        if isinstance(value, Tensor):
            return {"is": "tensor", "name": self._keep(value.detach().cpu().numpy(), path), "device": value.device.type}
        if isinstance(value, np.ndarray):
            if value.dtype.kind in "OU":
                return {"is": "text", "items": value.tolist()}
            return {"is": "array", "name": self._keep(value, path)}
        if isinstance(value, BagGraph):
            self.parcel.graphs.append(value)
            return {"is": "graph", "number": len(self.parcel.graphs) - 1}
        if isinstance(value, np.random.RandomState):
            return None  # the seeds that it gave are kept with the fit
        if isinstance(value, nn.Module):
            return {"is": "module", "class": f"{type(value).__module__}.{type(value).__qualname__}"}
        if isinstance(value, BaseEstimator):
            from baggraph.estimators._saving import facts_of

            return {"is": "estimator", **facts_of(value, replace(self, prefix=f"{self.prefix}{path}/"))}
        kind = type(value)
        if CLASSES.get(kind.__name__) is not kind:
            got, remedy = f"a {kind.__name__} ({path})", "fit with one of the choices that have a name"
            raise ParameterError("save", expected="a model of parts that the format knows", got=got, remedy=remedy)
        return {"is": kind.__name__} | {
            name: self.pack(getattr(value, name), f"{path}/{name}") for name in parts_of(kind)
        }

    def _keep(self, array: NDArray[Any], path: str) -> str:
        self.parcel.arrays[self.prefix + path] = np.array(array, order="C")
        return self.prefix + path


@dataclass
class Unpacker:
    """A parcel to values; ``modules`` is what stands for networks, which no file brings along."""

    parcel: Parcel
    seen: dict[str, Any] = field(default_factory=dict)

    def unpack(self, fact: Any, *, module: Any = None) -> Any:
        """The value of a fact; every network inside becomes ``module``."""
        if isinstance(fact, PLAIN):
            return fact
        if isinstance(fact, list):
            return [self.unpack(item, module=module) for item in fact]
        kind = fact["is"]
        if kind in ("array", "tensor"):
            return self._array(fact)
        if kind == "graph":
            return self.parcel.graphs[fact["number"]]
        if kind == "text":
            return np.array(fact["items"], dtype=object)
        if kind == "tuple":
            return tuple(self.unpack(fact["items"], module=module))
        if kind == "dict":
            return {key: self.unpack(item, module=module) for key, item in fact["items"]}
        if kind == "module":
            return module
        if kind == "estimator":
            from baggraph.estimators._saving import restored

            return restored(fact, self)
        return self._object(kind, fact, module)

    def _array(self, fact: Any) -> Any:
        name, device = fact["name"], fact.get("device")
        if device is None:
            return self.parcel.arrays[name]
        if name not in self.seen:
            tensor = torch.from_numpy(np.array(self.parcel.arrays[name]))
            self.seen[name] = tensor.to("cuda" if device == "cuda" and torch.cuda.is_available() else "cpu")
        return self.seen[name]

    def _object(self, kind: str, fact: dict[str, Any], module: Any) -> Any:
        if kind not in CLASSES:
            got, remedy = repr(kind), "update baggraph, or fit the model again"
            raise DataFileError("load", expected="parts that this version knows", got=got, remedy=remedy)
        names = parts_of(CLASSES[kind])
        if set(fact) != {"is", *names}:
            raise KeyError(f"{kind} has {sorted(set(fact) ^ {'is', *names})}")
        return CLASSES[kind](**{name: self.unpack(fact[name], module=module) for name in names})
