"""Targets of all bags from those of some: the process, its scale, and what each part of it carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baggraph.data.posterior import Posterior
from baggraph.inference.gp import FittedProcess, fit_process
from baggraph.inference.gp_bags import Description
from baggraph.inference.gp_scale import Scale, fitting_links, to_posterior

__all__ = ["FittedRegression", "regress"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FittedRegression:
    """A process over described bags, and the scale of its targets.

    Parameters
    ----------
    description
        Of all bags, labelled or not.
    fitted, scale
        The process at its parameters, and how targets came to it.
    log_evidence
        Of the targets themselves, the link's Jacobian and the prior included.

    """

    description: Description
    fitted: FittedProcess
    scale: Scale
    log_evidence: float

    def posterior(self, rows: Any, ids: Any) -> Posterior:
        """Of the bags that these rows describe."""
        return to_posterior(*self.fitted.predict(rows), self.scale, ids)

    def variances(self) -> dict[str, float]:
        """The variance between bags that the fitted process expects of every part of the signal, and of the noise.

        Of part p, ``tr(C K_p C) / n`` over all described bags, with C the centring.
        """
        process, theta, rows = self.fitted.process, self.fitted.theta, self.description.rows
        signal = process.signal(process.pairs(rows, rows), theta)
        count = len(rows["level"])
        found = {name: float(np.trace(value) - value.sum() / count) / count for name, value in signal.items()}
        found["noise"] = float(process.noise(rows, theta).mean())
        del found["level"]  # the same for all bags
        return found

    def shares(self) -> dict[str, float]:
        """How much of the variance between bags every part of the signal, and the noise, carries; they sum to one."""
        found = self.variances()
        total = sum(found.values())
        return {name: value / total for name, value in found.items()}

    def components(self) -> dict[str, Array]:
        """The mean (B, t) of every part for all described bags, on the scale of the process."""
        return self.fitted.parts(self.description.rows)


def regress(
    descriptions: Description | Sequence[Description], targets: Any, visible: Any, *, link: str = "auto"
) -> FittedRegression:
    """Fit targets (B, t) where ``visible`` (B,); of several descriptions and links, that of the largest evidence.

    Targets of other bags are not looked at.
    """
    which = np.flatnonzero(visible)
    seen = np.asarray(targets, dtype=np.float64)[which]
    found = []
    for description in [descriptions] if isinstance(descriptions, Description) else descriptions:
        for name in fitting_links(link, seen):
            scale = Scale.of(name, seen)
            fitted = fit_process(description.process, description.take(which), scale.forward(seen))
            evidence = fitted.log_posterior + scale.log_jacobian(seen)
            found.append(FittedRegression(description, fitted, scale, evidence))
    return max(found, key=lambda one: one.log_evidence)
