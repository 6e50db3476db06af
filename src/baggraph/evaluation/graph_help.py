"""Does the graph help?  One model without a graph, with controls, and with every graph there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from baggraph.data.bags import Bags
from baggraph.data.results import ResultTable
from baggraph.errors import ParameterError
from baggraph.estimators import BagGraphEstimator
from baggraph.estimators._building import build_wiring
from baggraph.evaluation.compare import Comparison, compare
from baggraph.evaluation.cross_validate import cross_validate
from baggraph.graphs.shuffled import ShuffledWiring

__all__ = ["GraphHelp", "does_the_graph_help", "graph_controls"]

NO_GRAPH, SHUFFLED = "no graph", "shuffled graph"
GRAPHS = ("k-NN graph", "learned graph", "given graph")


def graph_controls(model: Any, bags: Bags) -> dict[str, BagGraphEstimator]:
    """The same model with no graph, its own graph shuffled, nearest neighbours, a learned graph, and the given one.

    All answer by the mean of equally many draws at equal seeds, so that averaging is no advantage of any.  The shuffled
    graph is that of ``model`` (the learned one, if it has none) with its bags exchanged: degrees are equal.  There is a
    given graph where ``bags`` carry one.

    >>> from baggraph import BagGraphClassifier, datasets
    >>> list(graph_controls(BagGraphClassifier(), datasets.load("digits-bags")))
    ['no graph', 'shuffled graph', 'k-NN graph', 'learned graph']
    """
    if not isinstance(model, BagGraphEstimator):
        got, remedy = f"a {type(model).__name__}", 'pass BagGraphClassifier(...), or bg.make("B-rFF+pool-GCN")'
        raise ParameterError("graph controls", expected="a model with a graph", got=got, remedy=remedy)
    own = model if model.graph is not None else _with(model, "learned")
    inner = build_wiring(own, bags)
    if inner is None or isinstance(inner, ShuffledWiring):
        got, remedy = "none, or one that is shuffled", "pass the model with its own graph, and head='gcn'"
        raise ParameterError("graph controls", expected="a graph of its own", got=got, remedy=remedy)
    found = {
        NO_GRAPH: _with(model, None),
        SHUFFLED: _with(model, ShuffledWiring(inner)),
        GRAPHS[0]: _with(model, "knn"),
        GRAPHS[1]: _with(model, "learned"),
    }
    if bags.graph is not None:
        found[GRAPHS[2]] = _with(model, "given")
    return found


def _with(model: BagGraphEstimator, graph: Any) -> BagGraphEstimator:
    """A copy with another graph; what only graphs of embeddings have is dropped elsewhere."""
    changes: dict[str, Any] = {"graph": graph}
    if graph != "learned":
        changes |= {"n_graph_draws": 0, "observed": None}
    return clone(model, safe=False).set_params(**changes)


@dataclass(frozen=True, eq=False)
class GraphHelp:
    """The answer: a sentence a graph, the comparison it rests on, and all rows."""

    table: ResultTable
    comparison: Comparison

    @property
    def verdicts(self) -> dict[str, str]:
        """What every graph is good for, on one data set, at the level of the comparison."""
        present = self.table.names("method")
        return {name: self._verdict(name) for name in GRAPHS if name in present}

    def _verdict(self, graph: str) -> str:
        beats = {control: self._beats(graph, control) for control in (NO_GRAPH, SHUFFLED)}
        if beats[NO_GRAPH] < 0:
            return "hurts: worse than no graph"
        if beats[NO_GRAPH] > 0:
            return "helps" if beats[SHUFFLED] > 0 else "better than no graph, but so may be a shuffled one"
        return "no difference to no graph can be told"

    def _beats(self, graph: str, control: str) -> int:
        """1 better, -1 worse, 0 not told apart, by the corrected t-test with Holm's correction."""
        rows = self.comparison.differences
        row = rows[(rows["method"].isin([graph, control])) & (rows["other"].isin([graph, control]))].iloc[0]
        if row["p_holm"] > self.comparison.level:
            return 0
        gain = row["difference"] * (1 if row["method"] == graph else -1)
        return 1 if (gain > 0) == self.comparison.larger_is_better else -1

    @property
    def sentences(self) -> str:
        """A line a graph."""
        return "\n".join(["Does the graph help?", *(f"{name}: {verdict}" for name, verdict in self.verdicts.items())])

    def __str__(self) -> str:
        return f"{self.sentences}\n\n{self.comparison}"


def does_the_graph_help(
    model: BagGraphEstimator,
    bags: Bags,
    *,
    folds: int = 10,
    repeats: int = 10,
    splits: Any = None,
    metric: str | None = None,
    alpha: float = 0.05,
    random_state: int = 0,
    progress: Callable[[int, int, str], None] | None = None,
) -> GraphHelp:
    """Score :func:`graph_controls` of a model on the same folds, and compare them.

    ``metric`` is that of :func:`~baggraph.compare`; default, accuracy of classes and RMSE of targets.  The other
    parameters are those of :func:`~baggraph.cross_validate`.

    Examples
    --------
    >>> from baggraph import BagGraphClassifier, datasets
    >>> bags = datasets.load("digits-bags", n_bags=30)
    >>> found = does_the_graph_help(BagGraphClassifier(epochs=2, n_draws=2, device="cpu"), bags, folds=2, repeats=2)
    >>> list(found.verdicts)
    ['k-NN graph', 'learned graph']

    """
    methods = graph_controls(model, bags)
    table = cross_validate(
        methods, bags, folds=folds, repeats=repeats, splits=splits, random_state=random_state, progress=progress
    )
    if metric is None:
        metric = next(name for name in ("accuracy", "rmse") if name in table.names("metric"))
    return GraphHelp(table, compare(table, metric, alpha=alpha))
