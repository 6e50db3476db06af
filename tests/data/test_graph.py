"""Laws of BagGraph: making, choosing, measuring, tables, other libraries, and the texts of its errors."""

from __future__ import annotations

import copy
import math
import pickle
import sys
import tempfile
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from baggraph.data import _graph_builders as builders
from baggraph.data.graph import BagGraph
from baggraph.errors import (
    BagError,
    DataFileError,
    InvalidBagsError,
    InvalidGraphError,
    MissingDependencyError,
    ParameterError,
)
from baggraph.testing import strategies

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
WEIGHTS = st.just(0.0) | st.floats(2.0**-20, 2.0**20)


@st.composite
def graphs(draw, max_bags=7):
    count = draw(st.integers(1, max_bags))
    half = np.triu(draw(hnp.arrays(np.float64, (count, count), elements=WEIGHTS)), k=1)
    return BagGraph(half + half.T, draw(strategies.names(count)))


@st.composite
def with_order(draw):
    graph = draw(graphs())
    return graph, np.array(draw(st.permutations(range(len(graph)))))


def same(left, right):
    return np.allclose(left, right, rtol=1e-9, atol=1e-12, equal_nan=True)


@pytest.fixture
def path():
    """Three bags in a row and one alone."""
    return BagGraph.from_edges([("a", "b", 2.0), ("b", "c")], ["a", "b", "c", "d"])


# ---------------------------------------------------------------------- one canonical form


@QUICK
@given(graphs())
def test_a_graph_equals_itself_by_every_road(graph):
    assert BagGraph.from_adjacency(graph.adjacency, graph.ids) == graph
    assert BagGraph.from_adjacency(graph.adjacency.toarray().tolist(), graph.ids.tolist()) == graph
    assert BagGraph._trusted(graph.adjacency, graph.ids) == graph
    assert BagGraph.from_edges(graph.to_table().itertuples(index=False, name=None), graph.ids) == graph
    assert graph.take(range(len(graph))) == graph
    assert graph.extend([], np.zeros((0, len(graph)))) == graph
    for twin in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        assert twin == graph
        assert not twin.adjacency.data.flags.writeable
        assert not twin.ids.flags.writeable


@QUICK
@given(graphs())
def test_nothing_can_be_written_to_and_nothing_is_stored_in_vain(graph):
    for array in (graph.adjacency.data, graph.adjacency.indices, graph.adjacency.indptr, graph.ids, graph.components):
        assert not array.flags.writeable
    again = sp.csr_array(graph.adjacency.toarray())
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(graph.adjacency, part), getattr(again, part))


def test_what_was_passed_stays_as_it_was():
    matrix = sp.csr_array((np.array([1.0, 0.0, 1.0]), ([0, 0, 1], [1, 0, 0])), shape=(2, 2))
    BagGraph.from_adjacency(matrix, ["a", "b"], drop_self_loops=True)
    assert matrix.nnz == 3
    assert matrix.data.flags.writeable
    assert BagGraph(matrix, ["a", "b"]).adjacency.nnz == 2


def test_equality_looks_at_ids_and_weights(path):
    assert path != BagGraph(path.adjacency, list("abce"))
    assert path != BagGraph(path.adjacency * 2, path.ids)
    assert path != path.take([0, 1, 2])
    assert path != "graph"
    with pytest.raises(TypeError):
        hash(path)


def test_the_repr_counts(path):
    assert repr(path) == "BagGraph: 4 bags, 2 edges, mean degree 1.0, 2 components, 1 isolate"
    empty = BagGraph.from_edges([], ["a", "b"])
    assert repr(empty) == "BagGraph: 2 bags, 0 edges, mean degree 0.0, 2 components, 2 isolates"
    assert empty == BagGraph(np.zeros((2, 2)), ["a", "b"])


def test_a_graph_without_bags_is_one():
    none = BagGraph.from_edges([], [])
    assert repr(none) == "BagGraph: 0 bags, 0 edges, mean degree 0.0, 0 components, 0 isolates"
    assert none.normalised().shape == (0, 0)
    assert none == BagGraph.from_polygons([], []) == none.take([])


# ---------------------------------------------------------------------- permutation


