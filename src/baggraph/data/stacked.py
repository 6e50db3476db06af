"""What an estimator must offer so that all folds are trained as one stack."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.data.posterior import Posterior

__all__ = ["AbstractSeededStack", "AbstractStacked"]


class AbstractStacked(ABC):
    """An estimator that is trained on many sets of visible labels in one call.

    Examples
    --------
    >>> class Prior(AbstractStacked):
    ...     def posteriors(self, bags, masks):
    ...         shares = [bags.y[mask].mean() for mask in masks]
    ...         return [Posterior([[[1 - p, p]] * len(bags)], bags.ids, [0, 1]) for p in shares]
    >>> bags = Bags([[0.0], [0.0], [0.0]], [0, 1, 2, 3], [0, 1, 1])
    >>> [found.mean[0].tolist() for found in Prior().posteriors(bags, [[True, True, False]])]
    [[0.5, 0.5]]

    """

    @abstractmethod
    def posteriors(self, bags: Bags, masks: NDArray[Any]) -> list[Posterior]:
        """One posterior over all bags for every row of ``masks`` (M, B), which says whose labels are visible.

        Member m is what fitting on ``masks[m]`` alone gives; labels that it hides are not looked at.
        """


class AbstractSeededStack(AbstractStacked):
    """A stack whose members may have a seed each, so that repeats with seeds of their own are trained in one call."""

    @abstractmethod
    def posteriors(
        self, bags: Bags, masks: NDArray[Any], random_states: Sequence[int] | None = None
    ) -> list[Posterior]:
        """As of every stack; member m has ``random_states[m]`` in place of the estimator's own ``random_state``."""
