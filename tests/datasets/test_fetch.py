"""Files that are there are checked, files that are not are fetched once, and whatever breaks off goes on."""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baggraph.datasets import _sources
from baggraph.datasets.cards import DataFile
from baggraph.datasets.fetch import data_folder, fetch, locate, supply
from baggraph.errors import DataFileError, FetchError

BODY = random.Random(0).randbytes(300_000)
SHA = hashlib.sha256(BODY).hexdigest()
OTHER = b"not the file"
OTHER_SHA = hashlib.sha256(OTHER).hexdigest()
PATH = "toy #1/bags.csv"

# ---------------------------------------------------------------------- a server that does what it is told


class Handler(BaseHTTPRequestHandler):
    """Answers the n-th request with the n-th answer, and from then on with the last."""

    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.offset = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        with self.server.guard:
            answer = self.server.answers[min(len(self.server.log), len(self.server.answers) - 1)]
            self.server.log.append(self)
        self.sent = 0
        self.close_connection = True
        answer(self)

    def begin(self, status: int, **headers: object) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def send(self, content: bytes) -> None:
        self.sent += len(content)  # before the client can know
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.guard = threading.Lock()
        self.script()

    def script(self, *answers: Callable[[Handler], None]) -> None:
        self.answers = answers
        self.log: list[Handler] = []

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.name}/bags.csv"

    @property
    def ranges(self) -> list[str | None]:
        return [request.headers.get("Range") for request in self.log]


def whole(request: Handler, content: bytes = BODY) -> None:
    request.begin(200, Content_Length=len(content))
    request.send(content)


def wrong(request: Handler) -> None:
    whole(request, OTHER)


def ranged(request: Handler, upto: int = len(BODY)) -> None:
    """Honours Range; breaks off at ``upto``."""
    if request.offset and request.offset >= len(BODY):
        return request.begin(416, Content_Range=f"bytes */{len(BODY)}")
    request.begin(206 if request.offset else 200, Content_Length=len(BODY) - request.offset)
    return request.send(BODY[request.offset : upto])


def drops_at(upto: int) -> Callable[[Handler], None]:
    return lambda request: ranged(request, upto)


def truncated(request: Handler) -> None:
    request.begin(200, Content_Length=len(BODY))
    request.send(BODY[:1000])


def stalls(request: Handler) -> None:
    ranged(request, 200_000)
    time.sleep(0.4)


def status(code: int) -> Callable[[Handler], None]:
    return lambda request: request.begin(code, Content_Length=0)


def unannounced(request: Handler) -> None:
    """No length is given; the end of the connection is the end of the file."""
    request.begin(200)
    request.send(BODY)