@QUICK
@given(with_order(), st.sampled_from(["symmetric", "row"]), st.sampled_from([0.0, 0.5, 1.0]), st.data())
def test_everything_follows_a_permutation_of_the_bags(graph_and_order, kind, self_loops, data):
    graph, order = graph_and_order
    moved = graph.take(order)
    assert moved == graph.take(graph.ids[order])
    assert moved.take(np.argsort(order)) == graph
    assert moved.n_edges == graph.n_edges
    assert moved.n_components == graph.n_components
    assert set(moved.isolates) == set(graph.isolates)
    assert same(moved.degree, graph.degree[order])
    assert moved.neighbor_counts.tolist() == graph.neighbor_counts[order].tolist()
    normal, moved_normal = (g.normalised(kind=kind, self_loops=self_loops).toarray() for g in (graph, moved))
    assert same(moved_normal, normal[order][:, order])
    y = data.draw(hnp.arrays(np.float64, len(graph), elements=st.sampled_from([0.0, 1.0, 2.5, math.nan])))
    assert same(moved.homophily(y[order]), graph.homophily(y))
    assert same(moved.morans_i(y[order]), graph.morans_i(y))


@QUICK
@given(graphs(), st.data())
def test_take_is_the_block_of_the_matrix(graph, data):
    mask = data.draw(hnp.arrays(np.bool_, len(graph)))
    part = graph.take(mask)
    np.testing.assert_array_equal(part.adjacency.toarray(), graph.adjacency.toarray()[mask][:, mask])
    assert part.ids.tolist() == graph.ids[mask].tolist()


@pytest.mark.parametrize(
    ("which", "kind", "text"),
    [
        (["a", "z"], InvalidGraphError, "graph: expected ids of bags of this graph, got bag 'z'; look at graph.ids"),
        ([0, -4], InvalidGraphError, "graph: expected every bag at most once, got 'a' again; drop the repetition"),
        ([4], IndexError, "graph: expected positions below 4, got 4; count from 0"),
        (
            [0.5],
            InvalidGraphError,
            "graph: expected positions, ids or a mask of 4 booleans, got float64 of shape (1,); pass one flat sequence",
        ),
        (
            [True],
            InvalidGraphError,
            "graph: expected positions, ids or a mask of 4 booleans, got bool of shape (1,); pass one flat sequence",
        ),
    ],
)
def test_take_refuses(path, which, kind, text):
    with pytest.raises(kind) as caught:
        path.take(which)
    assert str(caught.value) == text


def test_take_counts_from_the_end_too(path):
    assert path.take([-1, 1]).ids.tolist() == ["d", "b"]


# ---------------------------------------------------------------------- from_adjacency


@QUICK
@given(st.integers(1, 5).flatmap(lambda n: hnp.arrays(np.float64, (n, n), elements=WEIGHTS)))
def test_rules_of_symmetry_are_those_of_numpy(matrix):
    ids = range(len(matrix))
    bare = matrix - np.diag(np.diag(matrix))
    for rule, expected in (
        ("mean", (bare + bare.T) / 2),
        ("max", np.maximum(bare, bare.T)),
        ("min", np.minimum(bare, bare.T)),
    ):
        graph = BagGraph.from_adjacency(sp.coo_array(matrix), ids, symmetric=rule, drop_self_loops=True)
        np.testing.assert_allclose(graph.adjacency.toarray(), expected, rtol=1e-15)
        assert BagGraph(graph.adjacency, ids) == graph


def cells(**weights):
    matrix = np.zeros((2, 2))
    for place, weight in weights.items():
        matrix[int(place[1]), int(place[2])] = weight
    return matrix


@pytest.mark.parametrize(
    ("matrix", "how", "text"),
    [
        (
            cells(_01=-1, _10=-1),
            {},
            "finite weights that are not negative, got -1.0 between 'a' and 'b'; correct or drop that edge",
        ),
        (
            cells(_10=math.nan),
            {"symmetric": "max"},
            "finite weights that are not negative, got nan between 'b' and 'a'; correct or drop that edge",
        ),
        (
            cells(_00=1, _11=2),
            {},
            "no weight on the diagonal, got self-loops at 'a', 'b'; drop them, as "
            "from_adjacency(..., drop_self_loops=True) does; models add their own",
        ),
        (
            cells(_01=1, _10=0.25),
            {},
            "a symmetric adjacency matrix, got another weight from 'a' to 'b' than back (1.0 and 0.25); "
            "state a rule, as in from_adjacency(..., symmetric='mean')",
        ),
        (
            np.zeros((2, 3)),
            {},
            "a square adjacency matrix, got shape (2, 3); pass one row and one column a bag",
        ),
        (np.zeros(2), {}, "a square adjacency matrix, got shape (2,); pass one row and one column a bag"),
        ([["1", "0"], ["0", "1"]], {}, "numbers as weights, got values of type <U1; convert them to floats"),
        (cells(), {"symmetric": "maxx"}, "symmetric='check', 'mean', 'max' or 'min', got 'maxx'; did you mean 'max'?"),
    ],
)
def test_adjacency_errors_say_which_bags(matrix, how, text):
    with pytest.raises(ValueError) as caught:
        BagGraph.from_adjacency(matrix, ["a", "b"], **how)
    assert str(caught.value) == f"graph: expected {text}"
    assert isinstance(caught.value, ParameterError if "maxx" in text else InvalidGraphError)
    if not how:
        with pytest.raises(InvalidGraphError):
            BagGraph(matrix, ["a", "b"])


