"""Operations within bags against loops, finite differences, each other, and what must be refused."""

from __future__ import annotations

import gc
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from baggraph.errors import InvalidBagsError, ParameterError
from baggraph.nn import _kernels, _layout, _padding, ragged
from baggraph.nn._segments import BagMap, Max

PROPERTY = settings(max_examples=30, deadline=None)
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
# What each says of one bag (n, ...), in torch's own words.
LOOPS = {
    "segment_sum": lambda v: v.sum(0),
    "segment_mean": lambda v: v.mean(0),
    "segment_max": lambda v: v.amax(0),
    "segment_logsumexp": lambda v: v.logsumexp(0),
    "segment_std": lambda v: v.std(0, correction=0),
    "segment_softmax": lambda v: v.softmax(0),
    "spread": None,
}


def offsets_of(sizes, device="cpu"):
    return torch.tensor([0, *sizes], device=device).cumsum(0)


def loop(name, values, sizes):
    if name == "spread":
        return torch.cat([values[b : b + 1].expand(size, *values.shape[1:]) for b, size in enumerate(sizes)])
    found = [LOOPS[name](part) for part in values.split(sizes)]
    return torch.cat(found) if name == "segment_softmax" else torch.stack(found)


def rows(name, sizes):
    return len(sizes) if name == "spread" else sum(sizes)


def made(*shape, seed=0, dtype=torch.float64, device="cpu"):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(device, dtype)


some_sizes = st.lists(st.integers(1, 30), min_size=1, max_size=8)


def test_every_operation_is_tested():
    assert set(LOOPS) == set(ragged.__all__)


@pytest.mark.parametrize("name", LOOPS)
@PROPERTY
@given(sizes=some_sizes, shape=st.sampled_from([(), (1,), (3,), (2, 2)]), seed=st.integers(0, 99))
def test_as_a_loop_over_bags(name, sizes, shape, seed):
    values = made(rows(name, sizes), *shape, seed=seed)
    found = getattr(ragged, name)(values, offsets_of(sizes))
    torch.testing.assert_close(found, loop(name, values, sizes))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", LOOPS)
def test_gradients_by_finite_differences(name, device):
    operation, sizes = getattr(ragged, name), [3, 1, 5, 9]
    offsets = offsets_of(sizes, device)
    values = made(rows(name, sizes), 3, device=device).requires_grad_()
    assert torch.autograd.gradcheck(lambda v: operation(v, offsets), values)
    assert torch.autograd.gradgradcheck(lambda v: operation(v, offsets), values)
    stacked = made(2, rows(name, sizes), 3, device=device).requires_grad_()
    assert torch.autograd.gradcheck(torch.vmap(lambda v: operation(v, offsets)), stacked)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_members_of_a_stack_are_as_alone(name, dim, device):
    operation, sizes = getattr(ragged, name), [3, 1, 5]
    offsets = offsets_of(sizes, device)
    members = made(4, rows(name, sizes), 3, device=device).requires_grad_()
    stacked = members.movedim(0, dim).contiguous()
    found = torch.vmap(lambda v: operation(v, offsets), in_dims=dim)(stacked)
    expected = torch.stack([operation(v, offsets) for v in members])
    torch.testing.assert_close(found, expected)
    weights = made(*expected.shape, seed=1, device=device)
    ours, theirs = (torch.autograd.grad((out * weights).sum(), members)[0] for out in (found, expected))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("name", LOOPS)
def test_gradients_inside_vmap_and_members_within_members(name):
    operation, sizes = getattr(ragged, name), [3, 1, 5]
    offsets, members = offsets_of(sizes), made(2, 2, rows(name, sizes), 3)
    squared = torch.func.grad(lambda v: operation(v, offsets).square().sum())
    found = torch.vmap(torch.vmap(squared))(members)
    torch.testing.assert_close(found[1, 0], squared(members[1, 0]))


