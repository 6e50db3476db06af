"""What remains of a fit: enough to say something of new bags."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from baggraph.data._graph_measures import normalised
from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.errors import InvalidGraphError, ParameterError
from baggraph.graphs._attach import AbstractRule
from baggraph.graphs.reweighted import EdgeRule
from baggraph.graphs.wiring import AbstractWiring, Wired
from baggraph.inference._members import forward
from baggraph.inference.bag_graph import Inference, Plan, graph_embedding
from baggraph.inference.sampling import Draws, described, draw_keys, head_outputs, sample
from baggraph.inference.stack import dense
from baggraph.nn.gcn import Propagation, over_largest
from baggraph.nn.heads import Head
from baggraph.nn.network import Network

CHUNK_INSTANCES = 1 << 17


@dataclass(frozen=True, eq=False)
class Fitted:
    """M members, their embeddings of the bags in fit (M, B, h), and their graphs, or None.

    ``sources`` are the parameters of the models whose embeddings made the graphs, where embeddings did; ``labels``
    (M, B, t + 1) what the heads are shown of labels, if they take any.
    """

    plan: Plan
    parameters: dict[str, Tensor]
    embedding: Tensor
    wired: list[Wired] | None
    seeds: list[int]
    ids: Any
    sources: dict[str, Tensor] | None
    labels: Tensor | None = None

    @classmethod
    def of(cls, plan: Plan, found: Inference, seeds: list[int], ids: Any) -> Fitted:
        """Without what only the training needed."""
        sources = None if found.source is None else found.source.parameters
        fit = found.fit
        return cls(plan, fit.parameters, fit.embedding, found.wired, seeds, ids, sources, fit.labels)

    @property
    def network(self) -> Network:
        """The network for one member, of the type of the parameters."""
        return copy.deepcopy(self.plan.network).to(self.embedding.dtype)

    @property
    def inputs(self) -> Tensor:
        """Of the heads, for the bags in fit (M, B, h), or (M, B, h + t + 1) with labels."""
        return self.embedding if self.labels is None else torch.cat([self.embedding, self.labels], dim=2)

    def inputs_of_new(self, embedding: Tensor) -> Tensor:
        """The same from embeddings of bags without a label."""
        return embedding if self.labels is None else nn.functional.pad(embedding, (0, self.labels.shape[2]))

    def embed(self, bags: Bags, parameters: dict[str, Tensor] | None = None) -> Tensor:
        """Embeddings (M, m, h) of bags that are scaled already, by the members or by others with these parameters."""
        parts = []
        parameters = self.parameters if parameters is None else parameters
        network = self.network
        for part in _chunks(bags):
            instances, offsets = dense(part, self.embedding.dtype, torch.device("cpu"))
            with torch.no_grad():
                parts.append(forward(network, parameters, instances, offsets, None).embedding)
        return torch.cat(parts, dim=1)

    def outputs(self, embedding: Tensor) -> Tensor:
        """What the networks say (M, m, t) of embeddings (M, m, h), the mean of their levels."""
        return head_outputs(self.network, self.parameters, embedding, None, None).to(torch.float64).mean(1)

    def draws(self, bags: Bags, links: Any, joint: bool) -> Draws:
        """Draws (M, S, m, t) of new bags, with ``links`` (m, B) to those in fit, or as the graph's rule joins them."""
        new = self.embed(bags)
        if self.wired is None:
            if links is not None or joint:
                got = "links or joint=True for a model without a graph"
                raise ParameterError("predict", expected="neither", got=got, remedy="leave them out")
            return self._sampled(new, None)
        if joint:
            return self._joint(new, bags, links)
        joined = self.links(bags, self.checked(links, len(bags)))
        parts, known, asked = [], self.inputs, self.inputs_of_new(new)
        for m, (wired, own) in enumerate(zip(self.wired, joined, strict=True)):
            matrix, needed = _extended(wired.graph, own, self.n_hops)
            embedding = torch.cat([known[m, needed], asked[m]])
            path = Propagation.of_matrices([matrix], dtype=embedding.dtype)
            parts.append(_without(self._sampled(embedding[None], path, [m]), len(needed)))
        return _joined(parts)

    def checked(self, links: Any, count: int) -> sp.csr_array | None:
        """Links (count, B) that may be none, or an error."""
        return None if links is None else _checked_links(links, count, len(self.ids))

    def links(self, bags: Bags, given: sp.csr_array | None = None) -> list[sp.csr_array]:
        """Weights (m, B) with which new bags, each as if it came alone, join the graph of every member.

        ``given`` are known ones, which are taken as they are, or weakened where the graph's edges were.
        """
        weakened = self.wired is not None and isinstance(self.wired[0].rule, EdgeRule)
        near = self._near(bags) if given is None or weakened else None
        return [self._links(m, near, bags, given) for m in range(len(self.seeds))]

    def _near(self, bags: Bags) -> Tensor | None:
        """New bags (M, m, h) as the graphs see them."""
        if self.sources is None or self.plan.setting == "disconnected":
            return None
        return graph_embedding(self.plan, self.embed(bags, self.sources))

    def _links(self, m: int, near: Tensor | None, bags: Bags, given: sp.csr_array | None) -> sp.csr_array:
        wired = self.wired[m]  # type: ignore[index]
        if isinstance(wired.rule, EdgeRule) and near is not None:
            return wired.rule.weigh(self._known_links(bags) if given is None else given, near[m].numpy())
        if given is not None:
            return given
        if self.plan.setting == "disconnected":
            return sp.csr_array((len(bags), len(self.ids)))
        if wired.rule is not None and near is not None:
            return wired.rule.attach(near[m].numpy())
        if self.sources is not None:
            _fitted_to(wired.rule)
        return self._known_links(bags)

    def _known_links(self, bags: Bags) -> sp.csr_array:
        """Edges of a known graph over more bags than those in fit."""
        known = getattr(self.plan.wiring, "graph", None)
        names = set() if known is None else set(known.ids.tolist())
        if not names.issuperset(bags.ids.tolist()) or not set(self.ids.tolist()).isdisjoint(bags.ids.tolist()):
            got = "a graph that was given, without the new bags"
            remedy = "pass links=(new bags, bags in fit), fit with a BagGraph over all bags, or with graph='learned'"
            raise InvalidGraphError("predict", expected="links from new bags", got=got, remedy=remedy)
        place = {bag: i for i, bag in enumerate(known.ids.tolist())}  # type: ignore[union-attr]
        rows, columns = ([place[bag] for bag in ids.tolist()] for ids in (bags.ids, self.ids))
        return sp.csr_array(known.adjacency[rows][:, columns])  # type: ignore[union-attr]

    def _joint(self, new: Tensor, bags: Bags, links: Any) -> Draws:
        """All bags in one graph, made anew, in which new bags may be each other's neighbours."""
        alone = self.plan.setting == "disconnected"
        if alone or links is not None:
            got = "joint=True with " + ("setting='disconnected'" if alone else "links")
            raise ParameterError("predict", expected="one way to join new bags", got=got, remedy="use joint=False")
        wiring, ids = cast(AbstractWiring, self.plan.wiring), bags.ids
        stack = torch.cat([self.inputs, self.inputs_of_new(new)], dim=1)
        seen, near = stack, self._near(bags)
        if near is not None:
            ids = np.array([f"new {bag}" for bag in ids], dtype=object)
            wiring = wiring.with_new(ids)
            seen = torch.cat([torch.stack([_fitted_to(one.rule).to(near) for one in self.wired or []]), near], dim=1)
        graphs = wiring.graphs(seen, np.concatenate([self.ids, ids]))
        return _without(self._sampled(stack, Propagation.of(graphs, dtype=stack.dtype)), len(self.ids))

    @property
    def n_hops(self) -> int:
        """How many hops away bags are heard."""
        head = self.plan.network.head
        return head.n_hops if isinstance(head, Head) else 1

    def _sampled(self, embedding: Tensor, paths: Propagation | None, members: list[int] | None = None) -> Draws:
        chosen = list(range(len(self.seeds))) if members is None else members
        parameters = {name: value[chosen] for name, value in self.parameters.items()}
        network = self.network
        if not self.plan.n_draws:
            outputs = head_outputs(network, parameters, embedding, paths, None)
            return described(outputs.unsqueeze(1), self.plan.loss)
        keys = draw_keys([self.seeds[m] for m in chosen], self.plan.n_draws)
        return sample(network, parameters, embedding, paths, keys, self.plan.loss)


