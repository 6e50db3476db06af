"""Posterior: what is believed of the labels of bags, as draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from baggraph.data._choosing import positions
from baggraph.data._columns import canonical_column, canonical_ids, frozen, missing_mask
from baggraph.data._normal_mixture import mixture_quantile, normal_entropy
from baggraph.data._posterior_checks import check_probabilities, check_variance, own, refuse_non_finite, wrong
from baggraph.errors import ParameterError, closest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Posterior"]

Array = NDArray[np.float64]
LEAST_PROBABILITY = 1e-12  # a certain error costs 27.6 nats, not infinity


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Draws of what a model says of every bag: probabilities of classes, or real targets with or without noise.

    The answer is the average over draws, ``p(y | b) = 1/S sum_s p(y | b, draw s)`` (Pal et al. 2022, equation 5).

    Parameters
    ----------
    draws : (S, B, C) or (S, B, t)
        Class probabilities that sum to one, or the mean of every real target.
    ids : (B,), optional
        Names of the bags.
    classes : (C,), optional
        Names of the classes, in the order of the columns; None for real targets.
    variance : (S, B, t), optional
        Variance of the noise around the mean, for real targets.

    Examples
    --------
    >>> posterior = Posterior([[[0.9, 0.1]], [[0.5, 0.5]]], ids=["a"], classes=["no", "yes"])
    >>> posterior
    Posterior: 1 bag, 2 draws, classes 'no', 'yes'
    >>> posterior.mean.tolist(), posterior.std.round(2).tolist(), posterior.prediction.tolist()
    ([[0.7, 0.3]], [[0.2, 0.2]], ['no'])

    """

    draws: Any
    ids: Any = None
    classes: Any = None
    variance: Any = None

    def __post_init__(self) -> None:
        draws = own(self.draws)
        if draws.ndim != 3 or not draws.shape[0] or not draws.shape[2]:
            raise wrong("draws of shape (draws, bags, classes or targets)", f"shape {draws.shape}", "stack them so")
        ids = canonical_ids(self.ids, draws.shape[1])
        refuse_non_finite(draws, ids, "draws")
        variance = None if self.variance is None else own(self.variance)
        classes = None if self.classes is None else np.asarray(self.classes)
        if classes is not None:
            check_probabilities(draws, ids, classes, variance)
        elif variance is not None:
            check_variance(draws, ids, variance)
        for name, value in (("draws", draws), ("ids", ids), ("classes", classes), ("variance", variance)):
            object.__setattr__(self, name, None if value is None else frozen(value))

    @classmethod
    def pooled(cls, parts: Sequence[Posterior]) -> Posterior:
        """All draws of several posteriors over the same bags, as of the members of an ensemble.

        >>> one = Posterior([[[1.0]]])
        >>> len(Posterior.pooled([one, one]).draws)
        2
        """
        first = parts[0]
        for part in parts[1:]:
            same_bags = np.array_equal(part.ids, first.ids)
            if not same_bags or not np.array_equal(part._columns, first._columns) or part.has_noise != first.has_noise:
                raise wrong("posteriors of the same bags and targets", repr(part), f"pool what is like {first!r}")
        variance = np.concatenate([part.variance for part in parts]) if first.has_noise else None
        return cls(np.concatenate([part.draws for part in parts]), first.ids, first.classes, variance)

    # ------------------------------------------------------------------ moments

    def __len__(self) -> int:
        return int(self.draws.shape[1])

    @property
    def is_classification(self) -> bool:
        """Whether the draws are probabilities of classes."""
        return self.classes is not None

    @property
    def has_noise(self) -> bool:
        """Whether real targets carry a noise variance."""
        return self.variance is not None

    @cached_property
    def mean(self) -> Array:
        """Probabilities (B, C), or expected targets (B, t)."""
        return frozen(self.draws.mean(axis=0))

    @cached_property
    def epistemic(self) -> Array:
        """Variance of the mean over draws, (B, C) or (B, t): what more data could settle."""
        return frozen(self.draws.var(axis=0))

    @cached_property
    def aleatoric(self) -> Array:
        """Mean over draws of the variance within a draw: noise of targets, or ``p (1 - p)`` of a class."""
        if self.is_classification:
            return frozen((self.draws * (1 - self.draws)).mean(axis=0))
        return frozen(np.zeros_like(self.mean) if self.variance is None else self.variance.mean(axis=0))

    @cached_property
    def std(self) -> Array:
        """Of a probability, its spread over draws (B, C); of a target, that of the target, noise included (B, t)."""
        return frozen(np.sqrt(self.epistemic if self.is_classification else self.epistemic + self.aleatoric))

    @cached_property
    def prediction(self) -> NDArray[Any]:
        """The most probable class (B,), or the expected target (B,) or (B, t)."""
        if self.is_classification:
            return self.classes[self.mean.argmax(axis=1)]
        return self.mean[:, 0] if self.mean.shape[1] == 1 else self.mean

    # ------------------------------------------------------------------ information

    @cached_property
    def entropy(self) -> Array:
        """Entropy (B,) in nats of the average over draws; for targets, of the normal law of the same moments.

        >>> Posterior([[[1.0, 0.0]], [[0.0, 1.0]]], classes=[0, 1]).entropy.round(3).tolist()
        [0.693]
        """
        if self.is_classification:
            return frozen(entr(self.mean).sum(axis=1))
        return frozen(normal_entropy(self._noise("an entropy").mean(axis=0) + self.epistemic))

    @cached_property
    def mutual_information(self) -> Array:
        """Entropy less the mean entropy of the draws (B,): how much the draws disagree (Houlsby et al. 2011).

        >>> Posterior([[[1.0, 0.0]], [[0.0, 1.0]]], classes=[0, 1]).mutual_information.round(3).tolist()
        [0.693]
        """
        if self.is_classification:
            within = entr(self.draws).sum(axis=2).mean(axis=0)
        else:
            within = normal_entropy(self._noise("mutual information")).mean(axis=0)
        return frozen(np.maximum(self.entropy - within, 0.0))

    def quantile(self, q: Any) -> Array:
        """Quantiles (B, C or t), or (B, C or t, Q) of several: of a probability over draws, of a target with its noise.

        >>> Posterior([[[0.0]]], variance=[[[4.0]]]).quantile([0.025, 0.975]).round(2).tolist()
        [[[-3.92, 3.92]]]
        """
        asked = np.asarray(q, dtype=np.float64)
        if asked.ndim > 1 or not ((asked >= 0) & (asked <= 1)).all():
            raise ParameterError("posterior", expected="q from 0 to 1", got=repr(q), remedy="pass 0.05 for 5 %")
        if self.has_noise:
            found = np.stack(
                [mixture_quantile(self.draws, self.variance, float(one)) for one in np.atleast_1d(asked)], axis=-1
            )
        else:
            found = np.moveaxis(np.quantile(self.draws, np.atleast_1d(asked), axis=0), 0, -1)
        return found if asked.ndim else found[..., 0]

    def log_density(self, y: Any) -> Array:
        """Log probability, or density, of these labels (B,); NaN where a label is missing.

        >>> Posterior([[[0.25, 0.75]]], classes=["a", "b"]).log_density(["a"]).round(3).tolist()
        [-1.386]
        """
        labels = canonical_column(y, "label", len(self), lambda b: f"bag {self.ids[b]!r}")
        absent = missing_mask(labels)
        if self.is_classification:
            found = np.log(np.maximum(self._probability_of(labels, absent), LEAST_PROBABILITY))
        else:
            values = np.asarray(labels, dtype=np.float64).reshape(len(self), -1)
            if values.shape != self.mean.shape:
                raise wrong(f"{self.mean.shape[1]} targets a bag", f"{values.shape[1]}", "pass them all")
            variance = self._noise("a density")
            each = -0.5 * (np.log(2 * np.pi * variance) + (values - self.draws) ** 2 / variance).sum(axis=2)
            top = each.max(axis=0)
            with np.errstate(invalid="ignore"):
                found = top + np.log(np.exp(each - top).mean(axis=0))
        return np.where(absent, np.nan, found)

    def codes(self, y: Any) -> NDArray[np.int64]:
        """Positions (B,) of labels among the classes; -1 where one is missing."""
        labels = canonical_column(y, "label", len(self), lambda b: f"bag {self.ids[b]!r}")
        place = {_plain(name): code for code, name in enumerate(self.classes)}
        absent = missing_mask(labels)
        for label in labels[~absent]:
            if _plain(label) not in place:
                remedy = closest(str(label), map(str, self.classes))
                raise wrong("labels among the classes", repr(_plain(label)), remedy)
        return np.array([-1 if gone else place[_plain(label)] for label, gone in zip(labels, absent, strict=True)])

    def _probability_of(self, labels: NDArray[Any], absent: NDArray[np.bool_]) -> Array:
        codes = np.where(absent, 0, self.codes(labels))
        return np.asarray(self.mean[np.arange(len(self)), codes])

    def _noise(self, what: str) -> Array:
        if self.variance is None:
            remedy = "fit with a noise variance, or look at quantiles of the draws"
            raise ParameterError("posterior", expected=f"a noise variance for {what}", got="none", remedy=remedy)
        return self.variance

    # ------------------------------------------------------------------ choosing and showing

    def take(self, which: Any) -> Posterior:
        """The posterior of these bags (positions, ids, or a mask), in the order asked for."""
        index = positions(which, len(self), {bag: i for i, bag in enumerate(self.ids)})
        variance = None if self.variance is None else self.variance[:, index]
        return Posterior(self.draws[:, index], self.ids[index], self.classes, variance)

    def frame(self, *, coverage: float = 0.9) -> pd.DataFrame:
        """A row a bag: the prediction, and how sure it is.

        >>> Posterior([[[0.9, 0.1]], [[0.5, 0.5]]], ids=["a"], classes=["no", "yes"]).frame().round(3).T
        bag                    a
        prediction            no
        p_no                 0.7
        p_yes                0.3
        std_no               0.2
        std_yes              0.2
        entropy            0.611
        mutual_information  0.102
        """
        import pandas as pd

        if self.is_classification:
            columns = {"prediction": self.prediction}
            for head, values in (("p", self.mean), ("std", self.std)):
                columns |= {f"{head}_{name}": column for name, column in zip(self.classes, values.T, strict=True)}
            columns |= {"entropy": self.entropy, "mutual_information": self.mutual_information}
            return pd.DataFrame(columns, index=pd.Index(self.ids, name="bag"))
        low, high = np.moveaxis(self.quantile([(1 - coverage) / 2, (1 + coverage) / 2]), -1, 0)
        parts = {"prediction": self.mean, "std": self.std, "lower": low, "upper": high}
        count = self.mean.shape[1]
        columns = {
            name if count == 1 else f"{name}_{t}": values[:, t] for t in range(count) for name, values in parts.items()
        }
        return pd.DataFrame(columns, index=pd.Index(self.ids, name="bag"))

    @property
    def _columns(self) -> Any:
        return range(self.draws.shape[2]) if self.classes is None else self.classes

    def __repr__(self) -> str:
        def count(n: int, word: str) -> str:
            return f"{n:,} {word}" + ("" if n == 1 else "s")

        n_draws, n_bags, n_columns = self.draws.shape
        if self.is_classification:
            what = "classes " + ", ".join(repr(_plain(name)) for name in self.classes[:6])
            what += "" if n_columns <= 6 else f" and {n_columns - 6} more"
        else:
            what = count(n_columns, "target") + (" with noise" if self.has_noise else "")
        return f"Posterior: {count(n_bags, 'bag')}, {count(n_draws, 'draw')}, {what}"


def _plain(label: Any) -> Any:
    """A label as a Python object; whole floats equal their integers, as labels with gaps become floats."""
    value = label.item() if hasattr(label, "item") else label
    return int(value) if isinstance(value, float) and value.is_integer() else value
