"""``baggraph demo``: the main job on data that comes with the package."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.markup import escape

from baggraph.cli._console import out, table


def demo(
    random_state: Annotated[int, typer.Option("--random-state", help="Seed of the bags and of the folds.")] = 0,
) -> None:
    """Make bags of handwritten digits and see how far simple methods get: is there a 9 in the bag?"""
    from baggraph import datasets
    from baggraph.baselines.summary import summarise
    from baggraph.data.splits import stratified_folds

    bags = datasets.load("digits-bags", random_state=random_state)
    out.print(escape(str(bags)) + "\n")
    folds = stratified_folds(bags.y, folds=10, repeats=10, random_state=random_state)
    rows = []
    for name, features in (
        ("majority class", np.zeros((len(bags), 1))),
        ("nearest class mean, of bag means", summarise(bags)),
        ("nearest class mean, of bag maxima", summarise(bags, ["max"])),
    ):
        accuracy = 100 * nearest_mean_accuracy(features, bags.y, folds)
        rows.append([name, f"{accuracy.mean():.1f}", f"{accuracy.std(ddof=1):.1f}"])
    table("Accuracy in %, 10 folds x 10 repeats", ["method", "mean", "sd over repeats"], rows)
    out.print("\nEvery method was fitted on the training folds alone.")


def nearest_mean_accuracy(features: NDArray[Any], y: NDArray[Any], folds: NDArray[Any]) -> NDArray[np.float64]:
    """Accuracy of every repeat when a bag gets the class whose training mean is nearest; ties, the larger class."""
    from baggraph.data.splits import pairs

    right = np.zeros(folds.shape)
    per_repeat = int(folds.max()) + 1
    for number, (train, test) in enumerate(pairs(folds)):
        classes, counts = np.unique(y[train], return_counts=True)
        classes = classes[np.argsort(-counts, kind="stable")]
        means = np.stack([features[train][y[train] == c].mean(axis=0) for c in classes])
        distances = ((features[test][:, None] - means[None]) ** 2).sum(axis=2)
        right[number // per_repeat, test] = classes[distances.argmin(axis=1)] == y[test]
    return np.asarray(right.mean(axis=1))
