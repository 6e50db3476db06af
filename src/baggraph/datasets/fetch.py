"""Data files are found in the data folder, or fetched into it: checked, resumed, and once for all callers.

Environment: ``BAGGRAPH_DATA`` (the data folder); where files come from is the matter of the mirrors and
addresses of :mod:`baggraph.datasets._sources`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import lru_cache, partial
from pathlib import Path

from baggraph.datasets._sources import SourceError, Stream, name_of, offline, opened, patiently, sources
from baggraph.datasets.cards import DataFile
from baggraph.errors import DataFileError, FetchError

__all__ = ["data_folder", "fetch", "locate", "sha256_of", "supply"]

Progress = Callable[[int, int | None], object]


def data_folder() -> Path:
    """The folder of all data files: ``BAGGRAPH_DATA``, else ``baggraph`` in the user's cache.

    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, BAGGRAPH_DATA="data/mil"):
    ...     data_folder().as_posix()
    'data/mil'
    """
    chosen = os.environ.get("BAGGRAPH_DATA")
    return Path(chosen or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "baggraph")).expanduser()


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits.

    >>> sha256_of(Path(os.devnull))
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
    """
    with Path(path).open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def locate(file: DataFile) -> Path | None:
    """The file in the data folder, its checksum verified; None where it is not there.

    >>> locate(DataFile("no/such/file.csv", sha256=None)) is None
    True
    """
    path = data_folder() / file.path
    if not path.is_file():
        return None
    if file.sha256 is not None:
        state = path.stat()
        actual = _sha256_remembered(path, state.st_size, state.st_mtime_ns)
        if actual != file.sha256:
            expected, got = f"{path} with sha256 {file.sha256}", f"sha256 {actual}"
            raise DataFileError("data file", expected=expected, got=got, remedy="delete it and fetch it again")
    return path


@lru_cache(maxsize=4096)
def _sha256_remembered(path: Path, size: int, mtime_ns: int) -> str:  # noqa: ARG001 -- a changed file is a new key
    return sha256_of(path)


def fetch(file: DataFile, *, dataset: str = "NAME", progress: Progress | None = None) -> Path:
    """The file in the data folder, downloaded first where it is not there yet.

    The mirrors of ``BAGGRAPH_MIRROR`` are tried first, then the file's own addresses.  A download that
    broke off is continued where it ended, by this call or a later one, and several calls at the same
    time download once.

    Parameters
    ----------
    file
        What to fetch.
    dataset
        Name of the data set, for the advice in errors.
    progress
        Called as ``progress(done_bytes, total_bytes_or_none)`` while data arrive.

    Examples
    --------
    A folder serves as a mirror:

    >>> from tempfile import TemporaryDirectory
    >>> from unittest.mock import patch
    >>> with TemporaryDirectory() as here, TemporaryDirectory() as mirror:
    ...     _ = Path(mirror, "tiny.csv").write_text("bag,y")
    ...     with patch.dict(os.environ, BAGGRAPH_DATA=here, BAGGRAPH_MIRROR=mirror):
    ...         fetch(DataFile("tiny.csv", sha256=None)).read_text()
    'bag,y'

    """
    present = locate(file)
    if present is not None:
        return present
    target = data_folder() / file.path
    with _locked(target):
        # Whoever held the lock before may have fetched it.
        return locate(file) or _from_any_source(file, target, dataset, progress)


def supply(file: DataFile, source: Path, *, dataset: str = "NAME") -> Path:
    """Put a file that was obtained by hand into its place in the data folder.

    >>> from tempfile import TemporaryDirectory
    >>> from unittest.mock import patch
    >>> with TemporaryDirectory() as here, patch.dict(os.environ, BAGGRAPH_DATA=here):
    ...     path = supply(DataFile("set/empty.csv", sha256=None), Path(os.devnull))
    ...     path.relative_to(here).as_posix()
    'set/empty.csv'
    """
    name = Path(file.path).name
    try:
        actual = sha256_of(source)
    except OSError as error:
        remedy = f"check the path after `baggraph datasets get {dataset} --from-file`"
        got = f"{source} ({error.strerror})"
        raise DataFileError("supply", expected=f"a copy of {name}", got=got, remedy=remedy) from error
    if file.sha256 not in (None, actual):
        expected, got = f"{name} with sha256 {file.sha256}", f"{source} with sha256 {actual}"
        raise DataFileError("supply", expected=expected, got=got, remedy=f"get it anew{_origin(file)}")
    target = data_folder() / file.path
    with _locked(target), _writing():
        part = Path(f"{target}.part")
        shutil.copyfile(source, part)
        return part.replace(target)


def _from_any_source(file: DataFile, target: Path, dataset: str, progress: Progress | None) -> Path:
    failures = []
    for source in sources(file):
        try:
            return patiently(partial(_attempt, source, file, target, progress))
        except SourceError as error:
            failures.append(f"{name_of(source)}: {error}")
    raise _unavailable(file, failures, dataset)


def _attempt(source: str | Path, file: DataFile, target: Path, progress: Progress | None) -> Path:
    part = Path(f"{target}.part")
    # Without a checksum nobody would notice two versions spliced into one file.
    offset = part.stat().st_size if file.sha256 and part.exists() else 0
    with opened(source, offset) as stream, closing(_append(part, stream)) as sizes:
        for done in sizes:
            if progress is not None:
                progress(done, stream.total)
    if file.sha256 is not None and (actual := sha256_of(part)) != file.sha256:
        part.unlink()
        # The part may stem from elsewhere: then the source deserves a try from the start.
        raise SourceError(f"a file with sha256 {actual}", again=stream.start > 0)
    with _writing():
        return part.replace(target)


def _append(part: Path, stream: Stream) -> Generator[int, None, None]:
    """Write the blocks and give the size that is reached after each."""
    with _writing(), part.open("ab" if stream.start else "wb") as handle:
        for block in stream.blocks:
            handle.write(block)
            yield handle.tell()


def _locked(target: Path) -> AbstractContextManager[object]:
    """Hold the lock of a file, in a folder that exists from now on; the lock file stays."""
    from filelock import FileLock

    with _writing():
        target.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(f"{target}.lock").acquire()


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        got, remedy = f"{data_folder()} ({error})", "set BAGGRAPH_DATA to such a folder"
        raise FetchError("fetch", expected="a data folder to write to", got=got, remedy=remedy) from error


def _unavailable(file: DataFile, failures: list[str], dataset: str) -> FetchError:
    remedy = (
        f"get {Path(file.path).name}{_origin(file)} (sha256 {file.sha256 or 'unknown'}) and run "
        f"`baggraph datasets get {dataset} --from-file FILE`, or place it at {data_folder() / file.path}"
    )
    if offline():
        failures = [*failures, "no network, as BAGGRAPH_OFFLINE is set"]
        remedy = f"unset BAGGRAPH_OFFLINE, or {remedy}"
    got = ", ".join(failures) or "no address to try"
    return FetchError("fetch", expected=f"a source of {file.path}", got=got, remedy=remedy)


def _origin(file: DataFile) -> str:
    """Where to get it by hand, to follow 'get it'."""
    addresses = f" from {' or '.join(file.urls)}" if file.urls else ""
    return addresses + (f" ({file.hint.rstrip('.')})" if file.hint else "")
