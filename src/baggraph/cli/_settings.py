"""Arguments that a folder remembers: ``baggraph.toml``, a table a verb."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from baggraph.errors import DataFileError, ParameterError, closest

FILE = "baggraph.toml"


def remembered(options: dict[str, set[str]], folder: Path = Path()) -> dict[str, dict[str, Any]]:
    """Defaults of options by verb, from the file in this folder; empty where there is none.

    ``options`` names what may stand there.  Names are those of the long options, with ``-`` or ``_``; what is typed
    wins over the file.
    """
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        written = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataFileError(FILE, expected="TOML", got=str(error), remedy="mend that line") from error
    found: dict[str, dict[str, Any]] = {}
    for verb, values in written.items():
        if verb not in options or not isinstance(values, dict):
            remedy = closest(verb, options) + "; write [fit] and its options below"
            raise ParameterError(FILE, expected="tables named after verbs", got=repr(verb), remedy=remedy)
        found[verb] = {}
        for name, value in values.items():
            known = name.replace("-", "_")
            if known not in options[verb]:
                got, remedy = repr(name), closest(known, options[verb])
                raise ParameterError(FILE, expected=f"options of {verb}", got=got, remedy=remedy)
            found[verb][known] = value
    return found
