"""The learned graph in several processes, each of which owns a range of the bags.

``torchrun --nproc-per-node 4 -m baggraph.graphs.distributed embeddings.npy -o edges/ -k 10 -r 3 --tol 1e-4``

A process searches the neighbours of its own bags, holds their rows of candidates, and sweeps over these.  In every
sweep it gets the potentials of the bags of others that its rows point to, and everyone's share of the duality gap.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from baggraph.data._graph_tables import write_parquet
from baggraph.errors import BagError, BagWarning, DataFileError, InvalidGraphError, ParameterError
from baggraph.graphs._halo import Ranges
from baggraph.graphs._problem import blurred
from baggraph.graphs._shared_problem import pose_part, solve_part
from baggraph.graphs._team import Team
from baggraph.graphs._weights import weights
from baggraph.graphs.learned import LearnedGraph, _Clock, _whole
from baggraph.graphs.neighbors import nearest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Part", "learn", "main"]


@dataclass(frozen=True, eq=False)
class Part:
    """What one process holds of the learned graph.

    Parameters
    ----------
    rows
        Own bags are ``range(*rows)``.
    weights : (n_own, n) CSR
        Complete rows of the adjacency.
    dual : (n_own,) array
        Potentials, as in ``LearnedGraph.dual_``.
    theta, gap, relative_gap, converged, n_iter
        Of the whole graph: theta; duality gap; the same over the objective; whether that is at most the tolerance;
        sweeps.
    n_halo
        Number of bags of other processes whose potentials the own rows need.
    timings, sent
        Seconds, and bytes that this process sent, by phase.

    """

    rows: tuple[int, int]
    weights: sp.csr_array
    dual: NDArray[np.float64]
    theta: float
    gap: float
    relative_gap: float
    converged: bool
    n_iter: int
    n_halo: int
    timings: dict[str, float]
    sent: dict[str, int]

    def to_table(self) -> pd.DataFrame:
        """Edges from own bags to later ones, by their numbers: the parts together have every edge once."""
        import pandas as pd

        entries = self.weights.tocoo()
        source, target = entries.coords[0] + self.rows[0], entries.coords[1]
        later = source < target
        return pd.DataFrame({"source": source[later], "target": target[later], "weight": entries.data[later]})


def learn(
    Z: Any,
    n_neighbors: int = 10,
    candidate_ratio: int = 3,
    *,
    tol: float = 1e-4,
    max_sweeps: int = 500,
    precision: str = "float32",
    n_threads: int | None = None,
) -> Part:
    """Learn own rows of the graph of embeddings Z (n, d); all processes of a gloo group call this with the same Z.

    The problem is that of :class:`LearnedGraph` with exact neighbours.  The number of processes does not change theta
    or any step; only the sum of the gap, by which all stop, is rounded differently.  Without a group one process does
    all.

    >>> part = learn(np.random.default_rng(0).normal(size=(50, 3)), n_neighbors=4)
    >>> part.rows, part.weights.shape, part.relative_gap < 1e-4
    ((0, 50), (50, 50), True)
    """
    team = Team()
    ledger = _Ledger(team)
    options = {"n_neighbors": n_neighbors, "candidate_ratio": candidate_ratio, "tol": tol, "precision": precision}
    team.together(lambda: _validate(options, max_sweeps, n_threads))
    points = team.together(lambda: _points(Z, precision, team.size))
    content = {"shape of Z": tuple(points.shape), "content of Z (CRC-32)": zlib.crc32(points.numpy().data)}
    team.refuse_disagreement({**content, **options, "max_sweeps": max_sweeps})
    ranges = Ranges.even(team, len(points))
    ledger.close("check")
    with _threads(n_threads):
        n_listed = n_neighbors * candidate_ratio
        width = max(n_listed, n_neighbors + 1)  # theta looks at the neighbour after the k-th
        found = team.together(lambda: nearest(points, width, rows=ranges.own, method="exact"))
        ledger.close("neighbours")
        problem, halo = pose_part(ranges, found, n_neighbors, n_listed)
        ledger.close("candidates")
        potential, gap, distance, n_iter = solve_part(problem, halo, tol, max_sweeps)
        ledger.close("solve")
        table = halo.globalised(weights(problem, halo.extended(potential)))
        ledger.close("graph")
    if distance > tol and team.rank == 0:
        got = f"{distance:.2g} after {n_iter} sweeps"
        text = f"distributed graph: expected a relative gap of {tol:g}, got {got}; raise max_sweeps or tol"
        warnings.warn(text, BagWarning, stacklevel=2)
    theta, dual, done = float(problem.theta[0]), potential.numpy(), distance <= tol
    facts = (len(halo.foreign), ledger.clock.laps, ledger.sent)
    return Part(ranges.own, table, dual, theta, gap, distance, done, n_iter, *facts)


class _Ledger:
    """Seconds and bytes sent of every phase."""

    def __init__(self, team: Team) -> None:
        self.team, self.clock, self.sent = team, _Clock(None), dict[str, int]()

    def close(self, phase: str) -> None:
        self.clock.lap(phase)
        self.sent[phase] = self.team.sent - sum(self.sent.values())


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _validate(options: dict[str, Any], max_sweeps: int, n_threads: int | None) -> None:
    LearnedGraph(**options)._validate()
    for name, value in (("max_sweeps", max_sweeps), ("n_threads", 1 if n_threads is None else n_threads)):
        if not _whole(value):
            raise _parameter(f"{name} a whole number from 1", repr(value), "change it")


def _points(Z: Any, precision: str, n_processes: int) -> Tensor:
    """Z as a tensor; a map of a file stays one where its numbers are of this precision."""
    table = np.asarray(Z)
    if table.ndim != 2 or table.dtype.kind not in "biuf":
        got = f"{table.dtype} of shape {table.shape}"
        raise InvalidGraphError(
            "distributed graph", expected="a table of numbers, one row a bag", got=got, remedy="stack the embeddings"
        )
    if len(table) < n_processes:
        got = f"{len(table)} bags for {n_processes} processes"
        raise _parameter("at least one bag a process", got, "start fewer processes")
    with warnings.catch_warnings(), np.errstate(over="ignore"):  # what overflows is found as infinite
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # and nobody writes
        points = torch.from_numpy(np.ascontiguousarray(table, dtype=precision))
        if precision == "float32" and table.dtype in (np.float32, np.float64) and blurred(torch.from_numpy(table)):
            raise InvalidGraphError(
                "distributed graph",
                expected="embeddings that float32 tells apart",
                got="some too far from the origin, too small or too large",
                remedy="subtract the mean and rescale, or pass precision='float64'",
            )
    return points


# ---------------------------------------------------------------------- the command


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn the graph of a file, write own edges, and print a summary; see ``--help``."""
    options = _parser().parse_args(arguments)
    try:
        with _group(options.timeout):
            _run(options)
    except BagError as error:
        sys.stderr.write(f"process {os.environ.get('RANK', 0)}: {error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m baggraph.graphs.distributed",
        description="Learn the graph between bags in all processes that torchrun started, or in this one.",
    )
    add = parser.add_argument
    add("embeddings", type=Path, help="array of one row a bag (.npy); float32 is read where it lies, not copied")
    add("-o", "--output", type=Path, required=True, help="folder of the edges, to hold part-00000.parquet and so on")
    add("-k", "--n-neighbors", type=int, default=10, help="neighbours that a bag is to keep")
    add("-r", "--candidate-ratio", type=int, default=3, help="candidates a neighbour")
    add("--tol", type=float, default=1e-4, help="largest relative duality gap")
    add("--max-sweeps", type=int, default=500, help="sweeps after which to stop in any case")
    add("--threads", type=int, help="threads of a process")
    add("--timeout", type=float, default=1800, help="seconds for which a process waits for the others")
    return parser


