"""Explanations of estimators: every member asked, their answers averaged, in terms of bags and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from baggraph.data._graph_measures import normalised
from baggraph.data.bags import Bag, Bags
from baggraph.errors import InvalidBagsError, ParameterError, closest, name_some
from baggraph.estimators._fitted import Fitted, _extended
from baggraph.estimators._input import bags_of
from baggraph.inference.explain import Setting, by_instances, by_neighbors, chosen_method, instance_weights
from baggraph.inference.stack import dense
from baggraph.nn.gcn import Propagation, over_largest
from baggraph.nn.losses import BinaryCrossEntropy
from baggraph.nn.network import Network

__all__ = ["Explanation"]

SAME = 1e-3  # embeddings of the same instances, as a share of their largest entry


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a model says what it says of one bag.

    The parts are whole: ``score = bias + neighbors["contribution"].sum()``.

    Parameters
    ----------
    bag
        Its id.
    about
        What the score is of, such as the log odds of a class.
    score, bias
        The score at the fitted weights, averaged over members and levels, and what of it no bag accounts for.
    instances
        A row an instance: ``contribution``, and ``attention`` where the encoder has it.
    neighbors
        A row a bag that is heard, itself among them: ``weight`` and ``contribution``, largest first.
    method
        How contributions of instances were found.
    members
        Of a committee, a row a member: ``weight``, what it says (``score``) and ``contribution``; with the bias, these
        add up to the score too.  None for other models.

    """

    bag: str
    about: str
    score: float
    bias: float
    instances: pd.DataFrame
    neighbors: pd.DataFrame
    method: str
    members: pd.DataFrame | None = None

    def __repr__(self) -> str:
        top = self.instances["contribution"].sort_values(ascending=False, kind="stable").head(3)
        shown = ", ".join(f"{name} {value:+.3g}" for name, value in top.items())
        heard = ", ".join(f"{name} {value:+.3g}" for name, value in self.neighbors["contribution"].head(4).items())
        lines = [f"Explanation of bag {self.bag!r}: {self.about} {self.score:.3g}"]
        lines += [f"  bags       {heard}, bias {self.bias:+.3g}", f"  instances  {shown} ({self.method})"]
        if self.members is not None:
            most = self.members["contribution"].sort_values(key=np.abs, ascending=False, kind="stable").head(4)
            lines.insert(1, "  members    " + ", ".join(f"{name} {value:+.3g}" for name, value in most.items()))
        return "\n".join(lines)


def explain(model: Any, X: Any, *, of: Any, method: str, seen: bool, links: Any) -> Any:
    """See :meth:`BagGraphEstimator.explain`."""
    check_is_fitted(model, "posterior_")
    fitted = model._fitted
    if not isinstance(fitted, Fitted):
        got, remedy = f"head={model.head!r}", "fit with head='gcn' or 'linear'"
        raise ParameterError("explain", expected="a head of layers", got=got, remedy=remedy)
    if isinstance(X, Bag):
        alone = Bags.from_list([np.asarray(X)], ids=[X.id], instance_names=X.instance_names)
        return explain(model, alone, of=of, method=method, seen=seen, links=links)[0]
    raw = bags_of(model, X, reset=False)
    bags = model.scaler_.transform(raw)
    asker = _Asker(model, fitted, bags, seen, fitted.checked(links, len(bags)))
    method = chosen_method(fitted.network, method, int(bags.sizes.max()))
    return [asker.explain(position, of, method) for position in range(len(bags))]


