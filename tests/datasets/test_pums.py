"""People of made person files become bags that no chunk, order or packing changes; odd files are refused."""

from __future__ import annotations

import gzip
import re
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baggraph.datasets import pums
from baggraph.errors import BagWarning, DataFileError, InvalidBagsError, ParameterError

REGIONS = pd.DataFrame(
    {"state_fips": [1, 1, 2, 2], "puma10": [100, 200, 100, 300], "region": ["AL_1", "AL_1", "AK_1", "AK_2"]}
)
SURVEY = "take files of the 2010-2014 five-year survey"


def made_people(count: int = 200, seed: int = 0) -> pd.DataFrame:
    """A person file: codes of the dictionary, blanks where it allows them, some people without a 2010 area."""
    generator = np.random.default_rng(seed)
    areas = REGIONS.iloc[generator.integers(0, len(REGIONS), count)]
    old = generator.random(count) < 0.2
    people = {
        "RT": "P",
        "serialno": [f"2012{seed}{i:07}" for i in range(count)],
        "SPORDER": generator.integers(1, 4, count),
        "PUMA00": np.where(old, 500, -9),
        "PUMA10": np.where(old, -9, areas["puma10"]),
        "ST": areas["state_fips"].to_numpy(),
        "ADJINC": 1_008_425,
        "PWGTP": generator.integers(1, 80, count),
        "AGEP": generator.integers(0, 95, count),
        "ANC": 1,
    }
    for name in (*pums.NUMBERS[1:], *pums.INCOMES):
        people[name] = with_blanks(generator, generator.integers(-50 if name == "INTP" else 0, 400, count))
    for name, codes in pums.CATEGORIES.items():
        values = generator.integers(1, codes + 1, count)
        people[name] = values if name in pums.NEVER_BLANK else with_blanks(generator, values)
    return pd.DataFrame(people)


def with_blanks(generator: np.random.Generator, values: np.ndarray) -> pd.Series:
    return pd.Series(values, dtype="Int64").mask(generator.random(len(values)) < 0.2)


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return made_people()


