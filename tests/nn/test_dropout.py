"""Masks: how many they drop, what they depend on, and that nothing else matters."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from baggraph.errors import ParameterError
from baggraph.nn.dropout import Dropout, keyed, own_dropout, scrambled


def masked(key, x, p=0.5, rows=()):
    with keyed(torch.tensor(key, dtype=torch.int32), rows):
        return Dropout(p)(x)


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
def test_the_share_dropped_is_p_and_the_mean_stays(p):
    x = torch.ones(1000, 333)
    out = masked(3, x, p)
    deviation = (p * (1 - p) / x.numel()) ** 0.5
    assert float((out == 0).double().mean()) == pytest.approx(p, abs=5 * deviation + 2**-16)
    assert float(out.double().mean()) == pytest.approx(1, abs=5 * deviation / (1 - p))
    # No row, column or diagonal is special, nor does one entry tell of its neighbour.
    for other in (out.roll(1, 0), out.roll(1, 1), out.roll((1, 1), (0, 1))):
        both = float(((out == 0) & (other == 0)).double().mean())
        assert both == pytest.approx(p * p, abs=6 * deviation)


def test_masks_of_two_keys_and_of_two_layers_have_nothing_in_common():
    x = torch.ones(500, 200)
    with keyed(torch.tensor(1, dtype=torch.int32)):
        first, second = Dropout(0.5)(x), Dropout(0.5)(x)
    for other in (second, masked(2, x)):
        assert float(((first == 0) & (other == 0)).double().mean()) == pytest.approx(0.25, abs=0.01)


@settings(max_examples=25, deadline=None)
@given(
    key=st.integers(-(2**31), 2**31 - 1), names=st.lists(st.integers(0, 2**31 - 1), min_size=2, max_size=9, unique=True)
)
def test_a_row_is_masked_alike_in_any_company(key, names):
    rows = torch.tensor(names)
    x = torch.randn(len(names), 7)
    together = masked(key, x, rows=[rows])
    order = torch.randperm(len(names), generator=torch.Generator().manual_seed(0))
    assert torch.equal(masked(key, x[order], rows=[rows[order]]), together[order])
    assert torch.equal(masked(key, x[:1], rows=[rows[:1]]), together[:1])


def test_members_have_the_masks_of_their_own_keys():
    keys, x = torch.tensor([5, -6, 7], dtype=torch.int32), torch.randn(11, 5)

    def one(key):
        with keyed(key):
            return Dropout(0.4)(x)

    together = torch.vmap(one, randomness="error")(keys)
    assert torch.equal(together, torch.stack([one(key) for key in keys]))


def test_gradients_flow_where_nothing_was_dropped():
    x = torch.randn(20, 5, requires_grad=True)
    out = masked(9, x)
    out.sum().backward()
    assert torch.equal(x.grad == 0, out == 0)
    assert set(x.grad.unique().tolist()) == {0.0, 2.0}


def test_without_training_or_key_nothing_of_ours_happens():
    x = torch.randn(4, 3)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x
    torch.manual_seed(0)
    ours = Dropout(0.5)(x)
    torch.manual_seed(0)
    assert torch.equal(ours, nn.functional.dropout(x, 0.5))


@pytest.mark.parametrize("p", [-0.1, 1.0, float("nan")])
def test_p_is_a_probability_below_one(p):
    with pytest.raises(ParameterError, match="dropout: expected p from 0 to below 1"):
        Dropout(p)


def test_layers_of_torch_are_exchanged_wherever_they_are():
    module = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.3), nn.Sequential(nn.Dropout(0.1)))
    kinds = [type(layer) for layer in own_dropout(module).modules()]
    assert nn.Dropout not in kinds
    assert kinds.count(Dropout) == 2
    assert module[1].p == 0.3


def test_scrambling_is_one_to_one():
    numbers = torch.arange(-(2**15), 2**15, dtype=torch.int32) * 65536 + 3
    assert len(scrambled(numbers).unique()) == len(numbers)
