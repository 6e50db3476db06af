"""Does one number a bag predict the label: its size, place, id, largest norm, share of zeros?"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from baggraph.evaluation._audit_rules import Rules
from baggraph.evaluation._findings import Finding
from baggraph.evaluation._material import Array, Material
from baggraph.evaluation._shuffles import Shuffles, Suspicion

FAIR_SHARE, LARGE_SHARE = 0.5, 0.9  # of what a real method gains over a constant

WHY = {
    "BG101": "a method may count instances and look as if it understood them",
    "BG104": "a method may look at how long instances are, which scaling, term weights or a lens decide, and not at "
    "what they show",
    "BG105": "a method may look at how much of an instance is filled in, and not at what it says",
}
ADVICE = {
    "BG101": 'report the row "bag size" beside every method, or sample bags of one size',
    "BG104": 'scale every instance to unit norm and see what is left, and report the row "largest norm" beside '
    "every method",
    "BG105": "see what is left when features are made zero or one, and instances are scaled to unit norm",
}
NAMES = {"BG101": "bag size", "BG104": "largest instance norm", "BG105": "share of zeros"}


def suspicions(material: Material, shuffles: Shuffles, rules: Rules | None) -> Iterator[Suspicion]:
    """All numbers a bag that could give its label away."""
    bags, known = material.bags, material.known
    numbers = {
        "BG101": bags.sizes.astype(np.float64),
        "BG104": material.largest_norm,
        "BG105": material.zeros,
    }
    for code, values in numbers.items():
        if np.ptp(values[known]) > 0:
            yield _of_number(code, values[known], shuffles, rules)
    yield _of_order(known, shuffles)
    yield from _of_ids(material, shuffles)


def _of_number(code: str, x: Array, shuffles: Shuffles, rules: Rules | None) -> Suspicion:
    p = shuffles.of_number(x)

    def finding(adjusted: float) -> Finding | None:
        losses = None if rules is None else rules.of_number(x)
        numbers: dict[str, object] = {"p": p, "p_adjusted": adjusted}
        if rules is None or losses is None:
            return Finding(code, "warning", f"{NAMES[code]}: p = {p:.2g}", WHY[code], ADVICE[code], numbers)
        severity, share, within_noise = _weigh(rules, losses)
        rule = "one threshold on it" if rules.classify else "a line in its logarithm"
        measured = (
            f"{NAMES[code]}: {rule}, fitted on the training folds, gets {rules.say(losses)} on tested bags; a constant "
            f"{rules.say(rules.constant)}, the better of two plain methods on bag summaries "
            f"{rules.say(rules.strong)} ({rules.splits}; p = {p:.2g} under shuffled labels)"
        )
        numbers |= {"rule": losses.mean(), "constant": rules.constant.mean(), "plain_method": rules.strong.mean()}
        numbers |= {"share_of_gain": share, "within_noise": within_noise}
        return Finding(code, severity, measured, WHY[code], ADVICE[code], numbers)

    return Suspicion(p, finding)


def _weigh(rules: Rules, losses: Array) -> tuple[str, float, bool]:
    """Severity, the share of the gain of a real method over a constant that is reached, and if noise hides the rest."""
    gain = float((rules.constant - rules.strong).mean())
    own = float((rules.constant - losses).mean())
    share = own / gain if gain > 0 else np.inf if own > 0 else 0.0
    if own <= 0:
        return "note", share, False
    if gain <= 0:  # BG107 says so; without a real method, nothing can be as good as one
        return "warning", share, False
    within_noise = rules.interval(losses, rules.strong)[0] <= 0
    if share >= LARGE_SHARE or (within_noise and share >= FAIR_SHARE):
        return "serious", share, within_noise
    return ("warning" if share >= FAIR_SHARE else "note"), share, within_noise


def _of_order(known: NDArray[np.int64], shuffles: Shuffles) -> Suspicion:
    p = shuffles.of_number(known.astype(np.float64))
    measured = (
        f"position of a bag and its label: p = {p:.2g} under shuffled labels; the bags are sorted, at least partly"
    )
    why = "folds that are cut from consecutive bags test what they never trained on, and errors of pairing stay unseen"
    advice = "use shuffled folds, as all of ours are, and pair files with bags by id"
    return Suspicion(p, lambda adjusted: Finding("BG102", "note", measured, why, advice, {"p_adjusted": adjusted}))


def _of_ids(material: Material, shuffles: Shuffles) -> Iterator[Suspicion]:
    ids = [str(i) for i in material.bags.ids[material.known]]
    stems = [re.split(r"\d", name, maxsplit=1)[0] for name in ids]
    groups = np.unique(stems, return_inverse=True)[1]
    if 1 < groups.max() + 1 <= len(ids) / 2:
        shown = ", ".join(repr(stem) for stem in sorted(set(stems), key=stems.count, reverse=True)[:3])
        yield _of_id(shuffles.of_groups(groups), f"how ids begin ({shown})")
    digits = [re.findall(r"\d+", name) for name in ids]
    if all(digits):
        values = np.array([float(found[-1]) for found in digits])
        in_order = bool((np.diff(values) >= 0).all())  # then the order of the bags has said it already
        if np.ptp(values) > 0 and not in_order:
            yield _of_id(shuffles.of_number(values), "the number in the id")


def _of_id(p: float, what: str) -> Suspicion:
    measured = f"{what} and the label: p = {p:.2g} under shuffled labels"
    why = "an id that is parsed into a feature, or a file that is found by it, brings the label along"
    advice = "never make a feature of an id, and rename bags before handing them to others"
    return Suspicion(p, lambda adjusted: Finding("BG103", "note", measured, why, advice, {"p_adjusted": adjusted}))
