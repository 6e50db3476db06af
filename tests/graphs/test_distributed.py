"""The graph learned by several processes against that of one, and what they do when one of them fails.

Run as a script, this file is the processes: one interpreter that imports once, and forks.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st

from baggraph.data.graph import BagGraph
from baggraph.errors import BagError, BagWarning, InvalidGraphError, ParameterError
from baggraph.graphs import distributed
from baggraph.graphs.distributed import Part, learn, main
from baggraph.graphs.learned import LearnedGraph

MOST = 4

# ---------------------------------------------------------------------- what processes do


def learns(rank: int, Z: np.ndarray, options: dict[str, Any]) -> Part:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BagWarning)
        return learn(Z, **options)


def disagrees(rank: int, Z: np.ndarray, theirs: dict[str, Any]) -> Part:
    if rank == 1:
        Z, options = theirs.pop("Z", Z), theirs
        return learn(Z, **options)
    return learn(Z)


def loses_one(rank: int, Z: np.ndarray, seconds: float) -> Part:
    """Process 1 breaks down between two exchanges, or is silent for a while."""

    def fails(*_: Any) -> None:
        time.sleep(seconds)
        raise MemoryError("no more")

    with mock.patch.object(distributed, "solve_part", fails if rank == 1 else distributed.solve_part):
        return learn(Z)


def serve(address: str, processes: int) -> None:
    for _ in range(processes - 1):
        if os.fork() == 0:
            break
    with Client(address) as line:
        while (task := line.recv()) is not None:
            rank, size, store, timeout, work, arguments = task
            wanted = timedelta(seconds=timeout)
            dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size, timeout=wanted)
            try:
                answer = globals()[work](rank, *arguments)
            except Exception as error:
                answer = error
            dist.destroy_process_group()
            line.send(answer)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))


class Crew:
    """Processes that wait for work; ``size`` of them do it as one group."""

    def __init__(self, lines: list[Connection], folder: Path) -> None:
        self.lines, self.folder, self.numbers = lines, folder, count()

    def do(self, size: int, work: Any, *arguments: Any, timeout: float = 60) -> list[Any]:
        store = f"file://{self.folder / str(next(self.numbers))}"
        for rank, line in enumerate(self.lines[:size]):
            line.send((rank, size, store, timeout, work.__name__, arguments))
        return [line.recv() for line in self.lines[:size]]


@pytest.fixture(scope="module")
def crew(tmp_path_factory) -> Iterator[Crew]:
    with Listener(family="AF_UNIX") as listener:
        environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
        first = subprocess.Popen([sys.executable, __file__, str(listener.address), str(MOST)], env=environment)
        lines = [listener.accept() for _ in range(MOST)]
        yield Crew(lines, tmp_path_factory.mktemp("stores"))
        for line in lines:
            line.send(None)
        assert first.wait(60) == 0


# ---------------------------------------------------------------------- the same graph


def mixture(n: int, d: int = 8, seed: int = 0, centres: int = 6) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(centres, d))[rng.integers(centres, size=n)] * 3 + rng.normal(size=(n, d))


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    """Embeddings of few bags, some with equal rows or many equal distances."""
    n, d, seed = draw(st.integers(MOST, 60)), draw(st.integers(1, 4)), draw(st.integers(0, 2**32 - 1))
    kind = draw(st.sampled_from(["mixture", "lattice", "twins"]))
    rng = np.random.default_rng(seed)
    if kind == "lattice":
        return np.vstack([rng.integers(0, 3, size=(n, d)), np.zeros(d), np.ones(d)]).astype(float)
    Z = mixture(n, d, seed)
    return np.vstack([Z, Z[: n // 2]]) if kind == "twins" else Z


def whole(parts: list[Part]) -> sp.csr_array:
    return sp.csr_array(sp.vstack([part.weights for part in parts]))


def assert_same_bits(a: sp.csr_array, b: sp.csr_array) -> None:
    for mine, other in ((a.indptr, b.indptr), (a.indices, b.indices), (a.data, b.data)):
        np.testing.assert_array_equal(mine, other)


@settings(max_examples=25, deadline=None)
@given(Z=tables(), k=st.integers(1, 6), ratio=st.integers(1, 3), precision=st.sampled_from(["float32", "float64"]))
def test_any_number_of_processes_gives_the_graph_of_one(crew, Z, k, ratio, precision):
    options = {"n_neighbors": k, "candidate_ratio": ratio, "precision": precision, "max_sweeps": 100}
    try:
        alone = learns(0, Z, options)
    except InvalidGraphError as error:  # so many twins that all distances are zero
        assert_all_raise(crew.do(MOST, learns, Z, options), InvalidGraphError, str(error))
        with pytest.raises(InvalidGraphError, match="embeddings that differ"):
            LearnedGraph(k, ratio, knn="exact", precision=precision).fit(Z)
        return
    check_against_learned(alone, Z, k, ratio, precision)
    for size in (2, MOST):
        parts = crew.do(size, learns, Z, options)
        assert [part.rows for part in parts] == [(len(Z) * p // size, len(Z) * (p + 1) // size) for p in range(size)]
        assert_same_bits(whole(parts), alone.weights)
        np.testing.assert_array_equal(np.concatenate([part.dual for part in parts]), alone.dual)
        for part in parts:
            assert (part.theta, part.n_iter, part.converged) == (alone.theta, alone.n_iter, alone.converged)
            assert part.gap == parts[0].gap
            assert part.gap == pytest.approx(alone.gap, rel=1e-9, abs=1e-12 * len(Z))


def check_against_learned(alone: Part, Z: np.ndarray, k: int, ratio: int, precision: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BagWarning)
        learned = LearnedGraph(k, ratio, knn="exact", precision=precision).fit(Z)
    assert alone.theta == pytest.approx(learned.theta_, rel=1e-12)
    assert abs(alone.weights - alone.weights.T).max() == 0
    if alone.converged and learned.converged_:
        # The primal is strongly convex: |w - w*|^2 <= gap, for each of the two.
        apart = sp.triu(alone.weights - learned.graph_.adjacency)
        assert np.sqrt((apart.data**2).sum()) <= np.sqrt(alone.gap) + np.sqrt(learned.gap_)


@pytest.mark.parametrize("size", [1, 2, MOST])
def test_sweeps_are_those_of_one_process_to_the_last_bit(crew, size):
    Z = mixture(400)
    learned = LearnedGraph(10, 3, knn="exact").fit(Z)
    parts = crew.do(size, learns, Z, {}) if size > 1 else [learn(Z)]
    assert parts[0].n_iter == learned.n_iter_
    assert_same_bits(whole(parts), learned.graph_.adjacency)
    table = pd.concat([part.to_table() for part in parts])
    assert BagGraph.from_table(table, learned.graph_.ids) == learned.graph_
    assert len(table) == learned.graph_.n_edges


def test_small_tolerances_are_reached_in_float64(crew):
    Z = mixture(100)
    exact = LearnedGraph(6, 3, tol=1e-12, precision="float64").fit(Z)
    parts = crew.do(2, learns, Z, {"n_neighbors": 6, "tol": 1e-10})
    assert parts[0].relative_gap <= 1e-10
    np.testing.assert_allclose(whole(parts).toarray(), exact.graph_.adjacency.toarray(), atol=1e-4)


@pytest.mark.parametrize("size", [2, MOST])
def test_only_what_a_sweep_needs_is_sent(crew, size):
    Z = mixture(300)
    parts = crew.do(size, learns, Z, {"n_neighbors": 5})
    for part in parts:
        start, stop = part.rows
        needed = np.unique(part.weights.indices)
        assert ((needed < start) | (needed >= stop)).sum() <= part.n_halo <= 300 - (stop - start)
    # A half sweep, sweeps in float32, a last look in float64; a gap and an objective with each but the first.
    passes, halo = parts[0].n_iter + 1, sum(part.n_halo for part in parts)
    assert sum(part.sent["solve"] for part in parts) == 4 * halo * passes + 8 * halo + 16 * size * passes
    # A pair that crosses a border is told once by each bag that listed it: a number and a distance.
    assert sum(part.sent["candidates"] for part in parts) <= 12 * 300 * 15 + (24 * 300 + 8 * size) * (size - 1)


def test_what_is_not_reached_is_told():
    with pytest.warns(BagWarning, match="distributed graph: expected a relative gap of 0.0001, got .* after 2 sweeps"):
        part = learn(mixture(100), max_sweeps=2)
    assert not part.converged
    assert part.n_iter == 2


# ---------------------------------------------------------------------- errors


def assert_all_raise(answers: list[Any], kind: type[BagError], text: str) -> None:
    for answer in answers:
        with pytest.raises(kind, match=text):
            raise answer


@pytest.mark.parametrize(
    ("theirs", "text"),
    [
        ({"n_neighbors": 4}, "the same n_neighbors in all processes, got 10 in process 0 and 4 in process 1"),
        ({"precision": "float64"}, "the same content of Z"),
        ({"Z": mixture(50, seed=1)}, r"the same content of Z \(CRC-32\) in all processes"),
        ({"Z": mixture(49)}, r"the same shape of Z in all processes, got \(50, 8\) in process 0 and \(49, 8\)"),
        ({"max_sweeps": 7}, "the same max_sweeps"),
        ({"max_sweeps": 0}, "max_sweeps a whole number from 1, got 0"),
        ({"tol": -1.0}, "learned graph: expected tol positive"),
    ],
)
def test_processes_that_disagree_all_refuse(crew, theirs, text):
    assert_all_raise(crew.do(2, disagrees, mixture(50), theirs), ParameterError, text)


def spoiled() -> np.ndarray:
    Z = mixture(50)
    Z[33, 2] = np.nan
    return Z


@pytest.mark.parametrize(
    ("Z", "kind", "text"),
    [
        (mixture(3), ParameterError, "at least one bag a process, got 3 bags for 4 processes; start fewer"),
        (spoiled(), InvalidGraphError, "NaN or infinity in row 33"),
        (mixture(50) + 1e7, InvalidGraphError, "embeddings that float32 tells apart, got some too far from the origin"),
        (np.full((20, 3), 2.5), InvalidGraphError, "embeddings that differ, got distances that are all zero"),
        (np.zeros(20), InvalidGraphError, r"one row a bag, got float64 of shape \(20,\)"),
        (np.zeros((20, 2), dtype=complex), InvalidGraphError, "a table of numbers, one row a bag, got complex128"),
    ],
)
def test_bad_embeddings_are_refused_by_all(crew, Z, kind, text):
    assert_all_raise(crew.do(MOST, learns, Z, {}), kind, text)


@pytest.mark.parametrize(("seconds", "timeout"), [(0.0, 60.0), (4.0, 1.0)], ids=["breaks", "silent"])
def test_nobody_waits_for_a_process_that_failed(crew, seconds, timeout):
    start = time.monotonic()
    answers = crew.do(MOST, loses_one, mixture(100), seconds, timeout=timeout)
    assert time.monotonic() - start < 20
    assert isinstance(answers.pop(1), MemoryError)
    assert_all_raise(answers, BagError, "distributed graph: expected an answer from all processes, got .* failed first")


# ---------------------------------------------------------------------- the command


@pytest.fixture
def embeddings(tmp_path) -> Path:
    np.save(tmp_path / "z.npy", mixture(120).astype(np.float32))
    return tmp_path / "z.npy"


def test_a_map_of_a_file_is_not_copied(embeddings):
    table = np.load(embeddings, mmap_mode="r")
    assert np.shares_memory(distributed._points(table, "float32", 1).numpy(), table)


def test_the_command_works_without_torchrun(embeddings, tmp_path, capsys):
    assert main([str(embeddings), "-o", str(tmp_path / "edges"), "-k", "5", "--tol", "1e-3", "--threads", "1"]) == 0
    learned = LearnedGraph(5, tol=1e-3).fit(np.load(embeddings))
    assert BagGraph.from_table(tmp_path / "edges/part-00000.parquet", learned.graph_.ids) == learned.graph_
    out = capsys.readouterr().out
    assert "120 of 8 dimensions, in 1 process\n" in out
    assert f"{learned.theta_:.6g}" in out
    assert f"{learned.degree_:.2f}" in out
    assert "sent a sweep" in out


def test_the_command_says_what_is_wrong(embeddings, tmp_path, capsys, monkeypatch):
    def refusal(file: Path, folder: Path, *more: str) -> str:
        assert main([str(file), "-o", str(folder), *more]) == 1
        return capsys.readouterr().err

    good = tmp_path / "edges"
    assert "expected an .npy file of one array, got none.npy (" in refusal(tmp_path / "none.npy", good)
    np.savez(tmp_path / "z.npz", a=np.zeros(3))
    assert "got z.npz (" in refusal(tmp_path / "z.npz", good)
    (tmp_path / "cut.npy").write_bytes(embeddings.read_bytes()[:200])
    assert "expected an .npy file of one array, got cut.npy (" in refusal(tmp_path / "cut.npy", good)
    assert "expected a folder to write to" in refusal(embeddings, embeddings)
    assert "n_neighbors a whole number from 1, got 0" in refusal(embeddings, good, "-k", "0")
    assert not list(good.glob("*"))
    (good / "part-00003.parquet").touch()
    assert f"expected no part in {good} yet, got part-00003.parquet" in refusal(embeddings, good)
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "expected all processes to meet, got" in refusal(embeddings, good)


def torchrun(processes: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command = [*start, "-m", "baggraph.graphs.distributed", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_torchrun_writes_the_learned_graph_in_parts(embeddings, tmp_path):
    done = torchrun(2, embeddings, "-o", tmp_path / "edges", "-k", 5)
    assert done.returncode == 0, done.stderr
    assert "120 of 8 dimensions, in 2 processes" in done.stdout
    parts = sorted((tmp_path / "edges").iterdir())
    assert [part.name for part in parts] == ["part-00000.parquet", "part-00001.parquet"]
    learned = LearnedGraph(5).fit(np.load(embeddings))
    table = pd.concat([pd.read_parquet(part) for part in parts])
    assert BagGraph.from_table(table, learned.graph_.ids) == learned.graph_


@pytest.mark.slow
def test_torchrun_fails_where_a_process_does(tmp_path):
    np.save(tmp_path / "z.npy", spoiled())
    done = torchrun(4, tmp_path / "z.npy", "-o", tmp_path / "edges")
    assert done.returncode != 0
    assert "process 0: neighbours: expected finite Z, got NaN or infinity in row 33" in done.stderr
    assert not list((tmp_path / "edges").iterdir())
