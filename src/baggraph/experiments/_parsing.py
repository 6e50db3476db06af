"""From a mapping, as TOML gives it, to frozen dataclasses; all errors are reported at once."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from baggraph.errors import ParameterError, closest

T = TypeVar("T")


def parse(kind: type[T], given: Mapping[str, Any], stage: str) -> T:
    """An instance of a dataclass, or one error that names everything that is wrong.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Point:
    ...     x: float
    ...     name: str = ""
    >>> parse(Point, {"x": 1}, "point")
    Point(x=1.0, name='')
    >>> parse(Point, {"y": 1, "name": 3}, "point")
    Traceback (most recent call last):
        ...
    baggraph.errors.ParameterError: point: expected a valid file, got y: unknown, choose from 'name', 'x'; name: int
    where str was expected; x: missing; mend all of these
    """
    problems: list[str] = []
    made = _instance(kind, given, "", problems)
    if problems:
        raise ParameterError(stage, expected="a valid file", got="; ".join(problems), remedy="mend all of these")
    return made


def _instance(kind: Any, given: Any, where: str, problems: list[str]) -> Any:
    if not isinstance(given, Mapping):
        problems.append(f"{where[:-1]}: {type(given).__name__} where a table was expected")
        return None
    hints, known = get_type_hints(kind), {f.name: f for f in fields(kind)}
    problems += [f"{where}{key}: unknown, {closest(key, known)}" for key in given if key not in known]
    values = {key: _value(hints[key], item, f"{where}{key}", problems) for key, item in given.items() if key in known}
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            problems.append(f"{where}{name}: missing")
    return None if problems else kind(**values)


def _value(hint: Any, item: Any, where: str, problems: list[str]) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):  # X | None; TOML has no None
        return _value(next(a for a in arguments if a is not type(None)), item, where, problems)
    if is_dataclass(hint):
        return _instance(hint, item, f"{where}.", problems)
    if hint is Any:
        return item
    if origin is tuple and isinstance(item, list):
        return tuple(_value(arguments[0], one, f"{where}[{i}]", problems) for i, one in enumerate(item))
    if origin is not None and issubclass(origin, Mapping) and isinstance(item, Mapping):
        return {key: _value(arguments[1], one, f"{where}.{key}", problems) for key, one in item.items()}
    if hint is float and isinstance(item, int) and not isinstance(item, bool):
        return float(item)
    plain = origin or hint
    if plain is tuple or not isinstance(item, plain) or (plain is int and isinstance(item, bool)):
        expected = "list" if plain is tuple else plain.__name__
        problems.append(f"{where}: {type(item).__name__} where {expected} was expected")
    return item
