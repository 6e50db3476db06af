"""Gaussian processes over bags with the face of scikit-learn: no network, nothing to tune."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from baggraph.baselines._input import real_targets
from baggraph.data.bags import Bags
from baggraph.data.posterior import Posterior
from baggraph.data.stacked import AbstractStacked
from baggraph.estimators._input import bags_of, codes_of, takes_bags, with_labels
from baggraph.estimators._known import known_links, only_visible, read_graph
from baggraph.estimators._savable import Savable
from baggraph.inference.gp_bags import Description, Settings, describe
from baggraph.inference.gp_laplace import FittedClasses, classify
from baggraph.inference.gp_regression import FittedRegression, regress

__all__ = ["BagProcessClassifier", "BagProcessRegressor"]

Array = NDArray[np.float64]
CONTENTS = (("linear",), ("linear", "near", "far"))  # what "auto" chooses from, by evidence


class _BagProcess(Savable, AbstractStacked, BaseEstimator):
    """What both share: bags are described once, without labels; then a process is fitted to the visible ones."""

    parts: Any
    graph: Any
    position: str
    geographic: bool
    weights: str | None
    views: Mapping[str, Bags] | None
    random_state: int
    _total = 1.0
    _by_size = False

    @abstractmethod
    def _read(self, bags: Bags) -> Any:
        """Codes (B,) or targets (B, t) of bags, those without a label at a value that is never looked at."""

    @abstractmethod
    def _fit_visible(self, descriptions: Sequence[Description], targets: Any, visible: Any) -> Any:
        """A fitted process."""

    def __sklearn_tags__(self) -> Tags:
        return takes_bags(super().__sklearn_tags__())

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn from bags; those without a label (None, NaN) get a posterior too.

        Parameters
        ----------
        X
            Bags, a list of (n, d) arrays, an array (B, n, d), or a table (B, d) of bags of one instance.
        y
            Labels (B,) or (B, t); by default those that the bags carry.

        """
        bags = with_labels(bags_of(self, X, reset=True), y, type(self).__name__)
        self.graph_ = read_graph(type(self).__name__, self.graph, bags)
        targets = self._read(bags)
        self.fitted_ = self._fit_visible(self._descriptions(bags), targets, bags.labelled)
        self.posterior_ = self.fitted_.posterior(self.fitted_.description.rows, bags.ids)
        self.transduction_ = self._shaped(self.posterior_)
        self.shares_ = self.fitted_.shares()
        self._ids = bags.ids
        return self

    def posteriors(self, bags: Bags, masks: Any) -> list[Posterior]:
        """Posteriors of all bags for every row of ``masks`` (M, B), which says whose labels are seen."""
        own = type(self)(**self.get_params(deep=False))
        bags = with_labels(bags_of(own, bags, reset=True), None, type(self).__name__)
        own.graph_ = read_graph(type(self).__name__, self.graph, bags)
        descriptions = own._descriptions(bags)
        found = []
        for mask in np.asarray(masks, dtype=bool):
            visible = mask & bags.labelled
            targets = own._read(bags.replace(y=only_visible(bags.y, visible)))
            fitted = own._fit_visible(descriptions, targets, visible)
            found.append(fitted.posterior(fitted.description.rows, bags.ids))
        return found

    def predict_posterior(self, X: Any, *, links: Any = None) -> Posterior:
        """The posterior of new bags, each as if it came alone.

        ``links`` (new bags, bags in fit) join them to the graph; without, a graph that holds their ids says it, and of
        others nothing is known by the graph.
        """
        check_is_fitted(self, "posterior_")
        bags = bags_of(self, X, reset=False)
        known = known_links(self.graph, bags.ids, self._ids) if links is None else links
        rows = self.fitted_.description.of_new(bags, links=known)
        return self.fitted_.posterior(rows, bags.ids)

    def predict(self, X: Any) -> Any:
        """Labels of new bags: the most probable class, or the expected target."""
        return self._shaped(self.predict_posterior(X))

    def _shaped(self, posterior: Posterior) -> Any:
        return posterior.prediction

    def _descriptions(self, bags: Bags) -> list[Description]:
        """One, or with ``parts="auto"`` one a choice of what is made of the instances."""
        if self.parts == "auto":
            places = [("position", bags.coords), ("graph", self.graph_)]
            own = [name for name, there in places if there is not None]
            choices = [(*own, *content) for content in CONTENTS]
        else:
            choices = [(self.parts,) if isinstance(self.parts, str) else tuple(self.parts)]
        common: dict[str, Any] = {"position": self.position, "geographic": self.geographic, "weights": self.weights}
        common |= {"by_size": self._by_size and len(np.unique(bags.sizes)) > 1, "seed": self.random_state}
        settings = [Settings(parts=parts, **common) for parts in choices]
        return [describe(bags, one, graph=self.graph_, views=self.views, total=self._total) for one in settings]


