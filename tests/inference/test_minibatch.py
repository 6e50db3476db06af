"""Training by batches against training at once, killed against uninterrupted, several processes against one.

Run as a script, this file is a process to be killed, or one of several that train together.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.data.readers.npz import read_npz
from baggraph.errors import BagError, DataFileError, InvalidBagsError, InvalidGraphError, ParameterError
from baggraph.inference import _checkpoint
from baggraph.inference._batches import Reader, Schedule
from baggraph.inference._hop import thinned
from baggraph.inference.minibatch import MinibatchFit, fit_minibatch
from baggraph.inference.stack import StackFit, fit_stack
from baggraph.nn import encoders
from baggraph.nn.gcn import Propagation
from baggraph.nn.heads import Head, PassHead
from baggraph.nn.losses import BinaryCrossEntropy, CrossEntropy, SquaredError
from baggraph.nn.network import Network
from baggraph.nn.ragged import segment_mean
from baggraph.testing import strategies

ALL = 10**9  # more batches than there are


def some_bags(n: int = 24, d: int = 5) -> Bags:
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.5).astype(int)
    return Bags.from_list([rng.normal(size=(rng.integers(1, 7), d)) + label for label in y], y)


def some_graph(n: int) -> BagGraph:
    rng = np.random.default_rng(3)
    upper = np.triu((rng.random((n, n)) < 0.15) * rng.random((n, n)), 1)
    return BagGraph(upper + upper.T, [str(i) for i in range(n)])


BAGS, GRAPH = some_bags(), some_graph(24)
Y = np.array([int(v) for v in BAGS.y])
MASK = np.random.default_rng(1).random(len(BAGS)) < 0.5


class Dropped(nn.Module):
    """Dropout on instances, and on bags."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.drop = nn.Linear(BAGS.n_features, 7), nn.Dropout(0.3)

    def forward(self, instances, offsets):
        return self.drop(segment_mean(self.drop(self.layer(instances)).tanh(), offsets))


def net(name: str = "rff-pool", n_outputs: int = 1, **head: Any) -> Network:
    if name == "dropped":
        return Network(Dropped(), Head([7], n_outputs, **head))
    encoder = encoders.encoder(name, BAGS.n_features)
    return Network(encoder, PassHead() if name == "mi-net" else Head(encoder.level_widths, n_outputs, **head))


COMMON: dict[str, Any] = {"loss": BinaryCrossEntropy(), "epochs": 4, "device": "cpu", "precision": "float64"}


def fit(graph: BagGraph | None = None, name: str = "rff-pool", bags: Bags = BAGS, **options: Any) -> MinibatchFit:
    return fit_minibatch(net(name), bags, Y, MASK, graph, **COMMON | options)


def full(graph: BagGraph | None = None, name: str = "rff-pool", seed: int = 0, **options: Any) -> StackFit:
    return fit_stack(net(name), BAGS, Y, MASK[None], graph, seeds=[seed], **COMMON | options)


def assert_member(found: MinibatchFit, stack: StackFit, tolerance: float = 1e-9) -> None:
    for name in ("embedding", "outputs", "mean"):
        torch.testing.assert_close(getattr(found, name), getattr(stack, name)[0], atol=tolerance, rtol=tolerance)
    torch.testing.assert_close(found.losses, stack.losses[0], atol=1e-6, rtol=1e-6, check_dtype=False)
    for key, value in stack.parameters.items():
        torch.testing.assert_close(found.parameters[key], value[0], atol=tolerance, rtol=tolerance)


def assert_same_bits(one: MinibatchFit, other: MinibatchFit) -> None:
    for name in ("embedding", "outputs", "mean", "losses"):
        assert torch.equal(getattr(one, name), getattr(other, name))
    assert all(torch.equal(value, other.parameters[key]) for key, value in one.parameters.items())


# ---------------------------------------------------------------------- what is trained at once


@pytest.mark.parametrize("name", [*sorted(encoders.ENCODERS), "dropped"])
@pytest.mark.parametrize("wired", [False, True])
def test_one_batch_is_a_stack_of_one(name, wired):
    graph = GRAPH if wired else None
    assert_member(fit(graph, name), full(graph, name))


