"""Loaders: on made files in the real layouts everywhere, and on the real files where they are at hand."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat
from scipy.spatial import Voronoi

import baggraph as bg
from baggraph import datasets
from baggraph.data.splits import pairs
from baggraph.datasets import election, newsgroups, rental
from baggraph.datasets.cards import Counts
from baggraph.errors import DataFileError, FetchError, MissingDependencyError, ParameterError

PAPER = {
    "musk1": (92, 476, 166, 2, 40, 47),
    "musk2": (102, 6598, 166, 1, 1044, 39),
    "fox": (200, 1320, 230, 2, 13, 100),
    "tiger": (200, 1220, 230, 1, 13, 100),
    "elephant": (200, 1391, 230, 3, 13, 100),
}
EMBEDDED = ("digits-bags", "synthetic")


needs = pytest.mark.needs


# ---------------------------------------------------------------------- registry


def test_every_set_has_a_card_that_says_what_it_must():
    assert len(datasets.names()) == 2 + 5 + 20 + 20 + 3 + 1
    for name in datasets.names():
        card = datasets.card(name)
        assert card.name == name
        assert all((card.title, card.licence, card.citation, card.home, card.task))
        for file in card.files:
            assert file.sha256 is None or len(file.sha256) == 64
            assert file.urls or file.hint, f"{file.path}: nobody could come by it"
            assert not Path(file.path).is_absolute()


def test_an_unknown_name_or_option_is_answered_with_the_nearest():
    with pytest.raises(ParameterError, match=r"got 'elefant'; did you mean 'elephant'\?"):
        datasets.load("elefant")
    with pytest.raises(ParameterError, match=r"got 'n_bag'; did you mean 'n_bags'\?"):
        datasets.load("digits-bags", n_bag=3)
    with pytest.raises(ParameterError, match="call load without it"):
        datasets.load("musk1", n_bags=3)
    with pytest.raises(ParameterError, match="a set of the paper, got as_published=True"):
        datasets.load("digits-bags", as_published=True)


def test_elephant_says_that_the_paper_is_wrong_about_its_smallest_bag():
    assert "smallest bag has 2 instances; the paper's table says 3" in datasets.card("elephant").notes[0]


def test_counts_are_checked(monkeypatch):
    registry = {"digits-bags": replace(datasets.card("digits-bags"), counts=Counts(bags=3))}
    monkeypatch.setattr(datasets, "_registry", lambda: registry)
    with pytest.raises(DataFileError, match=r"load\('digits-bags'\): expected 3 bags, got 160"):
        datasets.load("digits-bags")


# ---------------------------------------------------------------------- embedded sets


@pytest.mark.parametrize("name", EMBEDDED)
def test_made_sets_depend_on_their_seed_alone(name):
    assert datasets.load(name) == datasets.load(name, random_state=0)
    assert datasets.load(name) != datasets.load(name, random_state=1)


def test_digits_are_what_their_options_say():
    bags = datasets.load("digits-bags", n_bags=41, bag_size=12, bag_size_spread=0, witness_rate=0.25, target=3)
    assert len(bags) == 41
    assert set(bags.sizes) == {12}
    assert (bags.y == 1).sum() == 20
    witnesses = np.add.reduceat(bags.instance_y, bags.offsets[:-1])
    assert set(witnesses[bags.y == 1]) == {3}
    assert set(witnesses[bags.y == 0]) == {0}
    assert ((bags.instance_info["digit"] == 3) == (bags.instance_y == 1)).all()
    assert len(set(bags.instance_names)) == bags.n_instances
    places = np.concatenate([np.flatnonzero(bag.instance_y) for bag in bags])
    assert set(places) == set(range(12))


def test_digits_are_the_same_on_any_machine():
    text = ",".join(datasets.load("digits-bags").instance_names)
    assert hashlib.sha256(text.encode()).hexdigest().startswith("a1393da052cce1c5")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"n_bags": 1}, "n_bags an integer of at least 2, got 1"),
        ({"bag_size": 0}, "bag_size a finite number of at least 1, got 0"),
        ({"witness_rate": 0}, "witness_rate a finite number above 0, got 0"),
        ({"witness_rate": 1.5}, "witness_rate of at most 1, got 1.5"),
        ({"witness_rate": float("nan")}, "witness_rate a finite number above 0, got nan"),
        ({"bag_size_spread": -1.0}, "bag_size_spread a finite number of at least 0, got -1.0"),
        ({"n_bags": 10.5}, "n_bags an integer of at least 2, got 10.5"),
        ({"n_bags": True}, "n_bags an integer of at least 2, got True"),
        ({"target": "9"}, "target an integer of at least 0, got '9'"),
        ({"random_state": -1}, "random_state an integer of at least 0, got -1"),
        ({"random_state": None}, "random_state an integer of at least 0, got None"),
        ({"target": 10}, "target of at most 9, got 10"),
        ({"n_bags": 170, "bag_size": 12, "witness_rate": 0.01}, "at most 1617 images of other digits, each used once"),
        ({"witness_rate": 1.0}, "at most 180 images of the target digit, each used once"),
    ],
)
def test_digits_refuse(options, text):
    with pytest.raises(ParameterError, match=text):
        datasets.load("digits-bags", **options)


def test_the_signal_of_synthetic_bags_is_smooth_on_their_graph():
    bags = datasets.load("synthetic", smoothness=0.01)
    adjacency = bags.graph.adjacency
    neighbours = adjacency @ bags.y / adjacency.sum(axis=1)
    assert np.corrcoef(bags.y, neighbours)[0, 1] > 0.9
    means = np.add.reduceat(bags.instances[:, 0], bags.offsets[:-1]) / bags.sizes
    assert np.corrcoef(bags.y, means)[0, 1] > 0.8
    assert (np.diff(adjacency.indptr) >= 4).all()
    with pytest.raises(ParameterError, match="n_bags an integer of at least 5, got 4"):
        datasets.load("synthetic", n_bags=4, n_neighbors=4)
    for options in ({"smoothness": 0}, {"smoothness": float("nan")}, {"noise": float("inf")}, {"bag_size": 2.5}):
        name = next(iter(options))
        with pytest.raises(ParameterError, match=rf"synthetic: expected {name} "):
            datasets.load("synthetic", **options)


# ---------------------------------------------------------------------- the benchmark, made


def place(folder, monkeypatch, card, contents):
    """Write made files where the loader looks, and let the card know their checksums."""
    files = []
    for file in card.files:
        if file.path in contents:
            path = folder / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            contents[file.path](path)
            files.append(replace(file, sha256=hashlib.sha256(path.read_bytes()).hexdigest(), urls=()))
        else:
            files.append(replace(file, urls=()))
    made = replace(card, files=tuple(files), counts=Counts())
    monkeypatch.setenv("BAGGRAPH_DATA", str(folder))
    monkeypatch.delenv("BAGGRAPH_MIRROR", raising=False)
    monkeypatch.setattr(datasets, "_registry", lambda: {card.name: made})
    return made


def prtools(path):
    ident = np.zeros((1, 1), dtype=[("milbag", object)])
    ident[0, 0]["milbag"] = np.array([1, 1, 2, 10])
    record = {"data": np.eye(4), "nlab": [[2], [2], [1], [2]], "ident": ident}
    savemat(path, {"x": {**record, "lablist": np.array(["negative", "positive"])}})


def test_a_benchmark_set_loads_with_what_is_at_hand(tmp_path, monkeypatch):
    card = datasets.card("fox")
    files = {"mil_benchmark/raw/fox.mat": prtools}
    place(tmp_path, monkeypatch, card, files)
    bags = datasets.load("fox")
    assert bags.ids.tolist() == ["1", "2", "10"]
    assert bags.y.tolist() == [1, 0, 1]
    assert bags.y.dtype == np.int64
    assert bags.instances.dtype == np.float32
    assert not bags.splits
    assert bags.metadata["name"] == "fox"
    files["mil_benchmark/fox.npz"] = lambda path: np.savez(path, cv_fold_5x10=np.zeros((5, 3), np.int8))
    place(tmp_path, monkeypatch, card, files)
    assert list(datasets.load("fox").splits) == ["midatasets-5x10"]
    files["mil_benchmark/fox.npz"] = lambda path: np.savez(path, X=np.eye(2))
    place(tmp_path, monkeypatch, card, files)
    assert not datasets.load("fox").splits


def test_folds_are_read_from_indices_that_count_from_one(tmp_path):
    from baggraph.datasets.benchmark import folds_of_test_indices

    order = np.stack([np.random.default_rng(r).permutation(20) for r in range(2)])
    savemat(tmp_path / "folds.mat", {"testIndex": (order + 1).reshape(20, 2)})
    folds = folds_of_test_indices(tmp_path / "folds.mat")
    assert folds.shape == (2, 20)
    for repeat in range(2):
        for fold in range(10):
            assert sorted(np.flatnonzero(folds[repeat] == fold)) == sorted(order[repeat, 2 * fold : 2 * fold + 2])


# ---------------------------------------------------------------------- newsgroups, made


def bit_array(file, name, bits):
    """A Julia BitArray as HDF5 keeps it."""
    chunks = np.packbits(np.r_[bits, np.zeros(-len(bits) % 64, bool)], bitorder="little").view("<u8")
    file[f"chunks/{name}"] = chunks
    kind = np.dtype([("chunks_", h5py.ref_dtype), ("len_", "<i8"), ("dims_", h5py.ref_dtype)])
    reference = file[f"chunks/{name}"].ref
    file[name] = np.array((reference, len(bits), reference), dtype=kind)
    return file[name].ref


def julia(path):
    with h5py.File(path, "w") as file:
        bags = [np.full((2, n), n, np.float32) for n in (1, 3, 2)]
        for i, bag in enumerate(bags):
            file[f"bags/{i}"] = bag
        file["X"] = np.array([file[f"bags/{i}"].ref for i in range(3)], dtype=h5py.ref_dtype)
        bit_array(file, "y", np.array([True, False, True]))
        masks = [bit_array(file, f"m{k}", np.arange(3) != k) for k in range(3)]
        file["repeat"] = np.array(masks, dtype=h5py.ref_dtype)
        file["folds"] = np.array([file["repeat"].ref], dtype=h5py.ref_dtype)


def test_julia_files(tmp_path, monkeypatch):
    place(tmp_path, monkeypatch, datasets.card("newsgroups/comp.graphics"), {newsgroups.JULIA: julia})
    bags = datasets.load("newsgroups/comp.graphics")
    assert bags.sizes.tolist() == [1, 3, 2]
    assert bags.y.tolist() == [1, 0, 1]
    assert bags.splits["midatasets-5x10"].tolist() == [[0, 1, 2]]
    np.testing.assert_array_equal(np.asarray(bags[1]), np.full((3, 2), 3))
    (tmp_path / "bad.jld").write_bytes(b"nothing")
    with pytest.raises(DataFileError, match=r"a Julia data set in bad.jld"):
        newsgroups.read_julia(tmp_path / "bad.jld")
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(MissingDependencyError, match="pip install"):
        newsgroups.read_julia(tmp_path / "bad.jld")


def test_a_cell_file_supplied_by_hand_is_checked_by_its_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("BAGGRAPH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BAGGRAPH_OFFLINE", "1")
    with pytest.raises(FetchError, match=r"--from-file FILE"):
        datasets.load("newsgroups/sci.med")
    cell = np.empty((2, 2), dtype=object)
    cell[0], cell[1] = [np.eye(3), 1], [np.eye(3), 0]
    savemat(tmp_path / "mine.mat", {"data": cell})
    placed = datasets.supply_by_hand("newsgroups/sci.med", tmp_path / "mine.mat")
    assert placed == tmp_path / "data/newsgroups/raw/sci.med.mat"
    with pytest.raises(DataFileError, match="expected 100 bags, got 2; supply the files that the card names"):
        datasets.load("newsgroups/sci.med")


def test_supplying_by_hand_finds_the_file_by_checksum_or_name(tmp_path, monkeypatch):
    card = place(tmp_path / "data", monkeypatch, datasets.card("fox"), {"mil_benchmark/raw/fox.mat": prtools})
    (tmp_path / "anything.mat").write_bytes((tmp_path / "data" / card.files[0].path).read_bytes())
    (tmp_path / "data" / card.files[0].path).unlink()
    assert datasets.state(card) == "by hand"
    assert datasets.supply_by_hand("fox", tmp_path / "anything.mat").name == "fox.mat"
    assert datasets.state(card) == "here"
    (tmp_path / "other.mat").write_bytes(b"other")
    with pytest.raises(ParameterError, match=r"a file of the card, by checksum or by name, got other.mat"):
        datasets.supply_by_hand("fox", tmp_path / "other.mat")
    (tmp_path / "fox.mat").write_bytes(b"other")
    with pytest.raises(DataFileError):
        datasets.supply_by_hand("fox", tmp_path / "fox.mat")


def test_state_of_other_cards(tmp_path, monkeypatch):
    monkeypatch.setenv("BAGGRAPH_DATA", str(tmp_path))
    assert datasets.state(datasets.card("digits-bags")) == "embedded"
    assert datasets.state(datasets.card("musk1")) == "to fetch"
    assert datasets.state(datasets.card("newsgroups-rebuilt/sci.med")) == "to fetch"
    with pytest.raises(ParameterError, match="just load it"):
        datasets.supply_by_hand("digits-bags", tmp_path / "x")


def test_the_corpus_serves_as_counts_or_as_archive(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(newsgroups, "_corpus", lambda path: seen.append(path.suffix) or "corpus")
    monkeypatch.setattr(newsgroups.recipe, "build", lambda *args, **more: bg.Bags(np.eye(2), [0, 2], metadata=more))
    card = datasets.card("newsgroups-rebuilt/sci.med")
    place(tmp_path, monkeypatch, card, {newsgroups.ARCHIVE: lambda path: path.write_bytes(b"tar")})
    assert datasets.load(card.name, random_state=3).metadata["random_state"] == 3
    place(tmp_path, monkeypatch, card, {newsgroups.COUNTS: lambda path: path.write_bytes(b"npz")})
    assert datasets.load(card.name).metadata["total"] == 3045
    assert seen == [".gz", ".npz"]


# ---------------------------------------------------------------------- election, made

REGIONS = ["AA", "BB", "CC"]
LON_LAT = np.array([[10.0, 50.0], [-100.0, 30.0], [0.0, 45.0]])


def election_files(borders=True):
    lon, lat = np.radians(LON_LAT).T
    shipped = 6371 * np.stack([np.sin(lat) * np.cos(lon), np.sin(lat) * np.sin(lon), np.cos(lat)], axis=1)
    packed = {
        "X": np.array([[1.0, np.nan], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], np.float32),
        "offsets": [0, 2, 3, 4],
        "regions": np.array(REGIONS),
        "zcta": np.array(["1", "2", "3", "4"]),
        "population": [1, 2, 3, 4],
        "lonlat": np.zeros((4, 2)),
        "county_fips": np.array(["01", "01", "02", "03"]),
    }
    files = {
        election.VOTES: lambda p: pd.DataFrame(
            {"region": REGIONS, "votes_R": [1, 2, 3], "votes_oth": 9, "votes_D": [3, 2, 1]}
        ).to_csv(p, index=False),
        election.CENTROIDS: lambda p: pd.DataFrame(shipped, columns=list("xyz")).assign(region=REGIONS).to_csv(p),
        election.ZCTA: lambda p: np.savez(p, **packed),
    }
    if borders:
        files[election.BORDERS] = lambda p: pd.DataFrame({"region_a": ["AA"], "region_b": ["CC"]}).to_parquet(p)
    return files


def test_election_from_made_files(tmp_path, monkeypatch):
    monkeypatch.setattr(election, "ZCTA_FEATURES", ["f", "g"])
    card = datasets.card("election/zcta")
    card = replace(card, settings={**card.settings, "names": ["f", "g"]})
    place(tmp_path, monkeypatch, card, election_files())
    bags = datasets.load("election/zcta")
    assert bags.y.tolist() == [0.25, 0.5, 0.75]
    np.testing.assert_allclose(bags.coords, LON_LAT)
    assert bags.graph.n_edges == 1
    assert bags.graph.adjacency[0, 2] == 1
    assert bags.instance_info["population"].tolist() == [1, 2, 3, 4]
    assert bags.metadata["imputed_cells"] == 1
    assert bags.instances[0, 1] == 6
    published = datasets.load("election/zcta", as_published=True)
    assert published.coords.shape == (3, 3)
    assert published.graph is None
    place(tmp_path / "less", monkeypatch, card, election_files(borders=False))
    assert datasets.load("election/zcta").graph is None


def test_election_refuses_other_regions(tmp_path, monkeypatch):
    files = election_files()
    files[election.CENTROIDS] = lambda p: pd.DataFrame({"region": ["AA"], "x": 1.0, "y": 1.0, "z": 1.0}).to_csv(p)
    place(tmp_path, monkeypatch, datasets.card("election/zcta"), files)
    with pytest.raises(DataFileError, match="the regions of the vote, got others"):
        datasets.load("election/zcta")


def test_pums_bags_get_the_attachments_of_their_regions(tmp_path, monkeypatch):
    def people(folder, regions, *, labels, people_per_region):
        ids = ["AA", "CC"]
        return bg.Bags(np.eye(2), [0, 1, 2], labels[ids].to_numpy(), ids=ids, metadata={"people": people_per_region})

    monkeypatch.setattr(election, "read_pums", people)
    files = election_files() | {election.PUMAS: lambda p: pd.DataFrame({"puma10": [1]}).to_parquet(p)}
    files |= {election.PERSONS.format(part=part): lambda p: p.write_text("x") for part in "abcd"}
    place(tmp_path, monkeypatch, datasets.card("election/pums"), files)
    bags = datasets.load("election/pums", people_per_region=7)
    assert bags.y.tolist() == [0.25, 0.75]
    assert bags.graph.n_edges == 1
    np.testing.assert_allclose(bags.coords, LON_LAT[[0, 2]])
    np.testing.assert_array_equal(bags.splits["published-100"], election.published_splits(3)[:, [0, 2]])
    assert bags.metadata["people"] == 7


# ---------------------------------------------------------------------- rental, made


def rental_files(**changes):
    square = "POLYGON (({0} 0, {1} 0, {1} 1, {0} 1, {0} 0))"
    districts = pd.DataFrame(
        {
            "name": ["North", "South", "Far"],
            "borough": ["Q", "Q", "K"],
            "geometry": [square.format(0, 1), square.format(1, 2), square.format(5, 6)],
        }
    )
    n = 9
    listings = pd.DataFrame(
        {
            "bathrooms": 1.5,
            "bedrooms": 1,
            "interest_level": ["medium", "low", "high"] * 3,
            "num_photos": range(n),
            "num_features": 0,
            "num_description_words": 0,
            "created_month": 4,
            "created_day": 1,
            "neighbourhood": ["Far", "Elsewhere", "North", "South", "Far", "North", "South", "Far", "North"],
            "price": [100, 1, 300, 500, 200, 300, 700, 300, 90000],
        }
    )
    return {
        rental.LISTINGS: lambda p: listings.assign(**changes.get("listings", {})).to_csv(p),
        rental.DISTRICTS: lambda p: districts.assign(**changes.get("districts", {})).to_csv(p),
        rental.SHIPPED_GRAPH: lambda p: np.savetxt(p, np.eye(3) + np.eye(3)[[1, 0, 2]], delimiter=","),
    }


def test_places_of_neighbourhoods_are_those_whose_cells_the_polygons_are():
    places = np.random.default_rng(0).random((30, 2))
    far = np.array([[-9.0, -9.0], [9.0, -9.0], [-9.0, 9.0], [9.0, 9.0]])  # so that cells end, if far away
    diagram = Voronoi(np.concatenate([places, far]))
    cells = [diagram.vertices[diagram.regions[diagram.point_region[i]]] for i in range(30)]
    rings = [np.concatenate([cell, cell[:1]]) for cell in cells]
    np.testing.assert_allclose(rental._sites(rings), places, atol=1e-4)
    assert np.abs(rental._centroids(rings) - places).max() > 1


def test_rental_sound_and_as_published(tmp_path, monkeypatch):
    monkeypatch.setattr(rental, "N_TRAIN", 2)
    place(tmp_path, monkeypatch, datasets.card("rental"), rental_files())
    sound, published = datasets.load("rental"), datasets.load("rental", as_published=True)
    assert sound.ids.tolist() == ["North", "South", "Far"]
    assert published.ids.tolist() == ["Far", "North", "South"]
    assert sound.feature_names.tolist() == list(rental.COVARIATES)
    assert published.feature_names.tolist()[-2:] == ["neighbourhood", "price"]
    ceiling = np.percentile([100, 300, 500, 200, 300, 700, 300, 90000], 95)
    np.testing.assert_allclose(sound.y, [(600 + ceiling) / 3, 600, 200])
    np.testing.assert_allclose(published.y, [200, 90600 / 3, 600])
    assert sound.graph.n_edges == 1
    assert sound.graph.adjacency[0, 1] == 1
    np.testing.assert_allclose(sound.coords, [[0.5, 0.5], [1.5, 0.5], [5.5, 0.5]])
    assert sound["Far"].instances[:, 2].tolist() == [1, 0, 0]
    assert published["Far"].instances[:, 2].tolist() == [0, 2, 2]
    assert published["South"].instances[:, 8].tolist() == [2, 2]
    np.testing.assert_allclose(published.instances[:, 9].mean(), 0, atol=1e-12)
    np.testing.assert_allclose(published.instances[:, 9].std(ddof=1), 1)
    assert published.graph.adjacency[0, 1] == 1
    assert published.bag_info["shipped_self_loop"].tolist() == [1, 1, 2]
    for bags in (sound, published):
        trained = [set(bags.ids[train]) for train, _ in pairs(bags.splits["published-100"])]
        assert trained[0] == {["Far", "North", "South"][i] for i in shuffled(3, 0)[:2]}


def shuffled(count, seed):
    order = np.arange(count)
    np.random.RandomState(seed).shuffle(order)
    return order


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"listings": {"neighbourhood": "North"}}, "complete listings for every district, got none in 'Far'"),
        ({"listings": {"bedrooms": np.nan}}, "complete listings for every district, got missing values"),
        ({"districts": {"geometry": "POINT (0 0)"}}, r"POLYGON \(\(x y, ...\)\), got 'POINT \(0 0\)'"),
    ],
)
def test_rental_refuses(tmp_path, monkeypatch, changes, text):
    place(tmp_path, monkeypatch, datasets.card("rental"), rental_files(**changes))
    with pytest.raises(DataFileError, match=text):
        datasets.load("rental")


# ---------------------------------------------------------------------- the real files


@pytest.mark.parametrize("name", PAPER)
@needs("mil_benchmark/raw")
def test_real_benchmarks_have_the_counts_of_the_paper(real, name):
    bags = datasets.load(name)
    counts = vars(datasets.count(bags))
    paper = dict(zip(("bags", "instances", "features", "smallest", "largest", "positive"), PAPER[name], strict=True))
    if name == "elephant":
        assert (counts["smallest"], paper["smallest"]) == (2, 3)
        paper["smallest"] = 2
    assert counts == paper
    for folds in bags.splits.values():
        assert all(np.bincount(row).min() >= len(bags) // 10 for row in folds)


@needs("newsgroups")
def test_the_real_julia_file_equals_its_packed_copy(real):
    bags = datasets.load("newsgroups/comp.graphics")
    with np.load(real / "newsgroups/comp.graphics.npz") as packed:
        np.testing.assert_array_equal(bags.instances.data, packed["X_data"])
        np.testing.assert_array_equal(bags.instances.indices, packed["X_indices"])
        np.testing.assert_array_equal(bags.offsets, packed["offsets"])
        np.testing.assert_array_equal(bags.y, packed["y"])
        np.testing.assert_array_equal(bags.splits["midatasets-5x10"], packed["cv_fold_5x10"])


@pytest.mark.parametrize("group", newsgroups.SIZES)
@needs("newsgroups_rebuilt/corpus_counts.npz")
def test_all_rebuilt_groups_load(real, group):
    bags = datasets.load(f"newsgroups-rebuilt/{group}")
    norms = np.sqrt(bags.instances.power(2).sum(axis=1))
    np.testing.assert_allclose(norms, 1, rtol=1e-5)
    np.testing.assert_array_equal(np.maximum.reduceat(bags.instance_y, bags.offsets[:-1]), bags.y)


@pytest.mark.parametrize(("name", "table"), [("zcta", "region_zcta"), ("tracts", "region_tract2000")])
@needs("us_election_2016/regions.parquet")
def test_the_real_election_equals_its_tables(real, name, table):
    bags = datasets.load(f"election/{name}")
    regions = pd.read_parquet(real / "us_election_2016/regions.parquet")
    assert bags.ids.tolist() == regions["region"].tolist()
    np.testing.assert_allclose(bags.y, regions["share_R"])
    np.testing.assert_allclose(bags.coords, regions[["lon", "lat"]], atol=1e-8)
    assert bags.graph.n_edges == 2605
    with np.load(real / f"us_election_2016/{table}.npz", allow_pickle=True) as packed:
        assert bags.feature_names.tolist() == packed["feature_names"].tolist()
        present = ~np.isnan(packed["X"])
        np.testing.assert_array_equal(bags.instances[present], packed["X"][present])
        assert bags.metadata["imputed_cells"] == (~present).sum()
    with np.load(real / "us_election_2016/authors_splits.npz") as splits:
        for (train, _), expected in zip(pairs(bags.splits["published-100"]), splits["train_idx"], strict=True):
            assert set(train) == set(expected)
    published = datasets.load(f"election/{name}", as_published=True)
    np.testing.assert_array_equal(published.coords, regions[["x", "y", "z"]])


@needs("nyc_rental/nyc_rental.npz")
def test_the_real_rental_equals_its_packed_copy(real):
    bags, published = datasets.load("rental"), datasets.load("rental", as_published=True)
    with np.load(real / "nyc_rental/nyc_rental.npz") as packed:
        np.testing.assert_array_equal(bags.instances, packed["X"])
        np.testing.assert_array_equal(bags.offsets, packed["offsets"])
        np.testing.assert_array_equal(bags.ids, packed["bag_names"])
        np.testing.assert_array_equal(bags.bag_info["borough"], packed["borough"])
        np.testing.assert_allclose(bags.y, packed["y_clip95"], rtol=1e-6)
        np.testing.assert_allclose(published.take(bags.ids).y, packed["y"], rtol=1e-6)
        np.testing.assert_allclose(published.take(bags.ids).coords, packed["centroid"], rtol=1e-6)
        moved = np.abs(bags.coords - published.take(bags.ids).coords).max(axis=1)
        assert np.median(moved) < 0.005
        assert bags.coords[:, 0].min() > -74.05  # nowhere in New Jersey
        np.testing.assert_array_equal(bags.graph.adjacency.toarray(), packed["adj_border"])
        shipped = packed["adj_shipped"] - np.diag(np.diag(packed["adj_shipped"]))
        np.testing.assert_array_equal(published.graph.adjacency.toarray(), shipped)
        assert published.ids.tolist() == bags.ids[packed["order_in_authors_code"]].tolist()
    with np.load(real / "nyc_rental/authors_splits.npz") as splits:
        for (train, _), expected in zip(pairs(published.splits["published-100"]), splits["train_idx"], strict=True):
            assert set(train) == set(expected)
    assert round(published.metadata["price_std"]) == 22404
    assert round(published.metadata["clipped_price_std"]) == 1381


@needs("nyc_rental/nyc_rental.npz")
def test_a_constant_misses_the_real_rents_by_799_dollars(real):
    y = datasets.load("rental").y
    folds = datasets.load("rental").splits["published-100"]
    errors = [np.sqrt(np.mean((y[test] - y[train].mean()) ** 2)) for train, test in pairs(folds)]
    assert round(float(np.mean(errors))) == 799
