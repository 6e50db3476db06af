"""Recipes: one file a table of the paper, with data, methods, protocol, and the numbers that it prints."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from baggraph.errors import DataFileError, ParameterError, closest
from baggraph.experiments._parsing import parse
from baggraph.experiments._scores import SCORES

__all__ = ["Claim", "Method", "Recipe", "Tier", "read_recipe", "recipes", "select"]

PROTOCOLS = ("sound", "as-published")
TIERS = ("smoke", "short", "full")
ROLES = ("printed", "control", "trivial", "ours")


@dataclass(frozen=True, kw_only=True)
class Method:
    """A row of a table.

    Parameters
    ----------
    name
        As it stands in the table.
    role
        ``"printed"`` in the paper, a ``"control"``, ``"trivial"``, or one of ``"ours"``.
    engine
        Who makes it: ``"make"`` (:func:`baggraph.make`), ``"classical"`` (settings chosen inside the training folds),
        ``"winner"`` (a classifier of shares above one half), ``"process"`` (a Gaussian process over bags), ``"auto"``
        (the committee) or ``"published"`` (the published code's manner).
    make, parameters
        The printed name that ``engine`` knows, by default ``name``, and what overrules its parameters.
    group
        Methods of a group run together and share the base models that they have in common.
    metrics
        Scores of this row alone; default, those of the recipe.
    graph
        Which known graph of the data it is given, or ``"shuffled"`` for its own with the bags exchanged.
    """

    name: str
    role: str = "printed"
    engine: str = "make"
    make: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    group: str | None = None
    metrics: tuple[str, ...] | None = None
    graph: str | None = None


@dataclass(frozen=True, kw_only=True)
class Tier:
    """How much of a recipe is run: repeats, sets (all by default), and what overrules the parameters of networks."""

    repeats: int
    datasets: tuple[str, ...] | None = None
    networks: Mapping[str, Any] = field(default_factory=dict)
    methods: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of the paper that says one method is better than another, and where it says so."""

    says: str
    better: str
    than: str
    metric: str
    datasets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One table: what is run, on what, how it is scored, and what the paper prints.

    Parameters
    ----------
    name, title, source
        Of the table; ``source`` says where it stands in the paper.
    experiment, protocol
        ``benchmark``, ``text``, ``election``, ``rental`` or ``labels``; ``sound`` or ``as-published``.
    datasets
        Names that :func:`baggraph.datasets.load` knows.
    metrics
        Scores to compute; those with printed numbers stand in ``expected``.
    methods, tiers, claims
        Rows, amounts of work, and sentences to check.
    repeats, folds, splits
        Stratified folds, or the name of published splits.
    labelled
        Instead of folds, shares of the bags that have a label, one after the other in every repeat.
    sample
        Instances drawn from every bag, anew in every repeat; 0 takes the whole bags.
    scales
        What scores are multiplied by to be laid beside the printed ones, where it is not 1.
    families
        A base model, its -GCN and its Bayesian row: the three that stars compare.
    expected
        Printed mean and, where there are some, spread and number of stars, by metric, method and set.
    tolerance
        Largest difference from a printed number that counts as reproduced: in printed units, or the share of it where
        ``relative``.
    tolerances
        The same for single methods.
    comparable
        Empty, or why numbers cannot be laid beside the printed ones.
    explained
        What explains a printed number, by method or for all (``"*"``).
    deviations
        What is done otherwise than the paper says.
    path
        Where the recipe was read from.
    """

    name: str
    title: str
    source: str
    experiment: str
    protocol: str
    datasets: tuple[str, ...]
    metrics: tuple[str, ...]
    methods: tuple[Method, ...]
    tiers: Mapping[str, Tier]
    claims: tuple[Claim, ...] = ()
    repeats: int = 10
    folds: int = 10
    splits: str | None = None
    labelled: tuple[float, ...] = ()
    sample: int = 0
    scales: Mapping[str, float] = field(default_factory=dict)
    families: tuple[tuple[str, ...], ...] = ()
    expected: Mapping[str, Mapping[str, Mapping[str, tuple[float, ...]]]] = field(default_factory=dict)
    tolerance: float = 2.0
    relative: bool = False
    tolerances: Mapping[str, float] = field(default_factory=dict)
    comparable: str = ""
    explained: Mapping[str, str] = field(default_factory=dict)
    deviations: tuple[str, ...] = ()
    path: str = ""

    def method(self, name: str) -> Method:
        """The row of this name."""
        return next(method for method in self.methods if method.name == name)

    def problems(self) -> list[str]:
        """What contradicts itself."""
        found = [f"tiers.{tier}: missing" for tier in TIERS if tier not in self.tiers]
        found += [f"tiers.{tier}: unknown, {closest(tier, TIERS)}" for tier in self.tiers if tier not in TIERS]
        for what, value, known in (
            [("protocol", self.protocol, PROTOCOLS)]
            + [(f"metrics: {m}", m, SCORES) for m in (*self.metrics, *self.expected)]
            + [(f"methods.{m.name}.role", m.role, ROLES) for m in self.methods]
        ):
            if value not in known:
                found.append(f"{what}: {value!r}, {closest(value, known)}")
        names = [method.name for method in self.methods]
        found += [f"methods.{name}: twice" for name in sorted({n for n in names if names.count(n) > 1})]
        found += [f"families: {len(part)} methods, three are compared" for part in self.families if len(part) != 3]
        asked = {name for rows in self.expected.values() for name in rows}
        asked |= {name for family in self.families for name in family}
        asked |= {name for claim in self.claims for name in (claim.better, claim.than)}
        found += [f"{name}: no such method, {closest(name, names)}" for name in sorted(asked - set(names))]
        return found


@cache
def read_recipe(path: Path) -> Recipe:
    """The recipe in a file, or one error that names everything that is wrong with it."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        remedy = "mend it"
        raise DataFileError("recipe", expected=f"TOML in {path.name}", got=str(error), remedy=remedy) from error
    recipe = parse(Recipe, given | {"path": str(path)}, f"recipe {path.name}")
    problems = recipe.problems()
    if problems:
        got, remedy = "; ".join(problems), "mend all of these"
        raise ParameterError(f"recipe {path.name}", expected="a valid file", got=got, remedy=remedy)
    return recipe


def recipes(paper: str = "pal2022") -> dict[str, Recipe]:
    """All recipes of a paper by name, in the order of its tables.

    >>> recipes()["benchmark"].protocol
    'sound'
    """
    folder = files("baggraph.experiments") / "recipes" / paper
    paths = sorted(Path(str(folder)).glob("*.toml"), key=lambda path: path.stem)
    return {recipe.name: recipe for recipe in map(read_recipe, paths)}


def select(experiment: str, protocol: str | None = None, paper: str = "pal2022") -> list[Recipe]:
    """Recipes of an experiment, or one by its name or file, or ``"all"``; of one protocol or of both.

    >>> [recipe.name for recipe in select("benchmark", "sound")]
    ['benchmark']
    """
    if experiment.endswith(".toml"):
        return [read_recipe(Path(experiment).resolve())]
    known = recipes(paper)
    if protocol is not None and protocol not in PROTOCOLS:
        remedy = closest(protocol, PROTOCOLS)
        raise ParameterError("reproduce", expected="a protocol", got=repr(protocol), remedy=remedy)
    found = [r for r in known.values() if experiment in ("all", r.experiment, r.name)]
    if not found:
        remedy = closest(experiment, {"all", *known, *(r.experiment for r in known.values())})
        raise ParameterError("reproduce", expected="an experiment", got=repr(experiment), remedy=remedy)
    return [recipe for recipe in found if protocol in (None, recipe.protocol)]
