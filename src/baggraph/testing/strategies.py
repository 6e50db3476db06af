"""Hypothesis strategies that make bags of every kind."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph

__all__ = ["bags", "labels", "names"]

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


def names(count: int) -> st.SearchStrategy[list[str]]:
    """Unique text of any alphabet, blanks and control characters included."""
    return st.lists(_TEXT, min_size=count, max_size=count, unique=True)


@st.composite
def labels(draw: Any, count: int) -> Any:
    """Labels of every kind: binary, multiclass, text, one or several real targets, with missing ones."""
    kind = draw(st.sampled_from(["none", "bool", "int", "text", "real", "targets", "missing int", "missing text"]))
    real = st.floats(-1e6, 1e6, width=32) | st.just(float("nan"))
    values: dict[str, st.SearchStrategy[Any]] = {
        "none": st.none(),
        "bool": hnp.arrays(np.bool_, count),
        "int": hnp.arrays(np.int64, count, elements=st.integers(-(2**53), 2**53)),
        "text": st.lists(_TEXT, min_size=count, max_size=count),
        "real": hnp.arrays(np.float64, count, elements=real),
        "targets": hnp.arrays(np.float64, st.tuples(st.just(count), st.integers(1, 3)), elements=real),
        "missing int": st.lists(st.integers(0, 3) | st.none(), min_size=count, max_size=count),
        "missing text": st.lists(st.sampled_from(["yes", "no"]) | st.none(), min_size=count, max_size=count),
    }
    return draw(values[kind])


@st.composite
def blocks(draw: Any, n_instances: int) -> Any:
    """Dense or sparse instances in float32 or float64."""
    n_features = draw(st.integers(1, 4))
    width = draw(st.sampled_from([32, 64]))
    dtype = np.float32 if width == 32 else np.float64
    elements = st.floats(-(2.0**99), 2.0**99, width=width)
    dense = draw(hnp.arrays(dtype, (n_instances, n_features), elements=elements, fill=st.just(dtype(0))))
    return sp.csr_array(dense) if draw(st.booleans()) else dense


@st.composite
def bags(draw: Any, max_bags: int = 6, max_size: int = 4) -> Bags:
    """Any valid set of bags, attachments included."""
    sizes = draw(st.lists(st.integers(1, max_size), min_size=1, max_size=max_bags))
    count, total = len(sizes), sum(sizes)
    block = draw(blocks(total))
    ids = draw(names(count))
    optional: dict[str, st.SearchStrategy[Any]] = {
        "feature_names": names(block.shape[1]),
        "instance_names": st.lists(_TEXT, min_size=total, max_size=total),
        "instance_y": st.lists(st.sampled_from(["a", "b"]), min_size=total, max_size=total),
        "coords": hnp.arrays(np.float64, (count, 2), elements=st.floats(-180, 180)),
        "splits": hnp.arrays(np.int16, (2, count), elements=st.integers(-1, 3)).map(lambda folds: {"p": folds}),
        "bag_info": labels(count).filter(lambda y: y is not None).map(lambda column: {"site": column}),
        "instance_info": labels(total).filter(lambda y: y is not None).map(lambda column: {"w": column}),
        "metadata": st.just({"name": "made", "numbers": [1, 2.5]}),
        "graph": st.just(BagGraph.from_edges([(a, b, 0.5) for a, b in pairwise(ids)], ids)),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(optional))))
    more = {name: draw(optional[name]) for name in sorted(chosen)}
    return Bags(block, np.concatenate([[0], np.cumsum(sizes)]), draw(labels(count)), ids=ids, **more)
