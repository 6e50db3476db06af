"""Gaussian processes on rents and votes: the published splits, trivial rows beside, nothing tuned on tested bags.

python benchmarks/gp.py -o runs/gp                               every task and method, 100 splits
python benchmarks/gp.py -o runs/gp --tasks rental --splits 10
python benchmarks/gp.py -o runs/gp --tasks votes --share 0.1     a tenth of the regions train, drawn as published

What is in the folder is not computed again.  Links, lengths, variances and noises are fitted to the training bags
of a split by marginal likelihood; which parts a process has stands in its name.  The NLL of rents is that of their
logarithm.
Accuracy is that of "more than half"; ND is the mean absolute error over the mean label.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import baggraph
from baggraph import (
    AutoBagRegressor,
    BagGraphRegressor,
    BagProcessRegressor,
    Bags,
    Posterior,
    ResultTable,
    datasets,
)
from baggraph.baselines import LabelPropagationRegressor, MeanRegressor, NeighborMeanRegressor, SummaryRidge
from baggraph.data._fingerprint import fingerprint
from baggraph.data._spatial import on_sphere
from baggraph.data.splits import hide_labels
from baggraph.data.stacked import AbstractStacked
from baggraph.evaluation._provenance import library_versions
from baggraph.evaluation._running import uses_unlabelled
from baggraph.evaluation.metrics import METRICS
from baggraph.inference._device import chosen_device

PLACES = ("position", "graph")
CONTENT = ("linear", "rbf", "near", "far")
SCORES = ("rmse", "mape", "nd", "nll", "coverage", "width")
CHUNK = 20  # splits whose bags are described once


def process(*parts: str, **more: Any) -> BagProcessRegressor:
    return BagProcessRegressor(parts=parts or "auto", geographic=True, **more)


# Fixed on made bags (gp_joint.py): neither rents nor votes had a say.
TRAINING: dict[str, Any] = {"epochs": 150, "lr": 3e-3, "weight_decay": 1e-3, "dropout": 0.0, "n_members": 4}
DEEP_SETS = {"phi": (64, 64), "rho": (64,), "pooling": "mean", "activation": "elu"}
SET_TRANSFORMER = {"width": 32, "heads": 4, "inducing": 16}


def networks(objective: str) -> dict[str, Any]:
    """Network and process: trained one after the other, or by one objective."""
    common = {
        **TRAINING,
        "graph": "given",
        "head": "gp",
        "objective": objective,
        "encoder": "deep-sets",
        "encoder_options": DEEP_SETS,
    }
    if objective == "separate":
        return {"Deep Sets, then GP": BagGraphRegressor(**common)}
    attention = {"encoder": "set-transformer", "encoder_options": SET_TRANSFORMER}
    return {
        "Deep Sets + GP, one objective": BagGraphRegressor(**common),
        "Set Transformer + GP, one objective": BagGraphRegressor(**{**common, **attention}),
    }


NETWORKS = {**networks("separate"), **networks("joint")}
TRIVIAL = {
    "mean": MeanRegressor(),
    "ridge on bag means": SummaryRidge(),
    "mean of labelled neighbours": NeighborMeanRegressor(hops=2),
    "label propagation": LabelPropagationRegressor(),
}
RENTS = {
    **TRIVIAL,
    "GP graph + linear": process("graph", "linear"),
    "GP position + linear": process("position", "linear"),
    "GP position + graph + linear": process(*PLACES, "linear"),
    "GP everything": process(*PLACES, *CONTENT),
    "GP auto": process(),
    "committee": AutoBagRegressor(geographic=True),
    **NETWORKS,
}


def votes(views: dict[str, Bags] | None = None) -> dict[str, Any]:
    """Processes over regions; people, not places, count in means."""
    more = {"weights": "population", "views": views}
    found = {
        "GP content": process(*CONTENT, **more),
        "GP position + content": process("position", *CONTENT, **more),
        "GP everything": process(*PLACES, *CONTENT, **more),
        "GP auto": process(**more),
    }
    return found if views else {**TRIVIAL, "GP position": process("position"), **found, **NETWORKS}


def sampled(bags: Bags, listings: int, split: int) -> Bags:
    """So many listings of every bag, others in every split."""
    random = np.random.default_rng(split)
    ends = zip(bags.offsets[:-1], bags.offsets[1:], strict=True)
    rows = np.concatenate([random.choice(np.arange(a, b), listings, replace=False) for a, b in ends])
    offsets = np.arange(len(bags) + 1) * listings
    return Bags(bags.instances[rows], offsets, bags.y, ids=bags.ids, coords=bags.coords, graph=bags.graph)


def tasks() -> dict[str, tuple[Bags, int | None, dict[str, Any]]]:
    """Bags, listings to sample, and methods, by name."""
    rents, zips, tracts = (datasets.load(name) for name in ("rental", "election/zcta", "election/tracts"))
    return {
        "rental": (rents, None, RENTS),
        "rental, 25 listings": (rents, 25, RENTS),
        "votes, ZIP areas": (zips, None, votes()),
        "votes, tracts": (tracts, None, votes()),
        "votes, both": (zips, None, votes({"tracts": tracts})),
    }


def training(bags: Bags, share: float | None, count: int) -> np.ndarray:
    """Which bags train (splits, B): as published, or this share of them drawn in the same way."""
    if share is None:
        return bags.splits["published-100"][:count] < 0
    masks = np.zeros((count, len(bags)), dtype=bool)
    for trial, mask in enumerate(masks):
        order = np.arange(len(bags))
        np.random.RandomState(trial).shuffle(order)
        mask[order[: round(share * len(bags))]] = True
    return masks


def answers(model: Any, bags: Bags, masks: np.ndarray) -> list[Posterior]:
    if isinstance(model, BagGraphRegressor):
        bags = bags.replace(coords=on_sphere(bags.coords))  # processes put them there themselves
    if isinstance(model, AbstractStacked):
        return model.posteriors(bags, masks)
    found = []
    for mask in masks:
        fitted = clone(model).fit(hide_labels(bags, mask) if uses_unlabelled(model) else bags.take(mask))
        found.append(Posterior(fitted.predict(bags)[None, :, None], bags.ids))
    return found


def scores(name: str, bags: Bags, posterior: Posterior, tested: np.ndarray) -> dict[str, float]:
    part, y = posterior.take(tested), bags.y[tested]
    found = {
        metric: METRICS[metric](y, part) for metric in SCORES if part.has_noise or metric in ("rmse", "mape", "nd")
    }
    if name.startswith("votes"):
        found["accuracy"] = float(((part.mean[:, 0] > 0.5) == (y > 0.5)).mean())
    elif "nll" in found:
        found["nll"] -= float(np.log(y).mean())
    return found


def run(options: argparse.Namespace) -> ResultTable:
    folder: Path = options.output
    for name, (bags, listings, methods) in tasks().items():
        if not any(name.startswith(asked) for asked in options.tasks):
            continue
        label = name if options.share is None else f"{name}, {options.share:.0%}"
        masks = training(bags, options.share, options.splits)
        known = {"task": "regression", "dataset": label, "setting": "transductive", "libraries": library_versions()}
        known |= {"code_version": baggraph.__version__, "data_sha256": fingerprint(bags)}
        for method, model in methods.items():
            if options.methods and method not in options.methods:
                continue
            done = (
                ResultTable.read(folder).filter(dataset=label, method=method).names("repeat") if folder.exists() else []
            )
            device = str(chosen_device("auto")) if method in NETWORKS else "cpu"
            left = [split for split in range(len(masks)) if split not in done]
            size = 1 if listings else len(masks) if method in NETWORKS else CHUNK  # networks: one stack
            for some in (left[i : i + size] for i in range(0, len(left), size)):
                started = time.perf_counter()
                own = sampled(bags, listings, some[0]) if listings else bags
                found = answers(model, own, masks[some])
                each = (time.perf_counter() - started) / len(some)
                rows = []
                for split, posterior in zip(some, found, strict=True):
                    counts = {"n_train": int(masks[split].sum()), "n_test": int((~masks[split]).sum())}
                    row = known | counts | {"method": method, "repeat": split, "wall_time": each, "device": device}
                    values = scores(name, bags, posterior, ~masks[split])
                    rows += [row | {"metric": metric, "value": value} for metric, value in values.items()]
                ResultTable.from_rows(rows).append(folder)
            print(line(folder, label, method), flush=True)
    return ResultTable.read(folder)


def line(folder: Path, label: str, method: str) -> str:
    """Mean ± standard deviation over splits."""
    mine = ResultTable.read(folder).filter(dataset=label, method=method).frame()
    cells = []
    for metric, part in mine.groupby("metric", sort=False)["value"]:
        percent = 100 if metric in ("accuracy", "nd", "mape", "coverage") else 1
        digits = 3 if metric in ("nll", "width") or (label.startswith("votes") and metric == "rmse") else 1
        cells.append(f"{metric} {percent * part.mean():.{digits}f} ± {percent * part.std():.{digits}f}")
    seconds = mine.drop_duplicates("repeat")["wall_time"].sum()
    return f"{label} | {method} | {mine['repeat'].nunique()} splits | " + " | ".join(cells) + f" | {seconds:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the result table")
    parser.add_argument("--tasks", nargs="+", default=["rental", "votes"], help="first words of names of tasks")
    parser.add_argument("--methods", nargs="+", help="names of methods; all by default")
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--share", type=float, help="of the bags to train on, instead of the published splits")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