@pytest.fixture(scope="module")
def folder(people, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pums")
    people[:90].to_csv(folder / "ss14pusa.csv", index=False)
    people[90:].to_csv(folder / "ss14pusb.csv.gz", index=False)
    (folder / "ss14husa.csv").write_text("RT,SERIALNO,WGTP\nH,1,2\n")
    (folder / "readme.txt").write_text("PWGTP")
    return folder


def alone(tmp_path, people: pd.DataFrame):
    people.to_csv(tmp_path / "ss14pusa.csv", index=False)
    return tmp_path


def placed(people: pd.DataFrame) -> pd.DataFrame:
    return people.merge(REGIONS, left_on=["ST", "PUMA10"], right_on=["state_fips", "puma10"])


# ---------------------------------------------------------------------- laws


@given(chunk_rows=st.integers(1, 250), wanted=st.sampled_from([None, 1, 7, 500]), seed=st.integers(0, 2**70))
@settings(deadline=None, max_examples=12)
def test_chunks_change_nothing(folder, chunk_rows, wanted, seed):
    settings = {"people_per_region": wanted, "random_state": seed}
    whole = pums.read_pums(folder, REGIONS, **settings)
    assert pums.read_pums(folder, REGIONS, chunk_rows=chunk_rows + 10, **settings) == whole


@pytest.mark.parametrize("wanted", [None, 5])
def test_order_and_packing_of_files_change_nothing(folder, people, tmp_path, wanted):
    other, zipped = tmp_path / "other", tmp_path / "zipped"
    other.mkdir()
    zipped.mkdir()
    people[40:][::-1].to_csv(other / "a.csv", index=False)
    people[:40].rename(columns=str.lower).to_csv(other / "b.CSV", index=False)
    with zipfile.ZipFile(zipped / "csv_pus.zip", "w") as archive:
        archive.writestr("ss14pusb.csv", people[:10].to_csv(index=False))
        archive.writestr("ss14pusa.csv", people[10:].to_csv(index=False).replace("\n", "\r\n"))
        archive.writestr("README.pdf", b"%PDF")
    expected = pums.read_pums(folder, REGIONS, people_per_region=wanted)
    assert pums.read_pums(other, REGIONS, people_per_region=wanted) == expected
    assert pums.read_pums(str(zipped), REGIONS, people_per_region=wanted) == expected


def test_everybody_is_kept_without_a_limit(folder, people):
    bags = pums.read_pums(folder, REGIONS, people_per_region=None)
    known = placed(people)
    names = known["serialno"] + "-" + known["SPORDER"].astype(str)
    assert bags.ids.tolist() == ["AK_1", "AK_2", "AL_1"]
    for bag in bags:
        assert sorted(bag.instance_names) == sorted(names[known["region"] == bag.id])
    assert bags.y is None
    weight = dict(zip(names, known["PWGTP"], strict=True))
    assert bags.instance_info["weight"].tolist() == [weight[name] for name in bags.instance_names]
    old = int((people["PUMA10"] == -9).sum())
    assert bags.metadata["people_read"] == 200
    assert bags.metadata["people_without_puma10"] == old > 0
    assert bags.metadata["people_placed"] == 200 - old == bags.n_instances
    assert bags.metadata["people_in_unknown_pumas"] == 0


def test_a_smaller_sample_is_the_beginning_of_a_larger(folder):
    few, many = (pums.read_pums(folder, REGIONS, people_per_region=n) for n in (4, 20))
    assert few.sizes.tolist() == [4, 4, 4]
    assert all(a.instance_names.tolist() == b.instance_names[:4].tolist() for a, b in zip(few, many, strict=True))


def test_other_seeds_choose_other_people(folder):
    first, same, other = (pums.read_pums(folder, REGIONS, people_per_region=5, random_state=s) for s in (1, 1, 2))
    assert first == same
    assert first.instance_names.tolist() != other.instance_names.tolist()


def test_the_choice_of_people_is_pinned(folder):
    bags = pums.read_pums(folder, REGIONS, people_per_region=2)
    assert bags.instance_names.tolist() == [
        "201200000156-2",
        "201200000049-3",
        "201200000187-3",
        "201200000190-1",
        "201200000163-1",
        "201200000186-2",
    ]


def test_people_are_drawn_by_weight(tmp_path):
    weights, n_areas, n_seeds = np.array([1, 2, 3, 4, 10]), 60, 10
    area = np.repeat(np.arange(1, n_areas + 1), len(weights))
    people = made_people(len(area), seed=1).assign(ST=1, PUMA10=area, PWGTP=np.tile(weights, n_areas))
    source = alone(tmp_path, people)
    regions = pd.DataFrame({"state_fips": 1, "puma10": np.unique(area), "region": [f"r{i:02}" for i in range(n_areas)]})
    drawn = np.zeros(11)
    for seed in range(n_seeds):
        bags = pums.read_pums(source, regions, people_per_region=1, random_state=seed)
        drawn += np.bincount(bags.instance_info["weight"].astype(int), minlength=11)
    expected = n_seeds * n_areas * weights / weights.sum()
    assert ((drawn[weights] - expected) ** 2 / expected).sum() < 13.3  # the 1 % point of chi-squared with 4 degrees


def test_uniforms_of_the_hash_are_uniform():
    people = pd.DataFrame({"SERIALNO": [f"2014{i:09}" for i in range(5000)], "SPORDER": 1.0, "PWGTP": 1.0})
    uniform = np.exp(-pums._keys(people, 0))
    assert np.allclose(np.histogram(uniform, 10, (0, 1))[0], 500, atol=90)
    assert abs(np.corrcoef(uniform[:-1], uniform[1:])[0, 1]) < 0.05
    assert abs(np.corrcoef(uniform, np.exp(-pums._keys(people, 1)))[0, 1]) < 0.05
    assert len(np.unique(uniform)) == 5000


# ---------------------------------------------------------------------- features and labels


def test_features_are_those_of_the_dictionary(folder, people):
    bags = pums.read_pums(folder, REGIONS, people_per_region=None)
    assert bags.feature_names.tolist() == pums.feature_names()
    frame = pd.DataFrame(bags.instances, columns=bags.feature_names, index=bags.instance_names)
    raw = people.set_index(people["serialno"] + "-" + people["SPORDER"].astype(str)).loc[frame.index]
    assert frame["AGEP"].tolist() == raw["AGEP"].tolist()
    assert (frame["WKHP_blank"] == raw["WKHP"].isna().to_numpy()).all()
    assert frame["WKHP"].tolist() == raw["WKHP"].fillna(0).tolist()
    dollars = raw["INTP"].fillna(0).to_numpy(dtype=float) * 1.008425
    assert dollars.min() < 0
    assert np.allclose(frame["INTP"], np.sign(dollars) * np.log1p(abs(dollars)), rtol=1e-6)
    for name, codes in pums.CATEGORIES.items():
        block = frame[[c for c in frame if c.rsplit("_", 1)[0] == name]]
        assert (block.sum(axis=1) == 1).all()
        code = raw[name].to_numpy(dtype=float, na_value=codes + 1)
        assert (block.to_numpy().argmax(axis=1) + 1 == code).all()


def test_withheld_answers_count_as_blank(tmp_path):
    people = made_people().assign(FER=8)
    bags = pums.read_pums(alone(tmp_path, people), REGIONS)
    assert bags.instances[:, pums.feature_names().index("FER_blank")].all()


@pytest.mark.parametrize("kind", [dict, pd.Series])
def test_labels_by_region(folder, kind):
    bags = pums.read_pums(folder, REGIONS, labels=kind({"AL_1": 0.6, "AK_2": 0.25, "WY_1": 0.7}))
    assert bags.y.tolist()[1:] == [0.25, 0.6]
    assert bags.labelled.tolist() == [False, True, True]


@pytest.mark.parametrize("name", ["regions.parquet", "regions.csv"])
def test_regions_may_be_a_file(folder, tmp_path, name):
    path = tmp_path / name
    REGIONS.to_parquet(path) if name.endswith("parquet") else REGIONS.to_csv(path, index=False)
    assert pums.read_pums(folder, path) == pums.read_pums(folder, REGIONS)


def test_unknown_areas_are_counted_and_empty_regions_named(folder, people):
    extra = pd.DataFrame({"state_fips": [3, 4], "puma10": [1, 1], "region": ["ZZ_1", "AA_1"]})
    regions = pd.concat([REGIONS[:3], extra])
    with pytest.warns(BagWarning) as caught:
        bags = pums.read_pums(folder, regions, people_per_region=None)
    assert [str(w.message) for w in caught] == ["pums: left out regions without people: 'AA_1', 'ZZ_1'"]
    assert caught[0].filename == __file__
    assert bags.ids.tolist() == ["AK_1", "AL_1"]
    assert bags.metadata["people_in_unknown_pumas"] == ((people["ST"] == 2) & (people["PUMA10"] == 300)).sum()


# ---------------------------------------------------------------------- refusals


def refused(kind, *arguments, **more) -> str:
    with pytest.raises(kind) as caught:
        pums.read_pums(*arguments, **more)
    return str(caught.value)


def test_a_folder_without_person_files(tmp_path):
    (tmp_path / "ss14husa.csv").write_text("RT,WGTP\n")
    (tmp_path / "empty.csv").write_text("")
    for place in (tmp_path, tmp_path / "nowhere"):
        assert refused(DataFileError, place, REGIONS) == (
            f"pums: expected a person file (.csv, .csv.gz or .zip) in {place}, got none; "
            "unpack csv_pus.zip of the 2010-2014 five-year survey there"
        )


def test_missing_columns_are_named_with_the_file(folder, people, tmp_path):
    source = alone(tmp_path, people.drop(columns=["WAGP", "SEX"]))
    assert refused(DataFileError, source, REGIONS) == (
        f"pums: expected column WAGP in {tmp_path / 'ss14pusa.csv'}, got none; "
        "take the person files of the 2010-2014 five-year survey"
    )


def test_nobody_to_place(folder, people):
    old = (people["PUMA10"] == -9).sum()
    assert refused(DataFileError, folder, REGIONS.assign(state_fips=9)[1:3]) == (
        "pums: expected people in the areas of the regions, "
        f"got none of 200 people ({old} without PUMA10); pass the regions of these states"
    )


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("PWGTP", 0, "PWGTP above 0 in {file}, got 0; correct the file"),
        ("SPORDER", None, "SPORDER above 0 in {file}, got a blank; correct the file"),
        ("WAGP", "much", "numbers in column WAGP of {file}, got 'much'; correct the file"),
        ("AGEP", None, "a number as AGEP, got a blank for person {person}; " + SURVEY),
        ("SEX", None, "a code from 1 to 2 as SEX, got a blank for person {person}; " + SURVEY),
        ("SCHL", 25, "a code from 1 to 24 as SCHL, got 25 for person {person}; " + SURVEY),
    ],
)
def test_values_outside_the_dictionary(tmp_path, column, value, message):
    people = made_people(20).astype({column: object}).assign(PUMA10=100, ST=1)
    people.loc[5, column] = value
    person = repr(f"{people['serialno'][5]}-{people['SPORDER'][5]}")
    got = refused(DataFileError, alone(tmp_path, people), REGIONS[:1])
    assert got == "pums: expected " + message.format(file=tmp_path / "ss14pusa.csv", person=person)


