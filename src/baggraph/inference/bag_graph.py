"""Algorithm 1 of Pal et al. (2022): multiple-instance learning with a Bayesian graph network and a learned graph.

The numbers in the comments are those of the lines of Algorithm 1 as printed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.errors import ParameterError, closest
from baggraph.graphs.wiring import AbstractWiring, Wired, aligned
from baggraph.inference._device import chosen_device
from baggraph.inference._label_inputs import out_of_fold
from baggraph.inference._sharing import trained_once
from baggraph.inference.sampling import Draws, described, draw_keys, head_outputs, sample
from baggraph.inference.stack import StackFit, fit_stack
from baggraph.nn.dropout import keyed
from baggraph.nn.gcn import Propagation
from baggraph.nn.heads import Head
from baggraph.nn.losses import AbstractLoss
from baggraph.nn.network import Network

__all__ = ["Inference", "Plan", "infer"]

Progress = Callable[[str, int, int], None]
SETTINGS = ("transductive", "disconnected in training", "disconnected")
EMBEDDINGS = ("all", "last")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is inferred and how; the models of the paper are settings of it.

    ==============================  ==========================  ==================
    model                           ``wiring``                  ``n_draws``
    ==============================  ==========================  ==================
    base model, say rFF+pool        None                        0
    its matched-averaging control   None                        as the B- variant
    -GCN                            nearest or given            0
    B- ... -GCN                     learned                     20 to 50
    ==============================  ==========================  ==================

    Parameters
    ----------
    network, loss
        One member, and what its outputs mean.
    wiring
        How embeddings become a graph; None does without.
    observed
        A known graph that the base model is trained on: f(X, y, G_obs) of the paper.
    embedding
        What the graph is learned from: ``"all"`` levels of the encoder side by side, or the ``"last"``.
    rounds
        How often the graph is learned, each time from the embeddings of the last training.
    setting
        ``"transductive"``: unlabelled bags take part in the graph.  ``"disconnected in training"``: training sees the
        graph of the labelled bags alone, prediction that of all.  ``"disconnected"``: unlabelled bags have no edge.
    n_draws
        S, the samples of the weights; 0 takes the weights as fitted.
    n_graph_draws
        How many of the draws, in turn, get a graph of their own, learned from embeddings under dropout.
    training
        Settings of :func:`~baggraph.inference.stack.fit_stack`.

    """

    network: Network
    loss: AbstractLoss
    wiring: AbstractWiring | None = None
    observed: BagGraph | None = None
    embedding: str = "all"
    rounds: int = 1
    setting: str = "transductive"
    n_draws: int = 50
    n_graph_draws: int = 0
    training: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, choices in (("setting", SETTINGS), ("embedding", EMBEDDINGS)):
            value = getattr(self, name)
            if value not in choices:
                raise _parameter(f"{name} to be one of {choices}", repr(value), closest(str(value), choices))
        for name, least in (("rounds", 1), ("n_draws", 0), ("n_graph_draws", 0)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
                raise _parameter(f"{name} a whole number from {least}", repr(value), "change it")
        if self.n_graph_draws and (self.wiring is None or not self.wiring.needs_embeddings or not self.n_draws):
            got = "n_graph_draws without draws or without a graph of embeddings"
            raise _parameter("a graph that is made of embeddings, and n_draws", got, "set n_graph_draws=0")


@dataclass(frozen=True, eq=False)
class Inference:
    """What Algorithm 1 found for M members over the same bags.

    Parameters
    ----------
    base
        The base model of line 3; None where a given graph made it needless.
    fit
        The model that predicts: of line 5, or the base model where there is no graph.
    wired
        Graphs of all bags, one a member, and rules for new ones; None without a graph.
    draws
        Expected labels (M, S, B, t), and their variance where the loss has one.
    source
        The model whose embeddings the graphs are made of, and new bags must be embedded by to join them: the base model
        or, of several rounds, that of the last but one.  None where embeddings make no graph.

    """

    base: StackFit | None
    fit: StackFit
    wired: list[Wired] | None
    draws: Draws
    source: StackFit | None = None


def infer(
    plan: Plan,
    bags: Bags,
    targets: Any,
    masks: Any,
    seeds: Sequence[int],
    *,
    attachable: bool = True,
    progress: Progress | None = None,
) -> Inference:
    """Run Algorithm 1 for M members that differ in visible labels and seeds.

    1: the input is the bags X, the targets y where ``masks`` (M, B) are not zero, and ``plan.observed``; 2: the output
    are draws whose average is p(y | y_L, X, G_obs).  ``targets`` are as for ``fit_stack``.  Without ``attachable`` the
    rules for new bags are left out, and the graphs of all members are learned in one call.
    """
    weights = np.asarray(masks, dtype=np.float64)

    def train(graphs: Any, phase: str) -> StackFit:
        tell = None if progress is None else lambda done, total: progress(phase, done, total)
        given = {"loss": plan.loss, "seeds": seeds, "progress": tell, **plan.training}
        return fit_stack(plan.network, bags, targets, weights, graphs, **given)

    def train_once(graph: BagGraph | None, phase: str) -> StackFit:
        return trained_once(partial(train, graph, phase), plan, bags, graph, (targets, weights, seeds))

    def wire(stack: Any) -> tuple[list[Wired], Any]:
        return _wire(cast(AbstractWiring, plan.wiring), plan.setting, stack, weights > 0, bags.ids, attachable)

    if plan.wiring is None:
        base = train_once(None, "base model")
        return Inference(base, base, None, _draws(plan, base, None, seeds))
    if not plan.wiring.needs_embeddings:
        wired, graphs = wire(np.zeros((len(seeds), len(bags), 1)))
        fit = train_once(graphs, "bag graph") if isinstance(graphs, BagGraph) else train(graphs, "bag graph")
        return Inference(None, fit, wired, _draws(plan, fit, wired, seeds))
    # 3: train a base model and embed all bags.
    base = fit = train_once(None if plan.observed is None else aligned(plan.observed, bags.ids), "base model")
    for _ in range(plan.rounds):
        # 4: the MAP graph of these embeddings.
        source = fit
        wired, graphs = wire(graph_embedding(plan, source.embedding))
        # 5: train encoder and graph network on it together.
        fit = train(graphs, "bag graph")
    # 6 to 10, with the encoder as it now is.
    return Inference(base, fit, wired, _draws(plan, fit, wired, seeds, source), source)


def graph_embedding(plan: Plan, embedding: Tensor) -> Tensor:
    """The part (..., h) of embeddings that graphs are made of."""
    widths = getattr(plan.network.encoder, "level_widths", None)
    return embedding if plan.embedding == "all" or not widths else embedding[..., -widths[-1] :]


# ---------------------------------------------------------------------- line 4, in the three settings of the ablation


def _wire(
    wiring: AbstractWiring, setting: str, stack: Any, seen: np.ndarray, ids: Any, attachable: bool
) -> tuple[list[Wired], BagGraph | list[BagGraph]]:
    """Graphs that predict, and graphs to train on."""
    if setting == "transductive":
        wired = _all_wired(wiring, stack, ids, attachable)
        return wired, _shared(wired)
    training = [_among(wiring, Z, mask, ids) for Z, mask in zip(stack, seen, strict=True)]
    wired = training if setting == "disconnected" else _all_wired(wiring, stack, ids, attachable)
    return wired, _shared(training)


def _shared(wired: list[Wired]) -> BagGraph | list[BagGraph]:
    """One graph where all members have the same, which is then multiplied with all of them at once."""
    graphs = [one.graph for one in wired]
    return graphs[0] if all(graph is graphs[0] for graph in graphs) else graphs


def _all_wired(wiring: AbstractWiring, stack: Any, ids: Any, attachable: bool) -> list[Wired]:
    return wiring.wire(stack, ids) if attachable else [Wired(graph) for graph in wiring.graphs(stack, ids)]


def _among(wiring: AbstractWiring, Z: Any, mask: np.ndarray, ids: Any) -> Wired:
    """The graph of some bags, the others without an edge."""
    places = np.flatnonzero(mask)
    if len(places) < 2:
        raise _parameter("2 labelled bags or more for a graph of these alone", str(len(places)), "label more bags")
    own = wiring.wire(Z[None, places], ids[places])[0]
    small = own.graph.adjacency.tocoo()
    rows, columns = (places[index] for index in small.coords)
    large = sp.csr_array(sp.coo_array((small.data, (rows, columns)), shape=(len(ids), len(ids))))
    return Wired(BagGraph._trusted(large, ids), own.rule)


# ---------------------------------------------------------------------- lines 6 to 10


def _draws(
    plan: Plan, fit: StackFit, wired: list[Wired] | None, seeds: Sequence[int], source: StackFit | None = None
) -> Draws:
    place: dict[str, Any] = {"device": chosen_device(plan.training.get("device", "auto")), "dtype": fit.embedding.dtype}
    paths = None if wired is None else Propagation.of(_shared(wired), **place)
    network = copy.deepcopy(plan.network).to(**place)
    # 6: Theta stays as it is, so all draws share the embeddings.
    embedding = fit.embedding.to(**place)
    parameters = {name: value.to(**place) for name, value in fit.parameters.items()}

    def answer(own_paths: Propagation | None, own_keys: Tensor | None) -> Draws:
        def asked(given: Tensor) -> Draws:
            if own_keys is None:
                outputs = head_outputs(network, parameters, given, own_paths, None)
                return described(outputs.cpu().unsqueeze(1), plan.loss)
            return sample(network, parameters, given, own_paths, own_keys, plan.loss)

        shown = None if fit.labels is None else fit.labels.to(**place)
        return asked(embedding) if shown is None else out_of_fold(asked, embedding, shown, seeds)

    if not plan.n_draws:
        return answer(paths, None)
    # 7 to 9: samples of the weights by dropout in the graph network.
    keys = draw_keys(seeds, plan.n_draws).to(place["device"])
    if not plan.n_graph_draws or plan.wiring is None or source is None or wired is None:
        return answer(paths, keys)
    parts = []
    for some in torch.tensor_split(keys, min(plan.n_graph_draws, plan.n_draws)):
        stack = graph_embedding(plan, _dropped(network, source.embedding.to(**place), some[0]))
        own = Propagation.of(plan.wiring.graphs(stack, wired[0].graph.ids), **place)
        parts.append(answer(own, some))
    variances = [part.variance for part in parts if part.variance is not None]
    return Draws(torch.cat([part.mean for part in parts], dim=1), torch.cat(variances, dim=1) if variances else None)


def _dropped(network: Network, embedding: Tensor, key: Tensor) -> Tensor:
    """Embeddings (M, B, h) as one draw of the weights after them sees them: columns are dropped for all bags alike.

    Were they dropped for every bag anew, distances would tell the masks and not the bags.
    """
    if not isinstance(network.head, Head):
        raise _parameter("a head with dropout for draws of graphs", type(network.head).__name__, "set n_graph_draws=0")
    dropout = network.head.dropout.train()
    same_mask = torch.zeros(embedding.shape[1], dtype=torch.int64, device=embedding.device)
    found = []
    for own_key, Z in zip(key, embedding, strict=True):
        with keyed(own_key, [same_mask]), torch.no_grad():
            found.append(dropout(Z))
    return torch.stack(found)


def _parameter(expected: str, got: str, remedy: str) -> ParameterError:
    return ParameterError("bag graph", expected=expected, got=got, remedy=remedy)