def test_ids_must_match_and_differ():
    with pytest.raises(InvalidBagsError, match=r"one of bag ids a bag \(2\), got shape \(3,\)"):
        BagGraph(np.zeros((2, 2)), ["a", "b", "c"])
    with pytest.raises(InvalidBagsError, match="unique bag ids, got 'a' more than once"):
        BagGraph(np.zeros((2, 2)), ["a", "a"])


# ---------------------------------------------------------------------- from_edges


@pytest.mark.parametrize(
    ("edges", "text"),
    [
        ([("a", "z")], "edges between known bags, got bag 'z'; drop that edge or add the bag"),
        ([("y", "a"), ("a", "z")], "edges between known bags, got bags 'y', 'z'; drop that edge or add the bag"),
        (
            [("a", "b"), ("b", "a")],
            "every pair of bags once, got 'b' - 'a' more than once; add up or drop the repeated edges",
        ),
        (["ab"], "edges (id, id) or (id, id, weight), got 'ab'; correct that edge"),
        ([("a",)], "edges (id, id) or (id, id, weight), got ('a',); correct that edge"),
        ([("a", "b", "x")], "a number as weight of every edge, got 'x' between 'a' and 'b'; correct or drop that edge"),
        (
            [("a", "c"), ("a", "b", [1])],
            "a number as weight of every edge, got [1] between 'a' and 'b'; correct or drop that edge",
        ),
        (
            [("a", "b", None)],
            "finite weights that are not negative, got nan between 'a' and 'b'; correct or drop that edge",
        ),
        (
            [("a", "a")],
            "no weight on the diagonal, got self-loops at 'a'; drop them, as "
            "from_adjacency(..., drop_self_loops=True) does; models add their own",
        ),
    ],
)
def test_edge_errors_name_the_bags(edges, text):
    with pytest.raises(InvalidGraphError) as caught:
        BagGraph.from_edges(edges, ["a", "b", "c"])
    assert str(caught.value) == f"graph: expected {text}"


def test_edges_of_weight_zero_are_none():
    assert BagGraph.from_edges([("a", "b", 0.0), ("b", "c", "0.5")], list("abc")).n_edges == 1


# ---------------------------------------------------------------------- from_coordinates


def squared(points):
    return ((points[:, None] - points[None]) ** 2).sum(axis=2)


def brute_nearest(points, count):
    """The definition: for every bag all others in order of distance and place."""
    result = np.zeros((len(points), len(points)))
    for bag, distances in enumerate(squared(points)):
        others = [other for other in range(len(points)) if other != bag]
        for other in sorted(others, key=lambda o, d=distances: (d[o], o))[:count]:
            result[bag, other] = result[other, bag] = 1
    return result


GRID = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, -7.0])


@QUICK
@given(st.data())
def test_nearest_equal_brute_force_with_ties_and_duplicates(data):
    count, width = data.draw(st.integers(2, 12)), data.draw(st.sampled_from([2, 3]))
    points = data.draw(hnp.arrays(np.float64, (count, width), elements=GRID))
    n_neighbors = data.draw(st.integers(1, count - 1))
    graph = BagGraph.from_coordinates(points, range(count), n_neighbors=n_neighbors)
    np.testing.assert_array_equal(graph.adjacency.toarray(), brute_nearest(points, n_neighbors))
    assert graph.neighbor_counts.min() >= n_neighbors


@QUICK
@given(st.data())
def test_radius_equals_brute_force_and_includes_its_end(data):
    count, width = data.draw(st.integers(1, 12)), data.draw(st.sampled_from([2, 3]))
    points = data.draw(hnp.arrays(np.float64, (count, width), elements=GRID))
    radius = data.draw(st.sampled_from([0.1, 0.2, 0.5, 1.0, 7.0]))
    graph = BagGraph.from_coordinates(points, range(count), radius=radius)
    expected = (squared(points) <= radius**2) & ~np.eye(count, dtype=bool)
    np.testing.assert_array_equal(graph.adjacency.toarray(), expected)