@pytest.mark.parametrize("name", ["rff-pool", "dropped"])
@pytest.mark.parametrize("most", [1, 8])
def test_accumulating_all_batches_is_a_stack_of_one(name, most):
    options = {"weight_decay": 1e-2, "decay": "decoupled", "clip": 0.1, "seed": 7, "lr": 1e-2}
    assert_member(fit(None, name, batch_instances=most, accumulate=ALL, **options), full(None, name, **options))


@pytest.mark.parametrize("name", ["rff-pool", "mi-net"])
def test_cached_neighbours_are_right_while_nothing_moves(name):
    """At a learning rate of 0 the cache is never stale, so that losses are those of the full graph."""
    found = fit(GRAPH, name, lr=0.0, batch_instances=8, accumulate=ALL)
    torch.testing.assert_close(found.losses, full(GRAPH, name, lr=0.0).losses[0].double(), atol=1e-7, rtol=1e-6)


def test_more_neighbours_than_there_are_is_all_of_them():
    options = {"batch_instances": 8, "accumulate": 2}
    assert_same_bits(fit(GRAPH, n_neighbors_sampled=24, **options), fit(GRAPH, **options))


def test_sparse_and_mapped_bags_are_bags(tmp_path):
    plain = fit(GRAPH, batch_instances=8)
    mapped = read_npz(BAGS.to_npz(tmp_path / "bags.npz"), memory_map=True)
    assert mapped.is_memory_mapped
    assert_same_bits(fit(GRAPH, bags=mapped, batch_instances=8), plain)
    assert_same_bits(fit(GRAPH, bags=BAGS.replace(instances=sp.csr_array(BAGS.instances)), batch_instances=8), plain)


def test_batches_learn_and_the_member_is_a_network():
    found = fit(epochs=20, batch_instances=16, precision="float32")
    assert found.losses[-1] < 0.5 * found.losses[0]
    tensors = BAGS.to_torch()
    with torch.no_grad():
        outputs = found.member()(tensors.instances.float(), tensors.offsets).outputs
    torch.testing.assert_close(outputs, found.outputs, atol=1e-6, rtol=1e-5)
    assert found.mean.shape == (len(BAGS), 1)


def test_lower_precisions_are_near():
    exact, plain, low = (fit(precision=p, batch_instances=16) for p in ("float64", "float32", "bfloat16"))
    assert (plain.outputs - exact.outputs).abs().max() < 1e-3
    assert 0 < (low.outputs - exact.outputs).abs().max() < 0.3
    assert {value.dtype for value in low.parameters.values()} == {torch.float32}


def test_soft_and_several_targets_train_too():
    classes = np.arange(len(BAGS)) % 3
    for loss, targets in ((CrossEntropy(3), classes), (SquaredError(3), np.eye(3)[classes])):
        options = COMMON | {"loss": loss}
        ours = fit_minibatch(net(n_outputs=3), BAGS, targets, MASK, batch_instances=9, accumulate=ALL, **options)
        theirs = fit_stack(net(n_outputs=3), BAGS, targets, MASK[None], seeds=[0], **options)
        assert_member(ours, theirs)


def test_targets_may_have_an_axis_of_members():
    assert_same_bits(
        fit_minibatch(net(), BAGS, Y[None, :, None], MASK, batch_instances=8, **COMMON), fit(batch_instances=8)
    )


# ---------------------------------------------------------------------- what may not matter


@pytest.mark.parametrize("graph", [None, GRAPH], ids=["alone", "wired"])
def test_hidden_labels_change_no_digit(graph):
    plain = fit(graph, batch_instances=8)
    for hidden in (np.where(MASK, Y, np.nan), np.where(MASK, Y, 1 - Y)):
        assert_same_bits(fit_minibatch(net(), BAGS, hidden, MASK, graph, batch_instances=8, **COMMON), plain)


