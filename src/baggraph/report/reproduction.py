"""The page on a reproduction: tables, verdicts, claims and figures, from frames."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from baggraph.report.figures import Figure
from baggraph.report.tables import grid, markdown

__all__ = ["Section", "write_page"]

METRICS = {
    "accuracy": "Accuracy in %",
    "winner": "Regions whose winner is right, in %",
    "nd": "Normalised deviation in % (of the mean label)",
    "nd as published": "Normalised deviation in % (of the mean prediction, as published)",
    "rmse": "Root mean squared error",
    "mae": "Mean absolute error",
    "mape": "Mean absolute percentage error",
    "mape as published": "MAPE over all pairs, as published",
}
MINUTES = {"minutes": lambda value: f"{value:.1f}"}


@dataclass(frozen=True, eq=False)
class Section:
    """One table of the paper.

    Parameters
    ----------
    name, title, source, protocol
        Of its recipe.
    summary
        The table in a line.
    cells, claims
        As ``baggraph.experiments.verdict`` gives them.
    headline
        Metrics that are laid out as tables.
    deviations
        Sentences.
    figures
        By the text that stands below them.
    stars
        As ``baggraph.experiments.verdict`` gives them.
    """

    name: str
    title: str
    source: str
    protocol: str
    summary: str
    cells: pd.DataFrame
    claims: pd.DataFrame
    headline: Sequence[str]
    deviations: Sequence[str] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    stars: pd.DataFrame | None = None


def write_page(path: Path, sections: Sequence[Section], intro: str, appendix: str = "") -> Path:
    """Write the page, and its figures and frames (Parquet) into a folder of the same name beside it.

    Figures and frames of an older page in that folder are removed.
    """
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("*.png"), *folder.glob("*.parquet")]:
        old.unlink()
    lines = [intro.strip(), "", "## In short", ""]
    lines += [f"- [{section.title}](#{_anchor(section)}): {section.summary}" for section in sections]
    lines += ["", "## Which claims hold", "", *_claims_in_short(sections)]
    for section in sections:
        lines += ["", *_lines(section, folder)]
    path.write_text("\n".join([*lines, "", appendix.strip()]).rstrip() + "\n", encoding="utf-8")
    return path


def _heading(section: Section) -> str:
    return f"{section.title} ({section.source}, {section.protocol})"


def _anchor(section: Section) -> str:
    """As the documentation's parser makes it: lower case, words joined, no punctuation."""
    kept = (letter for letter in _heading(section).lower() if letter.isalnum() or letter in " -")
    return "".join(kept).replace(" ", "-")


def _lines(section: Section, folder: Path) -> list[str]:
    section.cells.to_parquet(folder / f"{section.name}-cells.parquet", index=False)
    lines = [f"## {_heading(section)}", ""]
    if section.cells["ours"].isna().all():
        lines += ["Nothing of this table has been run.", ""]
    lines += _grids(section)
    lines += [*_verdicts(section.cells), *_claims(section.claims), *_stars(section.stars)]
    for number, (caption, figure) in enumerate(section.figures.items(), 1):
        name = f"{section.name}-{number}"
        figure.save(folder / f"{name}.png")
        figure.frame().to_parquet(folder / f"{name}.parquet")
        lines += [f"![{caption}]({folder.name}/{name}.png)", "", f"*{caption}*", ""]
    if section.deviations:
        lines += ["What is done otherwise than the paper says:", "", *(f"- {text}" for text in section.deviations), ""]
    return [*lines, *_effort(section.cells)]


def _grids(section: Section) -> list[str]:
    """A table a metric; of a single set one table, a column a metric."""
    shown = section.cells[section.cells["metric"].isin(section.headline)]
    parts = {METRICS.get(metric, metric): shown[shown["metric"] == metric] for metric in section.headline}
    across = "dataset"
    if shown["dataset"].nunique() == 1:
        across, parts = "metric", {", ".join(parts): shown.assign(metric=shown["metric"].replace(METRICS))}
    lines = []
    for title, part in parts.items():
        if part["ours"].notna().any():
            told = f"{title}: ours ± standard deviation over repeats or splits"
            told += " / printed" if part["printed"].notna().any() else ""
            lines += [told, "", markdown(grid(part, across)), ""]
    return lines