def broken_chunks(request: Handler) -> None:
    request.begin(200, Transfer_Encoding="chunked")
    request.wfile.write(b"5\r\nhello\r\n")


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def server(running: Server) -> Server:
    running.script(ranged)
    return running


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder, no mirror, no proxy, no pauses."""
    for name in ("BAGGRAPH_MIRROR", "BAGGRAPH_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("BAGGRAPH_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(_sources, "PAUSES", (0.0, 0.0))
    return tmp_path / "data"


def data_file(*urls: str, sha256: str | None = SHA, hint: str = "") -> DataFile:
    return DataFile(PATH, sha256=sha256, urls=urls, hint=hint)


def place(root: Path, content: bytes = BODY, path: str = PATH) -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return target


def text_of(file: DataFile, **options: Any) -> str:
    with pytest.raises(FetchError) as caught:
        fetch(file, **options)
    return str(caught.value)


def by_hand(folder: Path, origin: str, sha256: str = SHA, name: str = "NAME") -> str:
    command = f"`baggraph datasets get {name} --from-file FILE`"
    return f"get bags.csv{origin} (sha256 {sha256}) and run {command}, or place it at {folder / PATH}"


# ---------------------------------------------------------------------- laws


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(0, len(BODY) - 1), max_size=2))
def test_wherever_connections_drop_every_byte_is_sent_once(running: Server, cuts: list[int]) -> None:
    cuts = sorted(cuts)
    running.script(*map(drops_at, cuts), ranged)
    with TemporaryDirectory() as fresh, pytest.MonkeyPatch.context() as patch:
        patch.setenv("BAGGRAPH_DATA", fresh)
        assert fetch(data_file(running.url)).read_bytes() == BODY
    assert sum(request.sent for request in running.log) == len(BODY)
    assert running.ranges == [f"bytes={cut}-" if cut else None for cut in [0, *cuts]]


@settings(max_examples=25, deadline=None)
@given(left=st.binary(max_size=50) | st.integers(1, len(BODY)).map(lambda n: BODY[:n]) | st.just(BODY + b"!"))
@pytest.mark.parametrize("answer", [ranged, whole])
def test_whatever_an_earlier_call_left_the_file_is_right(
    running: Server, answer: Callable[[Handler], None], left: bytes
) -> None:
    running.script(answer)
    with TemporaryDirectory() as fresh, pytest.MonkeyPatch.context() as patch:
        patch.setenv("BAGGRAPH_DATA", fresh)
        place(Path(fresh), left, PATH + ".part")
        path = fetch(data_file(running.url))
        assert path.read_bytes() == BODY
        assert sorted(entry.name for entry in path.parent.iterdir()) == ["bags.csv", "bags.csv.lock"]


# ---------------------------------------------------------------------- the data folder


def test_data_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    monkeypatch.setenv("BAGGRAPH_DATA", "~/bags")
    assert data_folder() == Path("/home/someone/bags")
    monkeypatch.setenv("BAGGRAPH_DATA", "")
    assert data_folder() == Path("/cache/baggraph")
    monkeypatch.delenv("BAGGRAPH_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert data_folder() == Path("/home/someone/.cache/baggraph")


def test_a_file_that_is_there_is_verified_and_needs_no_network(folder: Path, server: Server) -> None:
    assert locate(data_file(server.url)) is None
    path = place(folder)
    assert locate(data_file()) == fetch(data_file(server.url)) == path
    assert server.log == []


def test_an_altered_file_is_refused_until_it_is_deleted(folder: Path, server: Server) -> None:
    path = place(folder, OTHER)
    message = f"data file: expected {path} with sha256 {SHA}, got sha256 {OTHER_SHA}; delete it and fetch it again"
    for read in (locate, fetch):
        with pytest.raises(DataFileError) as caught:
            read(data_file(server.url))
        assert str(caught.value) == message
    assert locate(data_file(sha256=None)) == path
    path.unlink()
    assert fetch(data_file(server.url)).read_bytes() == BODY


def test_an_unchanged_file_is_hashed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    digest = hashlib.file_digest

    def counting(handle: Any, name: str) -> Any:
        hashed.append(handle.name)
        return digest(handle, name)

    monkeypatch.setattr(hashlib, "file_digest", counting)
    path = place(folder)
    assert [locate(data_file()) for _ in range(3)] == [path] * 3
    assert hashed == [str(path)]
    with pytest.raises(DataFileError):
        locate(data_file(sha256=OTHER_SHA))  # another card for the same file profits, and is not fooled
    assert hashed == [str(path)]
    os.utime(path, ns=(0, 0))
    locate(data_file())
    assert hashed == [str(path)] * 2


def test_files_that_are_there_are_read_without_any_network_package(folder: Path) -> None:
    path = place(folder)
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['requests', 'urllib3', 'filelock', 'pooch']))\n"
        "from baggraph.datasets.fetch import DataFile, fetch\n"
        f"print(fetch(DataFile({PATH!r}, {SHA!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(path)


@pytest.mark.parametrize("act", [fetch, lambda file: supply(file, Path(__file__))])
def test_a_folder_that_cannot_be_written_is_named(act: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("BAGGRAPH_DATA", str(blocked / "data"))
    with pytest.raises(FetchError) as caught:
        act(data_file(sha256=None))
    reason = f"[Errno {errno.ENOTDIR}] {os.strerror(errno.ENOTDIR)}: '{blocked / 'data' / 'toy #1'}'"
    assert str(caught.value) == (
        f"fetch: expected a data folder to write to, got {blocked / 'data'} ({reason}); "
        "set BAGGRAPH_DATA to such a folder"
    )


# ---------------------------------------------------------------------- one source


def test_progress_counts_bytes_up_to_the_total(server: Server) -> None:
    server.script(drops_at(1000), ranged)
    seen: list[tuple[int, int | None]] = []
    fetch(data_file(server.url), progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[0] == (1000, len(BODY))
    assert seen[-1] == (len(BODY), len(BODY))


def test_a_file_of_unannounced_length_is_fetched(server: Server) -> None:
    server.script(unannounced)
    totals = set()
    assert fetch(data_file(server.url), progress=lambda _, total: totals.add(total)).read_bytes() == BODY
    assert totals == {None}


def test_compression_in_transit_is_declined(server: Server) -> None:
    fetch(data_file(server.url))
    assert [request.headers["Accept-Encoding"] for request in server.log] == ["identity"]


def test_a_compressed_file_stays_so_whatever_the_server_calls_it(server: Server) -> None:
    packed = gzip.compress(b"bag,y")

    def announces_gzip(request: Handler) -> None:
        request.begin(200, Content_Length=len(packed), Content_Encoding="gzip")
        request.send(packed)

    server.script(announces_gzip)
    assert fetch(data_file(server.url, sha256=hashlib.sha256(packed).hexdigest())).read_bytes() == packed


def test_a_later_call_resumes_what_was_interrupted(folder: Path, server: Server, monkeypatch: Any) -> None:
    def interrupt(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_sources, "BLOCK", 1000)
    with pytest.raises(KeyboardInterrupt) as caught:
        fetch(data_file(server.url), progress=interrupt)
    part = folder / (PATH + ".part")
    assert part.read_bytes() == BODY[:1000]
    assert caught.tb  # which keeps the frames alive: the part was closed on purpose, not by chance
    assert fetch(data_file(server.url)).read_bytes() == BODY
    assert server.ranges == [None, "bytes=1000-"]
    assert not part.exists()


def test_errors_of_the_callback_are_its_own(server: Server) -> None:
    def fail(done: int, total: int | None) -> None:
        raise BrokenPipeError("the bar")

    with pytest.raises(BrokenPipeError, match="the bar"):
        fetch(data_file(server.url), progress=fail)


def test_a_server_without_ranges_starts_over(server: Server) -> None:
    server.script(drops_at(1000), whole)
    assert fetch(data_file(server.url)).read_bytes() == BODY
    assert server.ranges == [None, "bytes=1000-"]
    assert [request.sent for request in server.log] == [1000, len(BODY)]


def test_without_a_checksum_nothing_is_spliced(server: Server) -> None:
    server.script(drops_at(1000), ranged)
    assert fetch(data_file(server.url, sha256=None)).read_bytes() == BODY
    assert server.ranges == [None, None]


def test_a_complete_part_is_not_sent_again(folder: Path, server: Server) -> None:
    place(folder, BODY, PATH + ".part")
    assert fetch(data_file(server.url)).read_bytes() == BODY
    assert [(request.headers["Range"], request.sent) for request in server.log] == [(f"bytes={len(BODY)}-", 0)]


def test_a_server_error_is_retried_after_growing_pauses(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(_sources, "PAUSES", (1.0, 3.0))
    monkeypatch.setattr("time.sleep", pauses.append)
    server.script(status(500), status(503), whole)
    assert fetch(data_file(server.url)).read_bytes() == BODY
    assert pauses == [1.0, 3.0]


@pytest.mark.parametrize(
    ("answer", "tries", "reason"),
    [
        (status(404), 1, "HTTP 404"),
        (status(429), 1, "HTTP 429"),
        (status(502), 3, "HTTP 502"),
        (truncated, 3, f"connection dropped after 1000 of {len(BODY)} bytes"),
        (broken_chunks, 3, "connection dropped after 5 of an unknown number of bytes"),
        (wrong, 1, f"a file with sha256 {OTHER_SHA}"),
    ],
)
def test_what_went_wrong_is_told(
    answer: Callable[[Handler], None], tries: int, reason: str, folder: Path, server: Server
) -> None:
    server.script(answer)
    message = text_of(data_file(server.url), dataset="toy")
    remedy = by_hand(folder, f" from {server.url}", name="toy")
    assert message == f"fetch: expected a source of {PATH}, got {server.name}: {reason}; {remedy}"
    assert len(server.log) == tries


def test_silence_is_a_timeout(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sources, "TIMEOUT", (2.0, 0.1))
    server.script(lambda request: time.sleep(0.4))
    message = text_of(data_file(server.url))
    reason = "ReadTimeout (Read timed out. (read timeout=0.1))"
    remedy = by_hand(folder, f" from {server.url}")
    assert message == f"fetch: expected a source of {PATH}, got {server.name}: {reason}; {remedy}"
    assert len(server.log) == 3
    server.script(stalls, ranged)
    assert fetch(data_file(server.url)).read_bytes() == BODY
    assert 200_000 - _sources.BLOCK <= server.log[1].offset <= 200_000


# ---------------------------------------------------------------------- several sources


def test_each_source_is_named_with_its_failure(folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
    monkeypatch.setenv("BAGGRAPH_MIRROR", f"{folder.parent / 'mirror'}, http://user:secret@{server.name}/data/")
    server.script(status(404))
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    closed, odd = f"http://127.0.0.1:{port}/bags.csv", "gopher://old/bags.csv"
    refused = f"ConnectionError ([Errno {errno.ECONNREFUSED}] {os.strerror(errno.ECONNREFUSED)})"
    assert text_of(data_file(closed, odd, hint="Ask the authors.")) == (
        f"fetch: expected a source of {PATH}, got {folder.parent / 'mirror' / PATH}: No such file or directory, "
        f"{server.name}: HTTP 404, 127.0.0.1:{port}: {refused}, "
        f"old: InvalidSchema (No connection adapters were found for '{odd}'); "
        + by_hand(folder, f" from {closed} or {odd} (Ask the authors)")
    )
    assert len(pauses) == 2  # of them all, only a refused connection may be accepted later


def test_a_file_without_any_source_can_be_supplied(folder: Path) -> None:
    message = text_of(data_file(sha256=None, hint="Ask the authors."))
    remedy = by_hand(folder, " (Ask the authors)", sha256="unknown")
    assert message == f"fetch: expected a source of {PATH}, got no address to try; {remedy}"


def test_mirrors_come_first_and_in_order(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAGGRAPH_MIRROR", f"http://{server.name}/a/, ,HTTP://{server.name}/b")
    server.script(status(404), wrong, ranged)
    assert fetch(data_file(server.url)).read_bytes() == BODY
    assert [request.path for request in server.log] == ["/a/toy%20%231/bags.csv", "/b/toy%20%231/bags.csv", "/bags.csv"]
    assert server.ranges == [None, None, None]  # what the wrong mirror sent is not built upon


def test_another_source_continues_what_one_began(server: Server) -> None:
    server.script(drops_at(1000), status(404), ranged)
    assert fetch(data_file(server.url + "?1", server.url + "?2")).read_bytes() == BODY
    assert server.ranges == [None, "bytes=1000-", "bytes=1000-"]


def test_a_folder_serves_as_mirror(tmp_path: Path, folder: Path, server: Server, monkeypatch: Any) -> None:
    place(tmp_path / "mirror")
    monkeypatch.setenv("BAGGRAPH_MIRROR", str(tmp_path / "mirror"))
    seen: list[Any] = []
    assert fetch(data_file(server.url), progress=lambda *sizes: seen.append(sizes)) == folder / PATH
    assert (folder / PATH).read_bytes() == BODY
    assert seen[-1] == (len(BODY), len(BODY))
    assert server.log == []


def test_a_folder_too_continues_a_part(tmp_path: Path, folder: Path, monkeypatch: Any) -> None:
    place(tmp_path / "mirror")
    place(folder, BODY[:-5], PATH + ".part")
    monkeypatch.setenv("BAGGRAPH_MIRROR", str(tmp_path / "mirror"))
    seen: list[Any] = []
    assert fetch(data_file(), progress=lambda *sizes: seen.append(sizes)).read_bytes() == BODY
    assert seen == [(len(BODY), len(BODY))]


def test_a_mirror_that_cannot_be_read_is_passed_over(tmp_path: Path, server: Server, monkeypatch: Any) -> None:
    (tmp_path / "mirror" / PATH).mkdir(parents=True)
    monkeypatch.setenv("BAGGRAPH_MIRROR", str(tmp_path / "mirror"))
    assert fetch(data_file(server.url)).read_bytes() == BODY


@pytest.mark.parametrize("switch", ["1", "YES"])
def test_offline_touches_no_network(
    switch: str, tmp_path: Path, folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BAGGRAPH_OFFLINE", switch)
    offline = "no network, as BAGGRAPH_OFFLINE is set; unset BAGGRAPH_OFFLINE, or " + by_hand(
        folder, f" from {server.url}"
    )
    assert text_of(data_file(server.url)) == f"fetch: expected a source of {PATH}, got {offline}"
    mirror = tmp_path / "mirror" / PATH
    monkeypatch.setenv("BAGGRAPH_MIRROR", f"http://{server.name},{tmp_path / 'mirror'}")
    absent = f"{mirror}: No such file or directory"
    assert text_of(data_file(server.url)) == f"fetch: expected a source of {PATH}, got {absent}, {offline}"
    place(tmp_path / "mirror")
    assert fetch(data_file(server.url)).read_bytes() == BODY
    assert server.log == []


@pytest.mark.parametrize("switch", ["", "0"])
def test_other_values_leave_it_online(switch: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAGGRAPH_OFFLINE", switch)
    assert fetch(data_file(server.url)).read_bytes() == BODY


# ---------------------------------------------------------------------- at the same time


def slowly(request: Handler) -> None:
    """Long enough for everybody to come to the door."""
    time.sleep(0.3)
    ranged(request)


def test_threads_download_once(server: Server) -> None:
    server.script(slowly)
    with ThreadPoolExecutor(6) as pool:
        paths = set(pool.map(fetch, [data_file(server.url)] * 6))
    assert [path.read_bytes() == BODY for path in paths] == [True]
    assert [request.sent for request in server.log] == [len(BODY)]


def test_processes_download_once(folder: Path, server: Server) -> None:
    server.script(slowly)
    code = (
        "from baggraph.datasets.fetch import DataFile, fetch\n"
        f"file = DataFile({PATH!r}, {SHA!r}, ({server.url!r},))\n"
        "print('ready', flush=True); input(); print(fetch(file))"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [worker.stdout.readline() for worker in workers if worker.stdout] == ["ready\n"] * 3
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("\n")
        worker.stdin.flush()
    assert [worker.communicate()[0].strip() for worker in workers] == [str(folder / PATH)] * 3
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert [request.sent for request in server.log] == [len(BODY)]
    assert (folder / PATH).read_bytes() == BODY


# ---------------------------------------------------------------------- by hand


def test_a_supplied_file_takes_its_place(tmp_path: Path, folder: Path) -> None:
    place(folder, OTHER)  # an altered file is replaced
    place(folder, BODY[:10], PATH + ".part")
    source = place(tmp_path, path="download (1).csv")
    assert supply(data_file(), source) == locate(data_file()) == folder / PATH
    assert source.read_bytes() == BODY
    assert supply(data_file(sha256=None), place(tmp_path, OTHER, "any.csv")).read_bytes() == OTHER
    assert sorted(entry.name for entry in (folder / PATH).parent.iterdir()) == ["bags.csv", "bags.csv.lock"]


def test_a_wrong_file_is_not_copied(tmp_path: Path, folder: Path) -> None:
    source = place(tmp_path, OTHER, "other.csv")
    with pytest.raises(DataFileError) as caught:
        supply(data_file("https://here.org/bags.csv", hint="Log in first."), source)
    assert str(caught.value) == (
        f"supply: expected bags.csv with sha256 {SHA}, got {source} with sha256 {OTHER_SHA}; "
        "get it anew from https://here.org/bags.csv (Log in first)"
    )
    assert not folder.exists()


@pytest.mark.parametrize(("name", "reason"), [("none.csv", errno.ENOENT), (".", errno.EISDIR)])
def test_a_source_that_cannot_be_read_is_named(name: str, reason: int, tmp_path: Path, folder: Path) -> None:
    with pytest.raises(DataFileError) as caught:
        supply(data_file(), tmp_path / name, dataset="toy")
    assert str(caught.value) == (
        f"supply: expected a copy of bags.csv, got {tmp_path / name} ({os.strerror(reason)}); "
        "check the path after `baggraph datasets get toy --from-file`"
    )
    assert not folder.exists()
