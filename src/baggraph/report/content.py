"""Content: everything a page shows but the scores, so that it can be drawn again without training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from baggraph import __version__
from baggraph.data._columns import missing_mask
from baggraph.data.bags import Bags
from baggraph.data.posterior import Posterior
from baggraph.data.readers._atomic import replacing
from baggraph.errors import DataFileError
from baggraph.evaluation._findings import Audit
from baggraph.evaluation.metrics import reliability
from baggraph.report._ladder import ladder_of
from baggraph.report.atlas import Atlas

__all__ = ["Content"]

FILE = "page.json"
MOST_ASKED = 400_000  # instances that a committee is shown for the page: about a minute


@dataclass(frozen=True)
class Content:
    """What was asked and found, in values that JSON can hold.

    Parameters
    ----------
    title, question
        Of the page, and what the model was asked.
    data
        Facts on the bags.
    findings
        Of the audit, the most serious first; None where there was none.
    atlas
        What :meth:`Atlas.to_json` gave, or None.
    model
        Facts on the model; empty without one.
    trust
        Numbers of bags that were tested and how often what was said came true; empty where no label was held out.
    spread
        Histogram of what is believed of the bags: counts, edges, unit.
    ladder
        What is believed of every bag, or of some of very many, with its interval, in this order.
    commands
        What to type to get this page again.

    """

    title: str
    question: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    findings: Sequence[Mapping[str, Any]] | None = None
    atlas: str | None = None
    model: Mapping[str, Any] = field(default_factory=dict)
    trust: Mapping[str, Any] = field(default_factory=dict)
    spread: Mapping[str, Any] = field(default_factory=dict)
    ladder: Mapping[str, Any] = field(default_factory=dict)
    commands: Sequence[str] = ()
    version: str = __version__

    @classmethod
    def of(
        cls,
        bags: Bags | None = None,
        *,
        model: Any = None,
        truth: Any = None,
        audit: Audit | None = None,
        explained: int = 300,
        title: str | None = None,
        commands: Sequence[str] = (),
    ) -> Content:
        """Look at bags, a model fitted on them, and the audit.

        ``truth`` are labels (B,) of all bags, of which the model saw those that the bags carry: what it said of the
        others is held against them.  The page says why of ``explained`` bags, those that the model is least sure of.
        """
        if bags is None:
            return cls(title or "Report", findings=_findings(audit), commands=list(commands))
        posterior = None if model is None else model.posterior_
        shown = bags if truth is None else bags.replace(y=truth)
        atlas = Atlas.of(
            shown,
            posterior=posterior,
            graph=None if model is None else model.graph_,
            embedding=model.embedding_ if model is not None else None if bags.graph is not None else _means(bags),
            seen=None if model is None or truth is None else bags.labelled,
            explanations=None if model is None else _explanations(model, bags, explained),
        )
        name = str(bags.metadata.get("name", "bags"))
        return cls(
            title=title or f"Report on {name}",
            question=_question(posterior, name),
            data=_data_facts(bags),
            findings=_findings(audit),
            atlas=atlas.to_json(),
            model={} if model is None else _model_facts(model),
            trust={} if posterior is None or truth is None else _trust(posterior, bags, truth),
            spread={} if posterior is None else _spread(posterior),
            ladder={} if posterior is None else ladder_of(posterior, bags, truth),
            commands=list(commands),
        )

    def save(self, folder: str | Path) -> Path:
        """Write ``page.json`` into a folder, whole or not at all."""
        path = Path(folder) / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as draft:
            draft.write_text(json.dumps(asdict(self), ensure_ascii=False, allow_nan=False), encoding="utf-8")
        return path

    @classmethod
    def load(cls, folder: str | Path) -> Content | None:
        """Read what :meth:`save` wrote; None where there is nothing."""
        path = Path(folder) / FILE
        if not path.is_file():
            return None
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            return cls(**{f.name: values[f.name] for f in fields(cls)})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            got, remedy = f"{path} ({error})", "move the file away, or make the folder anew"
            raise DataFileError("report", expected="a page that baggraph wrote", got=got, remedy=remedy) from error


def _means(bags: Bags) -> Any:
    """What bags lie by where nothing joins them: the standardised means of their features."""
    from baggraph.baselines.summary import summarise

    means = summarise(bags)
    spread = means.std(axis=0)
    return (means - means.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _explanations(model: Any, bags: Bags, most: int) -> dict[str, Any]:
    """Of the bags whose posterior is widest; none of a model that has no explanations."""
    posterior = model.posterior_
    doubt = posterior.entropy if posterior.is_classification else posterior.epistemic.sum(axis=1)
    chosen = np.argsort(-doubt, kind="stable")[:most]
    if hasattr(model, "contributions"):  # a committee is asked again without every instance, or 64 groups of them
        sizes = bags.sizes[chosen]
        chosen = chosen[: max(1, int((np.cumsum(sizes * np.minimum(sizes, 64)) <= MOST_ASKED).sum()))]
    chosen = np.sort(chosen)
    if not len(chosen) or not hasattr(model, "explain"):
        return {}
    return {one.bag: one for one in model.explain(bags[chosen], seen=True)}


def _findings(audit: Audit | None) -> list[dict[str, Any]] | None:
    return None if audit is None else json.loads(audit.to_json())["findings"]


def _question(posterior: Posterior | None, name: str) -> str:
    if posterior is None:
        return f"What predicts the labels of {name}?"
    if not posterior.is_classification:
        return f"Which value does each bag of {name} have?"
    return f"To which of the classes {', '.join(map(str, posterior.classes[:8]))} does each bag of {name} belong?"


def _data_facts(bags: Bags) -> dict[str, Any]:
    facts: dict[str, Any] = {"bags": len(bags), "instances": bags.n_instances, "features": bags.n_features}
    facts |= {"smallest bag": int(bags.sizes.min()), "largest bag": int(bags.sizes.max())}
    facts["bags with a label"] = int(bags.labelled.sum())
    for name in ("licence", "citation", "home"):
        if name in bags.metadata:
            facts[name] = str(bags.metadata[name])
    return facts


def _model_facts(model: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {"class": type(model).__name__}
    facts |= {name: _plain(value) for name, value in model.get_params(deep=False).items() if name != "verbose"}
    if hasattr(model, "contributions"):
        told = model.contributions()
        facts |= {f"weight of {name}": round(float(weight), 3) for name, weight in told["weight"].items()}
    if model.graph_ is not None:
        facts |= {"edges": model.graph_.n_edges, "components": model.graph_.n_components}
    return facts


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str | bool | None) else str(value)


def _trust(posterior: Posterior, bags: Bags, truth: Any) -> dict[str, Any]:
    """What was said of bags whose labels were hidden, against those labels."""
    tested = np.flatnonzero(~bags.labelled & ~missing_mask(np.asarray(truth)).reshape(len(bags), -1).any(axis=1))
    if not len(tested):
        return {}
    part, labels = posterior.take(tested), np.asarray(truth)[tested]
    facts: dict[str, Any] = {"tested": len(tested), "seen": int(bags.labelled.sum())}
    if not part.is_classification:
        return facts | _trust_in_values(part, labels)
    right = part.codes(labels) == part.mean.argmax(axis=1)
    said = part.mean.max(axis=1)
    facts |= {"accuracy": float(right.mean()), "confidence": float(said.mean()), "wrong": int((~right).sum())}
    facts["sure_and_wrong"] = [str(bag) for bag in part.ids[np.argsort(-said * ~right)][: int((~right).sum())][:5]]
    bins = reliability(labels, part)
    named = {"said": "confidence", "came": "accuracy", "counts": "bags"}
    return facts | {name: bins[column].tolist() for name, column in named.items()}


def _trust_in_values(part: Posterior, labels: Any) -> dict[str, Any]:
    values = np.asarray(labels, dtype=np.float64).reshape(len(part), -1)
    facts: dict[str, Any] = {"rmse": float(np.sqrt(((values - part.mean) ** 2).mean()))}
    if not part.has_noise:
        return facts
    said = np.linspace(0.1, 0.9, 9)
    bounds = [part.quantile([(1 - level) / 2, (1 + level) / 2]) for level in said]
    inside = [((b[..., 0] <= values) & (values <= b[..., 1])).mean() for b in bounds]
    return facts | {"said": said.tolist(), "came": [float(v) for v in inside], "counts": [len(values)] * len(said)}


def _spread(posterior: Posterior) -> dict[str, Any]:
    if posterior.is_classification and len(posterior.classes) == 2:
        values, unit, edges = posterior.mean[:, 1], f"probability of {posterior.classes[1]}", np.linspace(0, 1, 21)
    elif posterior.is_classification:
        values, unit, edges = (
            posterior.mean.max(axis=1),
            "probability of the most probable class",
            np.linspace(0, 1, 21),
        )
    else:
        values, unit = posterior.mean[:, 0], "expected value"
        edges = np.histogram_bin_edges(values, 20)
    return {"counts": np.histogram(values, edges)[0].tolist(), "edges": edges.tolist(), "unit": unit}