@contextmanager
def _group(timeout: float) -> Iterator[None]:
    """The group that torchrun describes in the environment; none without."""
    if "WORLD_SIZE" not in os.environ:
        yield
        return
    try:
        dist.init_process_group("gloo", timeout=timedelta(seconds=timeout))
    except (RuntimeError, ValueError) as error:
        raise _parameter("all processes to meet", str(error).split("\n", 1)[0], "start them by torchrun") from error
    try:
        yield
    finally:
        dist.destroy_process_group()


def _run(options: argparse.Namespace) -> None:
    team = Team()
    Z = team.together(lambda: _mapped(options.embeddings))
    team.together(lambda: _make_empty(options.output))
    given = {"tol": options.tol, "max_sweeps": options.max_sweeps, "n_threads": options.threads}
    part = learn(Z, options.n_neighbors, options.candidate_ratio, **given)
    target = options.output / f"part-{team.rank:05d}.parquet"
    clock = _Clock(None)
    team.together(lambda: write_parquet(part.to_table(), target))
    clock.lap("write")
    facts = (part.n_halo, part.weights.nnz, part.sent, part.timings | clock.laps)
    everyone = team.share(facts)
    if team.rank == 0:
        sys.stdout.write(_summary(options, part, Z.shape, everyone))


def _mapped(path: Path) -> NDArray[Any]:
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError, EOFError) as error:
        got = f"{path.name} ({error})"
        remedy = "save the array by numpy.save"
        raise DataFileError(
            "distributed graph", expected="an .npy file of one array", got=got, remedy=remedy
        ) from error


def _make_empty(folder: Path) -> None:
    """Parts of an earlier run with more processes would pass for parts of this graph."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _parameter("a folder to write to", str(error), "choose another") from error
    old = sorted(path.name for path in folder.glob("part-*.parquet"))
    if old:
        raise _parameter(f"no part in {folder} yet", f"{old[0]}", "remove old parts or choose another folder")


def _summary(options: argparse.Namespace, part: Part, shape: tuple[int, ...], everyone: list[Any]) -> str:
    halo, entries, sent, timings = zip(*everyone, strict=True)
    share = f"{part.gap:.3g}, {part.relative_gap:.2g} of the objective"
    a_sweep = 4 * sum(halo) + 16 * len(halo)  # potentials in float32; gap and objective
    lines = {
        "bags": f"{shape[0]:,} of {shape[1]} dimensions, in {len(halo)} process" + "es" * (len(halo) > 1),
        "k, r": f"{options.n_neighbors}, {options.candidate_ratio}",
        "theta": f"{part.theta:.6g}",
        "gap": share + ("" if part.converged else " (not reached)"),
        "sweeps": f"{part.n_iter}",
        "mean degree": f"{sum(entries) / shape[0]:.2f}",
        "halo": f"{sum(halo):,} bags, at most {max(halo):,} in a process",
        "sent once": f"{sum(s['candidates'] for s in sent):,} bytes",
        "sent a sweep": f"{a_sweep:,} bytes",
        **{phase: f"{max(t[phase] for t in timings):.2f} s" for phase in timings[0]},
    }
    return "".join(f"{name:<14}{value}\n" for name, value in lines.items())


def _parameter(expected: str, got: str, remedy: str) -> ParameterError:
    return ParameterError("distributed graph", expected=expected, got=got, remedy=remedy)


if __name__ == "__main__":
    sys.exit(main())
