"""Which images make a bag positive?  Explanations checked against the truth, on bags of digits.

python examples/digits_explained.py                    about a minute on two cores; writes digits_explained.png
python examples/digits_explained.py --epochs 20 -o quick.png
"""

from __future__ import annotations

import argparse
from typing import Any

import matplotlib as mpl
import numpy as np
from sklearn.metrics import roc_auc_score

import baggraph as bg

mpl.use("Agg")
import matplotlib.pyplot as plt


def fit(bags: bg.Bags, epochs: int) -> tuple[Any, np.ndarray]:
    """A bag graph that does not see every third label, and which those are."""
    hidden = np.arange(len(bags)) % 3 == 0
    y = np.where(hidden, np.nan, bags.y)
    model = bg.BagGraphClassifier(graph="learned", n_neighbors=3, epochs=epochs, n_draws=20)
    return model.fit(bags.replace(y=y)), hidden


def draw(bags: bg.Bags, explanations: list[Any], path: str) -> None:
    """A row a bag: its images by what they contribute, targets framed."""
    width = max(len(one.instances) for one in explanations)
    figure, axes = plt.subplots(len(explanations), width, figsize=(0.8 * width, 1.1 * len(explanations)), squeeze=False)
    for axis in axes.flat:
        axis.axis("off")
    for row, one in zip(axes, explanations, strict=True):
        bag = bags[one.bag]
        order = np.argsort(-one.instances["contribution"].to_numpy())
        for axis, k in zip(row, order, strict=False):
            axis.imshow(np.asarray(bag)[k].reshape(8, 8), cmap="gray_r")
            axis.set_title(f"{one.instances['contribution'].iloc[k]:+.2f}", fontsize=8)
            if bag.instance_y[k]:
                axis.add_patch(plt.Rectangle((-0.5, -0.5), 8, 8, fill=False, edgecolor="#d55e00", linewidth=3))
    figure.suptitle("What each image adds to the log odds; framed: it is a 9", fontsize=10)
    figure.savefig(path, dpi=120, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("-o", "--output", default="digits_explained.png")
    options = parser.parse_args()

    bags = bg.datasets.load("digits-bags")
    model, hidden = fit(bags, options.epochs)
    right = model.transduction_[hidden] == bags.y[hidden]
    print(f"{model.posterior_}\n{right.mean():.1%} of {hidden.sum()} hidden labels guessed rightly")

    asked = bags[hidden & (bags.y == 1)]
    explanations = model.explain(asked, seen=True)
    areas = [
        roc_auc_score(asked[one.bag].instance_y, one.instances["contribution"])
        for one in explanations
        if 0 < asked[one.bag].instance_y.sum() < len(one.instances)
    ]
    print(f"AUC of contributions against the truth, within positive bags: mean {np.mean(areas):.2f} of {len(areas)}")
    print(explanations[0])
    draw(bags, explanations[:5], options.output)
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