@pytest.mark.parametrize("graph", [None, GRAPH], ids=["alone", "wired"])
def test_bags_far_from_labels_are_not_trained_on(graph):
    mask = np.arange(len(BAGS)) < 3
    near = mask if graph is None else mask | (graph.adjacency[:3].sum(0) > 0)
    assert not near.all()
    parts = [part if close else part + 5 for part, close in zip(BAGS.to_list(), near, strict=True)]
    found = [fit_minibatch(net(), b, Y, mask, graph, **COMMON) for b in (BAGS, Bags.from_list(parts, Y))]
    assert all(torch.equal(value, found[1].parameters[key]) for key, value in found[0].parameters.items())
    assert not torch.equal(found[0].embedding, found[1].embedding)


def test_the_generators_of_others_are_left_alone():
    network = net("dropped")
    before = torch.get_rng_state()
    fit_minibatch(network, BAGS, Y, MASK, GRAPH, batch_instances=8, **COMMON)
    assert torch.equal(torch.get_rng_state(), before)


# ---------------------------------------------------------------------- batches, reading, sampling


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.integers(1, 20), st.integers(1, 5), st.data())
def test_batches_hold_whole_bags_within_the_budget(sizes, most, accumulate, data):
    sizes = np.array(sizes)
    bags = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes))))
    schedule = Schedule(bags, sizes, 3, most, accumulate)
    batches = schedule.batches(5)
    assert sorted(bag for batch in batches for bag in batch) == bags.tolist()
    for batch in batches:
        assert sizes[batch].sum() <= most or len(batch) == 1
    for batch, after in pairwise(batches):
        assert sizes[batch].sum() + sizes[after[0]] > most
    again = Schedule(bags, sizes, 3, most, accumulate).steps(5)
    assert [b.tolist() for step in again for b in step.batches] == [b.tolist() for b in batches]
    assert [step.ends_epoch for step in again] == [False] * (len(again) - 1) + [True] * bool(len(again))
    later = [(s.epoch, s.position) for s in schedule.steps_from(5, 1, 7)]
    assert later == [(s.epoch, s.position) for e in (5, 6) for s in schedule.steps(e)][min(1, len(again)) :]


def test_epochs_and_seeds_have_orders_of_their_own():
    orders = [
        np.concatenate(Schedule(np.arange(50), np.ones(50, int), seed, 7, 1).batches(epoch)).tolist()
        for seed in (0, 1)
        for epoch in (0, 1)
    ]
    assert len({tuple(order) for order in orders}) == 4
    assert orders[0][:5] == [11, 3, 20, 13, 2]  # on every machine


@settings(max_examples=30, deadline=None)
@given(strategies.bags(), st.integers(1, 9))
def test_what_is_read_are_the_bags(bags, most):
    reader = Reader(bags, most, torch.float64, torch.device("cpu"))
    batches = Schedule(np.arange(len(bags)), bags.sizes, 0, most, 1).batches(0)
    for batch, loaded in zip(batches, reader.read(batches), strict=True):
        taken = bags.take(batch)
        dense = taken.instances.toarray() if bags.is_sparse else taken.instances
        assert np.array_equal(loaded.instances.numpy(), dense)
        assert loaded.offsets.tolist() == taken.offsets.tolist()
        assert loaded.bags.tolist() == batch.tolist()
        assert [bags.id_of_row(row) for row in loaded.rows.tolist()] == np.repeat(taken.ids, taken.sizes).tolist()


def test_pages_of_a_map_are_handed_back(tmp_path):
    block = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (1 << 16, 128))
    bags = Bags(np.load(tmp_path / "x.npy", mmap_mode="r"), np.arange(0, len(block) + 1, 1 << 10))
    reader = Reader(bags, 1 << 13, torch.float32, torch.device("cpu"))
    batches = Schedule(np.arange(len(bags)), bags.sizes, 0, 1 << 13, 1).batches(0)
    for loaded in reader.read(batches):
        assert len(loaded.instances) == 1 << 13
    assert resident_kilobytes(tmp_path / "x.npy", block) < block.nbytes / 1024 / 16


