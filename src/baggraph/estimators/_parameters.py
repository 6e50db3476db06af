"""Parameters of both estimators: stored as given, known by name, checked in fit."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from baggraph.data.graph import BagGraph
from baggraph.errors import ParameterError, UnknownParameterError, closest
from baggraph.estimators._building import wrong


class BagGraphParameters(BaseEstimator):
    """The constructor, and what scikit-learn asks of parameters."""

    __signature__: inspect.Signature

    def __init_subclass__(cls, **more: Any) -> None:
        """Show the parameters of all constructors as one list, to people and to scikit-learn."""
        super().__init_subclass__(**more)
        makers = [
            vars(kind)["__init__"]
            for kind in reversed(cls.__mro__)
            if issubclass(kind, BagGraphParameters) and "__init__" in vars(kind)
        ]
        parts = [inspect.signature(maker).parameters.values() for maker in makers]
        keywords = list({p.name: p for part in parts for p in part if p.kind is p.KEYWORD_ONLY}.values())
        cls.__signature__ = inspect.Signature(keywords)
        if "__init__" in vars(cls):  # by which scikit-learn knows what differs from the defaults
            itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
            vars(cls)["__init__"].__signature__ = inspect.Signature([itself, *keywords])

    def __new__(cls, *_args: Any, **given: Any) -> BagGraphParameters:
        for name in given:
            if name not in cls.__signature__.parameters:
                expected, remedy = "a known parameter", closest(name, cls.__signature__.parameters)
                raise UnknownParameterError(cls.__name__, expected=expected, got=repr(name), remedy=remedy)
        return super().__new__(cls)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(cls.__signature__.parameters)

    def __init__(
        self,
        *,
        encoder: Any = "rff-pool",
        encoder_options: Mapping[str, Any] | None = None,
        pooling: str | None = None,
        hidden: Sequence[int] = (),
        dropout: float = 0.5,
        head: str = "gcn",
        steps: int = 10,
        restart: float = 0.1,
        label_inputs: bool = False,
        smoothing: str | None = None,
        graph: Any = "learned",
        n_neighbors: int = 3,
        candidate_ratio: int = 3,
        observed: BagGraph | str | None = None,
        trust: float = 0.0,
        embedding: str = "all",
        setting: str = "transductive",
        rounds: int = 1,
        n_draws: int = 50,
        n_graph_draws: int = 0,
        n_members: int = 1,
        epochs: int = 200,
        lr: float = 5e-4,
        weight_decay: float = 5e-3,
        scaling: str = "auto",
        calibration: float = 0.0,
        device: str = "auto",
        precision: str = "float32",
        random_state: Any = 0,
        verbose: Any = 0,
    ) -> None:
        self.encoder = encoder
        self.encoder_options = encoder_options
        self.pooling = pooling
        self.hidden = hidden
        self.dropout = dropout
        self.head = head
        self.steps = steps
        self.restart = restart
        self.label_inputs = label_inputs
        self.smoothing = smoothing
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.candidate_ratio = candidate_ratio
        self.observed = observed
        self.trust = trust
        self.embedding = embedding
        self.setting = setting
        self.rounds = rounds
        self.n_draws = n_draws
        self.n_graph_draws = n_graph_draws
        self.n_members = n_members
        self.epochs = epochs
        self.lr = lr
        self.weight_decay = weight_decay
        self.scaling = scaling
        self.calibration = calibration
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose

    def set_params(self, **params: Any) -> Any:
        """Set parameters; an unknown name is answered with the nearest."""
        known = self.get_params()
        for name in params:
            if name not in known:
                stage, remedy = type(self).__name__, closest(name, known)
                raise ParameterError(stage, expected="a known parameter", got=repr(name), remedy=remedy)
        return super().set_params(**params)

    def _check_parameters(self) -> None:
        self._check_numbers()
        if not isinstance(self.label_inputs, bool | np.bool_):
            raise wrong(self, "label_inputs True or False", repr(self.label_inputs), "change it")
        if self.smoothing not in (None, "auto"):
            raise wrong(self, "smoothing None or 'auto'", repr(self.smoothing), "pass one")
        state = self.random_state
        number = isinstance(state, int | np.integer) and not isinstance(state, bool) and state >= 0
        if not (state is None or number or isinstance(state, np.random.RandomState)):
            raise wrong(self, "random_state None or a whole number from 0", repr(state), "pass 0")

    def _check_numbers(self) -> None:
        for name in ("n_members", "n_neighbors", "candidate_ratio", "epochs", "steps"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
                raise wrong(self, f"{name} a whole number from 1", repr(value), "change it")
        for name, low, high in (("calibration", 0, 1), ("dropout", 0, 1), ("trust", 0, 1 + 1e-12)):
            value = getattr(self, name)
            if not isinstance(value, int | float | np.number) or not low <= value < high:
                raise wrong(self, f"{name} from {low} to {'1' if high > 1 else 'below 1'}", repr(value), "change it")
        if not isinstance(self.restart, int | float | np.number) or not 0 < self.restart <= 1:
            raise wrong(self, "restart above 0 and up to 1", repr(self.restart), "change it")
        for name in ("lr", "weight_decay"):
            value = getattr(self, name)
            if not isinstance(value, int | float | np.number) or not 0 <= value < np.inf:
                raise wrong(self, f"{name} from 0", repr(value), "change it")
