"""Bags from and to the containers of other libraries.  The only file of this room that knows torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from baggraph.data._columns import EXACT, as_array, is_missing, missing_mask
from baggraph.data._describe import plural
from baggraph.data._instances import refuse_inexact, unmasked
from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.errors import InvalidBagsError, MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd
    import torch


class TorchBags(NamedTuple):
    """Tensors of a set of bags; ``classes[code]`` is the text of a label code."""

    instances: torch.Tensor
    offsets: torch.Tensor
    y: torch.Tensor | None
    classes: tuple[str, ...] | None


def read_tensor(path: Path) -> Any:
    """The one tensor of a ``.pt`` file as an array; nothing in the file is run."""
    import torch

    found = torch.load(path, map_location="cpu", weights_only=True, mmap=False)
    if not isinstance(found, torch.Tensor):
        raise ValueError(f"a {type(found).__name__}, not a tensor")
    return found.numpy() if found.dtype != torch.bfloat16 else found.float().numpy()


def from_list(arrays: Sequence[Any], y: Any = None, **more: Any) -> Bags:
    """See :meth:`Bags.from_list`."""
    parts = [a if sp.issparse(a) else as_array(unmasked(a), "a bag") for a in arrays]
    if not parts:
        raise _wrong("at least one bag", "an empty list", "pass one 2-D array a bag")
    names = more["ids"] if more.get("ids") is not None else range(len(parts))
    width = next((p.shape[1] for p in parts if p.ndim == 2), None)
    for name, part in zip(names, parts, strict=False):
        if part.ndim != 2:
            raise _wrong("a 2-D array a bag", f"shape {part.shape} in bag {str(name)!r}", "reshape it")
        if part.shape[1] != width:
            got = f"{part.shape[1]} features in bag {str(name)!r} after {width} in those before"
            raise _wrong("the same features in every bag", got, "give all bags the same columns")
        refuse_inexact(np.asarray(part.data) if sp.issparse(part) else part, f" in bag {str(name)!r}")
    offsets = np.concatenate([[0], np.cumsum([p.shape[0] for p in parts])])
    if any(sp.issparse(p) for p in parts):
        return Bags(sp.csr_array(sp.vstack([sp.csr_array(p) for p in parts])), offsets, y, **more)
    block = np.concatenate(parts)
    block.setflags(write=False)  # nobody else holds it, so Bags need not copy it
    return Bags(block, offsets, y, **more)


def concat(parts: Sequence[Bags]) -> Bags:
    """See :meth:`Bags.concat`."""
    strangers = [part for part in parts if not isinstance(part, Bags)]
    if strangers:
        raise _wrong("a list of Bags", f"a {type(strangers[0]).__name__} in it", "pass several sets of bags")
    if not len(parts):
        raise _wrong("at least one set of bags", "none", "pass a list of Bags")
    first = parts[0]
    for part in parts[1:]:
        _refuse_mixture(first, part)
    many: dict[str, Any] = {}
    for name in ("y", "ids", "instance_names", "instance_y", "coords"):
        many[name] = None if getattr(first, name) is None else _stack([getattr(p, name) for p in parts], name)
    for name in ("bag_info", "instance_info"):
        many[name] = {key: _stack([getattr(p, name)[key] for p in parts], key) for key in getattr(first, name)}
    many["splits"] = {key: _stack([p.splits[key].T for p in parts], key).T for key in first.splits}
    if first.graph is not None:
        adjacency = sp.csr_array(sp.block_diag([p.graph.adjacency for p in parts if p.graph is not None]))
        many["graph"] = BagGraph(adjacency, many["ids"])
    common = {k: v for k, v in first.metadata.items() if all(p.metadata.get(k) == v for p in parts)}
    stack = sp.vstack if first.is_sparse else np.concatenate
    block = stack([p.instances for p in parts])
    if not first.is_sparse:
        block.setflags(write=False)
    sizes = np.concatenate([p.sizes for p in parts])
    return Bags(
        block, np.concatenate([[0], np.cumsum(sizes)]), feature_names=first.feature_names, metadata=common, **many
    )


def _stack(arrays: list[Any], what: str) -> Any:
    if len({a.dtype.kind == "O" for a in arrays}) > 1:
        got = "text in one set and numbers in another"
        raise _wrong(f"{what!r} of one kind in all sets", got, f"convert them with replace({what}=...)")
    if len({a.shape[1:] for a in arrays}) > 1:
        got = " and ".join("a vector" if a.ndim == 1 else plural(a.shape[1], "column") for a in arrays)
        raise _wrong(f"{what!r} with as many columns in all sets", got, "bring them into one form first")
    whole = np.concatenate(arrays)
    if whole.dtype.kind == "f" and any(a.dtype.kind == "i" and (np.abs(a) > EXACT).any() for a in arrays):
        raise _wrong(f"{what!r} up to 2**53 beside real numbers", "a longer integer", "convert them to text")
    return whole


def _refuse_mixture(first: Bags, part: Bags) -> None:
    """Nothing the user attached may get lost, so all parts must carry the same kinds of things."""
    for name in ("y", "instance_names", "instance_y", "coords", "graph"):
        if (getattr(first, name) is None) != (getattr(part, name) is None):
            remedy = f"add it, or drop it with replace({name}=None)"
            raise _wrong(f"{name!r} in all sets or in none", "it in some of them", remedy)
    for name in ("splits", "bag_info", "instance_info"):
        if list(getattr(first, name)) != list(getattr(part, name)):
            got = f"{list(getattr(first, name))} and {list(getattr(part, name))}"
            raise _wrong(f"the same {name} in all sets", got, f"make them equal with replace({name}=...)")
    same_names = (first.feature_names is None) == (part.feature_names is None)
    if same_names and first.feature_names is not None and part.n_features == first.n_features:
        same_names = bool((first.feature_names == part.feature_names).all())
    if part.n_features != first.n_features or not same_names or part.is_sparse != first.is_sparse:
        got = f"{first.n_features} features and {part.n_features}" if same_names else "other names or another order"
        got = "dense and sparse blocks" if part.is_sparse != first.is_sparse else got
        raise _wrong("the same features in all sets", got, "bring them into one form first")


def to_frame(bags: Bags) -> pd.DataFrame:
    """See :meth:`Bags.to_frame`."""
    import pandas as pd

    names = [f"x{i}" for i in range(bags.n_features)] if bags.feature_names is None else list(bags.feature_names)
    if bags.is_sparse:
        features = pd.DataFrame.sparse.from_spmatrix(  # type: ignore[attr-defined]
            sp.csc_matrix(bags.instances), columns=names
        )
    else:
        features = pd.DataFrame(np.asarray(bags.instances), columns=names)
    left: dict[str, Any] = {"bag": np.repeat(bags.ids, bags.sizes)}
    if bags.y is not None and bags.y.ndim == 1:
        left["target"] = np.repeat(bags.y, bags.sizes)
    elif bags.y is not None:
        left |= {f"target_{t}": np.repeat(bags.y[:, t], bags.sizes) for t in range(bags.y.shape[1])}
    if bags.instance_names is not None:
        left["instance"] = bags.instance_names
    clash = [name for name in names if name in left]
    if clash:
        got = f"a feature called {clash[0]!r}"
        raise _wrong(f"feature names other than {', '.join(left)}", got, "rename it with replace(feature_names=...)")
    return pd.concat([pd.DataFrame(left), features], axis=1)


def encode_classes(y: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Codes of text labels (-1 where missing) and their classes; numbers stay as they are.

    >>> encode_classes(np.array(["b", None, "a"], dtype=object))
    (array([ 1, -1,  0]), ('a', 'b'))
    """
    if y is None or y.dtype.kind != "O":
        return y, None
    classes = tuple(sorted({label for label in y if not is_missing(label)}))
    place = {label: code for code, label in enumerate(classes)}
    missing = missing_mask(y)
    codes = [-1 if m else place[label] for label, m in zip(y, missing, strict=True)]
    return np.array(codes, dtype=np.int64), classes


