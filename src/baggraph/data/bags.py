"""Bags: the noun on which everything else stands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, InitVar, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data import _columns as columns
from baggraph.data import _instances as blocks
from baggraph.data._describe import describe
from baggraph.data.graph import BagGraph
from baggraph.errors import InvalidBagsError, ParameterError, closest, name_some

if TYPE_CHECKING:
    import pandas as pd

    from baggraph.data._convert import TorchBags

__all__ = ["Bag", "Bags"]


class Bag(NamedTuple):
    """One bag, as iteration and ``bags[3]`` give it; ``numpy.asarray(bag)`` is its instances."""

    id: str
    instances: Any
    y: Any
    instance_names: Any
    instance_y: Any

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        values = self.instances.toarray() if sp.issparse(self.instances) else self.instances
        return np.array(values, dtype=dtype) if copy else np.asarray(values, dtype=dtype)


@dataclass(frozen=True, eq=False, repr=False)
class Bags:
    """Bags of instances with one label a bag, immutable.

    Bag ``b`` is ``instances[offsets[b]:offsets[b + 1]]``: the instances of all bags lie in one block,
    and nothing is padded.

    Parameters
    ----------
    instances : array, memory map or sparse matrix of shape (N, d)
        float32 and float64 are kept; small integers become float32, other numbers float64.
    offsets : (B + 1,) integers
        Boundaries of the bags, from 0 to N.
    y : (B,) or (B, t), optional
        Classes (booleans, integers, text) or real targets.  NaN or None marks an unlabelled bag.
    ids : (B,), optional
        Unique names of the bags, kept as text.  Default: ``"0"``, ``"1"``, ...
    feature_names : (d,), optional
    instance_names : (N,), optional
    instance_y : (N,), optional
        Labels of instances where they are known; no model sees them, explanations are checked on them.
    coords : (B, 2) or (B, 3), optional
        Position of every bag; of two columns, the first is x or longitude.
    graph : BagGraph, optional
        A known graph between the bags.
    splits : mapping of name to (R, B) integers, optional
        Published splits: in repeat r, fold k tests the bags whose entry is k; -1 is never tested.
    bag_info, instance_info : mapping of name to one value (or row of numbers) each, optional
    metadata : mapping, optional
        Facts on the whole set that JSON can hold: name, source, licence.
    missing : "error" or "impute"
        What to do with NaN among the features: refuse, or fill in the median of the column.

    Examples
    --------
    >>> bags = Bags(np.arange(6.0).reshape(3, 2), [0, 2, 3], y=["benign", "tumour"], ids=["s1", "s2"])
    >>> bags
    Bags: 2 bags, 3 instances, 2 features (float64, dense, 48 bytes)
      sizes   1 to 2, median 1.5
      labels  benign ×1, tumour ×1
    >>> bags["s2"].instances, bags[-1:].y.tolist(), [bag.id for bag in bags]
    (array([[4., 5.]]), ['tumour'], ['s1', 's2'])

    """

    instances: Any
    offsets: Any
    y: Any = None
    _: KW_ONLY
    ids: Any = None
    feature_names: Any = None
    instance_names: Any = None
    instance_y: Any = None
    coords: Any = None
    graph: BagGraph | None = None
    splits: Mapping[str, Any] = field(default_factory=dict)
    bag_info: Mapping[str, Any] = field(default_factory=dict)
    instance_info: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    missing: InitVar[str] = "error"

    # ------------------------------------------------------------------ the door

    def __post_init__(self, missing: str) -> None:
        raw, n_imputed = blocks.fill_missing(self.instances, missing)
        if n_imputed:
            self._set(metadata={**self.metadata, "imputed_cells": n_imputed})
        self._set(instances=blocks.canonical_instances(raw))
        self._settle_bags()
        blocks.refuse_non_finite(self.instances, self._name_cell)

    @classmethod
    def _over(cls, instances: Any, offsets: Any, **more: Any) -> Bags:
        """Bags over a block whose values were checked when it was written: everything else is checked."""
        new = object.__new__(cls)
        empty: dict[str, Any] = {f.name: {} if f.default_factory is not MISSING else None for f in fields(cls)}
        new._set(**{**empty, "instances": instances, "offsets": offsets, **more})
        new._settle_bags()
        return new

    def _settle_bags(self) -> None:
        self._set(offsets=blocks.canonical_offsets(self.offsets, self.n_instances))
        self._settle_columns()
        blocks.refuse_empty_bags(self.offsets, self.ids)

    def _settle_columns(self) -> None:
        """Bring everything but the instances into canonical form, or raise."""
        n_bags, n_instances = len(self), self.n_instances
        self._set(ids=columns.canonical_ids(self.ids, n_bags))
        bag_name, row_name = (lambda i: f"bag {self.ids[i]!r}"), (lambda i: f"instance {i} of bag {self._bag_of(i)!r}")
        if self.y is not None:
            self._set(y=columns.canonical_column(self.y, "label", n_bags, bag_name, finite=True))
        if self.instance_y is not None:
            self._set(instance_y=columns.canonical_column(self.instance_y, "instance label", n_instances, row_name))
        if self.instance_names is not None:
            self._set(
                instance_names=columns.canonical_names(self.instance_names, "instance names", n_instances, "instance")
            )
        self._settle_feature_names()
        self._settle_coords()
        self._settle_graph()
        self._set(
            splits=_canonical_splits(self.splits, n_bags),
            bag_info=_canonical_info(self.bag_info, n_bags, bag_name),
            instance_info=_canonical_info(self.instance_info, n_instances, row_name),
            metadata=_canonical_metadata(self.metadata),
        )

    def _settle_feature_names(self) -> None:
        if self.feature_names is None:
            return
        names = columns.canonical_names(self.feature_names, "feature names", self.n_features, "feature")
        if len(set(names)) < len(names):
            twice = [name for name in dict.fromkeys(names) if (names == name).sum() > 1]
            raise _wrong("unique feature names", f"{name_some(twice)} more than once", "rename these columns")
        self._set(feature_names=names)

    def _settle_coords(self) -> None:
        if self.coords is None:
            return
        coords = columns.canonical_column(self.coords, "coordinates", len(self), lambda i: f"bag {self.ids[i]!r}")
        if coords.ndim != 2 or coords.shape[1] not in (2, 3) or coords.dtype.kind != "f":
            raise _wrong("two or three coordinates a bag", f"shape {coords.shape}", "pass a (bags, 2) array")
        if not np.isfinite(coords).all():
            bag = self.ids[int(np.argmax(~np.isfinite(coords).all(axis=1)))]
            raise _wrong("finite coordinates", f"a missing one for bag {bag!r}", "fill it in or leave coords out")
        self._set(coords=coords)

    def _settle_graph(self) -> None:
        if self.graph is not None and not np.array_equal(self.graph.ids, self.ids):
            unknown = [i for i in self.graph.ids if i not in set(self.ids)]
            got = f"a graph over {len(self.graph)} bags" + (f" such as {unknown[0]!r}" if unknown else ", reordered")
            raise _wrong("a graph over the same bags in the same order", got, "use graph.take, or replace(graph=None)")

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    # ------------------------------------------------------------------ sizes and names

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_instances(self) -> int:
        """Number of instances in all bags together."""
        return int(self.instances.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features of an instance."""
        return int(self.instances.shape[1])

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of instances of every bag."""
        return columns.frozen(np.diff(self.offsets))

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which bags carry a label (all of their targets, where there are several).

        >>> Bags(np.zeros((2, 1)), [0, 1, 2], [1.0, None]).labelled.tolist()
        [True, False]
        """
        return np.zeros(len(self), bool) if self.y is None else ~columns.missing_mask(self.y)

    @property
    def is_sparse(self) -> bool:
        """Whether the instances are a CSR matrix."""
        return bool(sp.issparse(self.instances))

    @property
    def is_memory_mapped(self) -> bool:
        """Whether the instances stay on disk until they are looked at."""
        return isinstance(self.instances, np.memmap)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {bag_id: i for i, bag_id in enumerate(self.ids)}

    def _bag_of(self, row: int) -> str:
        return str(self.ids[int(np.searchsorted(self.offsets, row, side="right")) - 1])

    def _name_cell(self, row: int, column: int) -> str:
        name = repr(str(self.feature_names[column])) if self.feature_names is not None else str(column)
        return f"bag {self._bag_of(row)!r}, column {name}"

    # ------------------------------------------------------------------ choosing

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self._place:
                known = closest(key, self.ids) if len(self) <= 10_000 else "look at bags.ids"
                raise InvalidBagsError("bags", expected="the id of a bag", got=repr(key), remedy=known)
            return self._bag(self._place[key])
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            if not -len(self) <= key < len(self):
                raise IndexError(f"bags: expected a position below {len(self)}, got {key}; count from 0")
            return self._bag(int(key) % len(self))
        if isinstance(key, slice):
            return self._slice(*key.indices(len(self)))
        return self.take(key)

    def _bag(self, position: int) -> Bag:
        rows = slice(int(self.offsets[position]), int(self.offsets[position + 1]))
        pick = [None if whole is None else whole[rows] for whole in (self.instance_names, self.instance_y)]
        return Bag(self.ids[position], self.instances[rows], None if self.y is None else self.y[position], *pick)

    def __iter__(self) -> Iterator[Bag]:
        return (self._bag(position) for position in range(len(self)))

    def _slice(self, start: int, stop: int, step: int) -> Bags:
        if step != 1 or stop <= start:
            return self.take(np.arange(start, stop, step))
        rows = slice(int(self.offsets[start]), int(self.offsets[stop]))
        return self._pick(slice(start, stop), rows, self.offsets[start : stop + 1] - self.offsets[start])

    def take(self, which: Any) -> Bags:
        """The bags at these positions, ids, or where a mask is true, in the order asked for.

        >>> bags = Bags(np.zeros((3, 1)), [0, 1, 2, 3], ids=["a", "b", "c"])
        >>> bags.take([2, 0]).ids.tolist(), bags.take(["b"]).ids.tolist(), bags[bags.ids > "a"].ids.tolist()
        (['c', 'a'], ['b'], ['b', 'c'])
        """
        index = self._positions(which)
        if not len(index):
            raise _wrong("at least one bag to take", "none", "check the mask or the list of bags")
        if len(np.unique(index)) < len(index):
            raise _wrong("every bag at most once", "repeated positions", "use Bags.concat with new ids to repeat bags")
        rows, offsets = blocks.gather_rows(self.offsets, index)
        return self._pick(index, rows, offsets)

    def _positions(self, which: Any) -> NDArray[np.int64]:
        array = np.asarray(which) if len(which) else np.zeros(0, np.int64)
        if array.dtype.kind in "UO" and array.ndim == 1:
            unknown = [name for name in array.tolist() if name not in self._place]
            if unknown:
                raise _wrong("ids of bags", name_some(unknown), "look at bags.ids")
            return np.array([self._place[name] for name in array.tolist()], dtype=np.int64)
        if array.dtype.kind == "b" and array.shape == (len(self),):
            return np.flatnonzero(array)
        if array.dtype.kind not in "iu" or array.ndim != 1:
            got = f"{array.dtype} of shape {array.shape}"
            raise _wrong(f"positions, ids or a mask of {len(self)} booleans", got, "pass one flat sequence")
        outside = array[(array < -len(self)) | (array >= len(self))]
        if len(outside):
            raise IndexError(f"bags: expected positions below {len(self)}, got {outside[0]}; count from 0")
        return array.astype(np.int64) % len(self)

    def _pick(self, index: Any, rows: Any, offsets: NDArray[np.int64]) -> Bags:
        """Bags at ``index`` whose instances are ``rows``: nothing to check, everything was."""
        instances = self.instances[rows]
        instances = blocks.freeze_csr(sp.csr_array(instances)) if self.is_sparse else columns.frozen(instances)
        positions = np.arange(len(self))[index]

        def of(whole: Any, where: Any) -> Any:
            return None if whole is None else columns.frozen(whole[where])

        return self._trusted(
            instances=instances,
            offsets=columns.frozen(offsets),
            y=of(self.y, index),
            ids=of(self.ids, index),
            instance_names=of(self.instance_names, rows),
            instance_y=of(self.instance_y, rows),
            coords=of(self.coords, index),
            graph=None if self.graph is None else self.graph.take(positions),
            splits=MappingProxyType({k: columns.frozen(v[:, index]) for k, v in self.splits.items()}),
            bag_info=MappingProxyType({k: of(v, index) for k, v in self.bag_info.items()}),
            instance_info=MappingProxyType({k: of(v, rows) for k, v in self.instance_info.items()}),
        )

    def _trusted(self, **changes: Any) -> Bags:
        new = object.__new__(Bags)
        new._set(**{f.name: changes.get(f.name, getattr(self, f.name)) for f in fields(self)})
        return new

    # ------------------------------------------------------------------ changing

    def replace(self, **changes: Any) -> Bags:
        """A copy with other labels, ids, graph or the like; the instances are shared, not copied.

        >>> Bags(np.zeros((2, 1)), [0, 1, 2]).replace(y=["a", "b"]).y.tolist()
        ['a', 'b']
        """
        names = [f.name for f in fields(self)]
        for name in changes:
            if name not in names:
                raise ParameterError("replace", expected="a field of Bags", got=repr(name), remedy=closest(name, names))
        if "instances" in changes or "offsets" in changes:
            return Bags(**{name: changes.get(name, getattr(self, name)) for name in names})
        new = self._trusted(**changes)
        new._settle_columns()
        return new

    @staticmethod
    def concat(parts: Sequence[Bags]) -> Bags:
        """All bags of several sets, one set after the other; ids must stay unique.

        >>> one, two = Bags(np.zeros((1, 1)), [0, 1], ids=["a"]), Bags(np.ones((1, 1)), [0, 1], ids=["b"])
        >>> Bags.concat([one, two]).ids.tolist()
        ['a', 'b']
        """
        from baggraph.data._convert import concat

        return concat(parts)

    @classmethod
    def from_list(cls, arrays: Sequence[Any], y: Any = None, **more: Any) -> Bags:
        """Bags from one 2-D array (dense or sparse) a bag.

        >>> Bags.from_list([np.zeros((2, 3)), np.ones((1, 3))], y=[0, 1]).sizes.tolist()
        [2, 1]
        """
        from baggraph.data._convert import from_list

        return from_list(arrays, y, **more)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, *, bag: str = "bag", target: Any = None, **more: Any) -> Bags:
        """Bags from a long table: a row an instance, a column that names its bag.

        >>> import pandas as pd
        >>> table = pd.DataFrame({"slide": ["a", "a", "b"], "area": [1.0, 2.0, 3.0], "tumour": [1, 1, 0]})
        >>> Bags.from_frame(table, bag="slide", target="tumour").y.tolist()
        [1, 0]
        """
        from baggraph.data.readers.table import from_frame

        return from_frame(frame, bag=bag, target=target, **more)

    def to_frame(self) -> pd.DataFrame:
        """A long table: a row an instance, with columns ``bag``, ``target``, ``instance`` and the features."""
        from baggraph.data._convert import to_frame

        return to_frame(self)

    def to_parquet(self, path: str | Path) -> Path:
        """Write one Parquet file, a long table for any tool; :func:`baggraph.read` gives back equal bags."""
        from baggraph.data.readers.parquet import write_parquet

        return write_parquet(self, path)

    def to_npz(self, path: str | Path) -> Path:
        """Write one uncompressed ``.npz``, which opens memory-mapped when it is large."""
        from baggraph.data.readers.npz import write_npz

        return write_npz(self, path)

    def to_list(self) -> list[Any]:
        """One (n, d) array or CSR block a bag."""
        return [bag.instances for bag in self]

    def to_torch(self, *, copy: bool = True) -> TorchBags:
        """Tensors ``(instances, offsets, y, classes)``; text labels become codes, missing ones -1."""
        from baggraph.data._convert import to_torch

        return to_torch(self, copy=copy)

    def to_pyg(self) -> list[Any]:
        """One ``torch_geometric.data.Data`` a bag, with ``x``, ``y`` and ``bag_id``."""
        from baggraph.data._convert import to_pyg

        return to_pyg(self)

    # ------------------------------------------------------------------ comparing and showing

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bags):
            return NotImplemented
        mine, theirs = ([getattr(b, n) for n in _PLAIN] for b in (self, other))
        if not all(columns.same_column(a, b) for a, b in zip(mine, theirs, strict=True)):
            return False
        for name in ("splits", "bag_info", "instance_info"):
            a, b = getattr(self, name), getattr(other, name)
            if list(a) != list(b) or not all(columns.same_column(a[k], b[k]) for k in a):
                return False
        same = self.metadata == other.metadata and self.graph == other.graph
        return same and blocks.same_instances(self.instances, other.instances)

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        state = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: dict(v) if isinstance(v, MappingProxyType) else v for k, v in state.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set(**{k: MappingProxyType(v) if isinstance(v, dict) else v for k, v in state.items()})

    def __repr__(self) -> str:
        return describe(self)


