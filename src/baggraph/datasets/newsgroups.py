"""Twenty sets of bags of newsgroup posts: the originals where they can be had, and an honest rebuilding."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.data.readers.matlab import read_matlab
from baggraph.datasets import newsgroups_recipe as recipe
from baggraph.datasets.cards import Card, Counts, DataFile
from baggraph.datasets.newsgroups_corpus import Corpus, counts_from_archive, read_counts
from baggraph.errors import DataFileError, MissingDependencyError

# Smallest bag, largest bag and instances of the 20 sets: the paper's supplement, statistics of the text sets.
SIZES = {
    "alt.atheism": (22, 76, 5443),
    "comp.graphics": (12, 58, 3094),
    "comp.os.ms-windows.misc": (25, 82, 5175),
    "comp.sys.ibm.pc.hardware": (19, 74, 4287),
    "comp.sys.mac.hardware": (17, 71, 4473),
    "comp.windows.x": (12, 54, 3110),
    "misc.forsale": (29, 84, 5306),
    "rec.autos": (15, 59, 3458),
    "rec.motorcycles": (22, 73, 4730),
    "rec.sport.baseball": (15, 58, 3358),
    "rec.sport.hockey": (8, 38, 1982),
    "sci.crypt": (20, 71, 4284),
    "sci.electronics": (12, 58, 3192),
    "sci.med": (11, 54, 3045),
    "sci.space": (16, 59, 3655),
    "soc.religion.christian": (21, 71, 4677),
    "talk.politics.guns": (13, 59, 3558),
    "talk.politics.mideast": (15, 55, 3376),
    "talk.politics.misc": (21, 75, 4778),
    "talk.religion.misc": (25, 79, 4606),
}
COUNTS = "newsgroups_rebuilt/corpus_counts.npz"
ARCHIVE = "newsgroups_rebuilt/20news-bydate.tar.gz"
JULIA = "newsgroups/raw/comp.graphics.jld"


def build_original(files: Mapping[str, Path], *, as_published: bool, group: str) -> Bags:
    """One original set; the published code used the data as they are, so ``as_published`` is the same."""
    del as_published
    if JULIA in files:
        return read_julia(files[JULIA])
    return read_matlab(files[f"newsgroups/raw/{group}.mat"])


def build_rebuilt(files: Mapping[str, Path], *, as_published: bool, group: str, random_state: int = 0) -> Bags:
    """One rebuilt set, see :func:`baggraph.datasets.newsgroups_recipe.build`; ``as_published`` is the same."""
    del as_published
    corpus = _corpus(files.get(COUNTS) or files[ARCHIVE])
    smallest, largest, total = SIZES[group]
    return recipe.build(corpus, group, smallest=smallest, largest=largest, total=total, random_state=random_state)


@lru_cache(maxsize=1)
def _corpus(path: Path) -> Corpus:
    return read_counts(path) if path.suffix == ".npz" else counts_from_archive(path)


def read_julia(path: Path) -> Bags:
    """Bags from a Julia ``.jld`` file: transposed instances ``X``, labels ``y`` and training masks ``folds``."""
    try:
        import h5py
    except ImportError as error:
        raise MissingDependencyError(
            "newsgroups", expected="the package h5py", got="none", remedy="pip install 'baggraph[h5]'"
        ) from error
    try:
        with h5py.File(path, "r") as file:
            arrays = [file[reference][()].T for reference in file["X"][()]]
            y = _bits(file, file["y"][()]).astype(np.int64)
            train = [[_bits(file, file[fold][()]) for fold in file[repeat][()]] for repeat in file["folds"][()]]
    except (OSError, KeyError, ValueError) as error:
        raise DataFileError(
            "newsgroups", expected=f"a Julia data set in {path.name}", got=str(error), remedy="fetch it again"
        ) from error
    folds = np.argmin(np.array(train), axis=1).astype(np.int16)  # the one fold in which a bag is not trained on
    sizes = [len(array) for array in arrays]
    block = sp.csr_array(np.concatenate(arrays).astype(np.float32))
    return Bags(block, np.concatenate([[0], np.cumsum(sizes)]), y, splits={"midatasets-5x10": folds})


def _bits(file: Any, record: Any) -> NDArray[np.bool_]:
    """A Julia BitArray: 64-bit little-endian chunks, lowest bit first."""
    chunks = file[record["chunks_"]][()].astype("<u8")
    return np.unpackbits(chunks.view(np.uint8), bitorder="little")[: int(record["len_"])].astype(bool)


ZHOU = (
    "Zhou, Sun, Li (2009). Multi-instance learning by treating instances as non-i.i.d. samples. "
    "International Conference on Machine Learning."
)
ZHOU_HOME = "http://cs.nju.edu.cn/zhouzh/zhouzh.files/publication/annex/mil-text-data.htm"
MIDATASETS = "https://raw.githubusercontent.com/komartom/MIDatasets.jl/2d9d9f36750cfc59e5b95b803e53001fc2735a42/data"


def _original(group: str) -> Card:
    smallest, largest, total = SIZES[group]
    graphics = group == "comp.graphics"
    file = (
        DataFile(
            JULIA,
            "be22123a6636f05381e574faa580589f8a9d3281294633a73f9eeb7dc00fd5ef",
            (f"{MIDATASETS}/Newsgroups2.jld",),
        )
        if graphics
        else DataFile(
            f"newsgroups/raw/{group}.mat",
            None,
            hint=f"the cell file of this group from {ZHOU_HOME}, under this name; its counts are checked",
        )
    )
    leak = (
        "141 of the 200 columns occur in positive bags only: the terms were chosen with the target posts in view.",
        "One threshold on the largest instance norm of a bag scores 78 % over the published folds.",
    )
    return Card(
        name=f"newsgroups/{group}",
        title=f"Bags of posts, positive when some are from {group} (original)",
        task="binary",
        counts=Counts(100, total, 200, smallest, largest, 50),
        licence="free for academic use, according to its home",
        citation=ZHOU,
        home=ZHOU_HOME,
        build=build_original,
        files=(file,),
        printed=Counts(100, total, 200, smallest, largest, 50),
        notes=leak
        if graphics
        else ("Not publicly fetchable any more; whether it leaks like comp.graphics is unknown.",),
        settings={"group": group},
    )


def _rebuilt(group: str) -> Card:
    smallest, largest, total = SIZES[group]
    return Card(
        name=f"newsgroups-rebuilt/{group}",
        title=f"Bags of posts, positive when some are from {group} (rebuilt, honest features)",
        task="binary",
        counts=Counts(100, total, 200, smallest, largest, 50),
        licence="none stated for the corpus; only term counts are kept",
        citation=f"Posts: 20 Newsgroups, Lang (1995). Design of the sets: {ZHOU}",
        home="http://qwone.com/~jason/20Newsgroups/",
        build=build_rebuilt,
        files=(
            DataFile(
                COUNTS,
                "90011e286402464ca653a32ad187733b78e1b09c4bc4f3e82e52433c3e9f81ab",
                optional=True,
                hint="term counts of the corpus; the archive below serves as well",
            ),
            DataFile(
                ARCHIVE,
                "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
                ("https://ndownloader.figshare.com/files/5975967",),
                instead_of=COUNTS,
            ),
        ),
        notes=(
            "Not the original posts: never lay scores on it beside printed ones.",
            "200 unit-norm TF-IDF terms, the same for all 20 sets, chosen without a look at bag labels; "
            "labels of instances are known.",
        ),
        settings={"group": group},
    )


CARDS = tuple(_original(group) for group in SIZES) + tuple(_rebuilt(group) for group in SIZES)