def test_a_file_twice(folder, people, tmp_path):
    people.to_csv(tmp_path / "ss14pusb.csv.gz", index=False)
    got = refused(DataFileError, alone(tmp_path, people), REGIONS, people_per_region=3)
    assert re.fullmatch(
        r"pums: expected every person once, got '\d+-\d' twice; remove the file that repeats another", got
    )


def test_damaged_files(people, tmp_path):
    whole = gzip.compress(people.to_csv(index=False).encode())
    for name, content in (("a.csv.gz", whole[: len(whole) // 2]), ("a.csv.gz", b"text"), ("a.zip", b"text")):
        path = tmp_path / name
        path.write_bytes(content)
        message = refused(DataFileError, tmp_path, REGIONS)
        assert message.startswith(f"pums: expected a readable file {path}, got ")
        assert message.endswith("; fetch it again")
        path.unlink()


def test_tables_of_regions_that_are_none(folder, tmp_path):
    assert refused(InvalidBagsError, folder, REGIONS.rename(columns={"puma10": "puma"})) == (
        "pums: expected column 'puma10' in the regions, got only 'state_fips', 'puma', 'region'; rename the columns"
    )
    assert refused(InvalidBagsError, folder, pd.concat([REGIONS, REGIONS[1:2]])) == (
        "pums: expected one region for every area, got PUMA 200 of state 1 twice; keep one of the rows"
    )
    assert refused(DataFileError, folder, REGIONS.assign(puma10=["100", "x", "1", "2"])) == (
        "pums: expected numbers in column puma10 of the regions, got 'x'; correct the file"
    )
    assert refused(InvalidBagsError, folder, REGIONS.assign(region=["a", None, "b", "c"])) == (
        "pums: expected a region for every area, got a blank in row 1; fill it in or drop the row"
    )
    assert "expected a readable file" in refused(DataFileError, folder, tmp_path / "nowhere.parquet")


def test_labels_of_other_places(folder):
    assert refused(InvalidBagsError, folder, REGIONS, labels={"Alabama": 0.5}) == (
        "pums: expected labels of regions such as 'AK_1', got labels of 'Alabama'; key the labels by region"
    )


@pytest.mark.parametrize("name", ["people_per_region", "chunk_rows"])
def test_numbers_below_one(folder, name):
    assert refused(ParameterError, folder, REGIONS, **{name: 0}) == (
        f"pums: expected {name} of 1 or more, got 0; raise it"
    )