def to_torch(bags: Bags, *, copy: bool = True) -> TorchBags:
    """See :meth:`Bags.to_torch`.

    ``copy=False`` shares the memory of a dense block: do not write to that tensor.
    """
    import warnings

    import torch

    y, classes = encode_classes(bags.y)
    if bags.is_sparse:
        csr = bags.instances
        parts = [torch.tensor(getattr(csr, name)) for name in ("indptr", "indices", "data")]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
            block = torch.sparse_csr_tensor(*parts, size=csr.shape, check_invariants=False)  # type: ignore[arg-type,misc]
    elif copy:
        block = torch.tensor(np.asarray(bags.instances))
    else:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            block = torch.from_numpy(np.asarray(bags.instances))
    return TorchBags(block, torch.tensor(bags.offsets), None if y is None else torch.tensor(y), classes)


def to_pyg(bags: Bags) -> list[Any]:
    """See :meth:`Bags.to_pyg`."""
    Data = _pyg_data()
    tensors = to_torch(bags)
    block = tensors.instances.to_dense() if bags.is_sparse else tensors.instances
    result = []
    for position, bag_id in enumerate(bags.ids):
        rows = slice(int(bags.offsets[position]), int(bags.offsets[position + 1]))
        label: Mapping[str, Any] = {} if tensors.y is None else {"y": tensors.y[position : position + 1]}
        result.append(Data(x=block[rows], bag_id=bag_id, **label))
    return result


