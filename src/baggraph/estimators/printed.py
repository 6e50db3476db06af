"""Every algorithm of the paper by its printed name, with the supplement's settings for a data set."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator

from baggraph import baselines, datasets
from baggraph.errors import ParameterError, closest
from baggraph.estimators.classifier import BagGraphClassifier
from baggraph.estimators.regressor import BagGraphRegressor

__all__ = ["algorithms", "make"]

# learning rate, weight decay, pooling, neighbours of -GCN, neighbours and candidate ratio of B-...-GCN
BENCHMARK = {
    "musk1": (5e-4, 5e-3, "max", 2, 2, 1),
    "musk2": (5e-4, 3e-2, "max", 3, 3, 10),
    "fox": (1e-4, 1e-2, "max", 3, 3, 5),
    "tiger": (5e-4, 5e-3, "mean", 4, 4, 10),
    "elephant": (1e-4, 5e-3, "max", 1, 1, 10),
}
# of -GCN, of B-...-GCN, candidate ratio
TEXT = {
    "alt.atheism": (2, 3, 10),
    "comp.graphics": (2, 3, 5),
    "comp.os.ms-windows.misc": (2, 3, 10),
    "comp.sys.ibm.pc.hardware": (3, 4, 5),
    "comp.sys.mac.hardware": (3, 3, 5),
    "comp.windows.x": (4, 3, 10),
    "misc.forsale": (3, 3, 1),
    "rec.autos": (4, 2, 1),
    "rec.motorcycles": (2, 3, 10),
    "rec.sport.baseball": (2, 2, 10),
    "rec.sport.hockey": (3, 4, 1),
    "sci.crypt": (3, 3, 10),
    "sci.electronics": (3, 2, 1),
    "sci.med": (3, 3, 10),
    "sci.space": (4, 4, 5),
    "soc.religion.christian": (3, 4, 10),
    "talk.politics.guns": (2, 3, 10),
    "talk.politics.mideast": (2, 2, 5),
    "talk.politics.misc": (4, 3, 10),
    "talk.religion.misc": (2, 4, 5),
}
DEFAULT_BENCHMARK, DEFAULT_TEXT = BENCHMARK["tiger"], TEXT["sci.med"]
DRAWS = 50
RENTAL_DEEP_SETS = {"phi": (25, 25, 25), "rho": (25, 25, 25, 64), "activation": "elu", "last_activation": False}


def _variant(kind: str, k_gcn: int, k_learned: int, ratio: int) -> dict[str, Any]:
    """How base model, -GCN and B-...-GCN differ."""
    if kind == "base":
        return {"graph": None, "n_draws": 0}
    if kind == "gcn":
        return {"graph": "knn", "n_neighbors": k_gcn, "n_draws": 0}
    return {"graph": "learned", "n_neighbors": k_learned, "candidate_ratio": ratio, "n_draws": DRAWS}


def _benchmark(encoder: str, kind: str, dataset: str | None) -> BaseEstimator:
    lr, decay, pooling, *graph = BENCHMARK.get(dataset or "", DEFAULT_BENCHMARK)
    pooled = None if encoder in ("attention", "gated-attention") else pooling
    common: dict[str, Any] = {"encoder": encoder, "pooling": pooled, "lr": lr, "weight_decay": decay, "epochs": 200}
    return BagGraphClassifier(**common, **_variant(kind, *graph))


def _text(kind: str, dataset: str | None) -> BaseEstimator:
    common: dict[str, Any] = {"encoder": "res-pool", "pooling": "mean", "lr": 1e-3, "weight_decay": 1e-3, "epochs": 200}
    name = (dataset or "").rpartition("/")[2]
    return BagGraphClassifier(**common, scaling="none", **_variant(kind, *TEXT.get(name, DEFAULT_TEXT)))


def _regional(encoder: str, kind: str, dataset: str | None) -> BaseEstimator:
    """Election and rental: -GCN on the known graph, B-...-GCN learned from its embedding."""
    election = (dataset or "").startswith("election")
    if election:
        common: dict[str, Any] = {"lr": 1e-3, "weight_decay": 1e-4, "epochs": 200, "loss": "bce"}
        k, options = 5, None
    else:
        common = {"lr": 5e-4, "weight_decay": 1e-3, "epochs": 500, "loss": "squared"}
        k, options = 8, RENTAL_DEEP_SETS if encoder == "deep-sets" else None
    variants: dict[str, dict[str, Any]] = {
        "base": {"graph": None, "n_draws": 0},
        "gcn": {"graph": "given", "n_draws": 0},
        "bayesian": {"graph": "learned", "observed": "given", "n_neighbors": k, "candidate_ratio": 1, "n_draws": DRAWS},
    }
    return BagGraphRegressor(encoder=encoder, encoder_options=options, **common, **variants[kind])


_MAKERS: dict[str, Callable[[str | None], BaseEstimator]] = {
    "mi-Net": partial(_benchmark, "mi-net", "base"),
    "MI-Net": partial(_benchmark, "mi-net-bag", "base"),
    "MI-Net (DS)": partial(_benchmark, "mi-net-deep-supervision", "base"),
    "MI-Net (RC)": partial(_benchmark, "mi-net-residual", "base"),
    "Attention": partial(_benchmark, "attention", "base"),
    "Gated-Attention": partial(_benchmark, "gated-attention", "base"),
    "rFF+pool": partial(_benchmark, "rff-pool", "base"),
    "rFF+pool-GCN": partial(_benchmark, "rff-pool", "gcn"),
    "B-rFF+pool-GCN": partial(_benchmark, "rff-pool", "bayesian"),
    "Res+pool": partial(_text, "base"),
    "Res+pool-GCN": partial(_text, "gcn"),
    "B-Res+pool-GCN": partial(_text, "bayesian"),
    "Deep Sets": partial(_regional, "deep-sets", "base"),
    "DS-GCN": partial(_regional, "deep-sets", "gcn"),
    "B-DS-GCN": partial(_regional, "deep-sets", "bayesian"),
    "Set Transformer": partial(_regional, "set-transformer", "base"),
    "ST-GCN": partial(_regional, "set-transformer", "gcn"),
    "B-ST-GCN": partial(_regional, "set-transformer", "bayesian"),
}


def algorithms() -> list[str]:
    """Printed names of all algorithms, networks and classical ones, sorted without regard to case.

    >>> "B-rFF+pool-GCN" in algorithms(), "mi-SVM" in algorithms()
    (True, True)
    """
    return sorted({*_MAKERS, *baselines.printed_names()}, key=lambda name: (name.casefold(), name))


def make(name: str, *, dataset: str | None = None, **parameters: Any) -> BaseEstimator:
    """A new estimator by its printed name; ``parameters`` overrule what the paper says.

    Networks take the supplement's learning rate, decay, pooling and neighbours of ``dataset`` (``"fox"``,
    ``"newsgroups/sci.med"``, ``"election"``, ``"rental"``), or middling ones without.  Case matters: mi-SVM is not
    MI-SVM.

    >>> make("B-rFF+pool-GCN", dataset="fox").n_neighbors
    3
    >>> make("Deep Set")
    Traceback (most recent call last):
        ...
    baggraph.errors.ParameterError: make: expected the printed name of an algorithm, got 'Deep Set'; did you mean
    'Deep Sets'?
    """
    if dataset is not None and not any(_is_called(known, dataset) for known in datasets.names()):
        remedy = closest(str(dataset), datasets.names())
        raise ParameterError("make", expected="the name of a data set, or none", got=repr(dataset), remedy=remedy)
    if name in _MAKERS:
        return _MAKERS[name](dataset).set_params(**parameters)
    if name not in baselines.printed_names():
        remedy = closest(name, algorithms())
        raise ParameterError("make", expected="the printed name of an algorithm", got=repr(name), remedy=remedy)
    return baselines.make(name, **parameters)


def _is_called(known: str, name: str) -> bool:
    """Whether a data set has this name, in full or without its family, or is one of this family."""
    family, _, member = known.partition("/")
    return name in (known, family, member)
