"""The supplement's tables: sizes of the sets, and settings of the networks, as they are here and as printed."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

import pandas as pd

from baggraph import datasets
from baggraph.estimators.printed import make

__all__ = ["settings", "statistics"]

NETWORKS = {
    "benchmark": ("rFF+pool", "rFF+pool-GCN", "B-rFF+pool-GCN"),
    "text": ("Res+pool", "Res+pool-GCN", "B-Res+pool-GCN"),
    "election": ("Deep Sets", "DS-GCN", "B-DS-GCN"),
    "rental": ("Deep Sets", "DS-GCN", "B-DS-GCN"),
}
ABSENT = {"by hand": "the original file could not be had", "to fetch": "baggraph datasets get fetches it"}
COMMON = {"lr": "lr", "weight_decay": "weight_decay", "pooling": "pooling", "epochs": "epochs"}


def _printed(what: str) -> dict[str, dict[str, dict[str, Any]]]:
    path = files("baggraph.experiments") / "recipes" / "pal2022" / "supplement" / "supplement.toml"
    found: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(path.read_text(encoding="utf-8"))[what]
    return found


def statistics() -> pd.DataFrame:
    """Sizes of every set of the supplement: a row a set, with what differs from the printed numbers."""
    rows = []
    for experiment, sets in _printed("statistics").items():
        for name, printed in sets.items():
            row: dict[str, Any] = {"experiment": experiment, "dataset": name}
            absent = ABSENT.get(datasets.state(datasets.card(name)))
            if absent is not None:
                rows.append(row | printed | {"verdict": f"no number: {absent}"})
                continue
            found = vars(datasets.count(datasets.load(name)))
            wrong = [f"{key} is {found[key]}, printed {value}" for key, value in printed.items() if found[key] != value]
            row |= {key: found[key] for key in printed}
            rows.append(row | {"verdict": "; ".join(wrong) or "equal"})
    return pd.DataFrame(rows)


def settings() -> pd.DataFrame:
    """Settings of the three networks of every set, with what differs from the supplement.

    >>> found = settings()
    >>> found.loc[found["dataset"] == "fox", ["lr", "k_bgcn", "verdict"]].to_dict("records")
    [{'lr': 0.0001, 'k_bgcn': 3, 'verdict': 'equal'}]
    """
    rows = []
    for experiment, sets in _printed("settings").items():
        for name, printed in sets.items():
            base, gcn, bayesian = (make(network, dataset=name).get_params() for network in NETWORKS[experiment])
            found = {key: base[own] for key, own in COMMON.items()}
            found |= {"k_gcn": gcn["n_neighbors"], "k_bgcn": bayesian["n_neighbors"]}
            found |= {"r_bgcn": bayesian["candidate_ratio"]}
            wrong = [f"{key} is {found[key]}, printed {value}" for key, value in printed.items() if found[key] != value]
            row = {"experiment": experiment, "dataset": name, **{key: found[key] for key in printed}}
            rows.append(row | {"verdict": "; ".join(wrong) or "equal"})
    return pd.DataFrame(rows)
