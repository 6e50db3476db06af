"""Which molecules smell of musk, and how sure is the answer?  Calibration and sets that keep a promise, on MUSK1.

python examples/musk_uncertainty.py                    a few minutes on two cores; fetches 0.5 MB if it must
python examples/musk_uncertainty.py --epochs 20 --repeats 1
"""

from __future__ import annotations

import argparse

import matplotlib as mpl
import numpy as np

import baggraph as bg
from baggraph.data.splits import label_mask

mpl.use("Agg")
import matplotlib.pyplot as plt

COVERAGE = 0.8


def one_split(bags: bg.Bags, epochs: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Confidence, rightness and sets of a third of the molecules, whose labels the model did not see."""
    seen = label_mask(bags.y, labelled=2 / 3, random_state=seed)
    y = np.where(seen, bags.y, np.nan)
    model = bg.BagGraphClassifier(epochs=epochs, n_draws=50, calibration=0.3, random_state=seed)
    posterior = model.fit(bags.replace(y=y)).posterior_.take(~seen)
    sets = model.predict_set(coverage=COVERAGE)[~seen]
    holds = sets[np.arange(len(sets)), posterior.codes(bags.y[~seen])]
    right = posterior.prediction == bags.y[~seen]
    return posterior.mean.max(axis=1), right, np.stack([holds, sets.sum(axis=1)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("-o", "--output", default="musk_uncertainty.png")
    options = parser.parse_args()

    bags = bg.datasets.load("musk1")
    print(bags)
    parts = [one_split(bags, options.epochs, seed) for seed in range(options.repeats)]
    confidence, right = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    holds, sizes = np.concatenate([part[2] for part in parts], axis=1)
    print(f"{right.mean():.1%} right where {confidence.mean():.1%} was said, {len(right)} answers")
    print(f"sets that shall hold the truth in {COVERAGE:.0%} do in {holds.mean():.1%}, with {sizes.mean():.2f} classes")

    sure = np.argsort(-confidence)
    shares = np.arange(1, len(sure) + 1) / len(sure)
    figure, axis = plt.subplots(figsize=(6, 4))
    axis.plot(shares, np.cumsum(right[sure]) / np.arange(1, len(sure) + 1), color="#0072b2")
    axis.set(xlabel="share of molecules answered, the surest first", ylabel="share of answers that are right")
    axis.set_title("Refusing the doubtful ones", fontsize=11)
    figure.savefig(options.output, dpi=120, bbox_inches="tight")
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
