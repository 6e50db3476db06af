"""Explanations of committees: by members, by the bags whose labels were heard, and by leaving instances out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from baggraph.baselines._kernels import squared_distances
from baggraph.data.bags import Bag, Bags
from baggraph.errors import InvalidBagsError, ParameterError, name_some
from baggraph.estimators._auto_parts import AbstractSubject, Votes
from baggraph.estimators._auto_tables import kept_rows
from baggraph.estimators._explaining import Explanation
from baggraph.estimators._input import bags_of
from baggraph.estimators._known import known_links

Array = NDArray[np.float64]
Index = NDArray[np.int64]
METHOD = "leave-one-out"
HALVINGS = 6  # of a bag of more than 64 instances, into groups of those that are alike
ROWS = 1 << 14  # instances that are asked about at a time


def explain(model: Any, subject: AbstractSubject, X: Any, *, of: Any, method: str, seen: bool, links: Any) -> Any:
    """See :meth:`AutoBase.explain`."""
    check_is_fitted(model, "posterior_")
    if method not in ("auto", METHOD):
        remedy = f"committees have method={METHOD!r} alone"
        raise ParameterError("explain", expected=f"method 'auto' or {METHOD!r}", got=repr(method), remedy=remedy)
    if isinstance(X, Bag):
        alone = Bags.from_list([np.asarray(X)], ids=[X.id], instance_names=X.instance_names)
        return explain(model, subject, alone, of=of, method=method, seen=seen, links=links)[0]
    bags = bags_of(model, X, reset=False)
    maker, places = model._maker, None
    if seen:
        places = _places_in_fit(maker, bags)
        links = None if maker.graph is None else maker.graph.adjacency[places]
    elif links is None:
        links = known_links(model.graph, bags.ids, maker.ids)
    whole = subject.votes(bags, bags, links) if places is None else subject.votes_in_fit(bags, places)
    scores = np.stack([one.scores for one in whole])
    chosen = [subject.chosen(of, column) for column in scores.T]
    changes = _changes(subject, bags, links, [part for part, *_ in chosen])
    heard = {part: subject.heard(part, bags, links, places) for part in {part for part, *_ in chosen}}
    found = []
    for b, (part, sign, about) in enumerate(chosen):
        own = None if places is None else int(places[b])
        labels = pd.DataFrame({"weight": heard[part].weights[b], "label": sign * heard[part].labels}, index=maker.ids)
        found.append(_explanation(bags, b, own, about, sign, whole[part].of([b]), labels, changes[b]))
    return found


def _explanation(
    bags: Bags, b: int, own: int | None, about: str, sign: float, votes: Votes, labels: pd.DataFrame, changes: Array
) -> Explanation:
    bag = bags[b]
    added = sign * votes.parts[:, 0]
    told = {"weight": votes.weights, "score": sign * votes.said[:, 0], "contribution": added}
    members = pd.DataFrame(told, index=pd.Index(votes.names, name="member"))
    parts = pd.DataFrame({"weight": labels["weight"], "contribution": labels["weight"] * labels["label"]})
    parts = parts[(labels["label"] != 0) & (labels["weight"] != 0)]
    if own is not None:
        parts = parts.drop(bag.id, errors="ignore")  # its own label is part of itself
    parts.index = pd.Index([f"{name} (in fit)" if name == bag.id else name for name in parts.index], dtype=object)
    rest = float(added.sum()) - float(parts["contribution"].sum())
    itself = pd.DataFrame({"weight": [1.0], "contribution": [rest]}, index=[bag.id])
    neighbors = pd.concat([parts, itself]) if len(parts) else itself
    order = np.argsort(-neighbors["contribution"].abs().to_numpy(), kind="stable")
    neighbors = neighbors.iloc[order].rename_axis("bag")
    index = pd.RangeIndex(len(changes)) if bag.instance_names is None else pd.Index(bag.instance_names)
    instances = pd.DataFrame({"contribution": sign * changes}, index=index).rename_axis("instance")
    bias = sign * votes.bias
    score = bias + float(neighbors["contribution"].sum())
    return Explanation(bag.id, about, score, bias, instances, neighbors, METHOD, members)


def _places_in_fit(maker: Any, bags: Bags) -> Index:
    """Bags of the fit are known by their ids, and their instances must be those of the fit."""
    place = {bag: i for i, bag in enumerate(maker.ids.tolist())}
    unknown = [bag for bag in bags.ids.tolist() if bag not in place]
    if unknown:
        got = f"no bag {name_some(unknown)} there"
        raise InvalidBagsError("explain", expected="bags of the fit", got=got, remedy="leave out seen=True")
    places = np.array([place[bag] for bag in bags.ids.tolist()])
    view = maker.anchor.view
    rows = maker._rows(bags)
    for b, where in enumerate(places):
        ours = rows.values[rows.offsets[b] : rows.offsets[b + 1]]
        theirs = view.rows.values[view.offsets[where] : view.offsets[where + 1]]
        if ours.shape != theirs.shape or not np.allclose(ours, theirs):
            remedy = "pass the bags that were fitted, or leave out seen=True"
            got = f"others in bag {str(bags.ids[b])!r}"
            raise InvalidBagsError("explain", expected="the instances of the fit", got=got, remedy=remedy)
    return places


# ---------------------------------------------------------------------- instances


@dataclass(frozen=True, eq=False)
class _Rest:
    """A bag (position) without one of its groups, or with all: which of its instances are left, all and kept ones."""

    bag: int
    rows: Index
    kept: Index


def _changes(subject: AbstractSubject, bags: Bags, links: Any, parts: list[int]) -> list[Array]:
    """What the score of every bag loses without each of its instances, all asked as new bags."""
    maker = subject.model._maker
    kept = kept_rows(bags, maker.largest)
    groups = [_groups(maker, bags, b, rows) for b, rows in enumerate(kept)]
    rests = [rest for b in range(len(bags)) for rest in _rests(bags, b, kept[b], groups[b])]
    scores: list[list[float]] = [[] for _ in parts]
    usual: list[float] = []
    for some in _portions(rests):
        which = [rest.bag for rest in some]
        near = None if links is None else links[which]
        every, seen = [rest.rows for rest in some], [rest.kept for rest in some]
        given = (_of(bags, which, every), _of(bags, which, seen), near)
        answers = subject.votes(*given, same=np.concatenate(seen))
        usual = [one.usual for one in answers]
        for b, told in zip(which, np.stack([one.scores for one in answers], axis=1), strict=True):
            scores[b].append(float(told[parts[b]]))
    found = []
    for part, labels, (whole, *without) in zip(parts, groups, scores, strict=True):
        lost = whole - np.array(without or [usual[part]])
        found.append((lost / np.bincount(labels))[labels])
    return found


def _rests(bags: Bags, b: int, kept: Index, labels: Index) -> Iterator[_Rest]:
    """A bag with all of its groups, then without each; nothing is left of a single one."""
    start, count = int(bags.offsets[b]), int(labels.max()) + 1
    for group in range(-1, count if count > 1 else 0):
        yield _Rest(b, np.flatnonzero(labels != group) + start, kept[labels[kept - start] != group])


def _portions(rests: list[_Rest]) -> Iterator[list[_Rest]]:
    """In calls of bounded size."""
    some: list[_Rest] = []
    total = 0
    for rest in rests:
        if some and total + len(rest.rows) > ROWS:
            yield some
            some, total = [], 0
        some.append(rest)
        total += len(rest.rows)
    yield some


def _of(bags: Bags, which: list[int], rows: list[Index]) -> Bags:
    """Bags of these instances, with all else that models look at."""
    every = np.concatenate(rows)
    offsets = np.concatenate([[0], np.cumsum([len(some) for some in rows])])
    coords = None if bags.coords is None else bags.coords[which]
    info = {name: values[every] for name, values in bags.instance_info.items()}
    return Bags(bags.instances[every], offsets, coords=coords, instance_info=info)


def _groups(maker: Any, bags: Bags, b: int, kept: Index) -> Index:
    """The group of every instance of a bag (n,): its own or, of many kept ones, a group of those that are alike.

    Instances that are not kept go with the nearest that is.
    """
    start, stop = int(bags.offsets[b]), int(bags.offsets[b + 1])
    if stop - start == len(kept) <= 1 << HALVINGS:
        return np.arange(stop - start)
    values = maker.anchor.view.rows.others(_of(bags, [b], [np.arange(start, stop)])).values
    labels = alike(values[kept - start], HALVINGS)
    if stop - start == len(kept):
        return labels
    nearest = squared_distances(values, values[kept - start]).argmin(axis=1)
    nearest[kept - start] = np.arange(len(kept))
    return labels[nearest]


def alike(values: Array, halvings: int) -> Index:
    """Groups of rows (n,): of more than ``2**halvings``, the widest feature of every group is cut in halves, and again.

    >>> alike(np.array([[0.0], [9.0], [1.0], [8.0]]), 1).tolist()
    [0, 1, 0, 1]
    """
    if len(values) <= 1 << halvings:
        return np.arange(len(values))
    blocks = [np.lexsort(values.T[::-1])]  # whatever the order of the instances
    for _ in range(halvings):
        halves = []
        for block in blocks:
            widest = int(values[block].var(axis=0).argmax())
            order = block[np.argsort(values[block, widest], kind="stable")]
            halves += np.array_split(order, 2)
        blocks = halves
    labels = np.empty(len(values), dtype=np.int64)
    for label, block in enumerate(blocks):
        labels[block] = label
    return labels