def _fitted_to(rule: AbstractRule | None) -> Tensor:
    """Embeddings (B, h) of the bags in fit, as their graph saw them."""
    if rule is None:
        got, remedy = "a wiring without a rule for new bags", "pass links=(new bags, bags in fit)"
        raise InvalidGraphError("predict", expected="a graph that new bags can join", got=got, remedy=remedy)
    return rule.fitted


def _chunks(bags: Bags) -> Iterator[Bags]:
    """Runs of bags whose instances fit in memory together."""
    start = 0
    while start < len(bags):
        limit = int(bags.offsets[start]) + CHUNK_INSTANCES
        stop = max(start + 1, int(np.searchsorted(bags.offsets, limit, side="right")) - 1)
        yield bags[start:stop]
        start = stop


def _checked_links(links: Any, m: int, n: int) -> sp.csr_array:
    matrix = sp.csr_array(links, dtype=np.float64)
    if matrix.shape != (m, n):
        expected = f"links of shape (new bags, bags in fit) ({m}, {n})"
        raise InvalidGraphError(
            "predict", expected=expected, got=f"shape {matrix.shape}", remedy="pass a row a new bag"
        )
    if not np.isfinite(matrix.data).all() or (matrix.data < 0).any():
        got = "negative or missing ones"
        raise InvalidGraphError("predict", expected="finite links from 0", got=got, remedy="look at their weights")
    return matrix


