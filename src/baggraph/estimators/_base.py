"""The frame of both estimators: fit, and what is said of bags."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from baggraph.data.bags import Bags
from baggraph.data.posterior import Posterior
from baggraph.data.splits import label_mask
from baggraph.data.stacked import AbstractSeededStack
from baggraph.estimators._building import build_network, build_plan, build_scaler, wrong
from baggraph.estimators._fitted import Fitted
from baggraph.estimators._gp_head import AbstractHead, fit_heads, graphs_of, mean_shares, pooled, pooled_of_new
from baggraph.estimators._input import bags_of, takes_bags, weights_of, with_labels
from baggraph.estimators._joint_head import fit_jointly
from baggraph.estimators._parameters import BagGraphParameters
from baggraph.estimators._progress import teller
from baggraph.estimators._savable import Savable
from baggraph.estimators._smoothing import smooth_all
from baggraph.inference.bag_graph import Inference, Plan, infer
from baggraph.inference.calibration import Conformal
from baggraph.inference.sampling import Draws
from baggraph.nn.losses import AbstractLoss

Array = NDArray[np.float64]
MOST_RANDOM = 2**31 - 1


class BagGraphEstimator(Savable, AbstractSeededStack, BagGraphParameters):
    """What :class:`BagGraphClassifier` and :class:`BagGraphRegressor` share."""

    # ------------------------------------------------------------------ what a kind of target decides

    @abstractmethod
    def _read_targets(self, bags: Bags) -> Array:
        """Codes (B,) or targets (B, t), NaN where a bag is unlabelled; notes what is known of them."""

    @property
    @abstractmethod
    def _joint(self) -> bool:
        """Whether network and process are trained by one objective."""

    @abstractmethod
    def _loss(self, targets: Array) -> AbstractLoss:
        """What outputs mean."""

    @abstractmethod
    def _weights(self, targets: Array, masks: Any, sample_weight: Array) -> Array:
        """Weights of bags in the loss (M, B)."""

    @abstractmethod
    def _scaled_targets(self, targets: Array, weights: Array) -> tuple[Array, Any]:
        """Targets as a network is trained on them, and what brings them back."""

    @abstractmethod
    def _posterior(self, draws: Draws, scales: Any, ids: Any) -> Posterior:
        """Draws (S, B, t) of one member as a posterior in terms of the labels."""

    @abstractmethod
    def _calibrated(self, raw: Posterior, targets: Array, seen: Any, held: Any) -> Any:
        """What makes a posterior honest, from bags held out (positions), or else from those seen."""

    @abstractmethod
    def _corrected(self, raw: Posterior, correction: Any) -> Posterior:
        """The posterior made honest."""

    # ------------------------------------------------------------------ scikit-learn's face

    def __sklearn_tags__(self) -> Tags:
        return takes_bags(super().__sklearn_tags__())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn from bags; those without a label (None, NaN) take part in the graph, and get a posterior.

        Parameters
        ----------
        X
            Bags, a list of (n, d) arrays, an array (B, n, d), or a table (B, d) of bags of one instance.
        y
            Labels (B,) or (B, t); by default those that the bags carry.
        sample_weight
            Weights (B,) of bags in the loss.

        """
        self._check_parameters()
        self._seeds = self._draw_seeds(self.random_state)
        bags = with_labels(bags_of(self, X, reset=True), y, type(self).__name__)
        targets = self._read_targets(bags)
        known = np.isfinite(targets).reshape(len(bags), -1).all(axis=1)
        held = self._hold_out(targets, known, self._seeds)
        visible = known & ~held
        sample_weight = weights_of(sample_weight, len(bags), type(self).__name__)
        first, seeds = visible[None], [self._seeds]
        (raw,), found, plan, scales = self._infer(bags, targets, first, sample_weight, seeds, attachable=True)
        (raw,), (self._smoother,) = smooth_all(self, [raw], found, bags, targets, first, sample_weight, seeds)
        self._correction = self._calibrated(raw, targets, visible, np.flatnonzero(held))
        self.posterior_ = self._corrected(raw, self._correction)
        held_part = self.posterior_.take(held) if held.any() else None
        self.conformal_ = None if held_part is None else Conformal.of(held_part, self._labels_of(targets[held]))
        self._fitted, self._scales = Fitted.of(plan, found, self._seeds, bags.ids), scales
        self._describe(found)
        return self

    def _describe(self, found: Inference) -> None:
        self.transduction_ = self.posterior_.prediction
        self.graphs_ = None if found.wired is None else [one.graph for one in found.wired]
        if self.head == "gp":
            self.graphs_ = graphs_of(self._heads)
            self.shares_ = mean_shares(self._heads)
        self.graph_ = None if self.graphs_ is None else self.graphs_[0]
        self.embedding_ = found.fit.embedding[0].numpy()
        losses = found.fit.losses
        self.loss_curve_ = (losses.nanmean(0) if self._joint else losses.mean(0)).numpy()
        self.n_iter_ = int(found.fit.epochs[0] if self._joint else self.epochs)

    def posteriors(self, bags: Bags, masks: Any, random_states: Sequence[int] | None = None) -> list[Posterior]:
        """Posteriors of all bags for every row of ``masks`` (M, B), which says whose labels are seen.

        Each is what :meth:`fit` gives in ``posterior_`` where the other labels are missing, with the ``random_state``
        of its row where there are some; all are fitted as one stack.  The estimator itself is not fitted.
        """
        self._check_parameters()
        own = type(self)(**self.get_params(deep=False))
        bags = with_labels(bags_of(own, bags, reset=True), None, type(self).__name__)
        masks = np.asarray(masks, dtype=bool)
        if masks.ndim != 2 or masks.shape[1] != len(bags):
            raise wrong(self, f"masks of shape (members, {len(bags)})", f"shape {masks.shape}", "pass a row a member")
        seeds = [own._draw_seeds(self.random_state)] * len(masks)
        if random_states is not None:
            if len(random_states) != len(masks):
                got = f"{len(random_states)} for {len(masks)} rows"
                raise wrong(self, "a random state a row of masks", got, "pass as many")
            seeds = [own._draw_seeds(state) for state in random_states]
        seen_by_any = bags.labelled & masks.any(axis=0)
        targets = own._read_targets(bags.replace(y=_hidden(bags.y, ~seen_by_any)))
        shown, alike = masks & seen_by_any, np.ones(len(bags))
        held = np.stack([own._hold_out(targets, *row) for row in zip(shown, seeds, strict=True)])
        visible = shown & ~held
        raw, graphs, *_ = own._infer(bags, targets, visible, alike, seeds, attachable=False)
        raw, _ = smooth_all(own, raw, graphs, bags, targets, visible, alike, seeds)
        found = []
        for part, seen, out in zip(raw, visible, held, strict=True):
            correction = own._calibrated(part, targets, seen, np.flatnonzero(out))
            found.append(own._corrected(part, correction))
        return found

    def predict_posterior(self, X: Any, *, links: Any = None, joint: bool = False) -> Posterior:
        """The posterior of new bags, which are joined to the fitted graph.

        Each is joined as if it came alone, so neither order nor company matters; with ``joint``, the graph is made
        anew and new bags may be neighbours of each other.  ``links`` (new bags, bags in fit) are known weights.  With
        ``setting="disconnected"``, new bags stay alone, as bags without a label did in fit.
        """
        check_is_fitted(self, "posterior_")
        bags = bags_of(self, X, reset=False)
        if self.head == "gp":
            if joint:
                self._refuse_process("joint=True")
            said = self._fitted.embed(self.scaler_.transform(bags))
            said = self._fitted.outputs(said) if self._joint else said
            raw = pooled_of_new(self._heads, bags, said, self.graph, self._fitted.ids, links)
            return self._corrected(raw, self._correction)
        scaled = self.scaler_.transform(bags)
        raw = self._pooled(self._fitted.draws(scaled, links, joint), self._scales, bags.ids)
        if self._smoother is not None and self._smoother.acts:
            raw = self._smoother.of_new(raw, self._fitted.links(scaled, self._fitted.checked(links, len(bags))))
        return self._corrected(raw, self._correction)

    def predict(self, X: Any) -> Any:
        """Labels of new bags: the most probable class, or the expected target."""
        return self.predict_posterior(X).prediction

    def explain(self, X: Any, *, of: Any = None, method: str = "auto", seen: bool = False, links: Any = None) -> Any:
        """Why the model says what it says: an :class:`~baggraph.estimators.Explanation` a bag.

        Contributions of bags through the graph add up to the score, contributions of instances rank them.

        Parameters
        ----------
        X
            Bags as for :meth:`predict`, or one of them (``bags["s1"]``), which gets one explanation instead of a list.
        of
            The class, or the number of the target, whose score is explained.  Default: of two classes the second, of
            more the most probable; the first target.
        method
            For instances: ``"attention"``, ``"leave-one-out"``, ``"gradients"`` (integrated), or ``"auto"``: the first
            where the encoder attends, else the second, or the third where a bag has more than 1000 instances.
        seen
            Explain bags of the fit, known by their ids, where they stand in the fitted graph, as in ``posterior_``.
        links
            As for :meth:`predict_posterior`.

        """
        from baggraph.estimators._explaining import explain

        self._refuse_process("explain")
        own = getattr(self, "_smoother", None)
        if own is not None and own.acts:
            got, remedy = f"one with {self.smoothing_}", "fit with smoothing=None"
            raise wrong(self, "a network that is not corrected and smoothed for explain", got, remedy)
        return explain(self, X, of=of, method=method, seen=seen, links=links)

    def to_onnx(self, path: str | Path) -> Path:
        """Write encoder and head of a model without a graph as ONNX: ``instances`` (n, d) of one bag to ``prediction``.

        The prediction (1, C) or (1, t) is that of the fitted weights, as with ``n_draws=0``; ``embedding`` is the other
        output.  Needs the extra ``onnx``.
        """
        from baggraph.estimators._onnx import to_onnx

        self._refuse_process("to_onnx")
        return to_onnx(self, path)

    # ------------------------------------------------------------------ the steps of fit

    def _infer(
        self,
        bags: Bags,
        targets: Array,
        masks: Any,
        sample_weight: Array,
        seeds: Sequence[Sequence[int]],
        *,
        attachable: bool,
    ) -> tuple[list[Posterior], Inference, Plan, Any]:
        """Run Algorithm 1 for every row of ``masks``, ``n_members`` times each, with ``seeds`` (rows, n_members)."""
        self.scaler_ = build_scaler(self, bags)
        scaled = self.scaler_.transform(bags)
        loss = self._loss(targets)
        plan = build_plan(self, build_network(self, bags.n_features, loss), loss, bags)
        weights = self._weights(targets, masks, sample_weight)
        if not weights.any(axis=1).all():
            member = int(np.argmin(weights.any(axis=1)))
            got = f"weights of zero only (member {member})"
            raise wrong(self, "a labelled bag to train on", got, "show or weigh some")
        if self._joint:
            tell = teller(self.verbose)
            joint, found = fit_jointly(self, bags, scaled, targets, np.asarray(weights), plan, seeds, tell)
            self._heads: Sequence[AbstractHead] = joint[0]
            return [pooled(own, bags.ids) for own in joint], found, plan, None
        trained_on, scales = self._scaled_targets(targets, weights)
        members = int(self.n_members)
        repeated = trained_on if trained_on.ndim < 3 else np.repeat(trained_on, members, axis=0)
        flat, tell = [seed for row in seeds for seed in row], teller(self.verbose)
        found = infer(
            plan, scaled, repeated, np.repeat(weights, members, axis=0), flat, attachable=attachable, progress=tell
        )
        posteriors = []
        for m in range(len(masks)):
            some = slice(m * members, (m + 1) * members)
            variance = found.draws.variance
            part = Draws(found.draws.mean[some], None if variance is None else variance[some])
            own_scales = None if scales is None else tuple(scale[m : m + 1] for scale in scales)
            posteriors.append(self._pooled(part, own_scales, bags.ids))
        if self.head == "gp":
            heads = fit_heads(self, bags, targets, np.asarray(weights), found, plan)
            posteriors, self._heads = [pooled(own, bags.ids) for own in heads], heads[0]
        return posteriors, found, plan, scales

    @property
    def smoothing_(self) -> dict[str, float]:
        """Strengths of both steps of ``smoothing`` that inner folds chose; zeros say none."""
        check_is_fitted(self, "posterior_")
        own = self._smoother
        return {"correct": 0.0 if own is None else own.correct, "smooth": 0.0 if own is None else own.smooth}

    def _pooled(self, draws: Draws, scales: Any, ids: Any) -> Posterior:
        """One posterior of the draws (M, S, B, t) of all members."""
        merged = [None if v is None else v.flatten(0, 1) for v in (draws.mean, draws.variance)]
        return self._posterior(Draws(*merged), scales, ids)  # type: ignore[arg-type]

    def _draw_seeds(self, random_state: Any) -> list[int]:
        """A seed a member."""
        if isinstance(random_state, np.random.RandomState):
            return random_state.randint(MOST_RANDOM, size=int(self.n_members)).tolist()
        state = np.random.SeedSequence(random_state).generate_state(int(self.n_members))
        return [int(seed) & MOST_RANDOM for seed in state]

    def _hold_out(self, targets: Array, known: Any, seeds: Sequence[int]) -> NDArray[np.bool_]:
        """Labelled bags that are kept from training, for calibration (B,)."""
        held = np.zeros(len(targets), dtype=bool)
        if not self.calibration:
            return held
        labels = np.where(known if targets.ndim == 1 else known[:, None], targets, np.nan)
        kept = label_mask(labels, labelled=1.0 - float(self.calibration), random_state=seeds[0])
        return known & ~kept

    def _conformal(self, what: str) -> Conformal:
        check_is_fitted(self, "posterior_")
        if self.conformal_ is None:
            got = f"none with calibration={self.calibration!r}"
            raise wrong(self, f"bags held out of training for {what}", got, "fit with calibration=0.2")
        return self.conformal_

    def _asked(self, X: Any, links: Any) -> Posterior:
        """Of new bags or, without any, of those in fit."""
        return self.posterior_ if X is None else self.predict_posterior(X, links=links)

    def _refuse_process(self, what: str) -> None:
        if self.head == "gp":
            raise wrong(self, f"a head of layers for {what}", "head='gp'", "fit with head='gcn' or 'linear'")

    @abstractmethod
    def _truth(self, targets: Array) -> Array:
        """Labels as posteriors say them (B, C): one-hot, or targets; zeros where there is none."""

    @abstractmethod
    def _labels_of(self, targets: Array) -> Any:
        """Labels from codes or targets."""


def _hidden(y: Any, hide: Any) -> Any:
    """Labels of which some are missing."""
    text = y.dtype.kind == "O"
    found = np.array(y, dtype=object if text else np.float64)
    found[hide] = None if text else np.nan
    return found
