"""The report page: what stands in it, what it may not do, and that it can be drawn again."""

from __future__ import annotations

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from baggraph import BagGraph, Bags
from baggraph.data.posterior import Posterior
from baggraph.errors import DataFileError, InvalidBagsError
from baggraph.evaluation._findings import Audit, Finding
from baggraph.report import _pieces, atlas, html
from baggraph.report._columns import Column
from baggraph.report.atlas import Atlas
from baggraph.report.content import Content
from baggraph.report.html import report, write_page


@pytest.fixture
def page(tmp_path):
    def draw(table=None, **about):
        return report(table, tmp_path / "report.html", **about).read_text(encoding="utf-8")

    return draw


class Reader(HTMLParser):
    """Elements, identifiers and addresses of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.addresses, self.tags, self.handlers, self.labels = [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.addresses += [found[name] for name in ("src", "href") if name in found]
        self.handlers += [name for name in found if name.startswith("on")]


def test_a_page_asks_nothing_of_any_server_and_text_stays_text(page, made):
    bags = made.bags(ids=[made.hostile, *map(str, range(39))], bag_info={"ward": np.array([made.hostile, "b"] * 20)})
    audit = Audit(made.hostile, (Finding("BG101", "serious", made.hostile, made.hostile, made.hostile),))
    read = Reader(
        page(made.scores(), bags=made.hide(bags), model=made.model(bags), truth=bags.y, audit=audit, title=made.hostile)
    )
    assert [a for a in read.addresses if not a.startswith(("#", "data:"))] == []
    assert read.handlers == []
    assert "img" not in read.tags
    assert len(read.ids) == len(set(read.ids))
    links = {a[1:] for a in read.addresses if a.startswith("#")}
    assert links == {"summary", "audit", "comparison", "graph", "trust", "provenance"}
    assert links <= set(read.ids)


def test_the_atlas_survives_the_way_into_the_page(page, made):
    bags = made.bags(ids=[made.hostile, *map(str, range(39))])
    text = page(bags=made.hide(bags), model=made.model(bags), truth=bags.y)
    inside = re.search(r'<script type="application/json" id="atlas">(.*?)</script>', text, re.S).group(1)
    found = json.loads(inside)
    assert found["ids"][0] == made.hostile
    assert found["edges"] == len(found["weight"]) == 40
    by_name = {column["name"]: column for column in found["columns"]}
    assert by_name["label"]["values"] == list(bags.y)
    right = made.model(bags).posterior_.prediction == bags.y
    assert [by_name["answer"]["levels"][v] == "right" for v in by_name["answer"]["values"]] == right.tolist()
    assert len(found["views"]["graph"][0]) == 40


def test_the_summary_counts_what_the_model_did_not_see(page, made):
    bags = made.bags()
    model = made.model(bags)
    wrong = model.posterior_.prediction != bags.y
    text = page(bags=made.hide(bags), model=model, truth=bags.y)
    share = 100 * (1 - wrong[::3].mean())
    assert f"saw the labels of 26 bags. Of the 14 others it got {share:.1f} % right" in text
    assert "No label was kept from the model" in page(bags=bags, model=model)


def test_findings_come_first_when_they_are_grave(page, made):
    grave = Finding("BG201", "serious", "0.99", "it leaks", "drop it")
    text = page(made.scores(), audit=Audit("x", (grave,)))
    assert text.index("Read this first") < text.index("leads by accuracy")
    assert "nothing above a note" in page(made.scores(), audit=Audit("x", (Finding("BG401", "note", "a", "b", "c"),)))
    assert "Nothing was found" in page(made.scores(), audit=Audit("x", ()))


def test_methods_stand_from_best_to_worst(page, made):
    text = page(made.scores())
    table = text[text.index("Means over splits") :]
    assert table.index("onerror") < table.index("majority")
    assert ">91.5<" in table


def test_regression_with_noise_is_held_against_its_intervals(page, made):
    rng = np.random.default_rng(0)
    y = rng.normal(size=40)
    bags = made.bags().replace(y=y)
    draws = np.repeat((y + rng.normal(scale=0.5, size=40))[None, :, None], 2, axis=0)
    model = made.model(made.bags())
    model.posterior_ = Posterior(draws, bags.ids, variance=np.full_like(draws, 0.25))
    text = page(bags=made.hide(bags), model=model, truth=y)
    assert "errs by" in text
    assert "Share of values inside the interval" in text


def test_without_the_bundle_a_page_stands_still_and_has_every_bag(page, monkeypatch, made):
    monkeypatch.setattr(html, "bundle", lambda: None)
    bags = made.bags(ids=[f"slide-{i}" for i in range(40)])
    text = page(bags=bags, model=made.model(bags))
    assert "the drawing stands still" in text
    assert all(f'<th scope="row">slide-{i}</th>' in text for i in range(40))
    assert text.count("<circle") >= 40


def test_a_page_is_drawn_again_from_its_folder(tmp_path, made):
    bags = made.bags()
    content = Content.of(made.hide(bags), model=made.model(bags), truth=bags.y, commands=["baggraph demo"])
    content.save(tmp_path)
    again = Content.load(tmp_path)
    assert again == content
    first = write_page(content, made.scores(), tmp_path / "a.html").read_bytes()
    assert write_page(again, made.scores(), tmp_path / "b.html").read_bytes() == first
    assert Content.load(tmp_path / "elsewhere") is None


@pytest.mark.parametrize("damage", ['{"title": 3', "[]", '{"title": "x"}'])
def test_a_damaged_folder_is_told_of(tmp_path, damage):
    (tmp_path / "page.json").write_text(damage)
    with pytest.raises(DataFileError, match=r"report: expected a page that baggraph wrote, got .*page.json"):
        Content.load(tmp_path)


def test_bags_of_another_set_are_refused(made):
    bags = made.bags()
    with pytest.raises(InvalidBagsError, match="atlas: expected a posterior of the same bags, got others"):
        Atlas.of(bags, posterior=made.model(bags).posterior_.take(np.arange(39)))


def test_very_many_bags_are_shown_as_groups(monkeypatch, made):
    from baggraph.report import _groups

    monkeypatch.setattr(atlas, "MOST_BAGS", 50)
    monkeypatch.setattr(_groups, "GROUPS", 12)
    bags = made.bags(90, coords=np.random.default_rng(0).normal(size=(90, 2)))
    model = made.model(bags)
    found = Atlas.of(bags, posterior=model.posterior_, graph=model.graph_, embedding=model.embedding_)
    assert found.is_grouped
    assert len(found.ids) <= 12
    assert int(found.columns[-1].values.sum()) == found.n_bags == 90
    assert sorted(name for some in found.members for name in some) == sorted(bags.ids)
    sizes = [len(some) for some in found.members]
    assert sizes == found.columns[-1].values.tolist()
    assert set(found.places) == {"graph", "map"}
    between = found.graph
    assert abs(between - between.T).max() == 0
    assert between.diagonal().max() == 0
    json.loads(found.to_json())


def test_a_page_of_ten_thousand_bags_stays_small(tmp_path):
    rng = np.random.default_rng(0)
    n = 10_000
    bags = Bags(
        rng.normal(size=(n, 2)), np.arange(n + 1), rng.integers(0, 2, n), ids=[f"slide-{i:05d}" for i in range(n)]
    )
    p = rng.uniform(0.01, 0.99, size=(4, n))
    edges = np.unique(np.sort(rng.integers(0, n, size=(30_000, 2)), axis=1), axis=0)
    edges = edges[edges[:, 0] < edges[:, 1]]
    graph = BagGraph.from_edges(
        [(bags.ids[a], bags.ids[b], float(w)) for (a, b), w in zip(edges, rng.uniform(size=len(edges)), strict=True)],
        bags.ids,
    )
    model = SimpleNamespace(
        posterior_=Posterior(np.stack([1 - p, p], -1), bags.ids, [0, 1]),
        graph_=graph,
        embedding_=rng.normal(size=(n, 3)),
        get_params=lambda deep: {},
    )
    path = report(None, tmp_path / "large.html", bags=bags, model=model)
    assert path.stat().st_size < 3_000_000


def test_pictures_are_the_pixels_of_the_instances():
    images = np.arange(32, dtype=np.float32).reshape(2, 16) / 31
    bags = Bags(images, [0, 2], y=[1], metadata={"image_shape": [4, 4]})
    explained = {
        "0": SimpleNamespace(
            instances=pd.DataFrame({"contribution": [0.1, -0.9]}),
            neighbors=pd.DataFrame({"contribution": [-0.8]}, index=["0"]),
            about="log odds",
        )
    }
    shown = Atlas.of(bags, explanations=explained)
    assert (shown.neighbors, shown.about) == ({0: {0: -0.8}}, {0: "log odds"})
    found = shown.instances[0]
    assert [told["share"] for told in found] == [-0.9, 0.1]
    data = base64.b64decode(found[0]["picture"].split(",")[1])
    length = int.from_bytes(data[33:37], "big")
    lines = zlib.decompress(data[41 : 41 + length])
    levels = np.frombuffer(lines, np.uint8).reshape(4, 5)[:, 1:]
    assert np.array_equal(levels, (images[1].reshape(4, 4) * 255).astype(np.uint8))


def test_columns_tell_numbers_from_levels():
    assert Column.of("age", np.array([30.5, np.nan, 20.0])).plain()["values"] == [30.5, None, 20.0]
    assert Column.of("ward", np.array(["b", "a", None], dtype=object)).plain() == {
        "name": "ward",
        "levels": ["a", "b"],
        "values": [1, 0, None],
    }
    assert Column.of("name", np.array([f"n{i}" for i in range(30)])) is None
    assert _pieces.asset("page.css").startswith(":root")
