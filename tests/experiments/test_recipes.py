"""Recipes say what the paper says, run, and name what is wrong with them all at once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from baggraph import datasets
from baggraph.data.stacked import AbstractStacked
from baggraph.errors import DataFileError, ParameterError
from baggraph.estimators.printed import make
from baggraph.experiments._material import load
from baggraph.experiments._rows import ENGINES, estimator
from baggraph.experiments._tasks import keys, plan
from baggraph.experiments.recipe import Recipe, read_recipe, recipes, select
from baggraph.experiments.run import run

RECIPES = recipes()


def here(recipe: Recipe) -> None:
    """Skip where the files of a recipe are not at hand."""
    for name in recipe.tiers["smoke"].datasets or recipe.datasets:
        if datasets.state(datasets.card(name)) != "here":
            pytest.skip(f"no files of {name}")


def test_all_tables_have_a_recipe() -> None:
    tables = {recipe.source for recipe in RECIPES.values()}
    assert tables >= {f"Table {number}" for number in range(1, 6)}
    assert {recipe.protocol for recipe in RECIPES.values()} == {"sound", "as-published"}


@pytest.mark.parametrize("name", RECIPES)
def test_methods_resolve(name: str) -> None:
    recipe = RECIPES[name]
    for method in recipe.methods:
        assert method.engine in ENGINES
        if method.engine in ("make", "winner"):
            made = make(method.make or method.name, dataset=recipe.datasets[0], **method.parameters)
            assert hasattr(made, "fit")


@pytest.mark.parametrize("name", RECIPES)
def test_smoke_tier_runs(name: str, tmp_path: Path) -> None:
    recipe = RECIPES[name]
    here(recipe)
    table = run([recipe], tmp_path, tier="smoke")[name]
    assert len(table.failed) == 0
    assert set(table.names("method")) == set(recipe.tiers["smoke"].methods or ())
    first = table.filter(metric=recipe.metrics[0]).frame()["value"]
    assert np.isfinite(first).all()


def test_printed_numbers_are_those_of_the_paper() -> None:
    """A few, typed from the printed tables."""
    assert RECIPES["benchmark"].expected["accuracy"]["mi-FV"]["musk1"] == (90.9, 4.2)
    assert RECIPES["text-original"].expected["accuracy"]["B-Res+pool-GCN"]["newsgroups/sci.space"] == (88.9, 2.9)
    assert RECIPES["election"].expected["winner"]["DS-GCN"]["election/zcta"] == (74.05, 4.56, 1)
    assert RECIPES["rental-as-published"].expected["rmse"]["B-DS-GCN"]["rental"] == (67.51, 16.39, 2)
    assert RECIPES["ablation-as-published"].expected["mae"]["B-ST-GCN / t. n. d."]["rental"] == (67.12, 18.34, 0)
    assert not RECIPES["text-rebuilt"].expected  # never beside printed numbers


@pytest.mark.parametrize("name", ["benchmark", "rental-25"])
def test_repeats_come_first(name: str) -> None:
    order = [task.repeats[0] for task in plan(RECIPES[name], "full")]
    assert order == sorted(order)


def test_rows_do_not_depend_on_how_many_repeats_are_run() -> None:
    recipe = RECIPES["benchmark"]
    one = {key for task in plan(recipe, "short") for key in keys(task)}
    ten = {key for task in plan(recipe, "full") for key in keys(task)}
    assert one < ten


def test_rows_tell_smoke_from_full() -> None:
    recipe = RECIPES["benchmark"]
    smoke = {key for task in plan(recipe, "smoke", ["rFF+pool"]) for key in keys(task)}
    full = {key for task in plan(recipe, "full", ["rFF+pool"]) for key in keys(task)}
    assert not smoke & full


def test_sets_that_are_absent_are_left_out() -> None:
    planned = {task.dataset for task in plan(RECIPES["text-original"], "full")}
    assert all(datasets.state(datasets.card(name)) != "by hand" for name in planned)


def test_shuffled_control_keeps_degrees() -> None:
    recipe = RECIPES["rental-25"]
    here(recipe)
    material = load(recipe, "rental")
    tier = recipe.tiers["smoke"]
    made = estimator(recipe.method("DS-GCN, shuffled borders"), "rental", material, tier, 0)
    assert isinstance(made, AbstractStacked)
    (shuffled,) = made.graph.graphs([None], material.bags.ids)
    true = material.graph("borders").adjacency
    assert sorted(shuffled.adjacency.sum(axis=1)) == sorted(true.sum(axis=1))
    assert (shuffled.adjacency != true).nnz > 0


def test_listings_are_drawn_anew_in_every_repeat() -> None:
    recipe = RECIPES["rental-25"]
    here(recipe)
    material = load(recipe, "rental")
    one, again, other = (material.of_repeat(repeat) for repeat in (0, 0, 1))
    assert (one.sizes == 25).all()
    assert np.array_equal(one.instances, again.instances)
    assert not np.array_equal(one.instances, other.instances)
    assert np.array_equal(one.y, other.y)


def test_all_errors_at_once(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text('name = 3\ntitel = "x"\n[tiers.smoke]\nrepeats = "1"\n', encoding="utf-8")
    with pytest.raises(ParameterError) as caught:
        read_recipe(path)
    text = str(caught.value)
    for part in ("name: int where str", "titel: unknown, did you mean 'title'?", "tiers.smoke.repeats: str where int"):
        assert part in text
    assert "methods: missing" in text


def test_contradictions_are_named(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    text = (Path(str(_folder())) / "1-benchmark.toml").read_text(encoding="utf-8")
    path.write_text(text.replace('name = "MI-SVM"', 'name = "mi-SVM"').replace('"sound"', '"sond"'), encoding="utf-8")
    with pytest.raises(ParameterError) as caught:
        read_recipe(path)
    assert "methods.mi-SVM: twice" in str(caught.value)
    assert "did you mean 'sound'?" in str(caught.value)
    assert "MI-SVM: no such method" in str(caught.value)


def _folder() -> Path:
    from importlib.resources import files

    return Path(str(files("baggraph.experiments") / "recipes" / "pal2022"))


def test_broken_toml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("name = ", encoding="utf-8")
    with pytest.raises(DataFileError, match=r"broken\.toml"):
        read_recipe(path)


def test_select() -> None:
    assert {recipe.protocol for recipe in select("rental", "as-published")} == {"as-published"}
    assert len(select("all")) == len(RECIPES)
    with pytest.raises(ParameterError, match="did you mean 'benchmark'"):
        select("benchmrk")


def test_settings_are_plain() -> None:
    for recipe in RECIPES.values():
        json.dumps([dict(method.parameters) for method in recipe.methods])
