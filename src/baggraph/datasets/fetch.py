"""The one file that touches the network: data files are found in the data folder or fetched into it.

Environment: ``BAGGRAPH_DATA`` (the data folder), ``BAGGRAPH_MIRROR`` (addresses and folders to try
first, comma-separated) and ``BAGGRAPH_OFFLINE`` (1, true or yes: no network).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit

from baggraph.datasets.cards import DataFile
from baggraph.errors import DataFileError, FetchError

if TYPE_CHECKING:
    import requests

__all__ = ["data_folder", "fetch", "locate", "sha256_of", "supply"]

PAUSES = (0.5, 2.0)  # seconds between the tries of one source, of which there is one more than pauses
TIMEOUT = (10.0, 60.0)  # seconds to connect, and between two arrivals of data
BLOCK = 1 << 16  # bytes; what a connection that breaks off can cost at most

Progress = Callable[[int, int | None], object]


class _SourceError(Exception):
    """What went wrong at one source, and whether another try may help."""

    def __init__(self, reason: str, *, again: bool) -> None:
        super().__init__(reason)
        self.again = again


class _Stream(NamedTuple):
    """Bytes of a file from ``start`` on, and the size of the whole where the source says it."""

    start: int
    total: int | None
    blocks: Iterator[bytes]


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
    for source in _sources(file):
        try:
            return _from_source(source, file, target, progress)
        except _SourceError as error:
            # Without user name and password, which an address may carry.
            name = source if isinstance(source, Path) else urlsplit(source).netloc.rpartition("@")[2]
            failures.append(f"{name}: {error}")
    raise _unavailable(file, failures, dataset)


def _from_source(source: str | Path, file: DataFile, target: Path, progress: Progress | None) -> Path:
    for pause in PAUSES:
        try:
            return _attempt(source, file, target, progress)
        except _SourceError as error:
            if not error.again:
                raise
            time.sleep(pause)
    return _attempt(source, file, target, progress)


def _attempt(source: str | Path, file: DataFile, target: Path, progress: Progress | None) -> Path:
    part = Path(f"{target}.part")
    # Without a checksum nobody would notice two versions spliced into one file.
    offset = part.stat().st_size if file.sha256 and part.exists() else 0
    opened = _open_file(source, offset) if isinstance(source, Path) else _open_address(source, offset)
    with opened as stream, closing(_append(part, stream)) as sizes:
        for done in sizes:
            if progress is not None:
                progress(done, stream.total)
    if file.sha256 is not None and (actual := sha256_of(part)) != file.sha256:
        part.unlink()
        # The part may stem from elsewhere: then the source deserves a try from the start.
        raise _SourceError(f"a file with sha256 {actual}", again=stream.start > 0)
    with _writing():
        return part.replace(target)


def _append(part: Path, stream: _Stream) -> Generator[int, None, None]:
    """Write the blocks and give the size that is reached after each."""
    with _writing(), part.open("ab" if stream.start else "wb") as handle:
        for block in stream.blocks:
            handle.write(block)
            yield handle.tell()


def _sources(file: DataFile) -> list[str | Path]:
    """Mirrors first, then the file's own addresses; folders only when offline."""
    sources: list[str | Path] = []
    for base in filter(None, map(str.strip, os.environ.get("BAGGRAPH_MIRROR", "").split(","))):
        if base.lower().startswith(("http://", "https://")):
            sources.append(f"{base.rstrip('/')}/{quote(file.path)}")
        else:
            sources.append(Path(base).expanduser() / file.path)
    sources.extend(file.urls)
    return [source for source in sources if isinstance(source, Path)] if _offline() else sources


def _offline() -> bool:
    return os.environ.get("BAGGRAPH_OFFLINE", "").strip().lower() in ("1", "true", "yes")


@contextmanager
def _open_file(path: Path, offset: int) -> Iterator[_Stream]:
    with _reading():
        size = path.stat().st_size
    yield _Stream(offset, size, _contents(path, offset))


def _contents(path: Path, offset: int) -> Iterator[bytes]:
    with _reading(), path.open("rb") as handle:
        handle.seek(offset)
        while block := handle.read(BLOCK):
            yield block


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _SourceError(str(error.strerror), again=False) from error


@contextmanager
def _open_address(url: str, offset: int) -> Iterator[_Stream]:
    import requests

    # Compression in transit would make lengths and ranges those of another file.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={offset}-"} if offset else {})
    try:
        response = requests.get(url, headers=headers, stream=True, timeout=TIMEOUT)
    except requests.RequestException as error:
        again = isinstance(error, requests.ConnectionError | requests.Timeout)
        raise _SourceError(_explain(error), again=again) from error
    with response:
        yield _stream_of(response, offset)


def _stream_of(response: requests.Response, offset: int) -> _Stream:
    status = response.status_code
    if status == 416 and offset:
        # Nothing lies behind the part: it is complete, or wrong and then begun again. The checksum tells.
        return _Stream(offset, offset, iter(()))
    if status not in (200, 206):
        raise _SourceError(f"HTTP {status}", again=status >= 500)
    start = offset if status == 206 else 0
    length = response.headers.get("Content-Length", "")
    total = start + int(length) if length.isdecimal() else None
    return _Stream(start, total, _body(response, start, total))


def _body(response: requests.Response, done: int, total: int | None) -> Iterator[bytes]:
    """The bytes exactly as sent; raises where fewer come than were announced."""
    from urllib3.exceptions import HTTPError

    broken: HTTPError | None = None
    try:
        for block in response.raw.stream(BLOCK, decode_content=False):
            done += len(block)
            yield block
    except HTTPError as error:
        broken = error
    if broken or (total is not None and done < total):
        size = "an unknown number of" if total is None else total
        raise _SourceError(f"connection dropped after {done} of {size} bytes", again=True) from broken


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
    if _offline():
        failures = [*failures, "no network, as BAGGRAPH_OFFLINE is set"]
    by_hand = (
        f"get {Path(file.path).name}{_origin(file)} (sha256 {file.sha256 or 'unknown'}) and run "
        f"`baggraph datasets get {dataset} --from-file FILE`, or place it at {data_folder() / file.path}"
    )
    remedy = f"unset BAGGRAPH_OFFLINE, or {by_hand}" if _offline() else by_hand
    got = ", ".join(failures) or "no address to try"
    return FetchError("fetch", expected=f"a source of {file.path}", got=got, remedy=remedy)


def _origin(file: DataFile) -> str:
    """Where to get it by hand, to follow 'get it'."""
    addresses = f" from {' or '.join(file.urls)}" if file.urls else ""
    return addresses + (f" ({file.hint.rstrip('.')})" if file.hint else "")


def _explain(error: requests.RequestException) -> str:
    """The root of a refusal, which requests wraps twice over."""
    inner = error.args[0] if error.args else ""
    root = str(getattr(inner, "reason", inner)).rpartition(": ")[2]
    return f"{type(error).__name__} ({root})"
