"""A default for real targets that nobody has to tune."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from baggraph.baselines._input import real_targets
from baggraph.data.bags import Bags
from baggraph.data.posterior import Posterior
from baggraph.data.stacked import AbstractStacked
from baggraph.errors import InvalidBagsError
from baggraph.estimators._auto_base import AutoBase, accounts, coordinates
from baggraph.estimators._auto_committee import Tell
from baggraph.estimators._auto_parts import Targets
from baggraph.estimators._auto_tables import Maker, Tables, check_memory
from baggraph.estimators._auto_targets import (
    Asked,
    Council,
    Voice,
    gather,
    kernel_process,
    of_description,
    of_process,
    of_trees,
    pool,
)
from baggraph.estimators._input import bags_of, takes_bags, with_labels
from baggraph.estimators._known import only_visible, read_graph
from baggraph.estimators._progress import counter
from baggraph.inference.calibration import Conformal
from baggraph.inference.gp_bags import Description, Settings, describe
from baggraph.inference.gp_regression import regress
from baggraph.inference.gp_scale import Scale, to_posterior

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["AutoBagRegressor"]

Array = NDArray[np.float64]
FEWEST = 5  # labelled bags
CONTENTS = {"process": ("linear",), "embedding process": ("linear", "near", "far")}


class AutoBagRegressor(RegressorMixin, AutoBase, AbstractStacked, BaseEstimator):
    r"""Real targets of bags by a committee that is fixed in advance; nothing is picked, nothing is to be tuned.

    .. math:: \mu(b) = \sum_m w_m \mu_m(b), \quad v(b) = c \sum_m w_m c_m v_m(b), \quad w_m \propto \exp(-n \ell_m / 10)

    Members are judged by what they say of labels left out: c_m is their mean squared error over their own variance,
    and the loss that of a normal law.  They are Gaussian processes over places, graph and means of instances, with and
    without mean embeddings, each also without the graph; a process on the average of all kernels; and randomised trees
    on summaries.  Those with a graph have a say only where the pool is better with them.  The link (identity, logarithm
    or logit) is chosen by marginal likelihood.

    Parameters
    ----------
    graph
        ``"given"``: that of the bags, if they have one; a BagGraph; or None.
    geographic
        Whether coordinates are longitude and latitude in degrees.
    weights
        Name of a column of ``bags.instance_info``: how much an instance counts in means.
    time_budget
        Seconds after which no further member joins (the first always does); None waits for all.  With a budget, what
        is found depends on the machine: ``skipped_`` says who is missing.
    memory_budget
        Bytes that tables between bags and instances may take; None: no limit.
    scaling
        Kind of :class:`~baggraph.data.scaling.InstanceScaler` of the average kernel.
    random_state
        Seed of codebooks, random features and trees.
    verbose
        1 writes progress to standard error; a function is called as ``(phase, done, total)``.

    Attributes
    ----------
    posterior_ : Posterior
        Of every bag in fit, noise included.
    transduction_ : (B,) or (B, t)
        Expected target of every bag in fit.
    link_ : str
        The link chosen.
    skipped_ : list
        Members that had no time.
    graph_ : BagGraph or None
        The known graph.
    embedding_ : (B, q)
        Principal coordinates of the bags in fit, by the average kernel.
    conformal_ : Conformal
        What :meth:`predict_interval` rests on.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.linspace(1, 2, 24)
    >>> model = AutoBagRegressor().fit([rng.normal(m, 0.1, size=(5, 2)) for m in y], y)
    >>> model.score([rng.normal(m, 0.1, size=(5, 2)) for m in y], y) > 0.8
    True

    """

    def __init__(
        self,
        *,
        graph: Any = "given",
        geographic: bool = False,
        weights: str | None = None,
        time_budget: float | None = None,
        memory_budget: float | None = None,
        scaling: str = "auto",
        random_state: int = 0,
        verbose: Any = 0,
    ) -> None:
        self.graph = graph
        self.geographic = geographic
        self.weights = weights
        self.time_budget = time_budget
        self.memory_budget = memory_budget
        self.scaling = scaling
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = takes_bags(super().__sklearn_tags__())
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    # ------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn from bags; those without a label (None, NaN) get a posterior too.

        Parameters
        ----------
        X
            Bags, a list of (n, d) arrays, an array (B, n, d), or a table (B, d) of bags of one instance.
        y
            Targets (B,) or (B, t); by default those that the bags carry.

        """
        bags = with_labels(bags_of(self, X, reset=True), y, type(self).__name__)
        asked = self._prepare(bags)
        targets, visible = self._read(bags), np.flatnonzero(bags.labelled)
        tell = counter(self.verbose, "members", targets.shape[1] * (len(asked.rows) + 1))
        self._convene(asked, targets, visible, tell)
        self.posterior_, self.conformal_ = self._answers(asked, bags.ids, targets, visible)
        self.transduction_ = self._shaped(self.posterior_)
        self.embedding_ = coordinates(asked.tables)
        self.skipped_ = sorted({name for one in self.councils_ for name in one.skipped})
        return self

    def posteriors(self, bags: Bags, masks: Any) -> list[Posterior]:
        """Posteriors of all bags for every row of ``masks`` (M, B), which says whose labels are seen."""
        return [posterior for posterior, _ in self._each(bags, masks)]

    def _each(self, bags: Bags, masks: Any) -> Iterator[tuple[Posterior, Conformal]]:
        """What :meth:`fit` finds for every row of ``masks``, from tables that are made once."""
        own = type(self)(**self.get_params(deep=False))
        bags = with_labels(bags_of(own, bags, reset=True), None, type(self).__name__)
        masks = np.asarray(masks, dtype=bool)
        asked, tell = own._prepare(bags), None
        for mask in masks:
            visible = np.flatnonzero(mask & bags.labelled)
            targets = own._read(bags.replace(y=only_visible(bags.y, mask & bags.labelled)))
            total = len(masks) * targets.shape[1] * (len(asked.rows) + 1)
            tell = tell or counter(self.verbose, "members", total)
            own._convene(asked, targets, visible, tell)
            yield own._answers(asked, bags.ids, targets, visible)

    def _answers(self, asked: Asked, ids: Any, targets: Array, visible: Any) -> tuple[Posterior, Conformal]:
        held = [(one.held_mean, np.zeros(len(visible)), one.held_variance) for one in self.councils_]
        conformal = Conformal.of(self._on_scale(held, ids[visible]), targets[visible])
        return self._posterior(asked, ids), conformal

    def _prepare(self, bags: Bags) -> Asked:
        """Everything that needs no label."""
        check_memory(type(self).__name__, bags, self.memory_budget)
        self._maker = Maker.of(bags, read_graph(type(self).__name__, self.graph, bags), self.scaling, self.random_state)
        graph = self._maker.graph
        self._descriptions: dict[str, Description] = {}
        for name, content in CONTENTS.items():
            for with_graph in (False, True) if graph is not None else (False,):
                parts = (*(("position",) if bags.coords is not None else ()), *(("graph",) if with_graph else ()))
                label = f"{name} with graph" if with_graph else name
                by_size = len(np.unique(bags.sizes)) > 1
                common: dict[str, Any] = {"geographic": self.geographic, "weights": self.weights, "by_size": by_size}
                settings = Settings(parts=(*parts, *content), seed=self.random_state, **common)
                self._descriptions[label] = describe(bags, settings, graph=graph)
        tables = self._maker.tables()
        self._roots = tables.roots
        return self._asked_tables(bags, tables, None)

    def _asked_tables(self, bags: Bags, tables: Tables, links: Any) -> Asked:
        rows = {
            name: one.rows if tables.own else one.of_new(bags, links=links) for name, one in self._descriptions.items()
        }
        plain = {"level": np.ones((len(bags), 1)), "noise": np.ones(len(bags))}
        rows["average kernel"] = plain | {"kernel": tables.kernel @ self._roots}
        return Asked(tables, rows, None if bags.coords is None else np.asarray(bags.coords, dtype=np.float64))

    def _convene(self, asked: Asked, targets: Array, visible: Any, tell: Tell | None) -> None:
        if len(visible) < FEWEST:
            stage, got = type(self).__name__, str(len(visible))
            raise InvalidBagsError(stage, expected=f"at least {FEWEST} labelled bags", got=got, remedy="label more")
        deadline = self._deadline()
        mask = np.zeros(len(targets), dtype=bool)
        mask[visible] = True
        first = self._descriptions["process"]
        self.link_ = regress(first, targets, mask).scale.link
        self._scale = Scale.of(self.link_, targets[visible])
        linked = self._scale.forward(targets[visible])
        self.councils_ = [self._council(asked, column, visible, deadline, tell) for column in linked.T]
        self._visible = visible

    def _council(self, asked: Asked, column: Array, visible: Any, deadline: float | None, tell: Tell | None) -> Council:
        makers: dict[str, Callable[[], Voice]] = {
            name: partial(of_description, name, one, visible, column) for name, one in self._descriptions.items()
        }
        name = "average kernel"
        makers[name] = partial(of_process, name, kernel_process(), asked.rows[name], visible, column, graph=False)
        makers["trees"] = partial(of_trees, asked, visible, column, self.random_state)
        voices = gather(makers, deadline, tell)
        return pool(voices, column, list(makers)[len(voices) :])

    def _posterior(self, asked: Asked, ids: Any) -> Posterior:
        return self._on_scale([council.answer(asked) for council in self.councils_], ids)

    def _on_scale(self, answers: list[tuple[Array, Array, Array]], ids: Any) -> Posterior:
        parts = []
        for t, (mean, signal, noise) in enumerate(answers):
            own = Scale(self.link_, self._scale.center[t : t + 1], self._scale.spread[t : t + 1])
            parts.append(to_posterior(mean[:, None], signal, noise, own, ids))
        draws = np.concatenate([part.draws for part in parts], axis=2)
        return Posterior(draws, ids, None, np.concatenate([part.variance for part in parts], axis=2))

    def _read(self, bags: Bags) -> Array:
        labelled = bags.labelled
        values = real_targets(bags.y[labelled], type(self).__name__)
        self._one_target = bags.y.ndim == 1
        targets = np.zeros((len(bags), values.shape[1]))
        targets[labelled] = values
        return targets

    # ------------------------------------------------------------------ answering

    def _shaped(self, posterior: Posterior) -> Any:
        return posterior.mean[:, 0] if self._one_target else posterior.mean

    def predict_posterior(self, X: Any, *, links: Any = None) -> Posterior:
        """The posterior of new bags, each as if it came alone; ``links`` (new bags, bags in fit) join them to a graph.

        Without links, a BagGraph that was passed and holds their ids says them; else the graph is silent.
        """
        return self._answered(X, links)

    def _of_new(self, bags: Bags, links: Any) -> Posterior:
        return self._posterior(self._asked_tables(bags, self._maker.tables(bags, links), links), bags.ids)

    def predict(self, X: Any) -> Any:
        """Expected targets (B,) or (B, t) of new bags."""
        return self._shaped(self.predict_posterior(X))

    def predict_interval(self, X: Any = None, *, coverage: float = 0.9, links: Any = None) -> Array:
        """Lower and upper ends (B, 2), or (B, t, 2) of several targets, of new bags or, without X, of those in fit.

        Meant to hold the target with probability ``coverage``.  It rests on what the committee said of every label
        left out: close to what split-conformal intervals promise, but no promise, as parameters and weights saw these
        labels.
        """
        ends = self.conformal_.intervals(self._asked(X, links), coverage)
        return ends[:, 0] if self._one_target else ends

    # ------------------------------------------------------------------ accounting

    def contributions(self) -> pd.DataFrame:
        """A row a member: weight and loss on labels left out (means over targets), and whether it uses a graph."""
        check_is_fitted(self, "posterior_")
        rows = [
            {"member": voice.name, "weight": voice.weight, "loss": voice.loss, "graph": voice.uses_graph}
            for council in self.councils_
            for voice in council.voices
        ]
        return accounts(rows, "loss", len(self.councils_))

    def _subject(self) -> Targets:
        return Targets(self)

    def _parts(self) -> list[Any]:
        return list(self.councils_)