def haversine(degrees):
    longitude, latitude = np.radians(degrees).T
    rise = np.sin((latitude[:, None] - latitude) / 2) ** 2
    run = np.sin((longitude[:, None] - longitude) / 2) ** 2
    across = rise + np.cos(latitude[:, None]) * np.cos(latitude) * run
    return 2 * 6371 * np.arcsin(np.sqrt(np.clip(across, 0, 1)))


@QUICK
@given(hnp.arrays(np.float64, (8, 2), elements=st.floats(0, 1)), st.sampled_from([1 - 1e-6, 1 + 1e-6]))
def test_great_circles_follow_the_haversine_formula(unit, factor):
    degrees = unit * [540, 180] - [180, 90]
    kilometres = haversine(degrees)
    radius = kilometres[0, 1] * factor  # a hair short of the first distance, or beyond it
    assume(1 < radius < 19000)  # beside the antipode, chords hardly change with the distance
    joined = BagGraph.from_coordinates(degrees, range(8), radius=radius, geographic=True).adjacency.toarray() > 0
    assert joined[0, 1] == (factor > 1)
    clear = np.abs(kilometres - radius) > 1e-4
    np.testing.assert_array_equal(joined[clear], (kilometres < radius)[clear] & ~np.eye(8, dtype=bool)[clear])


def test_the_earth_is_round():
    places = [[179.9, 0], [-179.9, 0], [0, 89.9], [180, 89.9], [0, 0]]
    graph = BagGraph.from_coordinates(places, list("abcde"), n_neighbors=1, geographic=True)
    assert graph.adjacency[0, 1] == graph.adjacency[2, 3] == 1
    assert BagGraph.from_coordinates(places, list("abcde"), radius=30000, geographic=True).n_edges == 10


def test_many_bags_in_one_place_have_the_first_as_neighbours():
    graph = BagGraph.from_coordinates(np.zeros((500, 2)), range(500), n_neighbors=2)
    assert graph.neighbor_counts[:4].tolist() == [499, 499, 2, 2]


@pytest.mark.parametrize(
    ("coords", "how", "text"),
    [
        ([[0, 0], [1, 1]], {}, "n_neighbors or radius, got neither; pass exactly one of the two"),
        (
            [[0, 0], [1, 1]],
            {"radius": 1, "n_neighbors": 1},
            "n_neighbors or radius, got both; pass exactly one of the two",
        ),
        (
            [[0, 0], [1, 1]],
            {"n_neighbors": 2},
            "n_neighbors from 1 to below the number of bags, got n_neighbors=2 with 2 bags; lower it or pass more bags",
        ),
        (
            [[0, 0], [1, 1]],
            {"n_neighbors": 1.5},
            "n_neighbors from 1 to below the number of bags, got n_neighbors=1.5 with 2 bags; lower it or pass more bags",
        ),
        ([[0, 0], [1, 1]], {"radius": -1}, "a finite radius above 0, got radius=-1; pass a distance"),
        ([0, 1], {"radius": 1}, "two or three coordinates a bag, got shape (2,); pass a (bags, 2) array"),
        (
            [[0, 0, 0], [1, 1, 1]],
            {"radius": 1, "geographic": True},
            "longitude and latitude of every bag, got shape (2, 3); pass a (bags, 2) array",
        ),
        (
            [[0, 0], [1, math.nan]],
            {"radius": 1},
            "finite coordinates, got [1.0, nan] for bag 'b'; correct it or leave that bag out",
        ),
        (
            [[0, 0], [1, 91]],
            {"radius": 1, "geographic": True},
            "longitudes from -180 to 360 and latitudes from -90 to 90, got [1.0, 91.0] for bag 'b'; "
            "correct it or leave that bag out",
        ),
    ],
)
def test_coordinates_are_refused(coords, how, text):
    with pytest.raises(BagError) as caught:
        BagGraph.from_coordinates(coords, ["a", "b"], **how)
    assert str(caught.value) == f"graph: expected {text}"


# ---------------------------------------------------------------------- from_polygons


def square(x, y, closed=True):
    ring = [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1]]
    return np.array(ring + ring[: int(closed)], dtype=np.float64)


@st.composite
def maps(draw):
    cells = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=9, unique=True))
    return [square(x, y) for x, y in cells]