def test_a_stack_is_one_operation(monkeypatch):
    shapes = []
    plain = _kernels.maxima
    monkeypatch.setattr(_kernels, "maxima", lambda values, layout: shapes.append(values.shape) or plain(values, layout))
    torch.vmap(lambda v: ragged.segment_max(v, offsets_of([2, 3])))(made(7, 5, 4))
    assert shapes == [(7, 5, 4)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", LOOPS)
def test_half_precision_is_accumulated_in_float32(name, device):
    sizes = [1000, 1, 300]
    values = made(rows(name, sizes), 2, dtype=torch.bfloat16, device=device) + 1
    found = getattr(ragged, name)(values, offsets_of(sizes, device))
    assert found.dtype == torch.bfloat16
    # One rounding of the result, and one of an intermediate mean: 2^-8 each.
    torch.testing.assert_close(found.double(), loop(name, values.double(), sizes), rtol=2**-7, atol=1e-6)


def test_the_first_of_equals_takes_the_gradient():
    values = torch.tensor([1.0, 2.0, 2.0, 0.0, 0.0]).requires_grad_()
    ragged.segment_max(values, offsets_of([3, 2])).sum().backward()
    assert values.grad.tolist() == [0, 1, 0, 1, 0]


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_not_finite(device):
    inf, nan = torch.inf, torch.nan
    values = torch.tensor([-inf, -inf, 1.0, nan, inf, 2.0], device=device).requires_grad_()
    offsets = offsets_of([2, 2, 2], device)
    top = ragged.segment_max(values, offsets)
    torch.testing.assert_close(top.detach().cpu(), torch.tensor([-inf, nan, inf]), equal_nan=True)
    top.sum().backward()
    assert values.grad.isfinite().all()
    assert values.grad[:2].tolist() == [1, 0]
    assert values.grad[4:].tolist() == [1, 0]
    assert ragged.segment_logsumexp(values, offsets)[0] == -inf


def test_no_spread_has_no_gradient():
    values = torch.tensor([4.0, 1.0, 1.0, 3.0, 5.0]).requires_grad_()
    out = ragged.segment_std(values, offsets_of([1, 2, 2]))
    assert out.tolist() == [0, 0, 1]
    out.sum().backward()
    assert values.grad.tolist() == [0, 0, 0, -0.5, 0.5]


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        (torch.tensor([0, 2, 4]), "expected 4 rows, one for each of the instances"),
        (torch.tensor([0, 3, 3, 5]), "got size 0 for bag 1"),
        (torch.tensor([0, 4, 3, 5]), "got size -1 for bag 1"),
        (torch.tensor([1, 3, 5]), "a first offset of 1"),
        (torch.tensor([0, 5], dtype=torch.int32), "got int32"),
        (torch.tensor([[0, 5]]), "shape (1, 2)"),
        (torch.tensor([0]), "shape (1,)"),
    ],
)
def test_wrong_offsets_are_refused(offsets, message):
    for _ in range(2):  # the second time from memory
        with pytest.raises(InvalidBagsError) as error:
            ragged.segment_sum(torch.ones(5), offsets)
        assert message in str(error.value)


def test_wrong_values_are_refused():
    offsets = torch.tensor([0, 2, 5])
    with pytest.raises(InvalidBagsError, match="2 rows, one for each of the bags"):
        ragged.spread(torch.ones(5), offsets)
    with pytest.raises(ParameterError, match="floating-point values, got int64"):
        ragged.segment_sum(torch.ones(5, dtype=torch.int64), offsets)
    with pytest.raises(ParameterError, match="one device"):
        ragged.segment_sum(torch.ones(5, device="meta"), offsets)
    with pytest.raises(ParameterError, match="offsets under vmap"):
        torch.vmap(ragged.segment_sum)(torch.ones(2, 5), offsets.expand(2, 3))


def test_offsets_are_measured_once_and_forgotten_with_them():
    gc.collect()
    offsets, before = torch.tensor([0, 2, 5]), len(_layout._known)
    layout = _layout.layout_of(offsets)
    assert _layout.layout_of(offsets) is layout
    offsets[1] = 1  # written over: another layout
    assert _layout.layout_of(offsets).sizes.tolist() == [1, 4]
    assert len(_layout._known) == before + 1
    del offsets
    gc.collect()
    assert len(_layout._known) == before


