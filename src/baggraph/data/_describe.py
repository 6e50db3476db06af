"""What a person wants to know about a set of bags, in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from baggraph.data._columns import Column, missing_mask

if TYPE_CHECKING:
    from baggraph.data.bags import Bags

MANY_CLASSES = 10


def describe(bags: Bags) -> str:
    """The repr of :class:`~baggraph.data.bags.Bags`."""
    name = f" {bags.metadata['name']}" if "name" in bags.metadata else ""
    counts = f"{plural(len(bags), 'bag')}, {plural(bags.n_instances, 'instance')}, {plural(bags.n_features, 'feature')}"
    lines = [f"Bags{name}: {counts} ({bags.instances.dtype}, {_storage(bags)})"]
    lines.append(f"  sizes   {bags.sizes.min():,} to {bags.sizes.max():,}, median {np.median(bags.sizes):g}")
    lines.append(f"  labels  {describe_labels(bags.y)}")
    if bags.instance_y is not None:
        lines.append(f"  inside  {describe_labels(bags.instance_y)} (labels of instances)")
    if bags.graph is not None:
        lines.append(f"  graph   {str(bags.graph).partition(': ')[2]}")
    if bags.coords is not None:
        lines.append(f"  coords  {bags.coords.shape[1]} a bag")
    if bags.splits:
        lines.append("  splits  " + ", ".join(f"{k} ({plural(len(v), 'repeat')})" for k, v in bags.splits.items()))
    for title, info in (("of bags", bags.bag_info), ("of rows", bags.instance_info)):
        if info:
            lines.append(f"  {title} {', '.join(info)}")
    return "\n".join(lines)


def _storage(bags: Bags) -> str:
    block: Any = bags.instances
    if bags.is_sparse:
        share = 100 * block.nnz / max(1, block.shape[0] * block.shape[1])
        size = block.data.nbytes + block.indices.nbytes + block.indptr.nbytes
        return f"sparse with {share:.3g} % stored, {readable_bytes(size)}"
    kind = "memory-mapped" if bags.is_memory_mapped else "dense"
    return f"{kind}, {readable_bytes(block.nbytes)}"


def describe_labels(y: Column | None) -> str:
    """Classes with their counts, or the range of every target.

    >>> describe_labels(np.array([0.25, 0.5, np.nan]))
    '0.25 to 0.5, mean 0.375; 1 missing'
    >>> describe_labels(np.array(["a", "b", "a"], dtype=object))
    'a ×2, b ×1'
    """
    if y is None:
        return "none"
    missing = missing_mask(y)
    tail = f"; {missing.sum():,} missing" if missing.any() else ""
    present = y[~missing]
    if not len(present):
        return f"all {len(y):,} missing"
    if y.ndim == 2:
        ranges = (f"{t.min():g} to {t.max():g}" for t in present.T)
        return f"{plural(y.shape[1], 'target')} ({', '.join(ranges)})" + tail
    if y.dtype.kind == "f" and ((present % 1 != 0).any() or len(np.unique(present)) > MANY_CLASSES):
        mean = present.mean() if abs(present.mean()) > 1e-12 * np.abs(present).max() else 0.0
        return f"{present.min():g} to {present.max():g}, mean {mean:.4g}" + tail
    classes, counts = np.unique(present, return_counts=True)
    shown = [f"{c:g} ×{n:,}" if y.dtype.kind == "f" else f"{c} ×{n:,}" for c, n in zip(classes, counts, strict=True)]
    if len(shown) > MANY_CLASSES:
        return f"{len(shown)} classes ({counts.min():,} to {counts.max():,} bags each)" + tail
    return ", ".join(shown) + tail


def plural(count: int, word: str) -> str:
    """A count and its noun.

    >>> plural(1, "bag"), plural(1200, "bag")
    ('1 bag', '1,200 bags')
    """
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def readable_bytes(count: int) -> str:
    """A size for people.

    >>> readable_bytes(48), readable_bytes(3_000_000_000)
    ('48 bytes', '3.0 GB')
    """
    if count < 1000:
        return f"{count} bytes"
    power = min(4, (len(str(int(count))) - 1) // 3)
    return f"{count / 1000**power:.1f} {('', 'kB', 'MB', 'GB', 'TB')[power]}"