@QUICK
@given(maps(), st.sampled_from([1, 2]))
def test_squares_share_borders_with_those_beside_them_and_corners_with_all_around(squares, shared):
    graph = BagGraph.from_polygons(squares, range(len(squares)), shared=shared)
    steps = np.array([[np.abs(a[0] - b[0]) for b in squares] for a in squares])
    beside, around = steps.sum(axis=2) == 1, steps.max(axis=2) == 1
    np.testing.assert_array_equal(graph.adjacency.toarray(), beside if shared == 2 else around)


@QUICK
@given(maps(), st.data())
def test_where_a_ring_starts_and_how_it_turns_does_not_matter(squares, data):
    ids = range(len(squares))
    turned = []
    for ring in squares:
        open_ring = np.roll(ring[:-1], data.draw(st.integers(0, 3)), axis=0)[:: data.draw(st.sampled_from([1, -1]))]
        turned.append(np.vstack([open_ring, open_ring[:1]]) if data.draw(st.booleans()) else open_ring)
    assert BagGraph.from_polygons(turned, ids) == BagGraph.from_polygons(squares, ids)


@QUICK
@given(maps(), st.data())
def test_every_way_of_writing_polygons_gives_the_same_graph(squares, data):
    class Shape:
        def __init__(self, ring):
            self.__geo_interface__ = {"type": "Polygon", "coordinates": [ring.tolist()]}

    def text(ring):
        return ", ".join(f"{x} {y}" for x, y in ring)

    far = square(90, 90)
    ways = [
        lambda ring: ring,
        lambda ring: ring.tolist(),
        lambda ring: [ring, far],
        lambda ring: np.stack([ring, ring]),
        lambda ring: f"POLYGON (({text(ring)}))",
        lambda ring: f"multipolygon((({text(ring)})),(({text(ring)})))",
        lambda ring: {"type": "Polygon", "coordinates": [ring.tolist()]},
        lambda ring: {"type": "MultiPolygon", "coordinates": [[ring.tolist()]]},
        Shape,
        lambda ring: "POLYGON Z ((" + ", ".join(f"{x} {y} 5" for x, y in ring) + "))",
    ]
    # One far island at most: two bags with the same island would share its corners.
    chosen = [data.draw(st.sampled_from(ways)) for _ in squares]
    islands = [i for i, way in enumerate(chosen) if way is ways[2]]
    for repeated in islands[1:]:
        chosen[repeated] = ways[0]
    ids = range(len(squares))
    written = [way(ring) for way, ring in zip(chosen, squares, strict=True)]
    assert BagGraph.from_polygons(written, ids) == BagGraph.from_polygons(squares, ids)


def test_corners_are_equal_to_a_billionth_of_the_map():
    shift = [1e-11, -1e-11]
    assert BagGraph.from_polygons([square(0, 0), square(1, 0) + shift, square(9, 9)], list("abc")).n_edges == 1
    assert BagGraph.from_polygons([square(0, 0), square(1, 0) + 1e-6, square(9, 9)], list("abc")).n_edges == 0
    point = np.zeros((3, 2))
    assert BagGraph.from_polygons([point, point], ["a", "b"], shared=1).n_edges == 1


FORMS = "a polygon as corners, rings, well-known text or GeoJSON"
ONE = "pass one polygon or multipolygon a bag"


@pytest.mark.parametrize(
    ("polygon", "text"),
    [
        ("POINT (0 0)", f"{FORMS}, got 'POINT (0 0)' for bag 'b'; {ONE}"),
        ("POLYGON ((0 x, 1 0, 1 1))", f"{FORMS}, got 'POLYGON ((0 x, 1 0, 1 1))' for bag 'b'; {ONE}"),
        (
            "POLYGON " + "((0 0, 1 0, 1 q, 0 0, 0 0))",
            f"{FORMS}, got 'POLYGON ((0 0, 1 0, 1 q, 0 0, 0 0))' for bag 'b'; {ONE}",
        ),
        (
            "LINESTRING (0 0, 1 0, 1 1, 0 0, 1 1, 1 2)",
            f"{FORMS}, got 'LINESTRING (0 0, 1 0, 1 1, 0 0, 1 1,... for bag 'b'; {ONE}",
        ),
        ({"type": "Point"}, f"{FORMS}, got {{'type': 'Point'}} for bag 'b'; {ONE}"),
        ({"type": "MultiPolygon", "coordinates": []}, f"{FORMS}, got no ring for bag 'b'; {ONE}"),
        ([], f"{FORMS}, got [] for bag 'b'; {ONE}"),
        (None, f"{FORMS}, got None for bag 'b'; {ONE}"),
        ([[0, 0], [1, 1]], f"three corners or more a ring, got shape (2, 2) for bag 'b'; {ONE}"),
        (
            [[0, 0], [1, 1], [math.inf, 0]],
            "finite corners, got others for bag 'b'; correct that polygon",
        ),
    ],
)
def test_polygons_are_refused_by_bag(polygon, text):
    with pytest.raises(InvalidGraphError) as caught:
        BagGraph.from_polygons([square(0, 0), polygon], ["a", "b"])
    assert str(caught.value) == f"graph: expected {text}"


