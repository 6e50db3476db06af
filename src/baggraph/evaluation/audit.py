"""What to doubt before a score is believed: can something trivial solve it, and is anything wrong with the data?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from baggraph.data.bags import Bags
from baggraph.errors import InvalidBagsError, ParameterError
from baggraph.evaluation import (
    _audit_columns,
    _audit_design,
    _audit_graph,
    _audit_leaks,
    _audit_numbers,
    _audit_scores,
    _audit_twins,
)
from baggraph.evaluation._audit_rules import Rules
from baggraph.evaluation._findings import Audit, Finding
from baggraph.evaluation._material import Material, gather
from baggraph.evaluation._relatives import relatives
from baggraph.evaluation._shuffles import Shuffles, convicted

__all__ = ["Audit", "Finding", "audit"]

Progress = Callable[[str], None]
FEWEST_LABELS = 4


def audit(
    bags: Any,
    *,
    scores: Any = None,
    beside: Mapping[str, Bags] | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Audit:
    """Look for what makes scores on these bags mean something else than they seem to.

    Parameters
    ----------
    bags : Bags
        With their labels, graph and splits, if they have some: each of them is looked at.
    scores
        Scores that were printed for these bags, to be laid beside a constant: a path of a CSV file, a DataFrame with
        columns ``metric``, ``mean`` and, if there are several, ``dataset``, or a
        :class:`~baggraph.data.results.ResultTable`.
    beside
        Other sets by name, which may share bags with this one.  Default: for a set of ``baggraph.datasets``, those
        of the same origin that are at hand.
    random_state
        Seed of shuffled labels and of folds, where bags have no splits.
    progress
        Called with what is being looked at.

    Returns
    -------
    Audit
        Findings, the most serious first.  ``str`` of it is their text.

    Notes
    -----
    Findings that rest on labels are tests against shuffled labels; their p-values are corrected by Holm's method, so
    that the chance of any false alarm among them is 1 % an audit.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.permutation(np.repeat([0, 1], 30))
    >>> instances = np.c_[rng.normal(size=120), 1 + np.repeat(y, 2)]
    >>> found = audit(Bags(instances, np.arange(0, 121, 2), y, feature_names=["age", "code"]))
    >>> found.worst, [finding.measured for finding in found.findings if finding.code == "BG201"]
    ('serious', ["the mean of 'code' over a bag has correlation 1.0000 with the target"])

    """
    if not isinstance(bags, Bags):
        remedy = "make them with Bags.from_frame or baggraph.read"
        raise InvalidBagsError("audit", expected="Bags", got=f"a {type(bags).__name__}", remedy=remedy)
    say = progress or _say_nothing
    say("instances")
    material = gather(bags)
    found = list(_audit_columns.findings(material))
    say("twins")
    found += _audit_twins.findings(material, relatives(bags) if beside is None else _checked(beside))
    shuffles = None
    if len(material.known) >= FEWEST_LABELS:
        shuffles = Shuffles.of(bags.y[material.known], material.classify, random_state)
        found += _of_labels(material, shuffles, random_state, say)
    say("graph")
    found += _audit_graph.findings(material, bags.graph, shuffles, random_state)
    if scores is not None:
        say("scores")
        found += _audit_scores.findings(bags, scores, random_state)
    return Audit(str(bags.metadata.get("name", "bags")), tuple(found))


def _of_labels(material: Material, shuffles: Shuffles, random_state: int, say: Progress) -> list[Finding]:
    """Findings on the relation of labels to anything else, with one correction for all of their tests."""
    say("plain methods")
    rules = Rules.of(material.bags.take(material.known), material.classify, random_state)
    say("shuffled labels")
    suspicions = [*_audit_leaks.suspicions(material, shuffles), *_audit_numbers.suspicions(material, shuffles, rules)]
    found = convicted(suspicions)
    return found if rules is None else [*found, *_audit_design.findings(rules, found)]


def _checked(beside: Mapping[str, Bags]) -> Mapping[str, Bags]:
    if not isinstance(beside, Mapping) or not all(isinstance(other, Bags) for other in beside.values()):
        got, remedy = f"a {type(beside).__name__}", 'pass {"other set": bags}'
        raise ParameterError("audit", expected="other Bags by name", got=got, remedy=remedy)
    return beside


def _say_nothing(phase: str) -> None:
    del phase