_PLAIN = ("offsets", "y", "ids", "feature_names", "instance_names", "instance_y", "coords")


def _canonical_splits(splits: Mapping[str, Any], n_bags: int) -> Mapping[str, Any]:
    result = {}
    for name, folds in splits.items():
        array = np.atleast_2d(np.asarray(folds))
        if array.ndim != 2 or array.shape[1] != n_bags or array.dtype.kind not in "iu" or array.min() < -1:
            got = f"{array.dtype} of shape {array.shape} for {name!r}"
            raise _wrong(f"splits as fold numbers from -1, shape (repeats, {n_bags})", got, "number the folds from 0")
        result[str(name)] = columns.frozen(array.astype(np.int16))
    return MappingProxyType(result)


def _canonical_info(info: Mapping[str, Any], count: int, name_of: Any) -> Mapping[str, Any]:
    return MappingProxyType({str(k): columns.canonical_column(v, str(k), count, name_of) for k, v in info.items()})


def _canonical_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return MappingProxyType(json.loads(json.dumps(dict(metadata))))
    except (TypeError, ValueError) as error:
        raise _wrong("metadata that JSON can hold", str(error), "use text, numbers, lists and dicts") from error


def _wrong(expected: str, got: str, remedy: str) -> InvalidBagsError:
    return InvalidBagsError("bags", expected=expected, got=got, remedy=remedy)
