"""Network and process under one objective, on made bags: where its settings were fixed before rents or votes were seen.

python benchmarks/gp_joint.py                 the process alone, network then process, and both at once
python benchmarks/gp_joint.py --candidates    and the settings that were compared

A label is a smooth field over the plane, a linear function of the mean instance, a mean over the instances of something
that their mean does not tell, and noise.  Errors are of bags whose label was hidden, relative to the process alone:
geometric means over seeds; below 1 is better.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn.base import clone

from baggraph import BagProcessRegressor, Bags, Posterior
from baggraph.evaluation.metrics import METRICS
from gp import DEEP_SETS, NETWORKS

HIDDEN_PARTS = {
    "share of a corner": lambda x: (x[:, 0] * x[:, 1] > 0.3).astype(float),
    "mean absolute value": lambda x: np.abs(x[:, 0]),
    "mean wave": lambda x: np.sin(1.5 * x[:, 0]) * np.cos(x[:, 1]),
    "nothing": lambda x: np.zeros(len(x)),
}
TRAINING_BAGS = (55, 24)
N_BAGS, N_FEATURES = 80, 8
NARROW = {**DEEP_SETS, "phi": (32, 32), "rho": (32,)}
JOINT = "Deep Sets + GP, one objective"
CANDIDATES: dict[str, dict[str, Any]] = {
    "learning rate 1e-3": {"lr": 1e-3},
    "weight decay 1e-2": {"weight_decay": 1e-2},
    "layers of 32": {"encoder_options": NARROW},
    "one member": {"n_members": 1},
}


def made(kind: str, seed: int) -> Bags:
    random = np.random.default_rng(seed)
    coords = random.uniform(size=(N_BAGS, 2))
    waves = coords @ (3 * random.normal(size=(5, 2)).T) + random.uniform(0, 2 * np.pi, 5)
    field = np.cos(waves).mean(axis=1)
    sizes = random.integers(20, 60, N_BAGS)
    center = 0.5 * random.normal(size=(N_BAGS, N_FEATURES))
    spread = np.exp(0.4 * random.normal(size=(N_BAGS, N_FEATURES)))
    noise = random.normal(size=(sizes.sum(), N_FEATURES))
    instances = np.repeat(center, sizes, axis=0) + np.repeat(spread, sizes, axis=0) * noise
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    hidden = np.add.reduceat(HIDDEN_PARTS[kind](instances), offsets[:-1]) / sizes
    hidden = (hidden - hidden.mean()) / (hidden.std() or 1.0)
    y = field / field.std() + 1.4 * center[:, 2] + hidden + 0.15 * random.normal(size=N_BAGS)
    return Bags(instances.astype(np.float32), offsets, y, ids=range(N_BAGS), coords=coords)


def methods(candidates: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"process": BagProcessRegressor(parts=("position", "linear"))}
    for name in ("Deep Sets, then GP", JOINT):
        found[name] = clone(NETWORKS[name]).set_params(graph=None)
    for name, settings in CANDIDATES.items() if candidates else ():
        found[name] = clone(found[JOINT]).set_params(**settings)
    return found


def scores(model: Any, bags: Bags, seen: np.ndarray) -> tuple[float, float]:
    """RMSE and NLL of the bags whose labels were hidden."""
    posterior: Posterior = clone(model).fit(bags.replace(y=np.where(seen, bags.y, np.nan))).posterior_
    part, y = posterior.take(~seen), bags.y[~seen]
    return METRICS["rmse"](y, part), METRICS["nll"](y, part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--candidates", action="store_true", help="the settings that were compared, too")
    options = parser.parse_args()
    models = methods(options.candidates)
    for count in TRAINING_BAGS:
        for kind in HIDDEN_PARTS:
            started = time.perf_counter()
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in models}
            for seed in range(options.seeds):
                bags = made(kind, seed)
                seen = np.random.default_rng(seed).permutation(N_BAGS) < count
                for name, model in models.items():
                    found[name].append(scores(model, bags, seen))
            alone = np.array(found["process"])
            cells = []
            for name, values in found.items():
                ratio = np.exp(np.log(np.array(values)[:, 0] / alone[:, 0]).mean())
                cells.append(f"{name} {ratio:.2f} ({(np.array(values) - alone)[:, 1].mean():+.2f} nats)")
            seconds = time.perf_counter() - started
            print(f"{count} of {N_BAGS} train | {kind} | {' | '.join(cells)} | {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