def test_polygons_are_counted():
    with pytest.raises(
        InvalidGraphError, match=r"one polygon a bag, got 1 for 2 bags; pass them in the order of the ids"
    ):
        BagGraph.from_polygons([square(0, 0)], ["a", "b"])
    with pytest.raises(ParameterError, match="shared corners of 1 or more, got shared=0; pass 2 for a common border"):
        BagGraph.from_polygons([square(0, 0)], ["a"], shared=0)


# ---------------------------------------------------------------------- tables


@QUICK
@given(graphs())
def test_tables_round_trip_without_loss(graph):
    with tempfile.TemporaryDirectory() as folder:
        files = graph.to_csv(Path(folder) / "edges.csv"), graph.to_parquet(str(Path(folder) / "edges.parquet"))
        for table in (graph.to_table(), *files, str(files[0])):
            assert BagGraph.from_table(table, graph.ids) == graph


@pytest.mark.parametrize(
    "odd", ["NA", "nan", " a ", '"', "a,b", "\r", "\n", "\r\n", "007", "1e3", "é", "\t", "'", "\x1f"]
)
def test_odd_ids_survive_files(tmp_path, odd):
    graph = BagGraph.from_edges([(odd, "x", 1 / 3)], ["x", odd, "alone"])
    for file in (graph.to_csv(tmp_path / "e.csv"), graph.to_parquet(tmp_path / "e.parquet")):
        assert BagGraph.from_table(file, graph.ids) == graph
    assert sorted(p.name for p in tmp_path.iterdir()) == ["e.csv", "e.parquet"]


def test_tables_of_others(tmp_path):
    frame = pd.DataFrame({"from": [10, 20], "to": [20, 30], "km": [1, 2]})
    graph = BagGraph.from_table(frame, [10, 20, 30], source="from", target="to", weight="km")
    assert graph.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 2], [0, 2, 0]]
    frame.to_csv(tmp_path / "e.csv", index=False)
    bare = BagGraph.from_table(tmp_path / "e.csv", [10, 20, 30], source="from", target="to", weight=None)
    assert bare.degree.tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (
            {"source": ["a"], "target": ["b"], "weights": [1]},
            "a table of edges, got no column 'weight'; did you mean 'weights'?",
        ),
        (
            {"source": ["a", "a"], "target": ["b", None], "weight": [1, 1]},
            "a bag at both ends of every edge, got none in column 'target' of row 1; fill it in or drop that edge",
        ),
        (
            {"source": ["a"], "target": ["z"], "weight": [1]},
            "edges between known bags, got bag 'z'; drop that edge or add the bag",
        ),
        ("edges.txt", "a .csv or .parquet file, got edges.txt; convert it, or pass a frame"),
    ],
)
def test_tables_are_refused(table, text):
    with pytest.raises(BagError) as caught:
        BagGraph.from_table(pd.DataFrame(table) if isinstance(table, dict) else table, ["a", "b"])
    assert str(caught.value) == f"graph: expected {text}"
    assert isinstance(caught.value, DataFileError if table == "edges.txt" else InvalidGraphError)


# ---------------------------------------------------------------------- other libraries


@QUICK
@given(graphs())
def test_networkx_sees_the_same_graph_and_components(graph):
    theirs = graph.to_networkx()
    assert list(theirs) == graph.ids.tolist()
    np.testing.assert_array_equal(nx.to_numpy_array(theirs, nodelist=list(graph.ids)), graph.adjacency.toarray())
    parts = [set(graph.ids[graph.components == part]) for part in range(graph.n_components)]
    assert parts == sorted(
        nx.connected_components(theirs), key=lambda part: min(graph.ids.tolist().index(i) for i in part)
    )
    assert set(graph.isolates) == set(nx.isolates(theirs))
    assert dict(theirs.degree()) == dict(zip(graph.ids, graph.neighbor_counts.tolist(), strict=True))
    np.testing.assert_allclose([d for _, d in theirs.degree(weight="weight")], graph.degree)