def _verdicts(cells: pd.DataFrame) -> list[str]:
    """Every printed number that we have a number for, and why there is none for the others."""
    printed = cells[cells["printed"].notna()]
    found = printed[printed["ours"].notna()]
    lines = []
    if len(found):
        names = ["method", "dataset", "metric", "ours", "printed", "difference"]
        frame = found[names].assign(verdict=_head(_head(found["verdict"], ";"), ":"))
        lines += ["Number by number:", "", markdown(frame), ""]
        reasons = _head(found.loc[found["verdict"].str.startswith("cannot"), "verdict"], ";").unique()
        lines += [f"{text[0].upper()}{text[1:]}." for text in reasons] + ([""] if len(reasons) else [])
    explained = printed["verdict"].str.extract(r"printed claim explained: (.*)")[0]
    for text, part in printed.groupby(explained, sort=False):
        methods = ", ".join(dict.fromkeys(part["method"]))
        lines += [f"Printed claim explained ({methods}): {text}.", ""]
    return [*lines, *_absent(printed[printed["ours"].isna()])]


def _head(texts: pd.Series, end: str) -> pd.Series:
    """What stands before the first ``end``."""
    return texts.map(lambda text: text.partition(end)[0])


def _absent(cells: pd.DataFrame) -> list[str]:
    """Cells without a number, by reason."""
    lines = []
    for reason, part in cells.groupby(_head(cells["verdict"], ";"), sort=False):
        sets, methods = list(dict.fromkeys(part["dataset"])), list(dict.fromkeys(part["method"]))
        what = f"{', '.join(methods)} on {', '.join(sets)}"
        lines += [f"{reason[0].upper()}{reason[1:]} ({len(part)} printed numbers): {what}.", ""]
    return lines


def _claims(claims: pd.DataFrame) -> list[str]:
    if not len(claims):
        return []
    frame = claims.rename(columns={"p_wilcoxon": "p (Wilcoxon)", "p_corrected": "p (corrected t)"})
    p = dict.fromkeys(("p (Wilcoxon)", "p (corrected t)"), _p)
    return ["Claims, tested in pairs:", "", markdown(frame, p), ""]


def _stars(stars: pd.DataFrame | None) -> list[str]:
    """Stars by the paper's rule, as code, since they would mark emphasis."""
    if stars is None or not len(stars):
        return []
    told = "Stars by the paper's rule (better than the base model; two: than the rival -GCN or Bayesian row as well):"
    coded = {name: lambda text: f"`{text}`" if text else "" for name in ("wilcoxon", "corrected", "printed")}
    return [told, "", markdown(stars, coded), ""]


def _p(value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"


def _claims_in_short(sections: Sequence[Section]) -> list[str]:
    """A line a claim: on how many sets it holds, and what it is elsewhere."""
    lines = []
    for section in sections:
        for says, rows in section.claims.groupby("claim", sort=False):
            part = rows[~rows["dataset"].str.startswith("all ")]
            counts = part["verdict"].value_counts(sort=False)
            told = "; ".join(f"{verdict} ({n} of {len(part)} sets)" for verdict, n in counts.items())
            only = next(iter(counts.index)) if len(part) == 1 else told
            lines.append(f"- {section.title}: {says}. **{only[0].upper()}{only[1:]}.**")
    return lines or ["None was tested."]


def _effort(cells: pd.DataFrame) -> list[str]:
    """Where rows were computed, with how many repeats, and how long it took."""
    found = cells[cells["ours"].notna()].drop_duplicates(["method", "dataset"])
    if not len(found):
        return []
    grouped = found.groupby("method", sort=False)
    fewest, most = grouped["repeats"].min(), grouped["repeats"].max()
    shown = [f"{low}" if low == high else f"{low} to {high}" for low, high in zip(fewest, most, strict=True)]
    frame = pd.DataFrame({"method": fewest.index, "role": grouped["role"].first().to_numpy(), "repeats": shown})
    frame["of"] = grouped["of"].first().to_numpy()
    frame["computed on"] = grouped["device"].first().to_numpy()
    frame["minutes"] = 60 * grouped["hours"].sum().to_numpy()
    told = "Where and how much (a base model that rows share counts in the first of them):"
    return [told, "", markdown(frame, MINUTES), ""]
