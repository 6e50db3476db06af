"""The only door to the network: where a data file may come from, and its bytes as they arrive.

Environment: ``BAGGRAPH_MIRROR`` (addresses and folders to try first, comma-separated) and
``BAGGRAPH_OFFLINE`` (1, true or yes: no network).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from baggraph.datasets.cards import DataFile

if TYPE_CHECKING:
    import requests

PAUSES = (0.5, 2.0)  # seconds between the tries of one source, of which there is one more than pauses
TIMEOUT = (10.0, 60.0)  # seconds to connect, and between two arrivals of data
BLOCK = 1 << 16  # bytes; what a connection that breaks off can cost at most

T = TypeVar("T")


class SourceError(Exception):
    """What went wrong at one source, and whether another try may help."""

    def __init__(self, reason: str, *, again: bool) -> None:
        super().__init__(reason)
        self.again = again


class Stream(NamedTuple):
    """Bytes of a file from ``start`` on, and the size of the whole where the source says it."""

    start: int
    total: int | None
    blocks: Iterator[bytes]


def sources(file: DataFile) -> list[str | Path]:
    """Mirrors first, then the file's own addresses; folders only when offline."""
    found: list[str | Path] = []
    for base in filter(None, map(str.strip, os.environ.get("BAGGRAPH_MIRROR", "").split(","))):
        if base.lower().startswith(("http://", "https://")):
            found.append(f"{base.rstrip('/')}/{quote(file.path)}")
        else:
            found.append(Path(base).expanduser() / file.path)
    found.extend(file.urls)
    return [source for source in found if isinstance(source, Path)] if offline() else found


def offline() -> bool:
    """Whether the network is not to be touched."""
    return os.environ.get("BAGGRAPH_OFFLINE", "").strip().lower() in ("1", "true", "yes")


def name_of(source: str | Path) -> str:
    """A folder's file, or a host without the user name and password that an address may carry.

    >>> name_of("https://me:secret@data.example/bags.csv")
    'data.example'
    """
    return str(source) if isinstance(source, Path) else urlsplit(source).netloc.rpartition("@")[2]


def patiently(attempt: Callable[[], T]) -> T:
    """Make the attempt, after growing pauses again and again as long as that may help."""
    for pause in PAUSES:
        try:
            return attempt()
        except SourceError as error:
            if not error.again:
                raise
            time.sleep(pause)
    return attempt()


def opened(source: str | Path, offset: int) -> AbstractContextManager[Stream]:
    """The bytes of a source from ``offset`` on, or from 0 where it knows no other way."""
    return _open_file(source, offset) if isinstance(source, Path) else _open_address(source, offset)


# ---------------------------------------------------------------------- folders


@contextmanager
def _open_file(path: Path, offset: int) -> Iterator[Stream]:
    with _reading():
        size = path.stat().st_size
    yield Stream(offset, size, _contents(path, offset))


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
        raise SourceError(str(error.strerror), again=False) from error


# ---------------------------------------------------------------------- addresses


@contextmanager
def _open_address(url: str, offset: int) -> Iterator[Stream]:
    import requests

    # Compression in transit would make lengths and ranges those of another file.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={offset}-"} if offset else {})
    try:
        response = requests.get(url, headers=headers, stream=True, timeout=TIMEOUT)
    except requests.RequestException as error:
        again = isinstance(error, requests.ConnectionError | requests.Timeout)
        raise SourceError(_explain(error), again=again) from error
    with response:
        yield _stream_of(response, offset)


def _stream_of(response: requests.Response, offset: int) -> Stream:
    status = response.status_code
    if status == 416 and offset:
        # Nothing lies behind the part: it is complete, or wrong and then begun again. The checksum tells.
        return Stream(offset, offset, iter(()))
    if status not in (200, 206):
        raise SourceError(f"HTTP {status}", again=status >= 500)
    start = offset if status == 206 else 0
    length = response.headers.get("Content-Length", "")
    total = start + int(length) if length.isdecimal() else None
    return Stream(start, total, _body(response, start, total))


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
        raise SourceError(f"connection dropped after {done} of {size} bytes", again=True) from broken


def _explain(error: requests.RequestException) -> str:
    """The root of a refusal, which requests wraps twice over."""
    inner = error.args[0] if error.args else ""
    root = str(getattr(inner, "reason", inner)).rpartition(": ")[2]
    return f"{type(error).__name__} ({root})"
