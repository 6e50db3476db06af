"""Small pictures of instances that are images."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from baggraph.data.bags import Bag, Bags

LARGEST = 64  # pixels of a side; larger ones are thinned


def thumbnails(bags: Bags, bag: Bag, which: Iterable[int]) -> list[str] | None:
    """Data addresses of PNG pictures, where ``metadata["image_shape"]`` is (rows, columns) or (rows, columns, 3)."""
    shape = bags.metadata.get("image_shape")
    if shape is None or bags.is_sparse or int(np.prod(shape)) != bags.n_features:
        return None
    low, high = _range(bags)
    found = []
    for position in which:
        values = np.asarray(bag.instances[position], dtype=np.float64).reshape(shape)
        step = max(1, -(-max(shape[:2]) // LARGEST))
        levels = np.clip((values[::step, ::step] - low) / (high - low) * 255, 0, 255).astype(np.uint8)
        found.append("data:image/png;base64," + base64.b64encode(png(levels)).decode())
    return found


def _range(bags: Bags) -> tuple[float, float]:
    """Darkest and lightest value, from some instances."""
    some = bags.instances[:: max(1, bags.n_instances // 1_000)]
    low, high = float(some.min()), float(some.max())
    return low, high if high > low else low + 1


def png(levels: NDArray[np.uint8]) -> bytes:
    r"""Write grey (rows, columns) or coloured (rows, columns, 3) levels as PNG.

    >>> png(np.zeros((2, 2), dtype=np.uint8))[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    rows, columns = levels.shape[:2]
    lines = b"".join(b"\0" + levels[row].tobytes() for row in range(rows))
    header = struct.pack(">IIBBBBB", columns, rows, 8, 0 if levels.ndim == 2 else 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")]
    chunks = [
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
