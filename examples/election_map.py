"""How would the regions vote that nobody has counted?  A map of shares and of what is not known, US 2016.

python examples/election_map.py                        about ten minutes on two cores; needs the election files
python examples/election_map.py --epochs 20 --regions 200
"""

from __future__ import annotations

import argparse

import matplotlib as mpl
import numpy as np

import baggraph as bg
from baggraph.data.splits import label_mask

mpl.use("Agg")
import matplotlib.pyplot as plt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--regions", type=int, default=979, help="of them, for a quick look")
    parser.add_argument("-o", "--output", default="election_map.png")
    options = parser.parse_args()

    bags = bg.datasets.load("election/zcta")[: options.regions]
    print(bags)
    seen = label_mask(bags.y, labelled=0.1, random_state=0)
    print(f"{seen.sum()} regions are counted, {(~seen).sum()} are not")
    near = bg.BagGraph.from_coordinates(bags.coords, bags.ids, n_neighbors=5)
    model = bg.BagGraphRegressor(
        encoder="deep-sets", graph=near, loss="bce", epochs=options.epochs, n_draws=20, lr=1e-3, verbose=1
    )
    model.fit(bags.replace(graph=near, y=np.where(seen, bags.y, np.nan)))
    share, spread = model.posterior_.mean[:, 0], model.posterior_.std[:, 0]
    won = (share > 0.5) == (bags.y > 0.5)
    always = max((bags.y[~seen] > 0.5).mean(), (bags.y[~seen] <= 0.5).mean())
    print(f"winner right in {won[~seen].mean():.1%} of the uncounted; always the larger side: {always:.1%}")
    error, constant = (np.abs(guess - bags.y)[~seen].mean() for guess in (share, bags.y[seen].mean()))
    print(f"mean error of the share {error:.3f}; of the mean of the counted {constant:.3f}")

    x, y = (bags.coords[:, 0], bags.coords[:, 1])
    figure, axes = plt.subplots(1, 3, figsize=(15, 4))
    views = (
        ("counted in the end", bags.y, "RdBu_r"),
        ("what the model says", share, "RdBu_r"),
        ("how unsure it is", spread, "viridis"),
    )
    for axis, (title, values, colours) in zip(axes, views, strict=True):
        limits = {"vmin": 0, "vmax": 1} if colours == "RdBu_r" else {}
        drawn = axis.scatter(x, y, c=values, s=14, cmap=colours, **limits)
        axis.set_title(title)
        axis.set_aspect("equal")
        figure.colorbar(drawn, ax=axis, shrink=0.8)
    axes[1].scatter(x[seen], y[seen], s=26, facecolors="none", edgecolors="black", linewidths=0.8)
    figure.savefig(options.output, dpi=120, bbox_inches="tight")
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
