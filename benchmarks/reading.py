"""How fast each format is read: megabytes of features a CPU-second, against pandas alone on the same file."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import baggraph as bg

N_BAGS, SIZE, FEATURES = 1_000, 50, 64


def cpu_seconds(call: Callable[[], Any]) -> float:
    """Median of three."""
    times = []
    for _ in range(3):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return sorted(times)[1]


def main() -> None:
    block = np.random.default_rng(0).normal(size=(N_BAGS * SIZE, FEATURES))
    bags = bg.Bags(block, np.arange(N_BAGS + 1) * SIZE, y=np.arange(N_BAGS) % 2)
    megabytes = block.nbytes / 1e6
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bags.to_frame().to_csv(folder / "t.csv", index=False)
        bags.to_frame().to_parquet(folder / "t.parquet")
        bags.to_parquet(folder / "ours.parquet")
        bags.to_npz(folder / "ours.npz")
        for title, call in (
            ("csv, pandas alone", lambda: pd.read_csv(folder / "t.csv")),
            ("csv", lambda: bg.read(folder / "t.csv", target="target")),
            ("parquet, pandas alone", lambda: pd.read_parquet(folder / "t.parquet")),
            ("parquet", lambda: bg.read(folder / "t.parquet", bag="bag", target="target")),
            ("our parquet", lambda: bg.read(folder / "ours.parquet")),
            ("our npz", lambda: bg.read(folder / "ours.npz")),
        ):
            found[title] = megabytes / cpu_seconds(call)
    if "--json" in sys.argv:
        print(json.dumps(found))
    else:
        print(f"reading {megabytes:.0f} MB of float64 features in {N_BAGS} bags, MB a CPU-second (median of 3)")
        for title, rate in found.items():
            print(f"  {title:<22}{rate:8.0f}")


if __name__ == "__main__":
    main()
