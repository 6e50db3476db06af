"""What must hold for every encoder: laws of bags, stacks of members, words of errors, and its page."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.func import functional_call, stack_module_state

from baggraph.errors import ParameterError
from baggraph.nn import encoders
from baggraph.nn.encoders import ENCODERS, ISAB, PMA, SAB, RffPool, encoder

FEATURES = 4
PROPERTY = settings(max_examples=8, deadline=None)
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
POOLINGS = ("mean", "max", "sum", "logsumexp", "attention")
# Small settings, and those under which an encoder takes another way.
SETTINGS = {
    "attention": [{"hidden": (6, 5), "attention_width": 3}],
    "deep-sets": [
        {"phi": (6, 5), "rho": (4, 3)},
        *({"phi": (5,), "rho": (3,), "pooling": p, "activation": "elu", "last_activation": False} for p in POOLINGS),
    ],
    "gated-attention": [{"hidden": (6, 5), "attention_width": 3}],
    "mi-net": [{"hidden": (6,), "n_outputs": 2, "pooling": p} for p in ("max", "mean", "logsumexp")],
    "mi-net-bag": [{"hidden": (6, 5), "activation": "tanh"}],
    "mi-net-deep-supervision": [{"hidden": (6, 5)}],
    "mi-net-residual": [{"hidden": (6, 6)}],
    "res-pool": [{"hidden": (6, 6, 6), "pooling": p, "activation": "gelu"} for p in POOLINGS],
    "rff-pool": [{"hidden": (6, 5, 4), "pooling": p} for p in POOLINGS],
    "set-transformer": [
        {"width": 8, "heads": 2},
        {"width": 8, "inducing": 3, "seeds": 2, "blocks": 2},
        {"width": 6, "heads": 1, "layer_norm": False},
    ],
}
CASES = [pytest.param(name, each, id=f"{name}-{i}") for name in SETTINGS for i, each in enumerate(SETTINGS[name])]


def made(name, settings_, seed=0):
    torch.manual_seed(seed)
    return encoder(name, FEATURES, **settings_).double().eval()


def some_bags(seed, sizes):
    values = torch.from_numpy(np.random.default_rng(seed).normal(size=(sum(sizes), FEATURES)))
    return values, torch.tensor([0, *sizes]).cumsum(0)


bags = st.builds(some_bags, st.integers(0, 99), st.lists(st.integers(1, 21), min_size=1, max_size=6))


def split(values, offsets):
    return values.split(offsets.diff().tolist())


def joined(parts):
    return torch.cat(parts), torch.tensor([0, *map(len, parts)]).cumsum(0)


@pytest.mark.parametrize(("name", "given_"), CASES)
@PROPERTY
@given(bags=bags)
def test_batch_is_single(name, given_, bags):
    """No bag sees its neighbours: not their instances, not their sizes, not their padding."""
    module = made(name, given_)
    together = module(*bags)
    alone = torch.cat([module(*joined([part])) for part in split(*bags)])
    torch.testing.assert_close(together, alone, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "given_"), CASES)
@PROPERTY
@given(bags=bags, seed=st.integers(0, 99))
def test_orders(name, given_, bags, seed):
    """The order of instances changes nothing; that of bags changes the order of embeddings."""
    module, parts, rng = made(name, given_), list(split(*bags)), np.random.default_rng(seed)
    order = rng.permutation(len(parts))
    shuffled = [parts[b][torch.from_numpy(rng.permutation(len(parts[b])))] for b in order]
    torch.testing.assert_close(module(*joined(shuffled)), module(*bags)[order], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "given_"), CASES)
def test_beside_a_longer_bag(name, given_):
    module = made(name, given_)
    values, offsets = some_bags(0, [1, 3, 9])
    longer, _ = some_bags(1, [333])
    found = module(*joined([*split(values, offsets), longer * 1e3]))[:3]
    torch.testing.assert_close(found, module(values, offsets), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "given_"), CASES)
def test_widths(name, given_):
    module = made(name, given_)
    assert module(*some_bags(0, [2, 1, 5])).shape == (3, module.width)
    assert isinstance(module.level_widths, tuple)
    assert sum(module.level_widths) == module.width


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("name", "given_"), CASES)
def test_a_stack_is_its_members(name, given_, device):
    """Three members under vmap, shared instances: outputs and gradients as of three modules alone."""
    members = [made(name, given_, seed).to(device) for seed in range(3)]
    values, offsets = (part.to(device) for part in some_bags(0, [2, 9, 1, 17]))
    parameters, buffers = stack_module_state(members)
    skeleton = made(name, given_).to("meta")

    def forward(parameters, buffers):
        return functional_call(skeleton, (parameters, buffers), (values, offsets))

    stacked = torch.vmap(forward)(parameters, buffers)
    alone = torch.stack([member(values, offsets) for member in members])
    torch.testing.assert_close(stacked, alone, rtol=1e-9, atol=1e-9)
    weights = torch.from_numpy(np.random.default_rng(1).normal(size=alone.shape)).to(device)
    ours = torch.autograd.grad((stacked * weights).sum(), list(parameters.values()))
    for m, member in enumerate(members):
        theirs = torch.autograd.grad((alone[m] * weights[m]).sum(), list(member.parameters()), retain_graph=True)
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one[m], other, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("name", "given_"), CASES)
def test_training_after_inference(name, given_):
    module = made(name, given_)
    with torch.inference_mode():
        values, offsets = some_bags(0, [2, 9, 1])
        expected = module(values, offsets)
    found = module(values.clone(), offsets)
    found.sum().backward()
    torch.testing.assert_close(found.detach(), expected.clone())


@pytest.mark.parametrize(("name", "given_"), CASES)
def test_all_parameters_learn(name, given_):
    module = made(name, given_)
    values, offsets = some_bags(0, [2, 9, 1, 17])
    out = module(values, offsets)
    torch.autograd.backward((out * torch.linspace(-1, 2, out.numel()).view_as(out)).sum())
    # A bias of keys shifts all scores of a query alike.
    silent = {path for path, p in module.named_parameters() if p.grad is None or not p.grad.abs().max() > 1e-12}
    assert all(path.endswith("key.bias") for path in silent)


@pytest.mark.parametrize(("name", "given_"), CASES)
def test_half_precision(name, given_):
    module = made(name, given_)
    values, offsets = some_bags(0, [2, 9, 1, 17])
    with torch.autocast("cpu", torch.bfloat16):
        found = module.float()(values.float(), offsets)
    torch.testing.assert_close(found.double(), module.double()(values, offsets), rtol=0.05, atol=0.05)


def test_levels_stand_side_by_side():
    torch.manual_seed(0)
    module, (values, offsets) = RffPool(FEATURES, (6, 5), pooling="mean").double(), some_bags(0, [2, 3])
    first = torch.relu(values @ module.layers[0][0].weight.T + module.layers[0][0].bias)
    second = torch.relu(first @ module.layers[1][0].weight.T + module.layers[1][0].bias)
    expected = torch.stack([torch.cat([first[s].mean(0), second[s].mean(0)]) for s in (slice(0, 2), slice(2, 5))])
    torch.testing.assert_close(module(values, offsets), expected)


@pytest.mark.parametrize(
    ("name", "level_widths"),
    [("rff-pool", (256, 128, 64)), ("res-pool", (128,)), ("mi-net-bag", (64,)), ("deep-sets", (64,)), ("mi-net", (1,))],
)
def test_defaults_of_the_papers(name, level_widths):
    assert encoder(name, 166).level_widths == level_widths


def test_rental_configuration():
    module = encoder("deep-sets", 10, phi=(25,) * 3, rho=(25, 25, 25, 64), activation="elu", last_activation=False)
    kinds = [type(layer).__name__ for layer in module.modules() if not list(layer.children())]
    assert kinds == ["Linear", "ELU"] * 3 + ["FixedPooling"] + ["Linear", "ELU"] * 3 + ["Linear"]
    assert module.width == 64


@PROPERTY
@given(bags=bags)
def test_mi_net_pools_probabilities(bags):
    pools = {
        "max": lambda p: p.amax(0),
        "mean": lambda p: p.mean(0),
        "logsumexp": lambda p: p.exp().mean(0).log(),
    }
    for pooling, pool in pools.items():
        module = made("mi-net", {"hidden": (6,), "pooling": pooling})
        probabilities = torch.sigmoid(module.scores(bags[0]))
        expected = torch.stack([pool(part) for part in split(probabilities, bags[1])])
        torch.testing.assert_close(torch.sigmoid(module(*bags)), expected)


@pytest.mark.parametrize("pooling", ["max", "mean", "logsumexp"])
@pytest.mark.parametrize("score", [-300.0, -20.0, 20.0, 300.0])
def test_mi_net_where_it_is_sure(pooling, score):
    module = encoder("mi-net", 1, hidden=(1,), pooling=pooling)
    module.scores = nn.Identity()
    scores = torch.full((3, 1), score).requires_grad_()
    out = module(scores, torch.tensor([0, 3]))
    out.sum().backward()
    assert out.item() == pytest.approx(score if abs(score) < 80 or pooling != "logsumexp" else out.item(), rel=1e-4)
    assert abs(out.item()) >= 19
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("name", ["attention", "gated-attention"])
@PROPERTY
@given(bags=bags)
def test_instance_weights_explain(name, bags):
    module = made(name, SETTINGS[name][0])
    weights = module.instance_weights(*bags)
    parts = zip(split(weights, bags[1]), split(module.layers(bags[0]), bags[1]), strict=True)
    assert weights.shape == (len(bags[0]),)
    assert (weights >= 0).all()
    torch.testing.assert_close(module(*bags), torch.stack([w @ h for w, h in parts]))


def test_names_and_settings_are_checked():
    with pytest.raises(ParameterError, match=r"got 'rff_pol'; did you mean 'rff-pool'\?"):
        encoder("rff_pol", 3)
    with pytest.raises(ParameterError, match=r"choose from 'attention', 'deep-sets'.*'set-transformer'"):
        encoder("zzz", 3)
    wrong = [
        ("rff-pool", {"pooling": "maxx"}, "did you mean 'max'"),
        ("rff-pool", {"activation": "rellu"}, "did you mean 'relu'"),
        ("rff-pool", {"hidden": ()}, "positive numbers for hidden layers"),
        ("rff-pool", {"hidden": (3, 0)}, r"got \[3, 0\]"),
        ("res-pool", {"hidden": (3, 4)}, "of one width"),
        ("mi-net", {"pooling": "sum"}, "a pooling of probabilities, got 'sum'"),
        ("set-transformer", {"width": 6, "heads": 4}, "heads that divide the width"),
        ("set-transformer", {"inducing": 0}, "positive numbers"),
        ("attention", {"attention_width": 0}, "attention_width"),
        ("deep-sets", {"rho": ()}, "positive numbers"),
    ]
    for name, given_, message in wrong:
        with pytest.raises(ParameterError, match=message):
            encoder(name, 3, **given_)


def test_every_encoder_is_under_these_laws():
    modules = {path.stem for path in Path(encoders.__file__).parent.glob("[!_]*.py")}
    public = {name for name in encoders.__all__ if name not in ("ENCODERS", "encoder")}
    made_by = {each.__name__ for each in ENCODERS.values()}
    assert set(SETTINGS) == set(ENCODERS)
    assert public - made_by == {"MAB", "SAB", "ISAB", "PMA"}
    assert {getattr(encoders, name).__module__.rpartition(".")[2] for name in public} == modules
    blocks = {type(part) for part in encoder("set-transformer", 3, inducing=2).modules()}
    assert {ISAB, PMA} <= blocks
    assert SAB in {type(part) for part in encoder("set-transformer", 3).modules()}


@pytest.mark.parametrize("name", [name for name in encoders.__all__ if name not in ("ENCODERS", "encoder")])
def test_every_encoder_has_its_page(name):
    page = inspect.getdoc(getattr(encoders, name))
    assert ".. math::" in page
    assert " et al. (20" in page
    assert "Shapes: " in page