def _extended(graph: BagGraph, links: sp.csr_array, n_hops: int) -> tuple[sp.csr_array, np.ndarray]:
    """Normalised weights over the fitted bags that matter (also returned) followed by new ones, each as if alone.

    Rows of fitted bags stay as they were; of a new bag they are those of the graph with this bag added:
    ``a_ij = w_ij / sqrt(d_i (d_j + w_ij))`` and ``a_ii = 1 / d_i`` with d the degrees, self-loops included.
    """
    plain = over_largest(graph.adjacency)
    largest = graph.adjacency.data.max() if graph.adjacency.nnz else 1.0
    needed = np.unique(links.indices)
    for _ in range(n_hops - 1):
        needed = np.union1d(needed, np.unique(plain[needed].indices))
    own = sp.csr_array(links[:, needed]) / largest
    degree = 1 + np.asarray(plain.sum(axis=1))
    new_degree = 1 + np.asarray(own.sum(axis=1))
    rows = np.repeat(np.arange(own.shape[0]), np.diff(own.indptr))
    own.data = own.data / np.sqrt(new_degree[rows] * (degree[needed][own.indices] + own.data))
    kept = normalised(plain, 1.0, "symmetric")[needed][:, needed] if n_hops > 1 else None
    top = sp.eye_array(len(needed), format="csr") if kept is None else kept  # of one layer, only new rows are read
    corner = sp.csr_array(sp.diags_array(1 / new_degree))
    blocks = [[top, None], [own, corner]]
    if not len(needed):
        return corner, needed
    return sp.csr_array(sp.block_array(blocks, format="csr")), needed


def _without(draws: Draws, count: int) -> Draws:
    """Of the bags behind the first ``count``."""
    return Draws(draws.mean[:, :, count:], None if draws.variance is None else draws.variance[:, :, count:])


def _joined(parts: list[Draws]) -> Draws:
    variances = [part.variance for part in parts if part.variance is not None]
    return Draws(torch.cat([part.mean for part in parts]), torch.cat(variances) if variances else None)
