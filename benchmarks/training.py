"""Training: stacks of folds, against a loop over bags and against torchmil; CPU-seconds and ratios in one run.

python benchmarks/training.py                          FOX and MUSK1, 10 folds, against the loop over bags
python benchmarks/training.py --torchmil               one epoch of attention, against torchmil's model and loader
python benchmarks/training.py --device cuda --members 100 --sets musk1 fox musk2 --precision float32 tf32 bfloat16
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from baggraph import datasets
from baggraph.baselines.summary import summarise
from baggraph.data.bags import Bags
from baggraph.data.scaling import InstanceScaler
from baggraph.data.splits import pairs, stratified_folds
from baggraph.graphs.learned import LearnedGraph
from baggraph.inference.stack import fit_stack
from baggraph.nn import BinaryCrossEntropy, Head, Network, encoders

LR, DECAY, EPOCHS = 5e-4, 5e-3, 200
HIDDEN = (256, 128, 64)


def cpu_seconds(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Result, CPU-seconds and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = call()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def prepared(name: str) -> tuple[Bags, np.ndarray]:
    bags = datasets.load(name)
    return InstanceScaler().fit(bags).transform(bags), np.array([int(label) for label in bags.y])


def training_masks(bags: Bags, members: int) -> np.ndarray:
    """A training fold a member, of repeated 10-fold cross-validation."""
    masks = np.zeros((members, len(bags)), dtype=bool)
    folds = pairs(stratified_folds(bags.y, folds=10, repeats=-(-members // 10)))
    for mask, (train, _) in zip(masks, folds, strict=False):
        mask[train] = True
    return masks


def rff_pool(bags: Bags) -> Network:
    encoder = encoders.RffPool(bags.n_features, HIDDEN)
    return Network(encoder, Head(encoder.level_widths, 1))


def flops(bags: Bags) -> int:
    """Multiplications and additions of the products of one epoch; the input needs no gradient."""
    widths = [bags.n_features, *HIDDEN]
    layers = [a * b for a, b in pairwise(widths)]
    return 2 * bags.n_instances * (2 * layers[0] + 3 * sum(layers[1:]))


def product_rate() -> float:
    """Operations a CPU-second of a product of the shapes that FOX needs."""
    a, b = torch.rand(1320, 256), torch.rand(256, 128)
    _, cpu, _ = cpu_seconds(lambda: [a @ b for _ in range(300)])
    return 300 * 2 * 1320 * 256 * 128 / cpu


# ---------------------------------------------------------------------- against a loop over bags


class PlainRff(nn.Module):
    """rFF + pool in the plainest torch, for one bag at a time."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        widths = [n_features, *HIDDEN]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))

    def forward(self, instances: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        pooled = []
        for layer in self.layers:
            instances = torch.relu(layer(instances))
            pooled.append(instances.amax(0))
        return torch.cat(pooled)[None]


def against_loop(options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for name in options.sets:
        bags, y = prepared(name)
        _fit(bags, y, training_masks(bags, 1), options, epochs=2)  # what is loaded on first use
        turns = []
        for mask in training_masks(bags, options.members):  # in turns: what else the machine does disturbs all alike
            ours = cpu_seconds(lambda bags=bags, y=y, mask=mask: _fit(bags, y, mask[None], options))[1]
            looped = _loop_seconds(bags, y, mask, options.loop_epochs)
            turns.append((ours / EPOCHS, looped / options.loop_epochs, flops(bags) / product_rate()))
        ours, theirs, floor = np.mean(turns, axis=0)
        row = {"set": name, "fits": options.members, "cpu_s_a_fit": EPOCHS * ours, "ms_an_epoch": 1e3 * ours}
        row |= {"loop_ms_an_epoch": 1e3 * theirs, "floor_ms": 1e3 * floor}
        row |= {"times_fewer_cpu_s": theirs / ours, "times_the_floor": ours / floor}
        rows.append({key: round(value, 2) if isinstance(value, float) else value for key, value in row.items()})
    return rows


def _loop_seconds(bags: Bags, y: np.ndarray, mask: np.ndarray, epochs: int) -> float:
    network = Network(PlainRff(bags.n_features), Head(HIDDEN, 1))
    optimiser = torch.optim.Adam(network.parameters(), lr=LR, weight_decay=DECAY)
    parts = [torch.from_numpy(np.asarray(part, dtype=np.float32)) for part in bags.to_list()]
    offsets = [torch.tensor([0, len(part)]) for part in parts]
    target = torch.from_numpy(y).float()[None, :, None].expand(3, -1, -1)
    weight = torch.from_numpy(mask).float()[None, :, None]

    def train() -> None:
        for _ in range(epochs):
            embedding = torch.cat([network.encoder(part, own) for part, own in zip(parts, offsets, strict=True)])
            loss = nn.functional.binary_cross_entropy_with_logits(network.head(embedding), target, weight=weight)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return cpu_seconds(train)[1]


def _fit(bags: Bags, y: np.ndarray, masks: np.ndarray, options: argparse.Namespace, **more: Any) -> Any:
    given = {"loss": BinaryCrossEntropy(), "seeds": range(len(masks)), "lr": LR, "weight_decay": DECAY}
    given |= {"epochs": EPOCHS, "device": options.device} | more
    return fit_stack(rff_pool(bags), bags, y, masks, **given)


# ---------------------------------------------------------------------- on a GPU, with and without graphs


def on_device(options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for name in options.sets:
        bags, y = prepared(name)
        masks = training_masks(bags, options.members)
        Z = summarise(bags)
        learned = LearnedGraph(3, device="cpu").fit((Z - Z.mean(0)) / np.maximum(Z.std(0), 1e-9)).graph_
        for graphs in (None, [learned] * options.members):
            for precision in options.precision:
                run = lambda p=precision, g=graphs: _fit(bags, y, masks, options, precision=p, graphs=g)  # noqa: E731, B023
                run()
                walls = [cpu_seconds(run) for _ in range(3)]
                probability = walls[-1][0].mean[:, :, 0].numpy()
                accuracy = ((probability > 0.5) == y)[~masks].mean()
                row = {"set": name, "members": options.members, "head": "linear" if graphs is None else "gcn"}
                row |= {"precision": precision, "wall_s": round(float(np.median([w[2] for w in walls])), 3)}
                rate = flops(bags) * options.members * EPOCHS / row["wall_s"] / 1e12
                rows.append(row | {"accuracy": round(100 * float(accuracy), 2), "tflops": round(rate, 1)})
    return rows


# ---------------------------------------------------------------------- against torchmil


def bags_of_sizes(low: int, high: int, d: int, n_bags: int = 200) -> Bags:
    rng = np.random.default_rng(0)
    sizes = np.exp(rng.uniform(np.log(low), np.log(high + 1), size=n_bags)).astype(int)
    instances = rng.standard_normal((sizes.sum(), d), dtype=np.float32)
    return Bags(instances, np.concatenate([[0], np.cumsum(sizes)]), np.arange(n_bags) % 2)


def ours_epoch(bags: Bags) -> Callable[[], Any]:
    encoder = encoders.Attention(bags.n_features, (), attention_width=128)
    network = Network(encoder, Head(encoder.level_widths, 1, dropout=0.0))
    y, mask = np.arange(len(bags)) % 2, np.ones((1, len(bags)))
    return lambda epochs: fit_stack(
        network, bags, y, mask, loss=BinaryCrossEntropy(), seeds=[0], lr=1e-3, epochs=epochs, device="cpu"
    )


def torchmil_epoch(bags: Bags) -> Callable[[], Any]:
    from torchmil.data import collate_fn
    from torchmil.models import ABMIL

    model = ABMIL(in_shape=(bags.n_features,), att_dim=128)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    items = [
        {"X": torch.from_numpy(np.array(part)), "Y": torch.tensor(float(k % 2))}
        for k, part in enumerate(bags.to_list())
    ]
    loader = torch.utils.data.DataLoader(items, batch_size=len(items), shuffle=True, collate_fn=collate_fn)

    def train(epochs: int) -> None:
        for _ in range(epochs):
            for batch in loader:
                logits = model(batch["X"], batch["mask"])
                loss = nn.functional.binary_cross_entropy_with_logits(logits, batch["Y"].reshape(-1))
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()

    return train


def torchmil_child(options: argparse.Namespace) -> list[dict[str, Any]]:
    """One side alone in its process, so that its peak of memory is its own."""
    low, high, d = options.shape
    bags = bags_of_sizes(low, high, d)
    train = {"ours": ours_epoch, "torchmil": torchmil_epoch}[options.side](bags)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    train(1)
    more = 10 if high < 100 else 2
    _, cpu, wall = cpu_seconds(lambda: train(1 + more))
    _, once, once_wall = cpu_seconds(lambda: train(1))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    row = {"cpu_s_an_epoch": (cpu - once) / more, "wall_s_an_epoch": (wall - once_wall) / more}
    return [row | {"first_epoch_cpu_s": once, "peak_gb": peak / 1e6, "bags_alone_gb": before / 1e6}]


def against_torchmil(options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for low, high, d in ((10, 3000, 512), (2, 40, 166)):
        sides = {}
        for side in ("ours", "torchmil"):
            shape = [str(number) for number in (low, high, d)]
            command = [sys.executable, __file__, "--side", side, "--shape", *shape, "--json"]
            command += ["--threads", str(options.threads)]
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
            sides[side] = json.loads(done.stdout.strip().splitlines()[-1])
        ratio = {
            key: sides["torchmil"][key] / sides["ours"][key]
            for key in ("cpu_s_an_epoch", "first_epoch_cpu_s", "peak_gb")
        }
        row = {"instances": f"{low}-{high}", "d": d, **sides}
        rows.append(row | {f"times_fewer_{key}": round(value, 2) for key, value in ratio.items()})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["fox", "musk1"])
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--loop-epochs", type=int, default=20)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", nargs="+", default=["float32"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--torchmil", action="store_true")
    parser.add_argument("--side", choices=["ours", "torchmil"], help=argparse.SUPPRESS)
    parser.add_argument("--shape", nargs=3, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.side:
        chosen = torchmil_child
    elif options.torchmil:
        chosen = against_torchmil
    else:
        chosen = against_loop if options.device == "cpu" else on_device
    for row in chosen(options):
        print(json.dumps(row) if options.json else "  ".join(f"{k}={v}" for k, v in row.items()), flush=True)


if __name__ == "__main__":
    main()
