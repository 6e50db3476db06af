"""Counts of every set of the paper, as loaded here and as the paper prints them, in one table.

python benchmarks/paper_statistics.py setups.json       the paper's setups: {task: {"statistics": {set: counts}, ...}}

A cell shows one number where both agree, and ``loaded (printed)`` where they differ.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from baggraph import datasets
from baggraph.cli._console import table

COLUMNS = ("bags", "positive", "negative", "instances", "min_instances", "max_instances", "features")
REGIONS = {"regions": "bags", "features": "features"}


def printed_counts(setups: dict[str, Any]) -> dict[str, dict[str, int]]:
    """What the paper prints, by the names that the sets have here."""
    both = ("newsgroups/", "newsgroups-rebuilt/")
    found = dict(setups["benchmark"]["statistics"])
    found |= {prefix + name: counts for prefix in both for name, counts in setups["text"]["statistics"].items()}
    for task, names in (("election", ("election/zcta", "election/tracts")), ("rental", ("rental",))):
        common = setups[task]["common"]
        found |= {name: {here: common[there] for there, here in REGIONS.items()} for name in names}
    return found


def loaded_counts(name: str, *, as_published: bool = False) -> dict[str, int | None]:
    """The same counts, of the bags themselves."""
    found = datasets.count(datasets.load(name, as_published=as_published))
    negative = None if found.positive is None else found.bags - found.positive
    numbers = (found.bags, found.positive, negative, found.instances, found.smallest, found.largest, found.features)
    return dict(zip(COLUMNS, numbers, strict=True))


def cell(ours: int | None, theirs: int | None) -> str:
    if ours is None:
        return ""
    return f"{ours:,}" if theirs in (None, ours) else f"{ours:,} ({theirs:,})"


def verdict(ours: dict[str, int | None], theirs: dict[str, int]) -> str:
    differ = [key for key, value in theirs.items() if ours[key] != value]
    return f"{len(theirs) - len(differ)} of {len(theirs)} equal"


def rows(printed: dict[str, dict[str, int]]) -> list[list[str]]:
    made = []
    for name, theirs in printed.items():
        if datasets.state(datasets.card(name)) != "here":
            made.append([name, "file not at hand", *("" for _ in COLUMNS)])
            continue
        variants = [(name, False)] + ([(f"{name}, as published", True)] if name == "rental" else [])
        for title, as_published in variants:
            ours = loaded_counts(name, as_published=as_published)
            made.append([title, verdict(ours, theirs), *(cell(ours[key], theirs.get(key)) for key in COLUMNS)])
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("setups", type=Path, help="the paper's setups, a JSON file")
    printed = printed_counts(json.loads(parser.parse_args().setups.read_text()))
    table(
        "loaded, and in brackets what the paper prints where that differs",
        ["set", "counts", *COLUMNS],
        rows(printed),
        right=2,
    )


if __name__ == "__main__":
    main()
