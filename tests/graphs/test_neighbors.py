"""Neighbours against all pairs, whatever the size of the pieces, ties, duplicates and distance from the origin."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from baggraph.errors import InvalidGraphError, MissingDependencyError, ParameterError
from baggraph.graphs import _approximate, neighbors
from baggraph.graphs._approximate import SAMPLE
from baggraph.graphs.neighbors import nearest, nearest_many

PROPERTY = settings(max_examples=60, deadline=None)


def brute(Z: np.ndarray, queries: np.ndarray | None, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices and squared distances by direct difference in float64; ties by index."""
    asked = Z if queries is None else queries
    z = ((asked[:, None].astype(np.float64) - Z[None].astype(np.float64)) ** 2).sum(axis=2)
    if queries is None:
        np.fill_diagonal(z, np.inf)
    order = np.argsort(z, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(z, order, axis=1)


@st.composite
def grids(draw):
    """Points with whole coordinates: many ties, many duplicates, distances that are exact in any precision."""
    n, d = draw(st.integers(2, 60)), draw(st.integers(1, 4))
    seed, side = draw(st.integers(0, 10**6)), draw(st.sampled_from([1, 2, 6]))
    return np.random.default_rng(seed).integers(0, side + 1, size=(n, d)).astype(np.float32)


@PROPERTY
@given(Z=grids(), k=st.integers(1, 70), memory=st.sampled_from([1 << 10, 1 << 14, 1 << 28]))
def test_exact_neighbours_are_those_of_all_pairs_ties_by_index(Z, k, memory):
    found = nearest(torch.from_numpy(Z), k, memory_bytes=memory)
    indices, distances = brute(Z, None, min(k, len(Z) - 1))
    np.testing.assert_array_equal(found.indices.numpy(), indices)
    np.testing.assert_array_equal(found.distances.numpy(), distances)
    assert (found.recall, found.method) == (1.0, "exact")


@PROPERTY
@given(Z=grids(), k=st.integers(1, 70), seed=st.integers(0, 1000))
def test_queries_and_rows_ask_the_same_question(Z, k, seed):
    points = torch.from_numpy(Z)
    queries = np.random.default_rng(seed).integers(0, 4, size=(7, Z.shape[1])).astype(np.float32)
    found = nearest(points, k, queries=torch.from_numpy(queries))
    indices, distances = brute(Z, queries, min(k, len(Z)))
    np.testing.assert_array_equal(found.indices.numpy(), indices)
    np.testing.assert_array_equal(found.distances.numpy(), distances)
    middle = (len(Z) // 3, len(Z) // 3 + 1 + len(Z) // 2)
    part, whole = nearest(points, k, rows=middle), nearest(points, k)
    assert torch.equal(part.indices, whole.indices[slice(*middle)])
    assert torch.equal(part.distances, whole.distances[slice(*middle)])


@PROPERTY
@given(Z=grids(), k=st.integers(1, 5))
def test_counting_oneself_is_the_published_variant(Z, k):
    with_self = nearest(torch.from_numpy(Z), k, count_self=True)
    without = nearest(torch.from_numpy(Z), k)
    assert with_self.indices[:, 0].tolist() == list(range(len(Z)))
    assert torch.equal(with_self.indices[:, 1:], without.indices[:, : k - 1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_far_from_the_origin_nothing_is_lost(dtype, shift):
    Z = torch.randn(400, 5, generator=torch.Generator().manual_seed(0), dtype=dtype) + shift
    indices, distances = brute(Z.numpy(), None, 12)
    found = nearest(Z, 12)
    np.testing.assert_allclose(found.distances.numpy(), distances, rtol=1e-5)
    assert (found.indices.numpy() == indices).mean() > 0.999


def test_cosine_is_the_angle():
    Z = torch.randn(80, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    cosine = torch.nn.functional.cosine_similarity(Z[:, None], Z[None], dim=2).fill_diagonal_(-2)
    found = nearest(Z, 7, metric="cosine")
    expected = (1 - cosine).sort(dim=1)
    np.testing.assert_array_equal(found.indices.numpy(), expected.indices[:, :7].numpy())
    np.testing.assert_allclose(found.distances.numpy(), expected.values[:, :7].numpy(), atol=1e-12)


def test_many_sets_equal_each_alone():
    stack = torch.randn(9, 40, 6, generator=torch.Generator().manual_seed(1))
    stack[3, 5:20] = stack[3, 5]
    indices, distances = nearest_many(stack, 8)
    for m, Z in enumerate(stack):
        alone = nearest(Z, 8)
        assert torch.equal(indices[m], alone.indices)
        assert torch.equal(distances[m], alone.distances)


def spread_out(n: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    centres = 3 * torch.randn(30, 12, generator=generator)
    return centres[torch.randint(30, (n,), generator=generator)] + torch.randn(n, 12, generator=generator)


@pytest.mark.parametrize("method", ["ivf", "hnsw"])
@pytest.mark.parametrize("target", [0.8, 0.99])
def test_approximate_search_reaches_its_recall_and_says_it_truly(method, target):
    Z = spread_out(6000)
    told = []
    found = nearest(Z, 10, method=method, recall_target=target, progress=lambda done, total: told.append((done, total)))
    exact = nearest(Z, 10, method="exact")
    recall = (exact.indices[:, :, None] == found.indices[:, None]).any(2).double().mean()
    assert found.recall >= target
    assert float(recall) == pytest.approx(found.recall, abs=0.02)
    assert (found.distances.diff(dim=1) >= 0).all()
    direct = (Z[:, None] - Z[found.indices]).square().sum(2)
    np.testing.assert_allclose(found.distances.numpy(), direct.numpy(), rtol=1e-5)
    assert (found.indices != torch.arange(6000)[:, None]).all()
    assert found.indices.sort(1).values.diff(dim=1).min() > 0
    assert told[-1] == (6000, 6000)


def test_cells_repeat_with_the_seed_and_serve_as_an_order():
    Z = spread_out(3000)
    first, again = (nearest(Z, 5, method="ivf", random_state=4) for _ in range(2))
    assert torch.equal(first.indices, again.indices)
    assert first.cells is not None
    own = first.cells[:, None] == first.cells[first.indices]
    assert own.double().mean() > 0.5  # neighbours mostly share a cell


def test_where_cells_do_not_help_the_search_is_exact():
    noise = torch.randn(1500, 200, generator=torch.Generator().manual_seed(0))
    found = nearest(noise, 20, method="ivf", recall_target=0.999)
    assert (found.method, found.recall) == ("exact", 1.0)
    assert torch.equal(found.indices, nearest(noise, 20, method="exact").indices)


def test_aiming_higher_when_the_other_half_is_harder(monkeypatch):
    """The half of the sample that sets the width is easy: the other half must still reach the target."""
    asked: list[float] = []
    original = _approximate.probes_for

    def optimistic(cells, asking, truth, target):
        asked.append(target)
        return 1 if len(asked) == 1 else original(cells, asking, truth, target)

    monkeypatch.setattr(_approximate, "probes_for", optimistic)
    found = nearest(spread_out(4000), 10, method="ivf", recall_target=0.97)
    assert asked[0] == 0.97
    assert asked[1] == pytest.approx(0.985)
    assert found.recall >= 0.97


def test_auto_is_exact_for_few_and_cells_for_many(monkeypatch):
    monkeypatch.setitem(neighbors.EXACT_UP_TO, "cpu", 2000)
    assert nearest(spread_out(2000), 5).method == "exact"
    assert nearest(spread_out(2001), 5).method == "ivf"
    assert nearest(spread_out(2001), 5, rows=(0, 10)).method == "exact"


def test_duplicates_beyond_the_sample_keep_cells_honest():
    Z = spread_out(SAMPLE + 500)
    Z[: SAMPLE // 2] = Z[0]
    found = nearest(Z, 8, method="ivf")
    assert (found.distances[: SAMPLE // 2] == 0).all()


def test_points_cut_off_from_the_graph_of_faiss_are_searched_exactly(monkeypatch):
    faiss = pytest.importorskip("faiss")
    search = faiss.IndexHNSWFlat.search

    def broken(index, points, count):
        distances, places = search(index, points, count)
        if len(places) == 1200:
            places[3, 2:] = -1
        return distances, places

    monkeypatch.setattr(faiss.IndexHNSWFlat, "search", broken)
    Z = spread_out(1200)
    found = nearest(Z, 6, method="hnsw")
    assert torch.equal(found.indices[3], nearest(Z, 6).indices[3])


def test_without_faiss_another_way_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(MissingDependencyError, match=r"faiss for method='hnsw'.*or method='ivf'"):
        nearest(spread_out(100), 3, method="hnsw")


@pytest.mark.parametrize(
    ("Z", "options", "text"),
    [
        (np.eye(3), {"metric": "cosin"}, "got 'cosin'; did you mean 'cosine'?"),
        (np.eye(3), {"method": "exct"}, "got 'exct'; did you mean 'exact'?"),
        (np.eye(3), {"n_neighbors": 0}, "n_neighbors a whole number from 1, got 0"),
        (np.eye(3), {"recall_target": 1.5}, "recall_target above 0 and up to 1, got 1.5"),
        (np.eye(3)[:1], {}, "at least two bags, got torch.float64 of shape (1, 3)"),
        (np.eye(3, dtype=np.int64), {}, "a floating-point table of at least two bags, got torch.int64"),
        (np.array([[0.0], [np.nan]]), {}, "finite Z, got NaN or infinity in row 1"),
        (np.array([[1.0], [0.0]]), {"metric": "cosine"}, "zeros only in row 1"),
        (np.eye(3), {"queries": torch.eye(2, dtype=torch.float64)}, "queries of 3 features, got 2"),
        (np.eye(3), {"queries": torch.eye(3), "count_self": True}, "only where the points ask"),
        (np.eye(3), {"queries": torch.eye(3), "method": "ivf"}, "method='exact' for queries or rows"),
    ],
)
def test_errors(Z, options, text):
    options = {"n_neighbors": 2} | options
    with pytest.raises((ParameterError, InvalidGraphError)) as caught:
        nearest(torch.from_numpy(Z), **options)
    assert text in str(caught.value)
