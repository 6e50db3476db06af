"""What bags carry beside their instances: labels, names, places, splits, information; canonical or refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from baggraph.data._columns import Column, as_array, canonical_column, canonical_names, frozen, same_column
from baggraph.errors import InvalidBagsError, name_some

if TYPE_CHECKING:
    from baggraph.data.bags import Bags

COLUMNS = ("y", "ids", "feature_names", "instance_names", "instance_y", "coords")
GROUPS = ("splits", "bag_info", "instance_info")
MOST = int(np.iinfo(np.int16).max)


def canonical(bags: Bags) -> dict[str, Any]:
    """Every attachment of these bags in canonical form; ids, offsets and instances are settled already."""
    n_bags, n_instances = len(bags), bags.n_instances

    def bag_name(position: int) -> str:
        return f"bag {bags.ids[position]!r}"

    def row_name(row: int) -> str:
        return f"instance {row} of bag {bags.id_of_row(row)!r}"

    def column(values: Any, what: str, count: int, name_of: Callable[[int], str], *, finite: bool = False) -> Any:
        return None if values is None else canonical_column(values, what, count, name_of, finite=finite)

    names = bags.instance_names
    _refuse_other_graph(bags)
    return {
        "y": column(bags.y, "label", n_bags, bag_name, finite=True),
        "instance_y": column(bags.instance_y, "instance label", n_instances, row_name),
        "instance_names": None if names is None else canonical_names(names, "instance names", n_instances, "instance"),
        "feature_names": _feature_names(bags.feature_names, bags.n_features),
        "coords": _coords(column(bags.coords, "coordinates", n_bags, bag_name), bags.ids),
        "splits": _splits(bags.splits, n_bags),
        "bag_info": _info(bags.bag_info, "bag_info", n_bags, bag_name),
        "instance_info": _info(bags.instance_info, "instance_info", n_instances, row_name),
        "metadata": _metadata(bags.metadata),
    }


def same(left: Bags, right: Bags) -> bool:
    """Whether two sets of bags are equal in all but their instances."""
    pairs = [(getattr(left, name), getattr(right, name)) for name in ("offsets", *COLUMNS)]
    for group in GROUPS:
        mine, theirs = getattr(left, group), getattr(right, group)
        if list(mine) != list(theirs):
            return False
        pairs += [(mine[key], theirs[key]) for key in mine]
    equal = left.metadata == right.metadata and left.graph == right.graph
    return equal and all(same_column(a, b) for a, b in pairs)


def _feature_names(names: Any, n_features: int) -> Column | None:
    if names is None:
        return None
    canonical = canonical_names(names, "feature names", n_features, "feature")
    if len(set(canonical)) < len(canonical):
        twice = [name for name in dict.fromkeys(canonical) if (canonical == name).sum() > 1]
        raise _wrong("unique feature names", f"{name_some(twice)} more than once", "rename these columns")
    return canonical


def _coords(coords: Any, ids: Column) -> Column | None:
    if coords is None:
        return None
    if coords.ndim != 2 or coords.shape[1] not in (2, 3):
        raise _wrong("two or three coordinates a bag", f"shape {coords.shape}", "pass a (bags, 2) array")
    if not np.isfinite(coords).all():
        bag = ids[int(np.argmax(~np.isfinite(coords).all(axis=1)))]
        raise _wrong("finite coordinates", f"a missing one for bag {bag!r}", "fill it in or leave coords out")
    return np.asarray(coords)


def _refuse_other_graph(bags: Bags) -> None:
    graph = bags.graph
    if graph is not None and not np.array_equal(graph.ids, bags.ids):
        unknown = set(graph.ids) - set(bags.ids)
        got = f"a graph over {len(graph)} bags" + (f" such as {min(unknown)!r}" if unknown else " in another order")
        raise _wrong("a graph over the same bags in the same order", got, "use graph.take, or replace(graph=None)")


def _splits(splits: Mapping[str, Any], n_bags: int) -> Mapping[str, Any]:
    result = {}
    for name, folds in _by_name(splits, "splits").items():
        array = np.atleast_2d(as_array(folds, f"the splits {name!r}"))
        fits = array.ndim == 2 and array.shape[1] == n_bags and array.dtype.kind in "iu" and array.size
        if not fits or array.min() < -1:
            got = f"{array.dtype} of shape {array.shape} for {name!r}"
            raise _wrong(f"splits as fold numbers from -1, shape (repeats, {n_bags})", got, "number the folds from 0")
        if array.max() > MOST:
            raise _wrong(f"fold numbers up to {MOST}", f"{array.max()} for {name!r}", "number the folds from 0")
        result[name] = frozen(array.astype(np.int16))
    return MappingProxyType(result)


def _info(info: Mapping[str, Any], what: str, count: int, name_of: Callable[[int], str]) -> Mapping[str, Any]:
    named = _by_name(info, what)
    return MappingProxyType({name: canonical_column(v, name, count, name_of) for name, v in named.items()})


def _by_name(values: Mapping[str, Any], what: str) -> dict[str, Any]:
    """A dict with names for keys; numbers become text, as a file would make them."""
    if not isinstance(values, Mapping):
        raise _wrong(f"{what} by name", f"a {type(values).__name__}", 'pass a dict such as {"name": [...]}')
    named = {str(key): value for key, value in values.items()}
    if len(named) < len(values):
        raise _wrong(f"unique names in {what}", "a number and the same number as text", "rename one of them")
    return named


def _metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return MappingProxyType(json.loads(json.dumps(dict(metadata), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise _wrong("metadata that JSON can hold", str(error), "use text, numbers, lists and dicts") from error


def _wrong(expected: str, got: str, remedy: str) -> InvalidBagsError:
    return InvalidBagsError("bags", expected=expected, got=got, remedy=remedy)
