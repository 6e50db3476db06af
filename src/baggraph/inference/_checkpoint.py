"""The state of a training on disk: written whole or not at all, and believed only where it is what was written."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from baggraph import __version__
from baggraph.errors import BagError, DataFileError, ParameterError

VERSION = 1
NOTE = "checkpoint.json"
TENSORS = "step-*.safetensors"


class Saved(NamedTuple):
    """Tensors by name, and numbers by name."""

    tensors: dict[str, Tensor]
    place: dict[str, Any]


class Checkpoint:
    """A folder with ``checkpoint.json``, which names the file of tensors that belongs to it.

    The note is replaced last, in one move: whenever the process is killed, the folder holds the state before or after.
    """

    def __init__(self, folder: Path, facts: dict[str, Any]) -> None:
        self.folder, self.facts = folder, facts

    def save(self, saved: Saved) -> None:
        """Write the state in the place of the one before."""
        name = TENSORS.replace("*", f"{saved.place['steps']:09d}")
        draft = self.folder / f"{name}.draft"
        save_file({key: value.contiguous() for key, value in saved.tensors.items()}, draft)
        note = {
            "version": VERSION,
            "versions": {"baggraph": __version__, "torch": torch.__version__},
            "settings": self.facts,
            "place": saved.place,
            "tensors": name,
            "sha256": _digest_of(draft),
        }
        _settle(draft, self.folder / name)
        draft = self.folder / f"{NOTE}.draft"
        draft.write_text(json.dumps({**note, "check": _digest(note)}, indent=1), encoding="utf-8")
        _settle(draft, self.folder / NOTE)
        for old in self.folder.glob(f"{TENSORS}*"):
            if old.name != name:
                old.unlink()

    def load(self) -> Saved | None:
        """The state, or None where there is none yet; the folder is made now, not after hours of work."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            got, remedy = f"{self.folder} ({error.strerror})", "choose another"
            raise DataFileError("checkpoint", expected="a folder to write to", got=got, remedy=remedy) from error
        path = self.folder / NOTE
        if not path.exists():
            return None
        note = self._note(path)
        self._refuse_other_settings(note["settings"])
        tensors = self.folder / note["tensors"]
        if not tensors.is_file() or _digest_of(tensors) != note["sha256"]:
            raise _damaged(tensors, "one that is missing, truncated or altered")
        return Saved(load_file(tensors), note["place"])

    @property
    def last(self) -> str:
        """The state on disk in words."""
        try:
            place = self._note(self.folder / NOTE)["place"]
        except (OSError, BagError):
            return "none was written yet"
        return f"the last finite one, after {place['steps']} steps, is in {self.folder}"

    def _note(self, path: Path) -> dict[str, Any]:
        try:
            note = json.loads(path.read_text(encoding="utf-8"))
            check = note.pop("check")
            version = note["version"]
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise _damaged(path, f"something else ({error})") from error
        if check != _digest(note):
            raise _damaged(path, "one that was altered")
        if version != VERSION:
            raise _damaged(path, f"layout version {version}, not {VERSION}")
        return dict(note)

    def _refuse_other_settings(self, theirs: dict[str, Any]) -> None:
        ours = json.loads(json.dumps(self.facts))
        for name in sorted(ours.keys() | theirs.keys()):
            if ours.get(name) != theirs.get(name):
                raise ParameterError(
                    "checkpoint",
                    expected=f"{name}={theirs.get(name)!r} as in {self.folder}",
                    got=repr(ours.get(name)),
                    remedy="call with the same data and arguments, or choose another folder",
                )


def _settle(draft: Path, path: Path) -> None:
    """Move a file to its name, once its content and then its name are on the disk."""
    with draft.open("rb+") as file:
        os.fsync(file.fileno())
    draft.replace(path)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_DIRECTORY)
        os.fsync(folder)
        os.close(folder)


def _digest(note: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(note, sort_keys=True).encode()).hexdigest()


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _damaged(path: Path, got: str) -> DataFileError:
    remedy = "restore it, or choose another folder to begin anew"
    return DataFileError("checkpoint", expected=f"{path} as it was written", got=got, remedy=remedy)
