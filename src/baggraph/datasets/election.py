"""How 979 regions of the United States voted in 2016, from the people and places in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.datasets.cards import Card, Counts, DataFile
from baggraph.datasets.pums import read_pums
from baggraph.errors import DataFileError

VOTES = "us_election_2016/raw/results-2016-election.csv"
CENTROIDS = "us_election_2016/raw/centroids_cartesian_10.csv"
BORDERS = "us_election_2016/region_adjacency.parquet"
PUMAS = "us_election_2016/puma10_to_region.parquet"
ZCTA = "us_election_2016/region_zcta.npz"
TRACTS = "us_election_2016/region_tract2000.npz"
PERSONS = "us_election_2016/pums/ss14pus{part}.csv"
N_TRIALS, N_TRAIN = 100, 24

ZCTA_FEATURES = """
percent_white percent_black percent_asian percent_hispanic log_per_capita_income log_median_rent median_age
log_population log_density log_wages_per_head housing_units_per_head log_land_area water_fraction race2010_white
race2010_black race2010_api race2010_native race2010_multiple race2010_hispanic
""".split()
TRACT_FEATURES = """
white black ameri.es asian hawn.pi other mult.race hispanic nh.white nh.black nh.ameri.es nh.asian nh.hawn.pi
nh.other h.white h.black h.american.es h.asian h.hawn.pi h.other males age.under5 age.5.17 age.18.21 age.22.29
age.30.39 age.40.49 age.50.64 age.65.up med.age med.age.m med.age.f ave.hh.sz hsehld.1.m hsehld.1.f marhh.chd
marhh.no.c mhh.child fhh.child hh.1person hh.2person hh.3person hh.4person hh.5person hh.6person hh.7person
hh.nh.white.1p hh.nh.white.2p hh.nh.white.3p hh.nh.white.4p hh.nh.white.5p hh.nh.white.6p hh.nh.white.7p
hh.hisp.1p hh.hisp.2p hh.hisp.3p hh.hisp.4p hh.hisp.5p hh.hisp.6p hh.hisp.7p hh.black.1p hh.black.2p hh.black.3p
hh.black.4p hh.black.5p hh.black.6p hh.black.7p hh.asian.1p hh.asian.2p hh.asian.3p hh.asian.4p hh.asian.5p
hh.asian.6p hh.asian.7p hh.occupied hh.vacant hh.owner hh.renter log.pop2000 log.units
""".split()


def build(files: Mapping[str, Path], *, as_published: bool, packed: str, names: list[str]) -> Bags:
    """Bags of ZIP areas or census tracts, labelled with the Republican share of the two-party vote.

    Sound: coordinates are longitude and latitude, the graph joins regions that share a border.  As
    published: coordinates are the shipped Cartesian ones, which take latitude for co-latitude, and there
    is no graph beside them.  Missing features are imputed with the median of their column.
    """
    regions = _regions(files)
    with np.load(files[packed]) as content:
        # feature_names in this file is a pickled array, which is not opened; the names stand above.
        if content["regions"].tolist() != regions.index.tolist():
            raise DataFileError(
                "election", expected="the regions of the vote", got="others", remedy="use the files of the card"
            )
        block, offsets = content["X"], content["offsets"]
        info: dict[str, Any] = {"population": content["population"]}
        info |= {key: content[key] for key in ("lonlat", "county_fips") if key in content.files}
        places = content["zcta"] if "zcta" in content.files else content["tract_key"]
    return Bags(
        block,
        offsets,
        regions["share"],
        ids=regions.index,
        feature_names=names,
        instance_names=places,
        instance_info=info,
        missing="impute",
        **_attachments(regions, files, as_published),
    )


def build_pums(files: Mapping[str, Path], *, as_published: bool, people_per_region: int | None = 100) -> Bags:
    """Bags of people from the census's person files, as the paper's experiment has them."""
    regions = _regions(files)
    folder = files[PERSONS.format(part="a")].parent
    bags = read_pums(
        folder, pd.read_parquet(files[PUMAS]), labels=regions["share"], people_per_region=people_per_region
    )
    known = regions.loc[bags.ids]
    return bags.replace(**_attachments(known, files, as_published, all_regions=regions.index.tolist()))


def _regions(files: Mapping[str, Path]) -> pd.DataFrame:
    votes = pd.read_csv(files[VOTES]).set_index("region")
    places = pd.read_csv(files[CENTROIDS]).set_index("region")
    return places.assign(share=votes["votes_R"] / (votes["votes_R"] + votes["votes_D"]))


def _attachments(
    regions: pd.DataFrame, files: Mapping[str, Path], as_published: bool, all_regions: list[str] | None = None
) -> dict[str, Any]:
    ids = regions.index.tolist()
    shipped = regions[["x", "y", "z"]].to_numpy()
    graph = _borders(files[BORDERS], ids) if BORDERS in files and not as_published else None
    folds = published_splits(len(all_regions or ids))
    kept = slice(None) if all_regions is None else pd.Index(all_regions).get_indexer(pd.Index(ids))
    return {
        "coords": shipped if as_published else longitude_latitude(shipped),
        "graph": graph,
        "splits": {"published-100": folds[:, kept]},
    }


def longitude_latitude(shipped: NDArray[np.float64]) -> NDArray[np.float64]:
    """Degrees from the shipped coordinates x = r sin(lat) cos(lon), y = r sin(lat) sin(lon), z = r cos(lat).

    >>> longitude_latitude(np.array([[0.0, 0.5, 0.75**0.5]])).round(6).tolist()
    [[90.0, 30.0]]
    """
    x, y, z = shipped.T
    radius = np.sqrt((shipped**2).sum(axis=1))
    return np.degrees(np.stack([np.arctan2(y, x), np.arccos(z / radius)], axis=1))


def _borders(path: Path, ids: list[str]) -> BagGraph:
    edges = pd.read_parquet(path)
    inside = edges["region_a"].isin(ids) & edges["region_b"].isin(ids)
    return BagGraph.from_edges(edges.loc[inside, ["region_a", "region_b"]].itertuples(index=False, name=None), ids)


def published_splits(n_regions: int) -> NDArray[np.int16]:
    """The 100 published splits: seed t shuffles the regions of trial t and the first 24 train."""
    folds = np.zeros((N_TRIALS, n_regions), dtype=np.int16)
    for trial in range(N_TRIALS):
        order = np.arange(n_regions)
        np.random.RandomState(trial).shuffle(order)  # the legacy stream is the published one
        folds[trial, order[:N_TRAIN]] = -1
    return folds


US2016 = "https://raw.githubusercontent.com/flaxter/us2016/3cdbca90f1faa9f77efa507ea54cd8bb3bff0289/data"
COMMON = (
    DataFile(
        VOTES,
        "26dca870e0e80d118cf62aaa67163ae424f8ea5d2a4bafe509717483f5bb9265",
        (f"{US2016}/results-2016-election.csv",),
    ),
    DataFile(
        CENTROIDS,
        "3e68c77ca5dc473e6b37dab161bd70388396fd3952d8add5345b5b5c16d2cd8e",
        (f"{US2016}/centroids_cartesian_10.csv",),
    ),
    DataFile(
        BORDERS,
        "0e10430990efe2a61096059cf25e103107de951cc432c165e1d0aa5fcaeb3b0c",
        optional=True,
        hint="without it the set has no graph of borders",
    ),
)
FLAXMAN = (
    "Flaxman, Wang, Smola (2015). Who supported Obama in 2012? Ecological inference through distribution "
    "regression. KDD."
)
NOTES = (
    "729 of the 979 regions (74.46 %) are Republican: a constant prediction reaches that accuracy.",
    "The person-level features of the paper could not be had; scores on these instances cannot be laid beside "
    "the printed table.",
    "Missing features are imputed with the median of their column (see metadata).",
)


def _card(name: str, title: str, packed: str, sha256: str, counts: Counts, names: list[str], licence: str) -> Card:
    return Card(
        name=f"election/{name}",
        title=title,
        task="share",
        counts=counts,
        licence=licence,
        citation=FLAXMAN,
        home="https://github.com/flaxter/us2016",
        build=build,
        files=(DataFile(packed, sha256, hint="take it from a mirror of the data folder"), *COMMON),
        printed=Counts(bags=979),
        notes=NOTES,
        settings={"packed": packed, "names": names},
    )


CARDS = (
    _card(
        "zcta",
        "Votes of 979 regions from 32,849 ZIP areas",
        ZCTA,
        "90bc8a89a69b67fe8ceefe433503a46cd05cfed7865e79773f5b408c56afb063",
        Counts(bags=979, instances=32849, features=19, smallest=3, largest=318),
        ZCTA_FEATURES,
        "votes: none stated; ZIP areas: MIT",
    ),
    _card(
        "tracts",
        "Votes of 979 regions from 65,174 census tracts of the year 2000",
        TRACTS,
        "87d2bab3a6bb0af8b81531cd2de74734314eeca274719f4e69476ba3b7b018fe",
        Counts(bags=979, instances=65174, features=80, smallest=7, largest=2049),
        TRACT_FEATURES,
        "votes: none stated; tracts: GPL (>= 2), the counts are Census Bureau data",
    ),
    Card(
        name="election/pums",
        title="Votes of 979 regions from people in the census's public use microdata",
        task="share",
        counts=Counts(),
        licence="public domain (U.S. Census Bureau); votes: none stated",
        citation=FLAXMAN,
        home="https://www.census.gov/programs-surveys/acs/microdata.html",
        build=build_pums,
        files=(
            *(
                DataFile(
                    PERSONS.format(part=part),
                    None,
                    hint="ACS 2010-2014 five-year person file, from csv_pus.zip at the Census Bureau",
                )
                for part in "abcd"
            ),
            DataFile(
                PUMAS,
                "8ce86f80389101b020f5cce40919ec8f054d6b19b63fe83b606008e544d00b2e",
                hint="the region of every 2010 PUMA, from the Python package pummeler 0.3.1",
            ),
            *COMMON,
        ),
        notes=(NOTES[0], "Over 10 GB of person files: supply them by hand; they are read as a stream."),
    ),
)