@PROPERTY
@given(sizes=st.lists(st.integers(1, 3000), min_size=1, max_size=8))
def test_padding_wastes_less_than_a_quarter(sizes):
    padding = _padding.Padding.of(offsets_of(sizes))
    assert len(padding.take) < 1.25 * sum(sizes)
    assert sum(bags for bags, _ in padding.blocks) == len(sizes)
    assert len(padding.blocks) <= 8 + 4 * max(0, (max(sizes) - 1).bit_length() - 3)
    lengths = [length for bags, length in padding.blocks for _ in range(bags)]
    assert all(sizes[bag] <= length for bag, length in zip(padding.order, lengths, strict=True))


@PROPERTY
@given(sizes=some_sizes)
def test_padding_and_back(sizes):
    layout = _layout.layout_of(offsets := offsets_of(sizes))
    values = made(2, sum(sizes), 3)
    padded = BagMap.apply(values, layout, "pad")
    assert torch.equal(BagMap.apply(padded, layout, "unpad"), values)
    assert not padded[:, layout.padding.bias == -torch.inf].any()
    start, first = 0, offsets[:-1]
    for bag, length in zip(layout.padding.order, [n for b, n in layout.padding.blocks for _ in range(b)], strict=True):
        own = values[:, first[bag] : first[bag] + sizes[bag]]
        assert torch.equal(padded[:, start : start + sizes[bag]], own)
        start += length


def test_gradients_of_padding():
    layout = _layout.layout_of(offsets_of([9, 1, 10, 17]))
    for name, count in (("pad", 37), ("unpad", len(layout.padding.take))):
        values = made(1, count, 2).requires_grad_()
        assert torch.autograd.gradcheck(lambda v, name=name: BagMap.apply(v, layout, name), values)


@PROPERTY
@given(sizes=some_sizes, members=st.integers(1, 3))
def test_by_segments_as_by_index(sizes, members):
    """What stands in on a GPU without Triton, tried where it runs as well."""
    layout, values = _layout.layout_of(offsets_of(sizes)), made(members, sum(sizes), 3)
    for how in ("sum", "max"):
        torch.testing.assert_close(_kernels._by_segments(values, layout, how), _kernels._by_index(values, layout, how))


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
def test_kernels_without_a_gpu():
    """In a process of its own: Triton decides when it is first imported whether it interprets."""
    script = Path(__file__).with_name("interpreted_kernels.py")
    done = subprocess.run(
        [sys.executable, str(script)], env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("members", "width"), [(1, 1), (3, 5), (5, 256)])
def test_gpu_as_cpu(dtype, members, width):
    sizes = [1044, 1, 3, 70, 12, 500]
    values, offsets = made(members, sum(sizes), width, dtype=dtype), offsets_of(sizes)
    results = []
    for device in ("cpu", "cuda"):
        v, there = values.detach().to(device, copy=True).requires_grad_(), offsets.to(device)
        layout = _layout.layout_of(there)
        top, winners = Max.apply(v, layout)
        total = BagMap.apply(v, layout, "sum") + BagMap.apply(v, layout, "mean")
        (top * 2 + total).sum().backward()
        results.append([part.detach().cpu().double() for part in (top, winners, total, v.grad)])
    close = {"rtol": 2**-7, "atol": 1e-4} if dtype == torch.bfloat16 else {"rtol": 1e-5, "atol": 1e-4}
    for cpu, gpu in zip(*results, strict=True):
        torch.testing.assert_close(gpu, cpu, **close)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_captured_in_a_gpu_graph():
    offsets = offsets_of([5, 1, 30], "cuda")
    values = made(3, 36, 8, device="cuda", dtype=torch.float32).requires_grad_()

    def step():
        out = torch.vmap(lambda v: ragged.segment_max(v, offsets) + ragged.segment_softmax(v, offsets)[:3])(values)
        return torch.autograd.grad(out.square().sum(), values)[0]

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        expected = step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = step()
    graph.replay()
    assert torch.equal(found, expected)