def resident_kilobytes(path: Path, writable: np.memmap) -> int:
    del writable
    if not Path("/proc/self/smaps").exists():
        return 0  # only Linux tells
    lines = Path("/proc/self/smaps").read_text().split("\n")
    places = [i for i, line in enumerate(lines) if line.endswith(str(path)) and " r--s " in line]
    assert places
    return sum(int(next(s for s in lines[i:] if s.startswith("Rss:")).split()[1]) for i in places)


def test_sampled_neighbours_are_right_on_average():
    whole = Propagation.of(GRAPH, dtype=torch.float64)
    matrix = sp.csr_array((whole.weights.numpy(), whole.columns.numpy(), whole.offsets.numpy()))
    bags = np.flatnonzero(MASK)
    rows = matrix[bags]
    draws = [thinned(rows, bags, 2, np.random.PCG64(seed)).toarray() for seed in range(4000)]
    expected = rows.toarray()
    error = np.std(draws, axis=0) / np.sqrt(len(draws))
    assert (np.abs(np.mean(draws, axis=0) - expected) <= 5 * error + 1e-12).all()
    counts = np.count_nonzero(draws[0], axis=1)
    assert counts.tolist() == np.minimum(np.count_nonzero(expected, axis=1), 3).tolist()
    assert all((draw[np.arange(len(bags)), bags] == expected[np.arange(len(bags)), bags]).all() for draw in draws[:9])
    sampled, other = (fit(GRAPH, n_neighbors_sampled=1, batch_instances=8, seed=seed) for seed in (0, 0))
    assert_same_bits(sampled, other)
    assert not torch.equal(sampled.outputs, fit(GRAPH, batch_instances=8).outputs)


# ---------------------------------------------------------------------- killed and resumed

LONG: dict[str, Any] = {
    "batch_instances": 8,
    "accumulate": 2,
    "clip": 1.0,
    "weight_decay": 1e-3,
    "checkpoint_every": 3,
    "epochs": 3,
}
SAMPLED = LONG | {"n_neighbors_sampled": 2}


class Killed(Exception):
    pass


def killed_at(batch: int):
    def progress(done: int, total: int) -> None:
        if done == batch:
            raise Killed

    return progress


@pytest.mark.parametrize("graph", [None, GRAPH], ids=["alone", "wired"])
def test_resumed_is_uninterrupted(graph, tmp_path):
    told: list[tuple[int, int]] = []
    options = LONG if graph is None else SAMPLED
    whole = fit(graph, **options, progress=lambda done, total: told.append((done, total)))
    total = told[-1][1]
    assert [done for done, _ in told] == list(range(1, total + 1))
    for point in range(1, total, 5):
        folder = tmp_path / str(point)
        with pytest.raises(Killed):
            fit(graph, **options, checkpoint=folder, progress=killed_at(point))
        begun = (folder / "checkpoint.json").exists()
        told.clear()
        resumed = fit(graph, **options, checkpoint=folder, progress=lambda done, total: told.append((done, total)))
        assert_same_bits(resumed, whole)
        assert told[-1] == (total, total)
        assert (told[0][0] > 1) == begun
        assert len(list(folder.iterdir())) == 2
    told.clear()
    assert_same_bits(fit(graph, **options, checkpoint=folder, progress=lambda done, _: told.append((done, 0))), whole)
    assert len(told) < 20 < total  # trained already: bags are only embedded


def test_killed_for_good_and_resumed(tmp_path):
    whole = fit(GRAPH, **SAMPLED)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    for n_batches in (25, 9):
        with subprocess.Popen([sys.executable, __file__, "die", str(tmp_path)], **pipes) as process:
            for _ in range(n_batches):
                assert process.stdout.readline()
                process.stdin.write(b"\n")
                process.stdin.flush()
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        assert (tmp_path / "checkpoint.json").exists()
    assert_same_bits(fit(GRAPH, **SAMPLED, checkpoint=tmp_path), whole)


def waits(done: int, total: int) -> None:
    print(done, flush=True)
    sys.stdin.readline()


