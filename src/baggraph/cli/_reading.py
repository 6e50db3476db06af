"""What ``fit`` and ``predict`` read: bags, and what their columns were taken for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from baggraph.cli._console import err
from baggraph.cli._source import bags_of
from baggraph.errors import BagError, InvalidBagsError, ParameterError, closest

if TYPE_CHECKING:
    from baggraph.data.bags import Bags
    from baggraph.data.readers.guessing import RoleGuess

TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")


@dataclass
class Input:
    """Bags; ``roles`` say how to read the like again, ``told`` how the columns were taken, as (role, what)."""

    bags: Bags
    roles: dict[str, Any] = field(default_factory=dict)
    told: list[tuple[str, str]] = field(default_factory=list)


def read_input(
    source: str,
    *,
    bag: str | None,
    target: str | None,
    coords: str | None,
    labels: Path | None,
    leave_out: Sequence[str],
) -> Input:
    """Bags with labels from a table, a folder of features or a data set; roles that are not said are guessed."""
    path = Path(source)
    if path.is_dir():
        return _folder(path, labels, bag, target)
    if not _is_table(path):
        bags = bags_of(source)
        return Input(bags, {"kind": "bags"}, [("bags", str(bags.metadata.get("name", path.name)))])
    from baggraph.data.readers import read
    from baggraph.data.readers.guessing import guess_roles

    targets = _split(target)
    guess = guess_roles(path, bag=bag, target=targets or None, coords=_split(coords), leave_out=leave_out)
    if guess.target is None:
        remedy = "pass --target COLUMN; it must be equal in all rows of a bag"
        raise ParameterError("columns", expected="a column of labels", got="none that looks like it", remedy=remedy)
    try:
        bags = read(path, **guess.options)
    except BagError as error:
        if error.expected != "finite features":
            raise
        remedy = "fill in the holes, or pass --leave-out COLUMN"
        raise InvalidBagsError("table", expected=error.expected, got=error.got, remedy=remedy) from error
    return Input(bags, {"kind": "table", **_plain(guess)}, _told(guess))


def read_aloud(
    source: str,
    *,
    bag: str | None = None,
    target: str | None = None,
    coords: str | None = None,
    labels: Path | None = None,
    quiet: bool = False,
) -> Bags:
    """Bags as of :func:`read_input`, with a line to standard error a role that was guessed or said."""
    found = read_input(source, bag=bag, target=target, coords=coords, labels=labels, leave_out=())
    for role, what in () if quiet else found.told:
        err.print(f"{role:<12}{escape(what)}")
    name = found.bags.metadata.get("name", Path(source).stem)
    return found.bags.replace(metadata={**found.bags.metadata, "name": name})


def read_again(source: str, roles: dict[str, Any], bag: str | None) -> Bags:
    """Bags to predict, read as those in fit were; labels are not looked at."""
    from baggraph.data.readers import read

    path = Path(source)
    if not _is_table(path) or roles.get("kind") != "table":
        return bags_of(source, bag=bag)
    options = {"bag": bag or roles["bag"], "features": roles["features"], "coords": roles["coords"]}
    try:
        return read(path, **options)
    except BagError as error:
        if error.stage == "table" and error.expected == "a column of the table":
            text = f"column {error.got} of the data that the model was fitted on"
            raise ParameterError("predict", expected=text, got="none", remedy=error.remedy) from error
        raise


def _folder(path: Path, labels: Path | None, bag: str | None, target: str | None) -> Input:
    from baggraph.data.readers import read
    from baggraph.data.readers.guessing import guess_labels

    table, bag, target, reasons = guess_labels(path, labels=labels, bag=bag, target=target)
    bags = read(path, labels=table, bag=bag, target=target)
    told = [("labels", str(table)), ("bag", bag), ("target", target)]
    return Input(bags, {"kind": "folder"}, [(role, _because(what, reasons.get(role), role)) for role, what in told])


def _is_table(path: Path) -> bool:
    if not path.is_file() or not path.name.lower().endswith(TABLES):
        return False
    if path.suffix.lower() != ".parquet":
        return True
    from baggraph.data.readers.parquet import is_ours

    return not is_ours(path)


def _split(names: str | None) -> tuple[str, ...]:
    return () if names is None else tuple(name.strip() for name in names.split(",") if name.strip())


def _plain(guess: RoleGuess) -> dict[str, Any]:
    """Roles as JSON holds them."""
    from baggraph.data.readers.guessing import is_geographic

    target = list(guess.target) if isinstance(guess.target, tuple) else guess.target
    places = {"coords": list(guess.coords), "geographic": is_geographic(guess.coords)}
    return {"bag": guess.bag, "target": target, "features": list(guess.features), **places}


def _told(guess: RoleGuess) -> list[tuple[str, str]]:
    target = guess.target if isinstance(guess.target, str) else ", ".join(guess.target or ())
    told = [("bag", guess.bag), ("target", target)]
    told += [("coords", ", ".join(guess.coords))] if guess.coords else []
    told += [("instance_y", guess.instance_y)] if guess.instance_y else []
    found = [(role, _because(what, guess.reasons.get(role), role)) for role, what in told]
    some = ", ".join(guess.features[:5]) + (f" and {len(guess.features) - 5:,} more" if len(guess.features) > 5 else "")
    found.append(("features", f"{len(guess.features):,}: {some}"))
    if guess.left_out:
        found.append(("left out", ", ".join(f"{name} ({why})" for name, why in guess.left_out.items())))
    return found


def _because(what: str, why: str | None, role: str) -> str:
    """A guess says so, and how to overrule it."""
    option = {"coords": "--coords", "labels": "--labels"}.get(role, f"--{role}")
    return what if why is None else f"{what}  (guessed: {why}; {option} says otherwise)"


def task_of(bags: Bags, asked: str) -> str:
    """``classes``, ``numbers`` or ``shares``: as asked, or as the labels look."""
    import numpy as np

    from baggraph.data.splits import MOST_CLASSES

    if bags.y is None or not bags.labelled.any():
        raise InvalidBagsError(
            "fit", expected="labelled bags", got="none", remedy="say where labels are: --target COLUMN"
        )
    tasks = ("auto", "classes", "numbers", "shares")
    if asked not in tasks:
        raise ParameterError("fit", expected=f"--task one of {tasks}", got=repr(asked), remedy=closest(asked, tasks))
    labels = bags.y[bags.labelled]
    if asked in ("numbers", "shares") and labels.dtype.kind == "O":
        got = f"text such as {labels[0]!r}"
        remedy = "leave out --task, or pass --task classes"
        raise ParameterError("fit", expected=f"{asked} as labels", got=got, remedy=remedy)
    if asked != "auto":
        return asked
    if labels.dtype.kind in "Ob":
        return "classes"
    kinds = len(np.unique(labels))
    if labels.ndim == 1 and not (labels % 1).any():
        return "classes" if kinds <= MOST_CLASSES else "numbers"
    return "shares" if (labels >= 0).all() and (labels <= 1).all() else "numbers"
