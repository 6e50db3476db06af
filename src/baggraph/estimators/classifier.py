"""The bag graph for classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from baggraph.data.bags import Bags
from baggraph.data.posterior import Posterior
from baggraph.estimators._base import Array, BagGraphEstimator
from baggraph.estimators._building import wrong
from baggraph.estimators._input import codes_of
from baggraph.inference.calibration import fit_temperature, temper
from baggraph.inference.sampling import Draws
from baggraph.nn.losses import AbstractLoss, BinaryCrossEntropy, CrossEntropy

__all__ = ["BagGraphClassifier"]


class BagGraphClassifier(ClassifierMixin, BagGraphEstimator):
    r"""Classes of bags from a Bayesian graph network on a learned graph: Algorithm 1 of Pal et al. (2022, Bag Graph).

    .. math:: p(y \mid y_L, X, G_{obs}) \approx \frac1S \sum_s p(y \mid W_s, \hat G, \hat Z), \quad
              \hat G = \arg\min_A \|A \circ D\|_{1,1} - \alpha 1^\top \log(A 1) + \beta \|A\|_F^2

    A base model embeds the bags, a graph is learned from the distances D of embeddings, encoder and graph network are
    trained on it together, and dropout samples the weights W of the last layers.  Bags without a label take part in the
    graph; ``posterior_`` is what is believed of all bags in fit, ``predict`` of new ones.

    Parameters
    ----------
    encoder, encoder_options, pooling
        Name of an encoder (see :func:`~baggraph.nn.encoders.encoder`), its options and pooling; or a module of yours.
    hidden, dropout
        Widths of hidden layers of the head, and the share dropped of the inputs of its layers.
    head
        ``"gcn"``, which averages over neighbours: ``A Z W + b`` with ``A = D^-1/2 (A_G / max A_G + I) D^-1/2`` (Kipf &
        Welling 2017).  ``"sage"``, own and neighbours apart: ``Z W_own + A Z W_near + b`` (Hamilton et al. 2017).
        ``"restart"``, many steps: ``Z W_own + P_K + b`` with ``P_k+1 = (1 - a) A P_k + a P_0``, ``P_0 = Z W_near``
        (Gasteiger et al. 2019).  ``"linear"``: the base model, without a graph.  ``"gp"``: a Gaussian process over
        places, graph, means of instances and the base model's embedding; ``shares_`` then says how much each part
        carries.
    steps, restart
        K and a of ``head="restart"``.
    label_inputs
        Whether labels are inputs beside the embeddings: ``[Z, y s, s]``, where s is 1 for bags whose label is shown
        (Shi et al. 2021).  In every step of the training a coin shows half of the labelled bags, and the loss is that
        of the others; bags of the fit that have a label are answered without their own.  Without a graph there are no
        neighbours whose labels could tell anything, and nothing is shown.
    smoothing
        None, or ``"auto"``: correct and smooth (Huang et al. 2021).  Means p become ``q = p + c S(y - p)``, and then
        ``(1 - s) q + s S(v)``, v being y where it is seen and else q; S averages over the graph, by ten steps with
        restart 0.1.  Residuals y - p are those of inner fits that did not see the label, five in addition to the one.
        c of 0, 1/2, 1 and s of 0, 1/4, 1/2 are chosen by the log-loss of these folds, both 0 being "or none";
        ``smoothing_`` says which.  Bags of the fit that have a label keep what the network says of them.
    graph
        ``"learned"``, ``"knn"``, ``"given"`` (that of the bags), ``"reweighted"`` (that of the bags, its weights times
        ``exp(-d_ij / s)``: distances of embeddings over their median along edges), a BagGraph, a LearnedGraph with
        settings of your own, or None.
    n_neighbors, candidate_ratio
        Neighbours of a bag, and how many times as many are candidates.
    observed, trust
        A known graph that the base model is trained on, and along whose edges distances shrink by this share.
    embedding
        What the graph is made of: ``"all"`` levels of the encoder or the ``"last"``.
    setting
        ``"transductive"``, ``"disconnected in training"`` or ``"disconnected"``: how unlabelled bags take part.
    rounds
        How often the graph is learned again from the new embeddings.
    n_draws, n_graph_draws
        Samples of the weights (0: the weights as fitted), and of the graph among them (new bags are joined to the graph
        as fitted).
    n_members
        Networks that differ in their seed; their draws are pooled.
    epochs, lr, weight_decay
        Of Adam.
    class_weight
        None, ``"balanced"``, or a weight a class.
    scaling
        Kind of :class:`~baggraph.data.scaling.InstanceScaler`; ``"auto"`` is ``"standard"``, or ``"maxabs"`` if sparse.
    calibration
        Share of the labelled bags that is kept from training, for temperature scaling and conformal sets.
    device, precision, random_state
        Where and how it is computed, and the seed.
    verbose
        1 writes progress to standard error; a function is called as ``(phase, done, total)``.

    Attributes
    ----------
    posterior_ : Posterior
        Of every bag in fit.
    transduction_ : (B,)
        Most probable class of every bag in fit.
    graph_, graphs_ : BagGraph, list of them, or None
        The graph of the first member, and of all.
    embedding_ : (B, h)
        Of the first member.
    loss_curve_ : (epochs,)
        Training loss, averaged over members.
    classes_, n_features_in_, scaler_, temperature_, conformal_
        What the names say; the last two None or 1 without calibration.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(label, 1, size=(5, 3)) for label in (0, 2) * 20]
    >>> model = BagGraphClassifier(epochs=20, n_draws=5).fit(bags, ["calm", "stormy"] * 20)
    >>> model.predict([np.zeros((4, 3)), np.full((6, 3), 2.0)]).tolist()
    ['calm', 'stormy']
    >>> model.posterior_
    Posterior: 40 bags, 5 draws, classes 'calm', 'stormy'

    """

    classes_: Any

    def __init__(self, *, class_weight: str | Mapping[Any, float] | None = None, **common: Any) -> None:
        super().__init__(**common)
        self.class_weight = class_weight

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (B, C) of new bags, columns as in ``classes_``."""
        return self.predict_posterior(X).mean

    def predict_set(
        self, X: Any = None, *, coverage: float = 0.9, conditional: bool = False, links: Any = None
    ) -> NDArray[np.bool_]:
        """Which classes (B, C) may be the label of new bags or, without X, of those in fit.

        The label is among them with probability ``coverage``; with ``conditional``, within every class.  Needs
        ``calibration`` above 0.
        """
        conformal = self._conformal("sets")
        return conformal.sets(self._asked(X, links), coverage, conditional=conditional)

    # ------------------------------------------------------------------ targets

    def _read_targets(self, bags: Bags) -> Array:
        self.classes_, codes = codes_of(bags, type(self).__name__)
        targets = np.full(len(bags), np.nan)
        targets[bags.labelled] = codes
        return targets

    @property
    def _joint(self) -> bool:
        return False

    def _loss(self, _targets: Array) -> AbstractLoss:
        return BinaryCrossEntropy() if len(self.classes_) == 2 else CrossEntropy(len(self.classes_))

    def _weights(self, targets: Array, masks: Any, sample_weight: Array) -> Array:
        weights = masks * sample_weight
        if self.class_weight is None:
            return weights
        codes = np.where(np.isnan(targets), 0, targets).astype(np.int64)
        if isinstance(self.class_weight, Mapping):
            unknown = set(self.class_weight) - set(self.classes_.tolist())
            if unknown:
                got = f"{sorted(map(str, unknown))}"
                raise wrong(self, f"class_weight for classes {self.classes_.tolist()}", got, "use the names in y")
            own = np.array([self.class_weight.get(name, 1.0) for name in self.classes_.tolist()], dtype=np.float64)
            return weights * own[codes]
        if self.class_weight != "balanced":
            raise wrong(self, "class_weight None, 'balanced' or a mapping", repr(self.class_weight), "pass one")
        counts = np.stack([(masks & (codes == c)).sum(axis=1) for c in range(len(self.classes_))], axis=1)
        balance = masks.sum(axis=1, keepdims=True) / (len(self.classes_) * np.maximum(counts, 1))
        return weights * balance[:, codes]

    def _scaled_targets(self, targets: Array, _weights: Array) -> tuple[Array, Any]:
        return targets, None

    def _truth(self, targets: Array) -> Array:
        return np.asarray(targets[:, None] == np.arange(len(self.classes_)), dtype=np.float64)

    def _labels_of(self, targets: Array) -> Any:
        return self.classes_[targets.astype(np.int64)]

    # ------------------------------------------------------------------ posteriors

    def _posterior(self, draws: Draws, _scales: Any, ids: Any) -> Posterior:
        values = draws.mean.numpy().astype(np.float64)
        values = np.concatenate([1 - values, values], axis=2) if values.shape[2] == 1 else values
        return Posterior(values / values.sum(axis=2, keepdims=True), ids, self.classes_)

    def _calibrated(self, raw: Posterior, targets: Array, _seen: Any, held: Any) -> float:
        if not len(held):
            return 1.0
        return fit_temperature(raw.take(held), self._labels_of(targets[held]))

    def _corrected(self, raw: Posterior, correction: float) -> Posterior:
        return raw if correction == 1.0 else temper(raw, correction)

    @property
    def temperature_(self) -> float:
        """What probabilities are tempered by; 1 without calibration."""
        check_is_fitted(self, "posterior_")
        return float(self._correction)
