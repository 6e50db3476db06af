"""From bags to the rows that kernels see: where bags lie, who borders whom, what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from baggraph.data._spatial import on_sphere
from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.errors import InvalidBagsError, ParameterError, closest
from baggraph.inference.gp import Process
from baggraph.inference.gp_graph import attached_rows, spectrum
from baggraph.inference.gp_kernels import AbstractKernel, Constant, Linear, Parameter, Spectral, Stationary

__all__ = ["PARTS", "Description", "Settings", "describe"]

Array = NDArray[np.float64]
PARTS = ("position", "graph", "linear", "rbf", "near", "far", "encoder")
CONTENT = ("linear", "rbf", "near", "far")
SCALES = {"near": 0.5, "far": 1.5}  # widths of the mean embeddings, in standard deviations times sqrt(d)
FEATURES = 300  # random features of a mean embedding
BLOCK = 1 << 14  # instances that are embedded at a time
MOST_PAIRS = 1000  # bags among which the median distance is taken


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Which parts the signal has, and how they are made.

    Parameters
    ----------
    parts
        Of :data:`PARTS`.  ``position``: coordinates.  ``graph``: the bag graph.  ``linear``, ``rbf``: means of the
        instances.  ``near``, ``far``: mean embeddings at two scales, distribution regression.  ``encoder``: embeddings.
    position
        Shape of the kernel of positions: ``"rbf"``, ``"matern12"``, ``"matern32"``, ``"matern52"``.
    geographic
        Whether coordinates are longitude and latitude, to be put on the sphere.
    graph_kind
        ``"matern"``, of order one, or ``"diffusion"``.
    weights
        Name of a column of ``bags.instance_info`` that says how much an instance counts in means; None: all alike.
    by_size
        Whether a second noise grows with one over the size of a bag.
    seed
        Of the random features.

    """

    parts: tuple[str, ...] = ("position", "graph", "linear")
    position: str = "rbf"
    geographic: bool = False
    graph_kind: str = "matern"
    weights: str | None = None
    by_size: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.parts:
            raise ParameterError("gaussian process", expected="parts", got="none", remedy=f"choose from {PARTS}")
        for name in self.parts:
            if name not in PARTS:
                remedy = closest(str(name), PARTS)
                raise ParameterError("gaussian process", expected="a part", got=repr(name), remedy=remedy)


@dataclass(frozen=True, eq=False)
class Description:
    """Rows (B, .) of every part for the bags that were described, the process over them, and what they were scaled by.

    Nothing of it depends on a label.
    """

    settings: Settings
    process: Process
    rows: dict[str, Array]
    scales: dict[str, Any] = field(default_factory=dict)

    @property
    def parts(self) -> list[str]:
        """Names of the parts of the signal, without the common level."""
        return [name for name in self.process.kernels if name != "level"]

    def take(self, which: Any) -> dict[str, Array]:
        """Rows of some of the bags."""
        return {name: values[which] for name, values in self.rows.items()}

    def of_new(self, bags: Bags, *, links: Any = None, embedding: Any = None) -> dict[str, Array]:
        """Rows of other bags, scaled like these; ``links`` (m, B) join them to the graph, which else is silent."""
        rows = {"level": np.ones((len(bags), 1))}
        for name in self.parts:
            if name not in self.settings.parts:
                got, remedy = "bags of one", "fit with all bags, those to be predicted without a label"
                raise InvalidBagsError("gaussian process", expected="bags of every view", got=got, remedy=remedy)
            if name == "graph":
                rows[name] = attached_rows(
                    self.rows[name], np.zeros((len(bags), len(self.rows[name]))) if links is None else links
                )
            else:
                center, scale = self.scales[name]
                raw = _raw(name, bags, self.settings, self.scales.get("instances"), embedding)
                rows[name] = (raw - center) / scale
        return rows | _noise_rows(bags, self.settings, self.scales["by size"])


