"""Files appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from baggraph.errors import DataFileError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A draft beside ``path`` that takes its place when the block ends well, and vanishes otherwise."""
    if not path.parent.is_dir():
        raise DataFileError(
            "write", expected="an existing folder", got=str(path.parent), remedy="create it or choose another"
        )
    if path.is_dir():
        raise DataFileError("write", expected="the name of a file", got=f"the folder {path}", remedy="add a name")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        got = f"{path.parent} ({error.strerror})"
        raise DataFileError(
            "write", expected="a folder to write to", got=got, remedy="choose another or make room"
        ) from error
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        draft.chmod(0o666 & ~_umask())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _umask() -> int:
    """The mask of permissions, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
