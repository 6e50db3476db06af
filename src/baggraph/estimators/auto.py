"""A default that nobody has to tune: a fixed committee, calibrated inside, that says what each member brought."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from baggraph.data.bags import Bags
from baggraph.data.posterior import Posterior
from baggraph.data.stacked import AbstractStacked
from baggraph.errors import InvalidBagsError, ParameterError, closest
from baggraph.estimators._auto_committee import Committee, convene
from baggraph.estimators._auto_members import MEMBERS, AbstractMember, Maker, Tables
from baggraph.estimators._input import bags_of, codes_of, takes_bags, with_labels
from baggraph.estimators._known import known_links, only_visible, read_graph

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AutoBagClassifier"]

Array = NDArray[np.float64]
FEWEST = 2  # bags of every class, without which nothing can be held out


class AutoBagClassifier(ClassifierMixin, AbstractStacked, BaseEstimator):
    r"""Classes of bags by a committee that is fixed in advance; nothing is picked, nothing is to be tuned.

    .. math:: \mathrm{logit}\, p(b) = a \sum_m w_m (a_m s_m(b) + c_m) + c, \quad w_m \propto \exp(-n \ell_m / 10)

    Members score bags; inner folds hold bags out of them, on which every score is calibrated (a_m, c_m), its log-loss
    taken, and the pooled logit calibrated again.  The weights lie between equal ones and those that n independent bags
    would justify, as picking the best on a few bags is unreliable.  Members that use a graph have a say only where
    the pool is better with them.  Of more than two classes, each is told from the rest by a committee of its own.

    The members: machines on the average of all kernels and on rows of distances, randomised trees on summaries, ridge
    regression of instances without their own bag, and label spreading over nearest bags and over the known graph.

    Parameters
    ----------
    members
        Names of the members, as in ``AutoBagClassifier.member_names()``; ``"all"`` that apply.
    graph
        ``"given"``: that of the bags, if they have one; a BagGraph; or None.
    time_budget
        Seconds after which no further member joins (the first always does); None waits for all.  With a budget, what
        is found depends on the machine: ``skipped_`` says who is missing.
    memory_budget
        Bytes that tables between bags and instances may take; None: no limit.
    scaling
        Kind of :class:`~baggraph.data.scaling.InstanceScaler`.
    random_state
        Seed of codebooks, trees and inner folds.

    Attributes
    ----------
    posterior_ : Posterior
        Of every bag in fit.
    transduction_ : (B,)
        Most probable class of every bag in fit.
    classes_ : (C,)
        Names of the classes.
    skipped_ : list
        Members that had no time.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(label, 1, size=(5, 3)) for label in (0, 2) * 10]
    >>> model = AutoBagClassifier(members=["average kernel", "instances"]).fit(bags, ["calm", "stormy"] * 10)
    >>> model.predict([np.zeros((4, 3)), np.full((6, 3), 2.0)]).tolist()
    ['calm', 'stormy']

    """

    classes_: Any

    def __init__(
        self,
        *,
        members: Sequence[str] | str = "all",
        graph: Any = "given",
        time_budget: float | None = None,
        memory_budget: float | None = None,
        scaling: str = "standard",
        random_state: int = 0,
    ) -> None:
        self.members = members
        self.graph = graph
        self.time_budget = time_budget
        self.memory_budget = memory_budget
        self.scaling = scaling
        self.random_state = random_state

    @staticmethod
    def member_names() -> list[str]:
        """All members, in the order in which they join."""
        return list(MEMBERS)

    def __sklearn_tags__(self) -> Tags:
        return takes_bags(super().__sklearn_tags__())

    # ------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn from bags; those without a label (None, NaN) get a posterior too.

        Parameters
        ----------
        X
            Bags, a list of (n, d) arrays, an array (B, n, d), or a table (B, d) of bags of one instance.
        y
            Labels (B,); by default those that the bags carry.

        """
        deadline = None if self.time_budget is None else time.monotonic() + float(self.time_budget)
        bags = with_labels(bags_of(self, X, reset=True), y, type(self).__name__)
        codes = self._read(bags)
        self._maker = self._make(bags)
        tables = self._maker.tables()
        self.committees_ = self._convene(tables, codes, np.flatnonzero(bags.labelled), deadline)
        self.posterior_ = self._posterior(self.committees_, tables, bags.ids)
        self.transduction_ = self.posterior_.prediction
        self.skipped_ = sorted({name for one in self.committees_ for name in one.skipped})
        return self

    def posteriors(self, bags: Bags, masks: Any) -> list[Posterior]:
        """Posteriors of all bags for every row of ``masks`` (M, B), which says whose labels are seen."""
        own = type(self)(**self.get_params(deep=False))
        bags = with_labels(bags_of(own, bags, reset=True), None, type(self).__name__)
        tables = own._make(bags).tables()
        found = []
        for mask in np.asarray(masks, dtype=bool):
            visible = mask & bags.labelled
            codes = own._read(bags.replace(y=only_visible(bags.y, visible)))
            deadline = None if self.time_budget is None else time.monotonic() + float(self.time_budget)
            committees = own._convene(tables, codes, np.flatnonzero(visible), deadline)
            found.append(own._posterior(committees, tables, bags.ids))
        return found

    def _make(self, bags: Bags) -> Maker:
        graph = read_graph(type(self).__name__, self.graph, bags)
        need = 8.0 * len(bags) * (3 * bags.n_instances + 80 * len(bags)) + 16.0 * bags.n_instances * bags.n_features
        if self.memory_budget is not None and need > self.memory_budget:
            got, remedy = f"{self.memory_budget:.3g}", "raise it, or use BagGraphClassifier in batches"
            raise ParameterError(type(self).__name__, expected=f"a memory_budget of {need:.3g}", got=got, remedy=remedy)
        return Maker.of(bags, graph, self.scaling, self.random_state)

    def _asked_members(self, graph: bool) -> dict[str, AbstractMember]:
        names = list(MEMBERS) if isinstance(self.members, str) and self.members == "all" else list(self.members)
        for name in names:
            if name not in MEMBERS:
                stage, remedy = type(self).__name__, closest(str(name), MEMBERS)
                raise ParameterError(stage, expected="names of members", got=repr(name), remedy=remedy)
        found = {name: MEMBERS[name] for name in names if graph or name != "known graph"}
        if not any(not member.uses_graph for member in found.values()):
            got, remedy = repr(self.members), "add 'average kernel'"
            raise ParameterError(type(self).__name__, expected="a member without a graph", got=got, remedy=remedy)
        return found

    def _convene(self, tables: Tables, codes: Any, visible: Any, deadline: float | None) -> list[Committee]:
        counts = np.bincount(codes[visible], minlength=len(self.classes_))
        if counts.min() < FEWEST:
            got, name = f"{counts.min()}", self.classes_[int(counts.argmin())]
            expected = f"{FEWEST} labelled bags of every class"
            raise InvalidBagsError(type(self).__name__, expected=expected, got=f"{got} of {name!r}", remedy="add some")
        members = self._asked_members(tables.links is not None)
        sides = range(1, 2) if len(self.classes_) == 2 else range(len(self.classes_))
        signs = [np.where(codes[visible] == side, 1.0, -1.0) for side in sides]
        given: dict[str, Any] = {"seed": self.random_state, "deadline": deadline}
        return [convene(members, tables, visible, sign, **given) for sign in signs]

    def _posterior(self, committees: list[Committee], tables: Tables, ids: Any) -> Posterior:
        each = np.stack([expit(one.logit(tables)) for one in committees], axis=1)
        if each.shape[1] == 1:
            each = np.hstack([1 - each, each])
        return Posterior((each / each.sum(axis=1, keepdims=True))[None], ids, self.classes_)

    def _read(self, bags: Bags) -> NDArray[np.int64]:
        """Codes (B,); those of bags without a label are 0 and never looked at."""
        self.classes_, codes = codes_of(bags, type(self).__name__)
        found = np.zeros(len(bags), dtype=np.int64)
        found[bags.labelled] = codes
        return found

    # ------------------------------------------------------------------ answering

    def predict_posterior(self, X: Any, *, links: Any = None) -> Posterior:
        """The posterior of new bags, each as if it came alone; ``links`` (new bags, bags in fit) join them to a graph.

        Without links, a BagGraph that was passed and holds their ids says them; else the known graph is silent.
        """
        check_is_fitted(self, "posterior_")
        bags = bags_of(self, X, reset=False)
        known = known_links(self.graph, bags.ids, self._maker.bags.ids) if links is None else links
        return self._posterior(self.committees_, self._maker.tables(bags, known), bags.ids)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (B, C) of new bags, columns as in ``classes_``."""
        return self.predict_posterior(X).mean

    def predict(self, X: Any) -> Any:
        """The most probable class of new bags."""
        return self.predict_posterior(X).prediction

    # ------------------------------------------------------------------ accounting

    def contributions(self) -> pd.DataFrame:
        """A row a member: weight and log-loss on held-out bags (means over classes), and whether it uses a graph."""
        import pandas as pd

        check_is_fitted(self, "posterior_")
        rows = [
            {"member": seat.name, "weight": seat.weight, "log_loss": seat.loss, "graph": seat.uses_graph}
            for one in self.committees_
            for seat in one.seats
        ]
        found = (
            pd.DataFrame(rows).groupby("member", sort=False).agg({"weight": "sum", "log_loss": "mean", "graph": "any"})
        )
        return found.assign(weight=found["weight"] / len(self.committees_))

    def graph_gain(self) -> tuple[float, float, float]:
        """What graphs take off the log-loss of held-out bags, in nats: mean, and the ends of its 95 % interval."""
        check_is_fitted(self, "posterior_")
        mean, low, high = np.mean([one.gain for one in self.committees_], axis=0).tolist()
        return mean, low, high