def describe(
    bags: Bags,
    settings: Settings,
    *,
    graph: BagGraph | None = None,
    embedding: Any = None,
    views: Mapping[str, Bags] | None = None,
    total: float = 1.0,
) -> Description:
    """Rows of all bags for every part; ``graph`` is over these bags, by default their own.

    ``views`` are other instances of the same bags, which get parts of their own; ``total`` is the variance that the
    signal is thought to have before a label is seen.
    """
    rows: dict[str, Array] = {"level": np.ones((len(bags), 1))}
    kernels: dict[str, AbstractKernel] = {"level": Constant(Parameter("level", total, 0.0))}
    wanted = [(name, name, bags) for name in settings.parts]
    for view, others in (views or {}).items():
        _check_view(view, others, bags)
        wanted += [(f"{name} of {view}", name, others) for name in settings.parts if name in CONTENT]
    moments = {id(some): _moments(some) for _, part, some in wanted if part in SCALES}
    scales: dict[str, Any] = {"instances": moments.get(id(bags)), "by size": float(np.mean(1 / bags.sizes))}
    variance = Parameter("variance", total / len(wanted), 2.0)
    for name, part, some in wanted:
        if part == "graph":
            values, rows[name] = spectrum(_known(graph if graph is not None else bags.graph))
            kernels[name] = Spectral(values, settings.graph_kind, 1.0, variance, Parameter("kappa", 0.1))
            continue
        raw = _raw(part, some, settings, moments.get(id(some)), embedding)
        scales[name] = center, scale = _scaling(part, raw)
        rows[name] = (raw - center) / scale
        kernels[name] = _kernel(part, rows[name], variance, settings)
    sizes = _noise_rows(bags, settings, None)
    noises = {name: Parameter("noise", 0.1, 2.0) for name in sizes}
    return Description(settings, Process(kernels, noises), rows | sizes, scales)


def _check_view(name: str, others: Bags, bags: Bags) -> None:
    if not isinstance(others, Bags) or not np.array_equal(others.ids, bags.ids):
        got = f"other ones in view {name!r}"
        raise InvalidBagsError("gaussian process", expected="the same bags", got=got, remedy="take them by their ids")


def _kernel(name: str, rows: Array, variance: Parameter, settings: Settings) -> AbstractKernel:
    if name in ("linear", *SCALES):
        return Linear(variance)
    typical = median_distance(rows)
    if name == "position":
        return Stationary(settings.position, variance, Parameter("length", typical / 2, 1.0))
    return Stationary("rbf", variance, Parameter("length", typical, 1.0))


def _raw(name: str, bags: Bags, settings: Settings, moments: Any, embedding: Any) -> Array:
    if name == "position":
        return _places(bags, settings.geographic)
    if name == "encoder":
        if embedding is None:
            got, remedy = "none", "pass embedding=(B, h)"
            raise InvalidBagsError("gaussian process", expected="an embedding", got=got, remedy=remedy)
        return np.asarray(embedding, dtype=np.float64)
    weights = _weights(bags, settings.weights)
    if name in SCALES:
        return mean_embedding(bags, moments, weights, SCALES[name], settings.seed)
    return _bag_means(bags, weights, lambda block: block)


def _scaling(name: str, raw: Array) -> tuple[Array, Any]:
    """Centre and scale: columns of summaries alike, coordinates and embeddings together."""
    center = raw.mean(axis=0)
    if name in ("linear", "rbf", "encoder"):
        spread = raw.std(axis=0)
        alike = np.sqrt(raw.shape[1]) if name == "linear" else 1.0  # so that bags vary by one altogether
        return center, np.where(spread > 1e-12 * np.maximum(np.abs(center), 1e-300), spread, 1.0) * alike
    total = float(np.sqrt(((raw - center) ** 2).sum(axis=1).mean()))
    return center, total or 1.0


