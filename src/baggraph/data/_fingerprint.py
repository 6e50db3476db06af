"""One number for everything that a result depends on."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from baggraph.data._columns import missing_mask
from baggraph.data._instances import blocks
from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph


def fingerprint(bags: Bags) -> str:
    """SHA-256 of instances, boundaries, labels, ids, places and graph: what a method could learn from.

    >>> one, two = Bags([[1.0]], [0, 1], [0]), Bags([[1.0]], [0, 1], [1])
    >>> fingerprint(one) == fingerprint(one.replace(metadata={"name": "x"})), fingerprint(one) == fingerprint(two)
    (True, False)
    """
    sink = hashlib.sha256()
    if bags.is_sparse:
        _add(sink, bags.instances)
    else:
        for _, block in blocks(bags.instances):
            sink.update(np.ascontiguousarray(block).data)
    for part in (np.array(bags.instances.shape), bags.offsets, bags.y, bags.ids, bags.coords):
        _add(sink, part)
    if bags.graph is not None:
        _add(sink, bags.graph.adjacency)
    return sink.hexdigest()


def digest(value: Any) -> str:
    """SHA-256 of a nested value of plain Python, arrays, bags and graphs.

    >>> digest({"a": 1, "b": [2.0]}) == digest({"b": [2.0], "a": 1}), digest({"C": 1.0}) == digest({"C": 10.0})
    (True, False)
    """
    return hashlib.sha256(json.dumps(plain(value), sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def plain(value: Any) -> Any:
    """A value as JSON can hold it; what is large becomes its hash, and what has parameters their list.

    >>> plain({"C": np.float64(1.0), "order": (3, None)})
    {'C': 1.0, 'order': [3, None]}
    """
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, np.ndarray) or sp.issparse(value) or isinstance(value, BagGraph):
        sink = hashlib.sha256()
        _add(sink, value.adjacency if isinstance(value, BagGraph) else value)
        return f"sha256:{sink.hexdigest()}"
    if isinstance(value, Bags):
        return f"sha256:{fingerprint(value)}"
    return _object(value)


def _object(value: Any) -> Any:
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return f"{value.__module__}.{value.__qualname__}"
    if hasattr(value, "get_params"):
        return {"class": name, **plain(value.get_params(deep=False))}
    return {"class": name, "repr": re.sub(r" at 0x[0-9a-f]+", "", repr(value))}


def _add(sink: Any, values: Any) -> None:
    """Kind, shape and content; text and missing labels as JSON, since objects have no bytes of their own."""
    if sp.issparse(values):
        matrix = sp.csr_array(values)
        for part in (np.array(matrix.shape), matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)):
            _add(sink, part)
        values = matrix.data
    if values is None:
        sink.update(b"none")
        return
    array = np.asarray(values)
    sink.update(f"{array.dtype.kind}{array.shape}".encode())
    if array.dtype.kind == "O":
        sink.update(json.dumps([str(item) for item in array], ensure_ascii=True).encode())
        sink.update(missing_mask(array).tobytes())
    else:
        sink.update(np.ascontiguousarray(array).tobytes())
