"""Findings: what an audit says, in words for people and in numbers for machines."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

SEVERITIES = ("note", "warning", "serious")
TITLES = {
    "BG101": "The size of a bag predicts its label",
    "BG102": "The order of the bags predicts their labels",
    "BG103": "The ids of the bags predict their labels",
    "BG104": "The largest norm of an instance predicts the label of its bag",
    "BG105": "The share of zeros in a bag predicts its label",
    "BG106": "A trivial rule is within noise of a real method",
    "BG107": "No simple method beats a constant",
    "BG201": "A column gives the target away",
    "BG202": "Columns that are non-zero in bags of one class only",
    "BG203": "A column that names the bag",
    "BG301": "Bags that occur more than once",
    "BG302": "Instances that occur in more than one bag",
    "BG303": "Bags shared with another data set",
    "BG401": "Constant columns",
    "BG402": "Columns that vary in a single bag",
    "BG403": "Columns on very different scales",
    "BG501": "The edges of the graph join bags that are no more alike than shuffled ones",
    "BG502": "The graph looks renumbered",
    "BG601": "Differences that this design can detect",
    "BG602": "A constant is as good as a score",
}


@dataclass(frozen=True)
class Finding:
    """One thing that an audit noticed.

    Parameters
    ----------
    code
        ``BG101`` and so on; the guide to audits lists them.
    severity
        ``"note"``, ``"warning"`` or ``"serious"``.
    measured, why, advice
        What was measured, why it matters, and what to do.
    numbers
        The same for machines.

    Examples
    --------
    >>> Finding("BG401", "note", "3 of 9 columns", "they say nothing", "drop them").title
    'Constant columns'

    """

    code: str
    severity: str
    measured: str
    why: str
    advice: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What the code stands for."""
        return TITLES[self.code]

    def __str__(self) -> str:
        lines = [f"{self.code} {self.severity}: {self.title}"]
        for name, text in (("measured", self.measured), ("why", self.why), ("do", self.advice)):
            lines += textwrap.wrap(text, 100, initial_indent=f"  {name:<9} ", subsequent_indent=" " * 12)
        return "\n".join(lines)


@dataclass(frozen=True)
class Audit:
    """The findings of an audit, the most serious first.

    Examples
    --------
    >>> found = Audit("demo", (Finding("BG401", "note", "3 of 9 columns", "they say nothing", "drop them"),))
    >>> print(found)
    Audit of demo: 1 note
    <BLANKLINE>
    BG401 note: Constant columns
      measured  3 of 9 columns
      why       they say nothing
      do        drop them
    >>> found.codes, found.worst
    (['BG401'], 'note')

    """

    name: str
    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        ordered = sorted(self.findings, key=lambda found: (-SEVERITIES.index(found.severity), found.code))
        object.__setattr__(self, "findings", tuple(ordered))

    @property
    def codes(self) -> list[str]:
        """Codes of the findings, in their order."""
        return [found.code for found in self.findings]

    @property
    def worst(self) -> str | None:
        """The highest severity among the findings, None where there are none."""
        return self.findings[0].severity if self.findings else None

    def above(self, severity: str) -> list[Finding]:
        """The findings that are more severe than this.

        >>> Audit("demo", ()).above("note")
        []
        """
        return [f for f in self.findings if SEVERITIES.index(f.severity) > SEVERITIES.index(severity)]

    def frame(self) -> pd.DataFrame:
        """A row a finding."""
        import pandas as pd

        columns = ["code", "severity", "title", "measured", "why", "advice"]
        rows = [[getattr(found, column) for column in columns] for found in self.findings]
        return pd.DataFrame(rows, columns=columns)

    def to_json(self) -> str:
        """Name and findings, with their numbers."""
        found = [{**asdict(one), "title": one.title, "numbers": _plain(one.numbers)} for one in self.findings]
        return json.dumps({"name": self.name, "findings": found}, indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        counts = [(s, sum(f.severity == s for f in self.findings)) for s in reversed(SEVERITIES)]
        words = [f"{n} {s}{'s' if n > 1 and s != 'serious' else ''}" for s, n in counts if n]
        head = f"Audit of {self.name}: " + (", ".join(words) or "nothing found")
        return "\n\n".join([head, *map(str, self.findings)])


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