def test_to_pyg_has_every_edge_both_ways(path):
    pytest.importorskip("torch_geometric", reason="needs torch-geometric")
    data = path.to_pyg()
    assert data.num_nodes == 4
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.edge_weight.tolist() == [2, 2, 1, 1]
    assert str(data.edge_weight.dtype) == "torch.float32"
    assert data.is_undirected()


@pytest.mark.parametrize(
    ("method", "module", "package"),
    [("to_pyg", "torch_geometric.data", "torch-geometric"), ("to_networkx", "networkx", "networkx")],
)
def test_what_is_not_installed_is_named(path, monkeypatch, method, module, package):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError) as caught:
        getattr(path, method)()
    assert str(caught.value) == f"{method}: expected the package {package}, got none; pip install {package}"


# ---------------------------------------------------------------------- normalised


@QUICK
@given(graphs(), st.sampled_from([0.0, 0.5, 1.0, 7.0]))
def test_normalised_follows_its_formula(graph, self_loops):
    dense = graph.adjacency.toarray() + self_loops * np.eye(len(graph))
    degree = dense.sum(axis=1)
    inverse = np.divide(1, degree, out=np.zeros_like(degree), where=degree > 0)
    symmetric = graph.normalised(self_loops=self_loops)
    row = graph.normalised(self_loops=self_loops, kind="row")
    np.testing.assert_allclose(symmetric.toarray(), np.sqrt(inverse)[:, None] * dense * np.sqrt(inverse), rtol=1e-12)
    np.testing.assert_allclose(row.toarray(), inverse[:, None] * dense, rtol=1e-12)
    assert isinstance(symmetric, sp.csr_array)
    np.testing.assert_array_equal(symmetric.toarray(), symmetric.toarray().T)
    assert np.abs(np.linalg.eigvalsh(symmetric.toarray())).max() <= 1 + 1e-9
    np.testing.assert_allclose(row.sum(axis=1), degree > 0)


def test_isolates_without_self_loops_are_zero_rows(path):
    for kind in ("symmetric", "row"):
        assert path.normalised(self_loops=0, kind=kind).toarray()[3].tolist() == [0, 0, 0, 0]
        assert path.normalised(kind=kind).toarray()[3].tolist() == [0, 0, 0, 1]


def test_normalised_refuses(path):
    with pytest.raises(ParameterError) as caught:
        path.normalised(kind="rows")
    assert str(caught.value) == "graph: expected kind='symmetric' or 'row', got 'rows'; did you mean 'row'?"
    with pytest.raises(ParameterError) as caught:
        path.normalised(self_loops=-1)
    assert str(caught.value) == (
        "graph: expected self-loops of a finite weight from 0, got self_loops=-1; 1 is customary, 0 leaves them out"
    )


# ---------------------------------------------------------------------- extend


@QUICK
@given(graphs(), st.data())
def test_extend_is_a_bordered_matrix_and_take_undoes_it(graph, data):
    rows = data.draw(hnp.arrays(np.float64, (2, len(graph)), elements=WEIGHTS))
    new = [name + "+" for name in ("".join(graph.ids), "".join(graph.ids) + "+")]
    larger = graph.extend(new, sp.csr_array(rows))
    assert larger.take(graph.ids) == graph
    assert larger.ids.tolist() == [*graph.ids, *new]
    expected = np.block([[graph.adjacency.toarray(), rows.T], [rows, np.zeros((2, 2))]])
    np.testing.assert_array_equal(larger.adjacency.toarray(), expected)
    assert BagGraph(larger.adjacency, larger.ids) == larger


@pytest.mark.parametrize(
    ("ids", "rows", "text"),
    [
        (
            ["e"],
            [[0, -1, 0, 0]],
            "graph: expected finite weights that are not negative, got -1.0 between 'e' and 'b'; correct or drop that edge",
        ),
        (
            ["e"],
            [[0, 1]],
            "graph: expected a row a new bag and a column a bag of the graph (1, 4), got shape (1, 2); "
            "pass the weights from new bags to old",
        ),
        (["a"], [[0, 0, 0, 1]], "bags: expected unique bag ids, got 'a' more than once; rename or merge these bags"),
    ],
)
def test_extend_refuses(path, ids, rows, text):
    with pytest.raises(BagError) as caught:
        path.extend(ids, rows)
    assert str(caught.value) == text


# ---------------------------------------------------------------------- labels on graphs