@pytest.mark.parametrize("call", [0, 1, 2, 3])
@pytest.mark.parametrize("moved", [False, True])
def test_killed_while_the_state_is_written(call, moved, tmp_path, monkeypatch):
    whole, calls, settle = fit(**LONG), [], _checkpoint._settle

    def interrupted(draft: Path, path: Path) -> None:
        calls.append(path)
        if len(calls) - 1 < call or moved:
            settle(draft, path)
        if len(calls) - 1 == call:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(_checkpoint, "_settle", interrupted)
        with pytest.raises(Killed):
            fit(**LONG, checkpoint=tmp_path)
    assert_same_bits(fit(**LONG, checkpoint=tmp_path), whole)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.fixture
def state(tmp_path) -> Path:
    with pytest.raises(Killed):
        fit(GRAPH, **SAMPLED, checkpoint=tmp_path / "state", progress=killed_at(30))
    return tmp_path / "state"


def assert_refused(folder: Path, kind: type[BagError], text: str, **options: Any) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(kind) as caught:
        fit(GRAPH, **SAMPLED | options, checkpoint=folder)
    assert text in str(caught.value)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_other_arguments_are_refused_by_name(state):
    assert_refused(state, ParameterError, "expected lr=0.001", lr=0.01)
    assert_refused(state, ParameterError, "expected seed=0", seed=1)
    assert_refused(state, ParameterError, "expected accumulate=2", accumulate=3)
    assert_refused(state, ParameterError, "expected bags=", bags=Bags.from_list([p + 1 for p in BAGS.to_list()], Y))
    assert_refused(state, ParameterError, "expected network=", name="deep-sets")
    fit(GRAPH, **SAMPLED | {"checkpoint_every": 50}, checkpoint=state)  # how often it is written may change


def test_damaged_files_are_refused(state):
    (tensors,) = state.glob("*.safetensors")
    note, whole = state / "checkpoint.json", tensors.read_bytes()
    for broken in (whole[:-10], whole[:-1] + bytes([whole[-1] ^ 1])):
        tensors.write_bytes(broken)
        assert_refused(state, DataFileError, "got one that is missing, truncated or altered")
    tensors.write_bytes(whole)
    text = note.read_text()
    for other in (text[:-9], text.replace('"position": ', '"position": 1'), "[1]", json.dumps({"check": ""})):
        note.write_text(other)
        assert_refused(state, DataFileError, "checkpoint.json as it was written")


def test_a_folder_that_is_none_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataFileError, match=r"checkpoint: expected a folder to write to, got .*file"):
        fit(checkpoint=tmp_path / "file", progress=killed_at(1))


def test_a_loss_that_is_no_number_stops_and_names_the_last_state(tmp_path):
    targets = np.where(Y == 0, -1.0, 1.0)
    options = COMMON | {"loss": SquaredError(), "precision": "float32", "lr": 1e18, "checkpoint_every": 1}
    with pytest.raises(BagError, match=r"expected a finite loss, got .* there is no checkpoint"):
        fit_minibatch(net(), BAGS, targets, MASK, batch_instances=8, **options)
    with pytest.raises(BagError, match=rf"lower lr, or set clip; .* after \d+ steps, is in {tmp_path}"):
        fit_minibatch(net(), BAGS, targets, MASK, batch_instances=8, checkpoint=tmp_path, **options)


# ---------------------------------------------------------------------- several processes