def from_pyg(items: Sequence[Any], **more: Any) -> Bags:
    """See :meth:`Bags.from_pyg`."""
    ids = [getattr(item, "bag_id", None) for item in items]
    labels = [getattr(item, "y", None) for item in items]
    named = {} if any(name is None for name in ids) else {"ids": ids}
    return from_list([_array(item.x) for item in items], _labels(labels), **named, **more)


def to_torchmil(bags: Bags) -> list[dict[str, torch.Tensor]]:
    """See :meth:`Bags.to_torchmil`."""
    import torch

    y, _ = encode_classes(bags.y)
    found = []
    for position, bag in enumerate(bags):
        item = {"X": torch.tensor(np.asarray(bag))}
        if y is not None:
            item["Y"] = torch.tensor(y[position])
        if bag.instance_y is not None:
            item["y_inst"] = torch.tensor(bag.instance_y)
        rows = slice(int(bags.offsets[position]), int(bags.offsets[position + 1]))
        if "coords" in bags.instance_info:
            item["coords"] = torch.tensor(bags.instance_info["coords"][rows])
        found.append(item)
    return found


def from_torchmil(items: Sequence[Any], **more: Any) -> Bags:
    """See :meth:`Bags.from_torchmil`."""
    keys = [set(item.keys()) for item in items]
    for position, found in enumerate(keys):
        if "X" not in found or found != keys[0]:
            got = f"{', '.join(sorted(found))} in item {position}"
            raise _wrong("X, and the same keys in every item", got, "give all items the same keys")
    given = dict(more)
    for key, name in (("y_inst", "instance_y"), ("coords", "coords")):
        if keys and key in keys[0]:
            values = np.concatenate([_array(item[key]) for item in items])
            if name == "coords":  # of instances; those of bags are passed by name
                given["instance_info"] = {"coords": values, **given.get("instance_info", {})}
            else:
                given.setdefault(name, values.reshape(len(values)))
    labels = [item["Y"] for item in items] if keys and "Y" in keys[0] else [None]
    return from_list([_array(item["X"]) for item in items], _labels(labels), **given)


def _array(values: Any) -> Any:
    """A tensor, on whatever device, as an array."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _labels(labels: list[Any]) -> Any:
    """One label a bag, None where no bag has any; single ones lose the axis that their containers give them."""
    if any(label is None for label in labels):
        return None
    rows = np.stack([_array(label).reshape(-1) for label in labels])
    return rows[:, 0] if rows.shape[1] == 1 else rows


def graph_to_pyg(graph: BagGraph) -> Any:
    """See :meth:`BagGraph.to_pyg`."""
    Data = _pyg_data()
    import torch

    ends = graph.adjacency.tocoo()
    edge_index = torch.tensor(np.stack(ends.coords), dtype=torch.int64)
    # Networks compute in torch's own type, and layers refuse to mix it with another.
    edge_weight = torch.tensor(ends.data, dtype=torch.get_default_dtype())
    return Data(edge_index=edge_index, edge_weight=edge_weight, num_nodes=len(graph))


def graph_to_networkx(graph: BagGraph) -> Any:
    """See :meth:`BagGraph.to_networkx`."""
    try:
        import networkx  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise _missing("to_networkx", "networkx") from error
    result = networkx.Graph()
    result.add_nodes_from(graph.ids)
    result.add_weighted_edges_from(graph.to_table().itertuples(index=False, name=None))
    return result


def _pyg_data() -> Any:
    try:
        from torch_geometric.data import Data
    except ImportError as error:
        raise _missing("to_pyg", "torch-geometric") from error
    return Data


def _missing(stage: str, package: str) -> MissingDependencyError:
    return MissingDependencyError(stage, expected=f"the package {package}", got="none", remedy=f"pip install {package}")


def _wrong(expected: str, got: str, remedy: str) -> InvalidBagsError:
    return InvalidBagsError("bags", expected=expected, got=got, remedy=remedy)
