"""Who should sit in the committee: what members add on made data and on sets that no table reports.

python benchmarks/committee.py -o runs/committee --jobs 16        computes what is missing, then prints the table
python benchmarks/committee.py -o runs/committee --members network --sets witness-0 mutagenesis2

Ten sets: one witness a bag, shifted bags and scaled bags (100 bags each, two seeds), mutagenesis1, mutagenesis2, and
200 and 160 bags of corel2000 and of its dogs, half of them positive.  The last four are read from BAGGRAPH_DATA/bonus.
Of every set one repeat of ten folds: every member gives scores of inner folds and of the tested fold, and committees
are then made of them.  A part that is in the folder is not computed again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import joblib
import numpy as np
from scipy.special import log_expit

from baggraph import Bags
from baggraph.data.splits import pairs, stratified_folds
from baggraph.estimators._auto_committee import HOT, decide, held_out
from baggraph.estimators._auto_roster import MEMBERS, OPTIONAL, STANDARD
from baggraph.estimators._auto_tables import Maker

BONUS = {"mutagenesis1": None, "mutagenesis2": None, "corel2000": 100, "corel_dogs": 80}  # bags of a class, at most
MADE = [f"{kind}-{seed}" for kind in ("witness", "shift", "scale") for seed in (0, 1)]
WITHOUT_GRAPH = [name for name in STANDARD if name != "known graph"]  # these sets have none
FOLDS = 10
COMMITTEES = {
    "standard": WITHOUT_GRAPH,
    **{f"with {name}": [*WITHOUT_GRAPH, name] for name in OPTIONAL},
    "with both networks": [*WITHOUT_GRAPH, "network", "bag graph"],
    "all": [*WITHOUT_GRAPH, *OPTIONAL],
}


def made(kind: str, seed: int, n: int = 100) -> Bags:
    """Half the bags differ: in one instance, in the mean of all, or in their spread."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    sizes = rng.integers(3, 12, n)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    instances = rng.normal(size=(sizes.sum(), 10))
    if kind == "witness":
        first = offsets[:-1][y == 1]
        instances[first, :3] += 2.0
    elif kind == "shift":
        instances[:, :3] += 0.35 * np.repeat(y, sizes)[:, None]
    else:
        instances[:, :5] *= 1 + 0.35 * np.repeat(y, sizes)[:, None]
    return Bags(instances, offsets, y)


def load(name: str) -> Bags:
    kind, _, seed = name.partition("-")
    if name in MADE:
        return made(kind, int(seed))
    file = np.load(Path(os.environ["BAGGRAPH_DATA"]) / "bonus" / f"{name}.npz", allow_pickle=False)
    bags = Bags(file["X"], file["offsets"], file["y"].astype(int))
    if (most := BONUS[name]) is None:
        return bags
    order = np.random.default_rng(0).permutation(len(bags))
    kept = [order[bags.y[order] == side][:most] for side in (0, 1)]
    return bags.take(np.sort(np.concatenate(kept)))


def parts_of(folder: Path, name: str, member: str) -> None:
    """Held-out and tested scores of one member on the folds of a set that are missing, a file a fold."""
    bags = load(name)
    folds = stratified_folds(bags.y, folds=FOLDS, repeats=1, random_state=0)
    sign = 2.0 * bags.y - 1
    tables = Maker.of(bags, None, "standard", 0).tables()
    for fold, (train, test) in enumerate(pairs(folds)):
        path = where(folder, name, fold, member)
        if path.is_file():
            continue
        started = time.perf_counter()
        held = held_out({member: MEMBERS[member]}, tables, train, sign[train])[member]
        found = MEMBERS[member].fit(tables, train, sign[train], 0)(tables)[test]
        facts = {"held": held.tolist(), "found": found.tolist(), "seconds": time.perf_counter() - started}
        facts |= {"sign": sign[train].tolist(), "truth": sign[test].tolist()}
        draft = path.with_suffix(".part")
        draft.write_text(json.dumps(facts))
        draft.replace(path)


def where(folder: Path, name: str, fold: int, member: str) -> Path:
    return folder / f"{name} {fold} {member}.json"


def score(parts: dict[str, dict]) -> tuple[int, int, float]:
    """Tested bags, those told rightly, and the sum of their log-loss, by a committee of these members."""
    first = next(iter(parts.values()))
    sign, truth = np.array(first["sign"]), np.array(first["truth"])
    held = {name: np.array(one["held"]) for name, one in parts.items()}
    decision = decide(held, sign, {name for name in held if MEMBERS[name].uses_graph})
    pooled = np.zeros(len(truth))
    for name, weight in decision.weights.items():
        slope, offset = decision.sigmoids[name]
        pooled += weight * np.clip(slope * np.array(parts[name]["found"]) + offset, -HOT, HOT)
    logit = decision.sigmoid[0] * pooled + decision.sigmoid[1]
    return len(truth), int((logit * truth > 0).sum()), float(-log_expit(truth * logit).sum())


def report(folder: Path, names: list[str], committees: dict[str, list[str]]) -> None:
    wanted = sorted({member for members in committees.values() for member in members})
    done = [
        name
        for name in names
        if all(where(folder, name, fold, member).is_file() for fold in range(FOLDS) for member in wanted)
    ]
    print(f"sets with all parts: {', '.join(done)}")
    print("| committee | " + " | ".join(done) + " | mean | seconds a fold |")
    for title, members in committees.items():
        cells, shares, losses, seconds = [], [], [], []
        for name in done:
            totals = np.zeros(3)
            for fold in range(FOLDS):
                parts = {m: json.loads(where(folder, name, fold, m).read_text()) for m in members}
                totals += score(parts)
                seconds.append(sum(one["seconds"] for one in parts.values()))
            shares.append(100 * totals[1] / totals[0])
            losses.append(totals[2] / totals[0])
            cells.append(f"{shares[-1]:.1f} / {losses[-1]:.3f}")
        mean = f"{np.mean(shares):.1f} / {np.mean(losses):.3f}" if done else ""
        print(f"| {title} | " + " | ".join(cells) + f" | {mean} | {np.mean(seconds) if done else 0:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the parts")
    parser.add_argument("--sets", nargs="+", default=[*MADE, *BONUS])
    parser.add_argument("--members", nargs="+", default=[*WITHOUT_GRAPH, *OPTIONAL])
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    tasks = [(name, member) for member in options.members for name in options.sets]
    tasks = [
        (name, member)
        for name, member in tasks
        if not all(where(options.output, name, fold, member).is_file() for fold in range(FOLDS))
    ]
    calls = (joblib.delayed(parts_of)(options.output, *task) for task in tasks)
    started = time.perf_counter()
    for i, _ in enumerate(joblib.Parallel(n_jobs=options.jobs, return_as="generator_unordered")(calls), 1):
        print(f"{i} of {len(tasks)} members of sets, {time.perf_counter() - started:.0f} s", flush=True)
    there = set(options.members)
    report(options.output, options.sets, {title: m for title, m in COMMITTEES.items() if set(m) <= there})


if __name__ == "__main__":
    main()
