"""A set larger than we want in memory: write it, open it memory-mapped, take 100 random bags, and say what that took.

python benchmarks/memory_map.py --gigabytes 3
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import baggraph as bg

FEATURES, SIZE = 512, 500


def make(path: Path, gigabytes: float) -> None:
    """Write bags whose block never lies in memory as a whole."""
    n_bags = max(200, round(gigabytes * 1e9 / (4 * FEATURES * SIZE)))
    scratch = path.with_suffix(".block")
    block = np.memmap(scratch, dtype=np.float32, mode="w+", shape=(n_bags * SIZE, FEATURES))
    for start in range(0, len(block), SIZE):
        bag = start // SIZE
        block[start : start + SIZE] = np.random.default_rng(bag).random((SIZE, FEATURES), dtype=np.float32) + bag
    block.flush()
    mapped = np.memmap(scratch, dtype=np.float32, mode="r", shape=block.shape)
    bg.Bags(mapped, np.arange(n_bags + 1) * SIZE, y=np.arange(n_bags) % 2).to_npz(path)
    scratch.unlink()


def use(path: Path) -> dict[str, float]:
    """Open the file, take 100 random bags, check them; runs in a process of its own to measure its memory."""
    start = time.perf_counter()
    bags = bg.read(path)
    opened = time.perf_counter() - start
    chosen = np.sort(np.random.default_rng(0).choice(len(bags), 100, replace=False))
    start = time.perf_counter()
    taken = bags.take(chosen)
    yielded = time.perf_counter() - start
    for bag, place in zip(taken, chosen, strict=True):
        expected = np.random.default_rng(int(place)).random((SIZE, FEATURES), dtype=np.float32) + int(place)
        assert np.array_equal(bag.instances, expected), f"bag {place} is not what was written"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"gigabytes": bags.instances.nbytes / 1e9, "open_s": opened, "take_100_s": yielded, "peak_resident_mb": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=3.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--step", choices=["make", "use"], help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step == "make":
        return make(options.path, options.gigabytes)
    if options.step == "use":
        return print(json.dumps(use(options.path)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.npz"
        # Each step in its own process: a child's peak memory counts from that of its parent.
        step = [sys.executable, __file__, "--path", str(path), "--gigabytes", str(options.gigabytes), "--step"]
        subprocess.run([*step, "make"], check=True)
        found = json.loads(subprocess.check_output([*step, "use"], text=True))
    if options.json:
        print(json.dumps(found))
    else:
        print(
            "{gigabytes:.2f} GB: opened in {open_s:.3f} s, 100 random bags in {take_100_s:.3f} s, ".format(**found),
            end="",
        )
        print("peak resident memory {peak_resident_mb:.0f} MB".format(**found))
    return None


if __name__ == "__main__":
    main()
