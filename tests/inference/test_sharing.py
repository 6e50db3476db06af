"""Base models that rows have in common are trained once, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from baggraph import BagGraph, Bags, make
from baggraph.inference import bag_graph
from baggraph.inference._sharing import sharing_base_models


@pytest.fixture
def bags() -> Bags:
    generator = np.random.default_rng(0)
    y = np.arange(16) % 2
    rows = [generator.normal(label, 1, size=(3, 4)) for label in y]
    graph = BagGraph.from_edges([(str(i), str((i + 1) % 16)) for i in range(16)], ids=[str(i) for i in range(16)])
    return Bags.from_list(rows, y, ids=graph.ids).replace(graph=graph)


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counted: list[int] = []
    fit_stack = bag_graph.fit_stack
    monkeypatch.setattr(bag_graph, "fit_stack", lambda *a, **k: counted.append(1) or fit_stack(*a, **k))
    return counted


MASKS = np.array([[True] * 12 + [False] * 4, [False] * 4 + [True] * 12])
FAMILY = [
    ("rFF+pool", {}),
    ("rFF+pool", {"n_draws": 3}),
    ("rFF+pool-GCN", {"n_neighbors": 2}),
    ("B-rFF+pool-GCN", {"n_neighbors": 2, "candidate_ratio": 2, "n_draws": 3}),
]


def family(bags: Bags, **more: object) -> list[np.ndarray]:
    models = [make(name, epochs=4, **{**given, **more}) for name, given in FAMILY]
    return [posterior.mean for model in models for posterior in model.posteriors(bags, MASKS)]


def test_three_trainings_instead_of_six(bags: Bags, trainings: list[int]) -> None:
    alone = family(bags)
    assert len(trainings) == 6
    with sharing_base_models():
        shared = family(bags)
    assert len(trainings) == 6 + 3
    assert all(np.array_equal(one, other) for one, other in zip(alone, shared, strict=True))


@pytest.mark.parametrize(
    "more", [{"random_state": 1}, {"lr": 1e-2}, {"epochs": 5}, {"pooling": "max"}, {"dropout": 0.1}]
)
def test_another_base_model_is_trained_anew(bags: Bags, trainings: list[int], more: dict[str, object]) -> None:
    model = make("rFF+pool", epochs=4)
    with sharing_base_models():
        model.posteriors(bags, MASKS)
        model.set_params(**more).posteriors(bags, MASKS)
    assert len(trainings) == 2


def test_other_masks_labels_and_graphs_are_trained_anew(bags: Bags, trainings: list[int]) -> None:
    given = {"epochs": 4, "n_draws": 0}
    with sharing_base_models():
        make("rFF+pool", **given).posteriors(bags, MASKS)
        make("rFF+pool", **given).posteriors(bags, MASKS[:1])
        make("rFF+pool", **given).posteriors(bags.replace(y=1 - bags.y), MASKS)
        make("rFF+pool", **given, graph="given").posteriors(bags, MASKS)
        make("rFF+pool", **given, graph=bags.graph.take(bags.ids)).posteriors(bags, MASKS)  # the same graph
    assert len(trainings) == 4


def test_a_given_graph_is_the_base_of_a_learned_one(bags: Bags, trainings: list[int]) -> None:
    regression = bags.replace(y=bags.y.astype(float) + np.linspace(0, 0.5, 16))
    with sharing_base_models():
        make("DS-GCN", epochs=4).posteriors(regression, MASKS)
        make("B-DS-GCN", epochs=4, n_neighbors=2, candidate_ratio=2).posteriors(regression, MASKS)
    assert len(trainings) == 3 - 1


def test_fits_are_forgotten_at_the_end(bags: Bags, trainings: list[int]) -> None:
    for _ in range(2):
        with sharing_base_models():
            make("rFF+pool", epochs=4).posteriors(bags, MASKS)
    assert len(trainings) == 2