class BagProcessRegressor(RegressorMixin, _BagProcess):
    r"""Real targets of bags by a Gaussian process over where they lie, whom they border and what is in them.

    .. math:: T(y_b) = \mu + \sum_p f_p(b) + e_b, \quad f_p \sim GP(0, v_p k_p), \quad
              e_b \sim N(0, \sigma_1^2 + \sigma_2^2 / |b|)

    All variances and lengths are fitted jointly by marginal likelihood with weak priors (Rasmussen & Williams 2006,
    chapter 5), and so is the link T chosen.  ``shares_`` says how much each part carries.

    Parameters
    ----------
    parts
        Of ``"position"``, ``"graph"``, ``"linear"`` and ``"rbf"`` (means of instances), ``"near"`` and ``"far"`` (mean
        embeddings of instances at two scales).  ``"auto"``: coordinates and graph where there are any, and by marginal
        likelihood the linear part alone or with the embeddings.
    graph
        ``"given"``: that of the bags, if they have one; a BagGraph; or None.
    position
        Kernel of positions: ``"rbf"``, ``"matern12"``, ``"matern32"``, ``"matern52"``.
    geographic
        Whether coordinates are longitude and latitude in degrees.
    weights
        Name of a column of ``bags.instance_info``: how much an instance counts in means.
    views
        Other Bags of the same ids, by name: their instances are parts of their own.
    link
        ``"identity"``, ``"log"``, ``"logit"``, or ``"auto"``: by marginal likelihood, with its Jacobian.
    random_state
        Seed of the random features of the embeddings.

    Attributes
    ----------
    posterior_ : Posterior
        Of every bag in fit, noise included.
    transduction_ : (B,) or (B, t)
        Expected target of every bag in fit.
    shares_ : dict
        Share of every part, and of the noise, in the variance between bags.
    link_ : str
        The link chosen.
    fitted_ : FittedRegression
        The process, its parameters and its evidence.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.linspace(1, 2, 30)
    >>> model = BagProcessRegressor().fit([rng.normal(m, 0.1, size=(9, 2)) for m in y], y)
    >>> model.score([rng.normal(m, 0.1, size=(9, 2)) for m in y], y) > 0.9
    True

    """

    _by_size = True

    def __init__(
        self,
        *,
        parts: Any = "auto",
        graph: Any = "given",
        position: str = "rbf",
        geographic: bool = False,
        weights: str | None = None,
        views: Mapping[str, Bags] | None = None,
        link: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.parts = parts
        self.graph = graph
        self.position = position
        self.geographic = geographic
        self.weights = weights
        self.views = views
        self.link = link
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    @property
    def link_(self) -> str:
        """The link chosen."""
        check_is_fitted(self, "posterior_")
        return str(self.fitted_.scale.link)

    def _shaped(self, posterior: Posterior) -> Any:
        return posterior.mean[:, 0] if self._one_target else posterior.mean

    def _read(self, bags: Bags) -> Array:
        labelled = bags.labelled
        values = real_targets(bags.y[labelled], type(self).__name__)
        self._one_target = bags.y.ndim == 1
        targets = np.zeros((len(bags), values.shape[1]))
        targets[labelled] = values
        return targets

    def _fit_visible(self, descriptions: Sequence[Description], targets: Any, visible: Any) -> FittedRegression:
        return regress(descriptions, targets, visible, link=self.link)


class BagProcessClassifier(ClassifierMixin, _BagProcess):
    r"""Classes of bags by Gaussian processes with a logistic link and Laplace's approximation.

    .. math:: p(y_b = 1) = E[\sigma(\mu + \sum_p f_p(b))], \quad f_p \sim GP(0, v_p k_p)

    (Rasmussen & Williams 2006, chapter 3); of more than two classes, each is told from the rest.  See
    :class:`BagProcessRegressor` for the parameters.

    Attributes
    ----------
    posterior_ : Posterior
        Of every bag in fit.
    transduction_ : (B,)
        Most probable class of every bag in fit.
    shares_ : dict
        Share of every part in the variance of the latent functions between bags.
    fitted_ : FittedClasses
        The latent functions.
    classes_ : (C,)
        Names of the classes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(label, 1, size=(5, 3)) for label in (0, 2) * 10]
    >>> model = BagProcessClassifier().fit(bags, ["calm", "stormy"] * 10)
    >>> model.predict([np.zeros((4, 3)), np.full((6, 3), 2.0)]).tolist()
    ['calm', 'stormy']

    """

    classes_: Any
    _total = 4.0  # latent functions that reach from doubt to near certainty

    def __init__(
        self,
        *,
        parts: Any = "auto",
        graph: Any = "given",
        position: str = "rbf",
        geographic: bool = False,
        weights: str | None = None,
        views: Mapping[str, Bags] | None = None,
        random_state: int = 0,
    ) -> None:
        self.parts = parts
        self.graph = graph
        self.position = position
        self.geographic = geographic
        self.weights = weights
        self.views = views
        self.random_state = random_state

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (B, C) of new bags, columns as in ``classes_``."""
        return self.predict_posterior(X).mean

    def _read(self, bags: Bags) -> NDArray[np.int64]:
        self.classes_, codes = codes_of(bags, type(self).__name__)
        found = np.zeros(len(bags), dtype=np.int64)
        found[bags.labelled] = codes
        return found

    def _fit_visible(self, descriptions: Sequence[Description], targets: Any, visible: Any) -> FittedClasses:
        return classify(descriptions, targets, visible, self.classes_)
