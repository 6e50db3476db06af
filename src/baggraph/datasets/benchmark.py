"""The five classical benchmarks: two of molecules (MUSK), three of images (FOX, TIGER, ELEPHANT)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from baggraph.data.bags import Bags
from baggraph.data.readers.matlab import read_matlab
from baggraph.datasets.cards import Card, Counts, DataFile

PUBLIC = "https://raw.githubusercontent.com"
IMAGE_FOLDS = DataFile(
    "mil_benchmark/raw/fox_tiger_elephant_testIndex.mat",
    "79320167ab583018d7ff841b19cc035458a9bf6d9eedccd6f71c1c2f21206744",
    (f"{PUBLIC}/vickycs50/FCBE-miFV/9997af9d694df1bd522e7c070c91c9f9dd8145e3/data/figure_testIndex.mat",),
    optional=True,
)
ANDREWS = (
    "Andrews, Tsochantaridis, Hofmann (2002). Support vector machines for multiple-instance learning. "
    "Advances in Neural Information Processing Systems 15."
)
DIETTERICH = (
    "Dietterich, Lathrop, Lozano-Perez (1997). Solving the multiple instance problem with axis-parallel "
    "rectangles. Artificial Intelligence 89."
)


def build(files: Mapping[str, Path], *, as_published: bool, name: str) -> Bags:
    """Bags of one benchmark; the published code used the data as they are, so ``as_published`` is the same."""
    del as_published
    raw = read_matlab(files[f"mil_benchmark/raw/{name}.mat"])
    y = (raw.y == "positive").astype(np.int64)
    block = np.asarray(raw.instances.toarray() if raw.is_sparse else raw.instances, dtype=np.float32)
    return Bags(block, raw.offsets, y, ids=raw.ids, splits=_splits(files, name))


def _splits(files: Mapping[str, Path], name: str) -> dict[str, Any]:
    splits = {}
    if IMAGE_FOLDS.path in files:
        splits["mifv-10x10"] = folds_of_test_indices(files[IMAGE_FOLDS.path])
    packed = files.get(f"mil_benchmark/{name}.npz")
    if packed is not None:
        with np.load(packed) as content:
            if "cv_fold_5x10" in content.files:
                splits["midatasets-5x10"] = content["cv_fold_5x10"].astype(np.int16)
    return splits


def folds_of_test_indices(path: Path) -> Any:
    """Fold numbers from a matrix with the test bags of one fold a row, ten rows a repeat, counted from 1."""
    from scipy.io import loadmat

    tests = loadmat(path)["testIndex"].astype(np.int64) - 1
    repeats, per_fold = tests.shape[0] // 10, tests.shape[1]
    folds = np.full((repeats, 10 * per_fold), -1, dtype=np.int16)
    for row, test in enumerate(tests):
        folds[row // 10, test] = row % 10
    return folds


def _card(
    name: str,
    counts: Counts,
    raw_sha256: str,
    url: str,
    packed_sha256: str,
    more: tuple[str, ...] = (),
) -> Card:
    musk = name.startswith("musk")
    packed = DataFile(
        f"mil_benchmark/{name}.npz",
        packed_sha256,
        optional=True,
        hint="only for the published 5 x 10 folds; without it the set loads all the same",
    )
    notes = more if musk else (*more, "87 of the 230 columns are zero in every instance.")
    return Card(
        name=name,
        title=f"{name.upper()}: "
        + (
            "which molecules smell of musk"
            if musk
            else f"which images show {'an' if name[0] in 'aeiou' else 'a'} {name}"
        ),
        task="binary",
        counts=counts,
        licence="CC BY 4.0, according to the UCI repository" if musk else "none stated",
        citation=DIETTERICH if musk else ANDREWS,
        home="https://archive.ics.uci.edu/dataset/" + ("74/musk+version+1" if name == "musk1" else "75/musk+version+2")
        if musk
        else "http://www.cs.columbia.edu/~andrews/mil/datasets.html",
        build=build,
        files=(
            DataFile(f"mil_benchmark/raw/{name}.mat", raw_sha256, (url,)),
            *(() if musk else (IMAGE_FOLDS,)),
            packed,
        ),
        printed=replace(counts, smallest=3) if name == "elephant" else counts,
        notes=notes,
        settings={"name": name},
    )


SMILES = f"{PUBLIC}/fulowl/smiles/f80f171a8d0dae50e6fd6795d6602646b9155486/data"
MINNS = f"{PUBLIC}/yanyongluan/MINNs/c2aed96d95442fe6cd949ab64cf817de2ae18da5/dataset"

CARDS = (
    _card(
        "musk1",
        Counts(bags=92, instances=476, features=166, smallest=2, largest=40, positive=47),
        "70df92db207795ce7d3a8212d8f945a6b4b2d29eff2a5be1cfa11e8e36d02e9e",
        f"{MINNS}/musk1.mat",
        "c6d6ff146a90bccd907921b43e9234c3c0c97477eff9bf4411df33c8627e4bf2",
    ),
    _card(
        "musk2",
        Counts(bags=102, instances=6598, features=166, smallest=1, largest=1044, positive=39),
        "ae8c0a8e2b08a2e22d1ac422bf708bba4d19d83757a42aefb273f2de533febfe",
        f"{SMILES}/musk1.mat",
        "11dec0c457f6a04a02951737008a3fa306cbf35d27f4604a1d2640e7effa1260",
        (
            "The public collection exchanges the names of the two MUSK files; the checksum tells them apart.",
            "72 molecules occur in both MUSK sets.",
        ),
    ),
    _card(
        "fox",
        Counts(bags=200, instances=1320, features=230, smallest=2, largest=13, positive=100),
        "39ee635d3b9614d9483048acd13aee69175a03a884193e9e0a5ad5ead9af0a8b",
        f"{SMILES}/fox.mat",
        "914a8a6d9b521fd04b41d750d2c056037ba5766fbc593a5c59d6e927aca19318",
    ),
    _card(
        "tiger",
        Counts(bags=200, instances=1220, features=230, smallest=1, largest=13, positive=100),
        "0c1c118f12010e81181cff8d101eba7225d93335b6012412fba4d354431b8513",
        f"{SMILES}/tiger.mat",
        "418cbb6289b7b8e378d1a591721e01a9277d4e641dd3dd47ccadbe5bcd31b18d",
    ),
    _card(
        "elephant",
        Counts(bags=200, instances=1391, features=230, smallest=2, largest=13, positive=100),
        "0104e50255d1719842612c882d5c5fcc820eb9ee2a64f05bac98b7379eb10de0",
        f"{SMILES}/elephant.mat",
        "9cf096e24af3ad466e71ceeeaf306d52d1fdd919310f42cf464ba36e34c7add9",
        ("The smallest bag has 2 instances; the paper's table says 3. Three independent copies of the data say 2.",),
    ),
)