@QUICK
@given(graphs(), st.data())
def test_homophily_is_a_share_and_does_not_care_for_names(graph, data):
    y = data.draw(st.lists(st.sampled_from(["x", "y", "z"]) | st.none(), min_size=len(graph), max_size=len(graph)))
    share = graph.homophily(y)
    pairs = [
        (weight, y[i] == y[j])
        for (i, j), weight in np.ndenumerate(graph.adjacency.toarray())
        if weight and y[i] is not None and y[j] is not None
    ]
    expected = sum(w for w, alike in pairs if alike) / sum(w for w, _ in pairs) if pairs else math.nan
    assert same(share, expected)
    renamed = [{"x": 3, "y": 1, "z": 2, None: None}[label] for label in y]
    assert same(graph.homophily(renamed), share)


@QUICK
@given(graphs(), st.data())
def test_morans_i_is_the_double_sum(graph, data):
    values = st.floats(-100, 100, width=16) | st.just(math.nan)
    y = data.draw(hnp.arrays(np.float64, len(graph), elements=values))
    known = ~np.isnan(y)
    weights, z = graph.adjacency.toarray()[known][:, known], y[known] - y[known].mean() if known.any() else y[known]
    total = math.nan
    if weights.sum() and np.ptp(y[known]):
        double = sum(weights[i, j] * z[i] * z[j] for i in range(len(z)) for j in range(len(z)))
        total = len(z) / weights.sum() * double / (z**2).sum()
    assert np.isclose(graph.morans_i(y), total, rtol=1e-6, atol=1e-9, equal_nan=True)
    assert np.isclose(graph.morans_i(y * -4 + 1), total, rtol=1e-6, atol=1e-9, equal_nan=True)


def test_measures_on_a_path_by_hand(path):
    assert path.homophily([0, 0, 1, 1]) == 2 / 3
    assert path.morans_i([1, 2, 3, None]) == pytest.approx(3 / 6 * 2 * (2 * -1 * 0 + 0 * 1) / 2, abs=1e-12)
    assert path.morans_i([0.0, 0.0, 1.0, 1.0]) == pytest.approx(4 / 6 * 2 * (2 * 0.25 - 0.25))
    assert path.morans_i([1e200, -1e200, 1e200, 0]) == pytest.approx(path.morans_i([1, -1, 1, 0]))
    assert math.isnan(path.morans_i([0.1] * 4))
    assert math.isnan(path.homophily(["x", None, "y", "y"]))


@pytest.mark.parametrize(
    ("measure", "y", "text"),
    [
        (
            "morans_i",
            ["x", "y", "x", "y"],
            "graph: expected real labels for Moran's I, got text; use homophily for classes",
        ),
        ("morans_i", [[1, 2]] * 4, "graph: expected one label a bag, got shape (4, 2); pass one target at a time"),
        (
            "morans_i",
            [1, 2, math.inf, 4],
            "bags: expected a finite number as label, got an infinite one (bag 'c'); correct it, or mark it as missing with NaN or None",
        ),
        (
            "homophily",
            [1, 2],
            "bags: expected 4 values of label, got shape (2,); pass one label each, in the order of the bags",
        ),
    ],
)
def test_measures_refuse(path, measure, y, text):
    with pytest.raises(BagError) as caught:
        getattr(path, measure)(y)
    assert str(caught.value) == text


def test_large_graphs_are_the_same_by_every_road():
    count = 20_000
    ring = np.arange(count)
    matrix = builders.join(ring, np.roll(ring, 1), count)
    graph = BagGraph.from_adjacency(matrix, ring)
    assert graph.n_edges == count
    assert graph.n_components == 1
    assert BagGraph.from_edges(zip(ring.tolist(), np.roll(ring, 1).tolist(), strict=True), ring) == graph


@pytest.mark.parametrize(
    ("indptr", "indices", "data"),
    [([0, 1, 2], [1, 5], [1.0, 1.0]), ([0, 1, 2], [-1, 0], [1.0, 1.0]), ([0, 2, 1], [1, 0], [1.0, 1.0])],
)
def test_sparse_matrices_that_lead_out_of_themselves_are_refused(indptr, indices, data):
    """Scipy follows them, and the process dies."""
    matrix = sp.csr_array((2, 2))
    matrix.indptr, matrix.indices, matrix.data = (np.array(part) for part in (indptr, indices, data))
    with pytest.raises(InvalidGraphError, match="a sparse matrix in order"):
        BagGraph(matrix, ["a", "b"])