@dataclass(eq=False)
class _Asker:
    """All members, asked about some bags."""

    model: Any
    fitted: Fitted
    bags: Bags
    seen: bool
    links: sp.csr_array | None

    def __post_init__(self) -> None:
        self.embedding = self.fitted.embed(self.bags)
        self.joined: list[sp.csr_array] | None = None
        self.networks: dict[int, Network] = {}
        self.graphs: dict[int, sp.csr_array] = {}
        self.place = {bag: position for position, bag in enumerate(self.fitted.ids.tolist())}
        if self.seen:
            self._check_seen()

    def explain(self, position: int, of: Any, method: str) -> Explanation:
        """Of one bag."""
        about, parts = "", []
        block, _ = dense(self.bags[position : position + 1], self.embedding.dtype, torch.device("cpu"))
        for m in range(len(self.fitted.seeds)):
            names, weights, setting, about = self._setting(m, position, of)
            contributions, bias = by_neighbors(setting)
            instances = {"contribution": by_instances(setting, block, method)}
            if hasattr(setting.network.encoder, "instance_weights"):
                instances["attention"] = instance_weights(setting.network, block)
            heard = pd.DataFrame({"weight": weights, "contribution": contributions.numpy()}, index=names)
            parts.append((bias, heard, pd.DataFrame({name: value.numpy() for name, value in instances.items()})))
        return self._averaged(position, about, parts, method)

    def _averaged(self, position: int, about: str, parts: list[Any], method: str) -> Explanation:
        biases, heard, instances = zip(*parts, strict=True)
        bag = self.bags[position]
        neighbors = pd.concat(heard).groupby(level=0, sort=False).sum().astype(np.float64) / len(parts)
        order = np.argsort(-neighbors["contribution"].abs().to_numpy(), kind="stable")
        neighbors = neighbors.iloc[order].rename_axis("bag")
        table = sum(instances[1:], instances[0]).astype(np.float64) / len(parts)
        table.index = pd.RangeIndex(len(table)) if bag.instance_names is None else pd.Index(bag.instance_names)
        bias = float(np.mean(biases))
        score = bias + float(neighbors["contribution"].sum())
        return Explanation(bag.id, about, score, bias, table.rename_axis("instance"), neighbors, method)

    # ------------------------------------------------------------------ one member, one bag

    def _setting(self, m: int, position: int, of: Any) -> tuple[list[str], Any, Setting, str]:
        fitted, own = self.fitted, self.embedding[m, position]
        network = self._network(m)
        name = str(self.bags.ids[position])
        if fitted.wired is None:
            matrix, needed = sp.csr_array(np.ones((1, 1))), np.zeros(0, dtype=np.int64)
        elif self.seen:
            matrix, needed = self._around_seen(m, self.place[name])
        else:
            row = self._links(m, position)
            matrix, needed = _extended(fitted.wired[m].graph, row, fitted.n_hops)
        embedding = torch.cat([fitted.inputs[m, needed], fitted.inputs_of_new(own.unsqueeze(0))])
        paths = None if fitted.wired is None else Propagation.of_matrices([matrix], dtype=embedding.dtype)
        direction, shift, about = self._direction(network, embedding, paths, of)
        names = [*(f"{bag} (in fit)" if bag == name and not self.seen else bag for bag in fitted.ids[needed]), name]
        weights = matrix[[matrix.shape[0] - 1]].toarray()[0]
        return names, weights, Setting(network, embedding, paths, direction, shift), about

    def _network(self, m: int) -> Network:
        if m not in self.networks:
            network = self.fitted.network.eval()
            own = {name: value[m].clone() for name, value in self.fitted.parameters.items()}
            network.load_state_dict(own, strict=False)
            self.networks[m] = network
        return self.networks[m]

    def _links(self, m: int, position: int) -> sp.csr_array:
        given = None if self.links is None else self.links[[position]]
        return self.fitted.links(self.bags[position : position + 1], given)[m]

    def _around_seen(self, m: int, place: int) -> tuple[sp.csr_array, np.ndarray]:
        """Weights among the bags within as many hops as there are layers, this one last; it is not in the places."""
        if m not in self.graphs:
            plain = over_largest(self.fitted.wired[m].graph.adjacency)  # type: ignore[index]
            self.graphs[m] = sp.csr_array(normalised(plain, 1.0, "symmetric"))
        matrix, near = self.graphs[m], np.array([place])
        for _ in range(self.fitted.n_hops):
            near = np.union1d(near, matrix[near].indices)
        needed = near[near != place]
        order = np.concatenate([needed, [place]])
        return sp.csr_array(matrix[order][:, order]), needed

    def _direction(self, network: Any, embedding: Tensor, paths: Any, of: Any) -> tuple[Tensor, float, str]:
        """Which combination of outputs is explained, and what it is called."""
        loss, classes = self.fitted.plan.loss, getattr(self.model, "classes_", None)
        if classes is None:
            return self._of_target(loss, of)
        names = [str(name) for name in classes.tolist()]
        if of is not None and str(of) not in names:
            raise ParameterError("explain", expected="one of the classes", got=repr(of), remedy=closest(str(of), names))
        if len(names) == 2:
            sign = -1.0 if of is not None and str(of) == names[0] else 1.0
            return (
                torch.tensor([sign], dtype=embedding.dtype),
                0.0,
                f"log odds of {names[1] if sign > 0 else names[0]!r}",
            )
        with torch.no_grad():
            outputs = network.head(embedding, paths).mean(0)[-1]
        chosen = int(outputs.argmax()) if of is None else names.index(str(of))
        direction = torch.full_like(outputs, -1 / len(names))
        direction[chosen] += 1
        return direction, 0.0, f"logit of {names[chosen]!r} less the mean of all"

    def _of_target(self, loss: Any, of: Any) -> tuple[Tensor, float, str]:
        target = 0 if of is None else of
        if not isinstance(target, int | np.integer) or not 0 <= target < loss.n_targets:
            expected = f"the number of a target, below {loss.n_targets}"
            raise ParameterError("explain", expected=expected, got=repr(of), remedy="count from 0")
        direction = torch.zeros(loss.n_outputs, dtype=self.embedding.dtype)
        if isinstance(loss, BinaryCrossEntropy):
            direction[target] = 1.0
            return direction, 0.0, "log odds of the share"
        center, scale = (float(part[0, 0, target]) for part in self.model._scales)
        direction[target] = scale
        return direction, center, "target" if loss.n_targets == 1 else f"target {target}"

    def _check_seen(self) -> None:
        """Bags of the fit are known by their ids, and their instances must be those of the fit."""
        unknown = [bag for bag in self.bags.ids.tolist() if bag not in self.place]
        if unknown:
            got = f"no bag {name_some(unknown)} there"
            raise InvalidBagsError("explain", expected="bags of the fit", got=got, remedy="leave out seen=True")
        known = self.fitted.embedding[:, [self.place[bag] for bag in self.bags.ids.tolist()]]
        apart = (known - self.embedding).abs().amax(dim=(0, 2)) > SAME * known.abs().max().clamp_min(1.0)
        if bool(apart.any()):
            bag = str(self.bags.ids[int(apart.int().argmax())])
            remedy = "pass the bags that were fitted, or leave out seen=True"
            got = f"others in bag {bag!r}"
            raise InvalidBagsError("explain", expected="the instances of the fit", got=got, remedy=remedy)