@pytest.mark.parametrize("wired", [False, True])
def test_two_processes_are_one(wired, tmp_path):
    alone = fit(GRAPH, **SAMPLED) if wired else fit(**LONG)
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, __file__, "share", str(tmp_path), str(int(wired))]
    done = subprocess.run(command, env=environment, timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        values, files = pickle.loads((tmp_path / f"{rank}.pickle").read_bytes())
        for key, value in values.items():
            torch.testing.assert_close(value, alone.parameters[key], atol=1e-10, rtol=1e-8)
        assert files == (2 if rank == 0 else 0)


def trains_beside_another(folder: Path, graph: BagGraph | None) -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    options = (LONG if graph is None else SAMPLED) | {"checkpoint": folder / f"state of {rank}"}
    with pytest.raises(ParameterError, match="at least one batch of a step for every process"):
        fit(graph, **options | {"accumulate": 1})
    with pytest.raises(ParameterError, match=r"the same lr in all processes, got 0\.0 in process 0 and 1\.0"):
        fit(graph, **options | {"lr": float(rank)})
    with pytest.raises(Killed):  # both at once, and both take it up where the first left it
        fit(graph, **options, progress=killed_at(30))
    found = fit(graph, **options)
    n_files = len(list((folder / f"state of {rank}").glob("*")))
    (folder / f"{rank}.pickle").write_bytes(pickle.dumps((found.parameters, n_files)))
    dist.destroy_process_group()


# ---------------------------------------------------------------------- errors


def test_many_processes_without_a_group_are_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ParameterError, match=r"got 2 processes without one; call torch.distributed.init_process_group"):
        fit()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"mask": MASK[:3]}, "a mask of shape (24,), got shape (3,)"),
        (
            {"mask": np.where(np.arange(24) == 5, np.nan, 1.0)},
            "a mask that is finite and not negative, got nan (bag '5')",
        ),
        ({"mask": -1.0 * MASK}, "not negative, got -1.0"),
        ({"mask": np.zeros(24)}, "a labelled bag, got a mask of zeros"),
        ({"targets": np.where(np.arange(24) == 7, np.nan, Y), "mask": np.ones(24)}, "NaN or infinity (bag '7')"),
        ({"targets": Y[:5]}, "targets of shape (24, 1), got shape (5, 1)"),
        ({"graph": some_graph(5)}, "a graph over 24 bags, got one over 5"),
        ({"graph": GRAPH.take(np.arange(24)[::-1])}, "a graph of these bags in their order, got bag '23'"),
        ({"batch_instances": 0}, "batch_instances a whole number from 1, got 0"),
        ({"accumulate": 1.5}, "accumulate a whole number from 1, got 1.5"),
        ({"checkpoint_every": 0}, "checkpoint_every a whole number from 1, got 0"),
        ({"graph": GRAPH, "n_neighbors_sampled": 0}, "n_neighbors_sampled a whole number from 1, got 0"),
        ({"n_neighbors_sampled": 3}, "a graph to sample neighbours from, got none"),
        ({"seed": -1}, "a seed, an integer from 0, got seed=-1"),
        ({"lr": -1.0}, "lr from 0"),
        ({"decay": "l1"}, "got 'l1'"),
        ({"epochs": 0}, "epochs a whole number from 1, got 0"),
        ({"graph": GRAPH, "network": net(hidden=(9,))}, "a head of one graph convolution"),
    ],
)
def test_errors(change, text):
    given = {"network": net(), "targets": Y, "mask": MASK, "graph": None} | COMMON | change
    network, targets, mask, graph = (given.pop(name) for name in ("network", "targets", "mask", "graph"))
    with pytest.raises((ParameterError, InvalidBagsError, InvalidGraphError)) as caught:
        fit_minibatch(network, BAGS, targets, mask, graph, **given)
    assert text in str(caught.value)


def test_a_head_with_hidden_layers_needs_no_refusal_without_a_graph():
    found = fit_minibatch(net(hidden=(9,)), BAGS, Y, MASK, **COMMON)
    assert_member(found, fit_stack(net(hidden=(9,)), BAGS, Y, MASK[None], seeds=[0], **COMMON))


def test_a_head_that_looks_beside_the_graph_is_refused():
    class Residual(nn.Module):
        def forward(self, embedding, graph=None):
            return (embedding if graph is None else embedding + graph.mix(embedding)[:1]).unsqueeze(0)

    network = Network(encoders.encoder("mi-net", BAGS.n_features), Residual())
    with pytest.raises(ParameterError, match="a head that gives a row a bag, got"):
        fit_minibatch(network, BAGS, Y, MASK, GRAPH, batch_instances=8, **COMMON)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1] == "die":
        fit(GRAPH, **SAMPLED, checkpoint=sys.argv[2], progress=waits)
    else:
        trains_beside_another(Path(sys.argv[2]), GRAPH if int(sys.argv[3]) else None)
