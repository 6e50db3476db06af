"""What the committees for classes and for real targets have in common once they are fitted."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.data.posterior import Posterior
from baggraph.estimators._auto_tables import Maker, Tables
from baggraph.estimators._input import bags_of
from baggraph.estimators._known import known_links
from baggraph.estimators._savable import Savable
from baggraph.inference.calibration import Conformal

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
COORDINATES = 16  # of bags in the map that the average kernel makes


class AutoBase(Savable, ABC):
    """A fitted committee: its graph, its map of bags, its accounts."""

    graph: Any
    time_budget: float | None
    posterior_: Posterior
    conformal_: Conformal
    skipped_: list[str]
    _maker: Maker

    @property
    def graph_(self) -> BagGraph | None:
        """The known graph over the bags in fit."""
        check_is_fitted(self, "posterior_")
        return self._maker.graph

    def graph_gain(self) -> tuple[float, float, float]:
        """What graphs take off the loss on labels left out, in nats a bag: mean, and the ends of its 95 % interval."""
        check_is_fitted(self, "posterior_")
        mean, low, high = np.mean([one.gain for one in self._parts()], axis=0).tolist()
        return mean, low, high

    def explain(self, X: Any, *, of: Any = None, method: str = "auto", seen: bool = False, links: Any = None) -> Any:
        """Why the committee says what it says: an :class:`~baggraph.estimators.Explanation` a bag.

        The score is the pooled log odds of a class or, of targets, what is expected on the scale of the link.  Members
        add up to it, and so do the bags whose labels were heard.  An instance counts what the score loses without it.

        Parameters
        ----------
        X
            Bags as for ``predict``, or one of them (``bags["s1"]``), which gets one explanation instead of a list.
        of
            The class, or the number of the target, whose score is explained.  Default: of two classes the second, of
            more the most probable; the first target.
        method
            ``"leave-one-out"``, which is also ``"auto"``.  Of more than 64 instances, groups of those that are alike
            are left out, and share what they count; one that stands alone is held against the bags of the fit.
        seen
            Explain bags of the fit, known by their ids, where they stand in it, as in ``posterior_``.
        links
            As for ``predict_posterior``.

        """
        from baggraph.estimators._auto_explaining import explain

        return explain(self, self._subject(), X, of=of, method=method, seen=seen, links=links)

    def _deadline(self) -> float | None:
        return None if self.time_budget is None else time.monotonic() + float(self.time_budget)

    def _answered(self, X: Any, links: Any) -> Posterior:
        """Of new bags; without links, a BagGraph that was passed and holds their ids says them."""
        check_is_fitted(self, "posterior_")
        bags = bags_of(self, X, reset=False)
        return self._of_new(bags, known_links(self.graph, bags.ids, self._maker.ids) if links is None else links)

    def _asked(self, X: Any, links: Any) -> Posterior:
        """Of new bags or, without any, of those in fit."""
        check_is_fitted(self, "posterior_")
        return self.posterior_ if X is None else self._answered(X, links)

    @abstractmethod
    def contributions(self) -> pd.DataFrame:
        """A row a member."""

    @abstractmethod
    def _subject(self) -> Any:
        """What there is to explain."""

    @abstractmethod
    def _parts(self) -> list[Any]:
        """A decision a class or target."""

    @abstractmethod
    def _of_new(self, bags: Bags, links: Any) -> Posterior:
        """The posterior of bags, joined to the graph by links."""


def coordinates(tables: Tables) -> Array:
    """Principal coordinates (B, q) of bags by the average kernel, the widest first."""
    values = tables.kernel @ tables.roots
    order = np.argsort(-np.einsum("ij,ij->j", values, values), kind="stable")[:COORDINATES]
    return np.asarray(values[:, order]) if len(order) else np.zeros((len(tables), 1))


def accounts(rows: list[dict[str, Any]], loss: str, count: int) -> pd.DataFrame:
    """A row a member, means over classes or targets."""
    import pandas as pd

    found = pd.DataFrame(rows).groupby("member", sort=False).agg({"weight": "sum", loss: "mean", "graph": "any"})
    return found.assign(weight=found["weight"] / count)
