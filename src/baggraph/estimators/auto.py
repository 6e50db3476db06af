"""A default that nobody has to tune: a fixed committee, calibrated inside, that says what each member brought."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from baggraph.errors import InvalidBagsError
from baggraph.estimators._auto_base import AutoBase, accounts, coordinates
from baggraph.estimators._auto_committee import Committee, Tell, convene
from baggraph.estimators._auto_parts import Classes
from baggraph.estimators._auto_roster import MEMBERS, asked_members
from baggraph.estimators._auto_tables import Maker, Tables, check_memory
from baggraph.estimators._input import bags_of, codes_of, takes_bags, with_labels
from baggraph.estimators._known import only_visible, read_graph
from baggraph.estimators._progress import counter
from baggraph.inference.calibration import Conformal

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AutoBagClassifier"]

Array = NDArray[np.float64]
FEWEST = 2  # bags of every class, without which nothing can be held out


class AutoBagClassifier(ClassifierMixin, AutoBase, AbstractStacked, BaseEstimator):
    r"""Classes of bags by a committee that is fixed in advance; nothing is picked, nothing is to be tuned.

    .. math:: \mathrm{logit}\, p(b) = a \sum_m w_m (a_m s_m(b) + c_m) + c, \quad w_m \propto \exp(-n \ell_m / 10)

    Members score bags; inner folds hold bags out of them, on which every score is calibrated (a_m, c_m), its log-loss
    taken, and the pooled logit calibrated again.  The weights lie between equal ones and those that n independent bags
    would justify, as picking the best on a few bags is unreliable.  Members that use a graph have a say only where
    the pool is better with them.  Of more than two classes, each is told from the rest by a committee of its own.

    The standard members: machines on the average of all kernels and on rows of distances, randomised trees on
    summaries, ridge regression of instances without their own bag, and label spreading over nearest bags and over the
    known graph.  Others may be asked for: a Gaussian process on the average kernel, and the networks of the paper
    without and with a learned graph, at their defaults, all inner folds trained as one stack.

    Parameters
    ----------
    members
        Names of the members, as in ``AutoBagClassifier.member_names()``; ``"standard"``, or ``"all"``.
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
        Seed of codebooks, trees, networks and inner folds.
    verbose
        1 writes progress to standard error; a function is called as ``(phase, done, total)``.

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
    graph_ : BagGraph or None
        The known graph.
    embedding_ : (B, q)
        Principal coordinates of the bags in fit, by the average kernel.
    conformal_ : Conformal
        What :meth:`predict_set` rests on.

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
        members: Sequence[str] | str = "standard",
        graph: Any = "given",
        time_budget: float | None = None,
        memory_budget: float | None = None,
        scaling: str = "auto",
        random_state: int = 0,
        verbose: Any = 0,
    ) -> None:
        self.members = members
        self.graph = graph
        self.time_budget = time_budget
        self.memory_budget = memory_budget
        self.scaling = scaling
        self.random_state = random_state
        self.verbose = verbose

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
        bags = with_labels(bags_of(self, X, reset=True), y, type(self).__name__)
        codes = self._read(bags)
        visible = np.flatnonzero(bags.labelled)
        self._maker = self._make(bags)
        tables = self._maker.tables()
        tell = counter(self.verbose, "members", self._n_votes(tables))
        self.committees_ = self._convene(tables, codes, visible, self._deadline(), tell)
        self.posterior_, self.conformal_ = self._answers(self.committees_, tables, bags.ids, codes, visible)
        self.transduction_ = self.posterior_.prediction
        self.embedding_ = coordinates(tables)
        self.skipped_ = sorted({name for one in self.committees_ for name in one.skipped})
        return self

    def posteriors(self, bags: Bags, masks: Any) -> list[Posterior]:
        """Posteriors of all bags for every row of ``masks`` (M, B), which says whose labels are seen."""
        return [posterior for posterior, _ in self._each(bags, masks)]

    def _each(self, bags: Bags, masks: Any) -> Iterator[tuple[Posterior, Conformal]]:
        """What :meth:`fit` finds for every row of ``masks``, from tables that are made once."""
        own = type(self)(**self.get_params(deep=False))
        bags = with_labels(bags_of(own, bags, reset=True), None, type(self).__name__)
        masks = np.asarray(masks, dtype=bool)
        tables, tell = own._make(bags).tables(), None
        for mask in masks:
            visible = np.flatnonzero(mask & bags.labelled)
            codes = own._read(bags.replace(y=only_visible(bags.y, mask & bags.labelled)))
            tell = tell or counter(self.verbose, "members", len(masks) * own._n_votes(tables))
            committees = own._convene(tables, codes, visible, own._deadline(), tell)
            yield own._answers(committees, tables, bags.ids, codes, visible)

    def _answers(
        self, committees: list[Committee], tables: Tables, ids: Any, codes: Any, visible: Any
    ) -> tuple[Posterior, Conformal]:
        held = self._posterior([one.held for one in committees], ids[visible])
        posterior = self._posterior([one.logit(tables) for one in committees], ids)
        return posterior, Conformal.of(held, self.classes_[codes[visible]])

    def _make(self, bags: Bags) -> Maker:
        graph = read_graph(type(self).__name__, self.graph, bags)
        check_memory(type(self).__name__, bags, self.memory_budget)
        return Maker.of(bags, graph, self.scaling, self.random_state)

    def _n_sides(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _n_votes(self, tables: Tables) -> int:
        members = asked_members(type(self).__name__, self.members, graph=tables.links is not None)
        return len(members) * self._n_sides()

    def _convene(
        self, tables: Tables, codes: Any, visible: Any, deadline: float | None, tell: Tell | None
    ) -> list[Committee]:
        counts = np.bincount(codes[visible], minlength=len(self.classes_))
        if counts.min() < FEWEST:
            got, name = f"{counts.min()}", self.classes_[int(counts.argmin())]
            expected = f"{FEWEST} labelled bags of every class"
            raise InvalidBagsError(type(self).__name__, expected=expected, got=f"{got} of {name!r}", remedy="add some")
        members = asked_members(type(self).__name__, self.members, graph=tables.links is not None)
        sides = range(1, 2) if self._n_sides() == 1 else range(self._n_sides())
        signs = [np.where(codes[visible] == side, 1.0, -1.0) for side in sides]
        given: dict[str, Any] = {"seed": self.random_state, "deadline": deadline, "tell": tell}
        return [convene(members, tables, visible, sign, **given) for sign in signs]

    def _posterior(self, logits: list[Array], ids: Any) -> Posterior:
        each = np.stack([expit(logit) for logit in logits], axis=1)
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
        return self._answered(X, links)

    def _of_new(self, bags: Bags, links: Any) -> Posterior:
        tables = self._maker.tables(bags, links)
        return self._posterior([one.logit(tables) for one in self.committees_], bags.ids)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (B, C) of new bags, columns as in ``classes_``."""
        return self.predict_posterior(X).mean

    def predict(self, X: Any) -> Any:
        """The most probable class of new bags."""
        return self.predict_posterior(X).prediction

    def predict_set(
        self, X: Any = None, *, coverage: float = 0.9, conditional: bool = False, links: Any = None
    ) -> NDArray[np.bool_]:
        """Which classes (B, C) may be the label of new bags or, without X, of those in fit.

        Meant to hold the label with probability ``coverage``; with ``conditional``, within every class.  It rests on
        the labelled bags, each as the committee scored it from folds without it: close to what split-conformal sets
        promise, but no promise, as weights and the last calibration saw these scores, and as a bag in fit is known
        better than a new one.
        """
        return self.conformal_.sets(self._asked(X, links), coverage, conditional=conditional)

    # ------------------------------------------------------------------ accounting

    def contributions(self) -> pd.DataFrame:
        """A row a member: weight and log-loss on held-out bags (means over classes), and whether it uses a graph."""
        check_is_fitted(self, "posterior_")
        rows = [
            {"member": seat.name, "weight": seat.weight, "log_loss": seat.loss, "graph": seat.uses_graph}
            for one in self.committees_
            for seat in one.seats
        ]
        return accounts(rows, "log_loss", len(self.committees_))

    def _subject(self) -> Classes:
        return Classes(self)

    def _parts(self) -> list[Any]:
        return list(self.committees_)

    def _shaped(self, posterior: Posterior) -> Any:
        return posterior.prediction
