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
    """Bags; ``roles`` say how to read the like again, ``told`` how the columns were taken, as (role, what).

    ``groups`` is the fact of the bags that folds keep whole.
    """

    bags: Bags
    roles: dict[str, Any] = field(default_factory=dict)
    told: list[tuple[str, str]] = field(default_factory=list)
    groups: str | None = None

    def folds(self, folds: int, repeats: int, random_state: int) -> Any:
        """Splits (R, B) that keep every group whole; None where bags have no groups, and folds may be any."""
        from baggraph.cli._groups import whole_groups

        return None if self.groups is None else whole_groups(self.bags, self.groups, folds, repeats, random_state)


def read_input(
    source: str,
    *,
    bag: str | None,
    target: str | None,
    coords: str | None,
    labels: Path | None,
    leave_out: Sequence[str],
    groups: str | None = None,
    labelled: bool = True,
) -> Input:
    """Bags from a table, a folder of features or a data set; roles that are not said are guessed.

    Labels must be there where ``labelled`` is True.
    """
    path = Path(source)
    if path.is_dir():
        return _folder(path, labels, bag, target, groups, labelled)
    if labels is not None:
        remedy = "the table itself has them: pass --target COLUMN"
        raise ParameterError("columns", expected="--labels beside a folder", got=f"a file: {source}", remedy=remedy)
    if not _is_table(path):
        return _named(source, groups)
    from baggraph.data.readers import read
    from baggraph.data.readers.guessing import guess_roles

    targets, places = _split(target), _split(coords)
    if places and len(places) not in (2, 3):
        remedy = "pass --coords lat,lon, or --coords x,y"
        raise ParameterError("columns", expected="--coords of two columns or three", got=repr(coords), remedy=remedy)
    guess = guess_roles(path, bag=bag, target=targets or None, coords=places, groups=groups, leave_out=leave_out)
    if guess.target is None and labelled:
        got = f"none that is equal in all rows of every {guess.bag!r}"
        raise ParameterError("columns", expected="a column of labels", got=got, remedy="pass --target COLUMN")
    if not guess.features:
        got = "none" + (f"; left out: {', '.join(guess.left_out)}" if guess.left_out else "")
        remedy = "write text as numbers, a column a word"
        raise ParameterError("columns", expected="a column of numbers, to be a feature", got=got, remedy=remedy)
    try:
        with err.status(f"reading {escape(source)}"):
            bags = read(path, **guess.options)
    except BagError as error:
        if error.expected != "finite features":
            raise
        remedy = "fill in the holes, or pass --leave-out COLUMN"
        raise InvalidBagsError("table", expected=error.expected, got=error.got, remedy=remedy) from error
    return Input(_called(bags, path), {"kind": "table", **_plain(guess)}, _told(guess), groups)


def read_aloud(
    source: str,
    *,
    bag: str | None = None,
    target: str | None = None,
    coords: str | None = None,
    labels: Path | None = None,
    groups: str | None = None,
    labelled: bool = True,
    quiet: bool = False,
) -> Input:
    """Bags as of :func:`read_input`, with a line to standard error a role that was guessed or said."""
    found = read_input(
        source, bag=bag, target=target, coords=coords, labels=labels, leave_out=(), groups=groups, labelled=labelled
    )
    for role, what in () if quiet else found.told:
        err.print(f"{role:<12}{escape(what)}")
    return found


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


def _called(bags: Bags, path: Path) -> Bags:
    """Bags that know the name of their file, as pages and tables show it."""
    name = path.resolve().name if path.is_dir() else path.name.split(".")[0]
    return bags.replace(metadata={**bags.metadata, "name": bags.metadata.get("name", name)})


def _folder(
    path: Path, labels: Path | None, bag: str | None, target: str | None, groups: str | None, labelled: bool
) -> Input:
    from baggraph.data.readers import read
    from baggraph.data.readers.guessing import guess_labels

    if labels is None and not labelled:
        return Input(_called(read(path), path), {"kind": "folder"})
    table, bag, target, reasons = guess_labels(path, labels=labels, bag=bag, target=target, groups=groups)
    with err.status(f"reading {escape(str(path))}"):
        bags = read(path, labels=table, bag=bag, target=target, bag_info=() if groups is None else (groups,))
    told = [("labels", str(table)), ("bag", bag), ("target", target)] + ([("groups", groups)] if groups else [])
    lines = [(role, _because(what, reasons.get(role), role)) for role, what in told]
    return Input(_called(bags, path), {"kind": "folder"}, lines, groups)


def _named(source: str, groups: str | None) -> Input:
    """A data set, or a file that holds whole bags; groups are among the facts that it has of them."""
    bags = bags_of(source)
    if groups is not None and groups not in bags.bag_info:
        remedy = closest(groups, bags.bag_info) if bags.bag_info else "leave out --groups"
        raise ParameterError("groups", expected="a fact that the bags carry", got=repr(groups), remedy=remedy)
    return Input(bags, {"kind": "bags"}, [("bags", str(bags.metadata.get("name", Path(source).name)))], groups)


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
    target = guess.target if isinstance(guess.target, str) else ", ".join(guess.target or ("none",))
    told = [("bag", guess.bag), ("target", target)]
    told += [("coords", ", ".join(guess.coords))] if guess.coords else []
    told += [("instance_y", guess.instance_y)] if guess.instance_y else []
    told += [("groups", guess.groups)] if guess.groups else []
    found = [(role, _because(what, guess.reasons.get(role), role)) for role, what in told]
    some = ", ".join(guess.features[:5]) + (f" and {len(guess.features) - 5:,} more" if len(guess.features) > 5 else "")
    found.append(("features", f"{len(guess.features):,}: {some}"))
    if guess.left_out:
        found.append(("left out", ", ".join(f"{name} ({why})" for name, why in guess.left_out.items())))
    return found


def _because(what: str, why: str | None, role: str) -> str:
    """A guess says so, and how to overrule it."""
    option = {"coords": "--coords", "labels": "--labels"}.get(role, f"--{role}")
    use = "joins bags by it" if role == "coords" else "says otherwise"
    return what if why is None else f"{what}  (guessed: {why}; {option} {use})"


def task_of(bags: Bags, asked: str) -> str:
    """``classes``, ``numbers`` or ``shares``: as asked, or as the labels look."""
    import numpy as np

    if bags.y is None or not bags.labelled.any():
        remedy = "fill some in, or name another column with --target"
        raise InvalidBagsError("fit", expected="bags with a label", got="none", remedy=remedy)
    tasks = ("auto", "classes", "numbers", "shares")
    if asked not in tasks:
        remedy = closest({"regression": "numbers", "classification": "classes"}.get(asked, asked), tasks)
        raise ParameterError("fit", expected=f"--task {', '.join(tasks)}", got=repr(asked), remedy=remedy)
    task = _task_of(bags.y[bags.labelled], asked)
    if task == "classes" and len(kinds := np.unique(bags.y[bags.labelled].astype(str))) < 2:
        remedy = "add bags of another, or name another column with --target"
        raise InvalidBagsError(
            "fit", expected="labels of two classes or more", got=f"only {str(kinds[0])!r}", remedy=remedy
        )
    return task


def _task_of(labels: Any, asked: str) -> str:
    import numpy as np

    from baggraph.data.splits import MOST_CLASSES

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
