"""Bags: the noun on which everything else stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, InitVar, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data import _attachments as attachments
from baggraph.data import _columns as columns
from baggraph.data import _instances as blocks
from baggraph.data._choosing import positions
from baggraph.data._describe import describe
from baggraph.data.graph import BagGraph
from baggraph.errors import InvalidBagsError, ParameterError, closest

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
        self._set(ids=columns.canonical_ids(self.ids, len(self)))
        self._set(**attachments.canonical(self))

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

    def id_of_row(self, row: int) -> str:
        """Id of the bag that an instance belongs to.

        >>> Bags(np.zeros((3, 1)), [0, 2, 3], ids=["a", "b"]).id_of_row(2)
        'b'
        """
        return str(self.ids[int(np.searchsorted(self.offsets, row, side="right")) - 1])

    def _name_cell(self, row: int, column: int) -> str:
        name = repr(str(self.feature_names[column])) if self.feature_names is not None else str(column)
        return f"bag {self.id_of_row(row)!r}, column {name}"

    # ------------------------------------------------------------------ choosing

    @property
    def shape(self) -> tuple[int]:
        """(B,): a sign to scikit-learn to divide bags as a whole, with ids and graph, and not one by one."""
        return (len(self),)

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
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:  # as scikit-learn asks
            key = key[0]
        return self.take(key)

    def __contains__(self, bag_id: object) -> bool:
        return isinstance(bag_id, str) and bag_id in self._place

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
        index = positions(which, len(self), self._place)
        rows, offsets = blocks.gather_rows(self.offsets, index)
        return self._pick(index, rows, offsets)

    def _pick(self, index: Any, rows: Any, offsets: NDArray[np.int64]) -> Bags:
        """Bags at ``index`` whose instances are ``rows``: nothing to check, everything was."""
        chosen = np.arange(len(self))[index]

        def of(whole: Any, where: Any) -> Any:
            return None if whole is None else columns.frozen(whole[where])

        return self._trusted(
            instances=blocks.take_rows(self.instances, rows),
            offsets=columns.frozen(offsets),
            y=of(self.y, index),
            ids=of(self.ids, index),
            instance_names=of(self.instance_names, rows),
            instance_y=of(self.instance_y, rows),
            coords=of(self.coords, index),
            graph=None if self.graph is None else self.graph.take(chosen),
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

    @classmethod
    def from_pyg(cls, items: Sequence[Any], **more: Any) -> Bags:
        """Bags from one ``torch_geometric.data.Data`` a bag: ``x``, and ``y`` and ``bag_id`` where all have them."""
        from baggraph.data._convert import from_pyg

        return from_pyg(items, **more)

    def to_torchmil(self) -> list[dict[str, Any]]:
        """One dictionary of tensors a bag, as torchmil collates them: ``X``, ``Y``, and ``y_inst`` and ``coords``.

        Text labels become codes, and coordinates are those of instances: ``instance_info["coords"]``.
        """
        from baggraph.data._convert import to_torchmil

        return to_torchmil(self)

    @classmethod
    def from_torchmil(cls, items: Sequence[Any], **more: Any) -> Bags:
        """Bags from one dictionary of tensors a bag, such as the items of a torchmil dataset.

        >>> Bags.from_torchmil([{"X": np.zeros((2, 3)), "Y": 1}, {"X": np.ones((1, 3)), "Y": 0}]).y.tolist()
        [1, 0]
        """
        from baggraph.data._convert import from_torchmil

        return from_torchmil(items, **more)

    # ------------------------------------------------------------------ comparing and showing

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bags):
            return NotImplemented
        return attachments.same(self, other) and blocks.same_instances(self.instances, other.instances)

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        state = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: dict(v) if isinstance(v, MappingProxyType) else v for k, v in state.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        def locked(value: Any) -> Any:
            if isinstance(value, dict):
                return MappingProxyType({key: locked(item) for key, item in value.items()})
            return columns.frozen(value) if isinstance(value, np.ndarray) else value

        metadata = MappingProxyType(state["metadata"])
        instances = blocks.frozen_again(state["instances"])
        self._set(**{**{k: locked(v) for k, v in state.items()}, "instances": instances, "metadata": metadata})

    def __repr__(self) -> str:
        return describe(self)