def median_distance(rows: Array) -> float:
    some = rows[:: max(1, len(rows) // MOST_PAIRS)]
    distances = pdist(some)
    return float(np.median(distances[distances > 0])) if (distances > 0).any() else 1.0


def _places(bags: Bags, geographic: bool) -> Array:
    if bags.coords is None:
        remedy = "pass coords to Bags, or leave the part out"
        raise InvalidBagsError("gaussian process", expected="bags with coordinates", got="none", remedy=remedy)
    places = np.asarray(bags.coords, dtype=np.float64)
    if geographic and places.shape[1] != 2:
        got = f"{places.shape[1]} coordinates"
        raise InvalidBagsError("gaussian process", expected="longitude and latitude", got=got, remedy="pass two")
    return on_sphere(places) if geographic else places


def _known(graph: BagGraph | None) -> BagGraph:
    if graph is None:
        remedy = "pass Bags with a graph, a BagGraph, or leave the part out"
        raise InvalidBagsError("gaussian process", expected="a graph", got="none", remedy=remedy)
    return graph


def _noise_rows(bags: Bags, settings: Settings, mean: float | None) -> dict[str, Array]:
    rows = {"noise": np.ones(len(bags))}
    if settings.by_size:
        share = 1 / bags.sizes
        rows["noise by size"] = share / (share.mean() if mean is None else mean)
    return rows


# ---------------------------------------------------------------------- means over instances


def _weights(bags: Bags, name: str | None) -> Array | None:
    if name is None:
        return None
    if name not in bags.instance_info:
        remedy = closest(name, bags.instance_info) if bags.instance_info else "pass weights=None"
        raise InvalidBagsError("gaussian process", expected="a column of instance_info", got=repr(name), remedy=remedy)
    weights = np.asarray(bags.instance_info[name], dtype=np.float64)
    if weights.shape != (bags.n_instances,) or not np.isfinite(weights).all() or (weights < 0).any():
        got = f"{name!r} with negative or missing ones"
        raise InvalidBagsError("gaussian process", expected="weights from 0", got=got, remedy="correct them")
    total = np.add.reduceat(weights, bags.offsets[:-1])
    return np.where(np.repeat(total, bags.sizes) > 0, weights, 1.0)  # a bag of empty places counts them alike


def _bag_means(bags: Bags, weights: Array | None, change: Any) -> Array:
    """Weighted means (B, .) of changed instances, block by block of bags."""
    found = []
    start = 0
    while start < len(bags):
        stop = max(start + 1, int(np.searchsorted(bags.offsets, bags.offsets[start] + BLOCK, side="right")) - 1)
        rows = slice(int(bags.offsets[start]), int(bags.offsets[stop]))
        block = bags.instances[rows]
        values = change(np.asarray(block.toarray() if bags.is_sparse else block, dtype=np.float64))
        own = np.ones(len(values)) if weights is None else weights[rows]
        begins = bags.offsets[start:stop] - bags.offsets[start]
        sums = np.add.reduceat(values * own[:, None], begins, axis=0)
        found.append(sums / np.add.reduceat(own, begins)[:, None])
        start = stop
    return np.concatenate(found)


def _moments(bags: Bags) -> tuple[Array, Array]:
    """Mean and standard deviation (d,) of all instances, in one pass."""
    shares = (bags.sizes / bags.n_instances)[:, None]
    mean = (_bag_means(bags, None, lambda block: block) * shares).sum(axis=0)
    variance = (_bag_means(bags, None, lambda block: (block - mean) ** 2) * shares).sum(axis=0)
    return mean, np.where(variance > 0, np.sqrt(variance), 1.0)


def mean_embedding(bags: Bags, moments: tuple[Array, Array], weights: Array | None, scale: float, seed: int) -> Array:
    """Mean embeddings (B, FEATURES) by random Fourier features, whose products approximate

    ``sum_{a, b} w_a v_b exp(-|a - b|^2 / (2 l^2))``  with  ``l = scale sqrt(d)`` of standardised instances (Flaxman,
    Wang & Smola 2015; the features: Rahimi & Recht 2007).
    """
    center, spread = moments
    random = np.random.default_rng(seed)
    directions = random.normal(size=(bags.n_features, FEATURES)) / (scale * np.sqrt(bags.n_features))
    phases = random.uniform(0, 2 * np.pi, FEATURES)
    root = np.sqrt(2 / FEATURES)
    return _bag_means(bags, weights, lambda block: root * np.cos(((block - center) / spread) @ directions + phases))
