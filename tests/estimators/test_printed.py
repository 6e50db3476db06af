"""Algorithms by their printed names have the settings of the paper's supplement, copied from there into a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import baggraph as bg
from baggraph.errors import ParameterError

SUPPLEMENT = json.loads((Path(__file__).parent / "supplement.json").read_text())
SETTINGS = {"base": (None, 0), "gcn": ("knn", 0), "bayesian": ("learned", 50)}


def has(model, **wanted):
    got = model.get_params(deep=False)
    assert {name: got[name] for name in wanted} == wanted


def check(names, dataset, table, gcn="knn", **common):
    base, with_graph, bayesian = (bg.make(name, dataset=dataset) for name in names)
    has(base, graph=None, n_draws=0, head="gcn", dropout=0.5, **common)
    has(with_graph, graph=gcn, n_draws=0, **common)
    assert gcn == "given" or with_graph.n_neighbors == table["k_gcn"]
    has(bayesian, graph="learned", n_draws=50, n_neighbors=table["k_bgcn"], candidate_ratio=table["r_bgcn"], **common)
    has(bayesian, observed="given" if gcn == "given" else None, embedding="all", rounds=1, setting="transductive")


@pytest.mark.parametrize("dataset", SUPPLEMENT["benchmark"])
def test_benchmark(dataset):
    row = SUPPLEMENT["benchmark"][dataset]
    common = {name: row[name] for name in ("lr", "weight_decay", "pooling")} | {"epochs": 200, "encoder": "rff-pool"}
    check(("rFF+pool", "rFF+pool-GCN", "B-rFF+pool-GCN"), dataset, row, **common)


@pytest.mark.parametrize("form", ["{}", "newsgroups/{}", "newsgroups-rebuilt/{}"])
@pytest.mark.parametrize("dataset", SUPPLEMENT["text"])
def test_text(dataset, form):
    common = SUPPLEMENT["text common"] | {"encoder": "res-pool", "pooling": "mean"}
    check(("Res+pool", "Res+pool-GCN", "B-Res+pool-GCN"), form.format(dataset), SUPPLEMENT["text"][dataset], **common)


@pytest.mark.parametrize("short", ["DS", "ST"])
@pytest.mark.parametrize(("dataset", "loss"), [("election", "bce"), ("election/zcta", "bce"), ("rental", "squared")])
def test_regions(dataset, loss, short):
    row = SUPPLEMENT[dataset.partition("/")[0]]
    common = {name: row[name] for name in ("lr", "weight_decay", "epochs")} | {"loss": loss}
    base = {"DS": "Deep Sets", "ST": "Set Transformer"}[short]
    check((base, f"{short}-GCN", f"B-{short}-GCN"), dataset, row, gcn="given", **common)


@pytest.mark.parametrize(
    ("name", "dataset", "widths"),
    [
        ("rFF+pool", "fox", [(256, 9), (128, 256), (64, 128)]),
        ("Res+pool", "sci.med", [(128, 9), (128, 128), (128, 128)]),
        ("Deep Sets", "election", [(128, 9), (128, 128), (128, 128), (64, 128)]),
        ("Deep Sets", "rental", [(25, 9), (25, 25), (25, 25), (25, 25), (25, 25), (25, 25), (64, 25)]),
    ],
)
def test_widths_of_layers(name, dataset, widths):
    from baggraph.nn.encoders import encoder

    model = bg.make(name, dataset=dataset)
    options = dict(model.encoder_options or {}) | ({} if model.pooling is None else {"pooling": model.pooling})
    made = encoder(model.encoder, 9, **options)
    assert [tuple(p.shape) for p in made.parameters() if p.ndim == 2] == widths


def test_every_name_is_listed_and_makes_something():
    names = bg.algorithms()
    assert len(names) == len(set(names)) > 30
    printed = {
        "mi-Net",
        "MI-Net",
        "MI-Net (DS)",
        "MI-Net (RC)",
        "Attention",
        "Gated-Attention",
        "B-ST-GCN",
        "mi-SVM",
        "MI-SVM",
    }
    assert printed <= set(names)
    for name in names:
        assert bg.make(name).get_params() is not None
    assert type(bg.make("mi-SVM")) is not type(bg.make("MI-SVM"))


def test_parameters_overrule_the_supplement():
    assert bg.make("B-rFF+pool-GCN", dataset="fox", n_neighbors=9).n_neighbors == 9
    assert bg.make("B-rFF+pool-GCN").lr == bg.make("B-rFF+pool-GCN", dataset="digits-bags").lr


def test_names_that_do_not_exist():
    with pytest.raises(ParameterError, match=r"make: .* got 'B-rFF-pool-GCN'; did you mean 'B-rFF\+pool-GCN'"):
        bg.make("B-rFF-pool-GCN")
    with pytest.raises(
        ParameterError, match="expected the name of a data set, or none, got 'foxx'; did you mean 'fox'"
    ):
        bg.make("B-rFF+pool-GCN", dataset="foxx")
    with pytest.raises(ParameterError, match="got 'neighbors'; did you mean 'n_neighbors'"):
        bg.make("B-rFF+pool-GCN", neighbors=3)
    with pytest.raises(TypeError, match="got 'neighbors'"):
        bg.BagGraphClassifier(neighbors=3)
