"""Whether promises of the posterior are kept: coverage of conformal sets and intervals, calibration by temperature.

python benchmarks/uncertainty.py coverage           200 random splits of 2,000 made bags, 90 % asked
python benchmarks/uncertainty.py temperature        ECE and NLL on fox and tiger before and after, 10 folds

Coverage: a fifth of the bags is tested, a fifth of the others kept from training for calibration.  Temperature: the
same model, a fifth of the training bags of every fold kept from training; the temperature is fitted on these.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import baggraph as bg
from baggraph.data.splits import hide_labels, label_mask, pairs, stratified_folds
from baggraph.evaluation.metrics import METRICS
from baggraph.inference._sharing import sharing_base_models
from baggraph.inference.calibration import fit_temperature, temper

SMALL = {"encoder_options": {"hidden": (16, 8)}, "epochs": 10, "lr": 1e-2, "n_draws": 10, "calibration": 0.2}


def coverage(splits: int, n_bags: int, asked: float, device: str) -> None:
    """Share of tested bags whose label is in the set or interval, split by split."""
    bags = bg.datasets.load("synthetic", n_bags=n_bags)
    classes = bags.replace(y=(bags.y > 0.5).astype(int))
    begun, rows = time.perf_counter(), {}
    for split in range(splits):
        seen = label_mask(classes.y, labelled=0.8, random_state=split)
        model = bg.BagGraphClassifier(random_state=split, device=device, **SMALL).fit(hide_labels(classes, seen))
        code = classes.y.astype(int)[~seen]
        for name, conditional in (("sets", False), ("sets, by class", True)):
            found = model.predict_set(coverage=asked, conditional=conditional)[~seen]
            hit = found[np.arange(len(code)), code]
            rows.setdefault(name, []).append((hit.mean(), found.sum(axis=1).mean()))
            rows.setdefault(f"{name}, rarer class", []).append((hit[code == 1].mean(), np.nan))
        for loss in ("squared", "gaussian"):
            model = bg.BagGraphRegressor(loss=loss, random_state=split, device=device, **SMALL)
            ends = model.fit(hide_labels(bags, seen)).predict_interval(coverage=asked)[~seen]
            hit = (ends[:, 0] <= bags.y[~seen]) & (bags.y[~seen] <= ends[:, 1])
            rows.setdefault(f"intervals, {loss}", []).append((hit.mean(), np.ptp(ends, axis=1).mean()))
    for name, found in rows.items():
        hits, sizes = np.array(found).T
        told = f"coverage={hits.mean():.4f}  sd={hits.std(ddof=1):.4f}  size={sizes.mean():.3f}"
        print(f"{name}: asked={asked}  splits={splits}  bags={n_bags}  {told}")
    print(f"seconds={time.perf_counter() - begun:.0f}", flush=True)


def temperature(sets: list[str], methods: list[str], repeats: int, device: str) -> None:
    """All tested bags of a repeat are pooled for the calibration error: folds of 20 bags have none to speak of."""
    for dataset in sets:
        bags = bg.datasets.load(dataset)
        division = list(pairs(stratified_folds(bags.y, folds=10, repeats=repeats, random_state=0)))
        masks = np.zeros((len(division), len(bags)), dtype=bool)
        for number, (mask, (train, _)) in enumerate(zip(masks, division, strict=True)):
            mask[train[label_mask(bags.y[train], labelled=0.8, random_state=number)]] = True
        for method in methods:
            found = bg.make(method, dataset=dataset, device=device).posteriors(bags, masks)
            parts: dict[str, list] = {"before": [], "after": []}
            degrees, places = [], []
            for posterior, mask, (train, test) in zip(found, masks, division, strict=True):
                held = train[~mask[train]]
                degrees.append(fit_temperature(posterior.take(held), bags.y[held]))
                parts["before"].append(posterior.take(test).draws.mean(axis=0))
                parts["after"].append(temper(posterior.take(test), degrees[-1]).draws.mean(axis=0))
                places.append(test)
            for when, shares in parts.items():
                scores = []
                for repeat in range(repeats):
                    some = slice(10 * repeat, 10 * repeat + 10)
                    pooled = bg.Posterior(np.concatenate(shares[some])[None], None, [0, 1])
                    y = bags.y[np.concatenate(places[some])].astype(int)
                    scores.append([METRICS[name](y, pooled) for name in ("ece", "nll", "accuracy")])
                ece, nll, right = np.mean(scores, axis=0)
                print(f"set={dataset}  method={method}  temperature={when}", end="  ")
                print(
                    f"ece={ece:.4f}  nll={nll:.4f}  accuracy={right:.3f}  median T={np.median(degrees):.2f}", flush=True
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("coverage", "temperature"))
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--bags", type=int, default=2000)
    parser.add_argument("--asked", type=float, default=0.9)
    parser.add_argument("--sets", nargs="+", default=["fox", "tiger"])
    parser.add_argument("--methods", nargs="+", default=["rFF+pool", "B-rFF+pool-GCN"])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    if options.what == "coverage":
        coverage(options.splits, options.bags, options.asked, options.device)
    else:
        with sharing_base_models():
            temperature(options.sets, options.methods, options.repeats, options.device)


if __name__ == "__main__":
    main()
