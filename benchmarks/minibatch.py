"""One epoch on instances that do not fit in memory: peak resident memory, instances a second, share of reading.

python benchmarks/minibatch.py --gigabytes 20 --folder /tmp --kill

The set is written to a file of that size, or of what the disk has room for, and removed afterwards.  With --kill it is
trained on once more, by a process that is killed in the middle and one that goes on from its checkpoint.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

FEATURES, MEAN_SIZE, LEAST_FREE = 512, 1000, 5e9


def sizes_of(gigabytes: float) -> np.ndarray:
    n_bags = max(4, round(gigabytes * 1e9 / (4 * FEATURES * MEAN_SIZE)))
    return np.random.default_rng(0).integers(MEAN_SIZE // 10, 2 * MEAN_SIZE - MEAN_SIZE // 10, n_bags)


def make(path: Path, gigabytes: float) -> None:
    """Write bags one after the other."""
    sizes, rng = sizes_of(gigabytes), np.random.default_rng(1)
    noise = rng.standard_normal((4 * MEAN_SIZE, FEATURES), dtype=np.float32)
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (int(sizes.sum()), FEATURES)}
        np.lib.format.write_array_header_1_0(file, header)
        for bag, size in enumerate(sizes):
            first = int(rng.integers(2 * MEAN_SIZE))
            file.write((noise[first : first + size] + np.float32(0.1 * (bag % 2))).data)
        file.flush()
        os.fsync(file.fileno())


def forget(path: Path) -> None:
    """Let the system drop what it keeps of a file, so that it is read from the disk again."""
    if hasattr(os, "posix_fadvise"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def train(folder: Path, gigabytes: float, batch_instances: int, device: str, step: str) -> dict[str, object]:
    """Open the file and train for an epoch; runs in a process of its own to measure its memory."""
    import torch

    from baggraph.data.bags import Bags
    from baggraph.inference._batches import Reader
    from baggraph.inference._large import Trainer
    from baggraph.inference.minibatch import fit_minibatch
    from baggraph.nn import encoder
    from baggraph.nn.heads import Head
    from baggraph.nn.losses import BinaryCrossEntropy
    from baggraph.nn.network import Network

    seconds: dict[str, float] = {}

    def timed(owner: type, name: str) -> None:
        plain = getattr(owner, name)

        def clocked(*given, **named):
            begun = time.perf_counter()
            result = plain(*given, **named)
            seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begun
            return result

        setattr(owner, name, clocked)

    timed(Reader, "_fill")
    for name in ("train", "embed", "_step"):
        timed(Trainer, name)
    begun = time.perf_counter()
    sizes = sizes_of(gigabytes)
    y = np.arange(len(sizes)) % 2
    bags = Bags(np.load(folder / "set.npy", mmap_mode="r"), np.r_[0, np.cumsum(sizes)], y)
    opened = time.perf_counter() - begun
    forget(folder / "set.npy")
    rff = encoder("rff-pool", FEATURES, pooling="mean")
    network = Network(rff, Head(rff.level_widths, 1))
    own = {"batch_instances": batch_instances, "device": device, "epochs": 1, "checkpoint_every": 20}
    own["checkpoint"] = None if step == "train" else folder / "state"
    own["progress"] = (lambda *counts: print(*counts, flush=True)) if step == "die" else None
    found = fit_minibatch(network, bags, y, np.ones(len(bags)), loss=BinaryCrossEntropy(), **own)
    accuracy = float(((found.mean[:, 0] > 0.5).numpy() == (y == 1)).mean())
    digest = hashlib.sha256(b"".join(value.numpy().tobytes() for value in found.parameters.values())).hexdigest()
    waited = seconds["train"] - seconds["_step"]
    return {
        "gigabytes": bags.instances.nbytes / 1e9,
        "bags": len(bags),
        "instances": bags.n_instances,
        "threads": torch.get_num_threads(),
        "open_and_check_s": opened,
        "epoch_s": seconds["train"],
        "embed_s": seconds["embed"],
        "instances_a_second": bags.n_instances / seconds["train"],
        "reading_gb_a_second": 2 * bags.instances.nbytes / 1e9 / seconds["_fill"],
        "waiting_for_the_reader": waited / seconds["train"],
        "reading_in_its_thread": seconds["_fill"] / (seconds["train"] + seconds["embed"]),
        "peak_resident_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "accuracy": accuracy,
        "parameters": digest[:16],
    }


def kill_and_resume(step: list[str]) -> dict[str, object]:
    """What the resumed process reports, and after how many batches the first was killed."""
    with subprocess.Popen([*step, "die"], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            done, total = map(int, line.split())
            if done >= total // 4:  # of all batches, about half are embedded after training
                process.kill()
                break
    found = json.loads(subprocess.check_output([*step, "resume"], text=True))
    return {"killed_after": done, "of": total, "parameters_resumed": found["parameters"]} | {
        f"{name}_resumed": found[name] for name in ("epoch_s", "peak_resident_gb")
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--batch-instances", type=int, default=16_384)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--step", choices=["make", "train", "die", "resume"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step == "make":
        return make(options.folder / "set.npy", options.gigabytes)
    if options.step:
        found = train(options.folder, options.gigabytes, options.batch_instances, options.device, options.step)
        return print(json.dumps(found))
    room = shutil.disk_usage(options.folder).free - LEAST_FREE
    gigabytes = min(options.gigabytes, room / 1e9)
    if gigabytes < 0.01:
        sys.exit(f"minibatch: expected room for a set in {options.folder}, got {room / 1e9:.1f} GB; choose another")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        # Each step in its own process: a child's peak memory counts from that of its parent.
        own = ["--gigabytes", str(gigabytes), "--batch-instances", str(options.batch_instances)]
        step = [sys.executable, __file__, *own, "--folder", folder, "--device", options.device, "--step"]
        subprocess.run([*step, "make"], check=True)
        found = json.loads(subprocess.check_output([*step, "train"], text=True))
        if options.kill:
            found |= kill_and_resume(step)
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name.replace('_', ' '):24} {f'{value:,.3f}' if isinstance(value, float) else value}")
    return None


if __name__ == "__main__":
    main()
