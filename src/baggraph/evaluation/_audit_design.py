"""What the number of bags and the scores at hand allow one to say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from baggraph.evaluation._audit_numbers import FAIR_SHARE
from baggraph.evaluation._audit_rules import Rules
from baggraph.evaluation._findings import Finding

ONE_NUMBER = ("BG101", "BG104", "BG105")


def findings(rules: Rules, found: Sequence[Finding]) -> Iterator[Finding]:
    """Trivial rules beside a real method, and the smallest difference that can be told."""
    yield from _trivial_is_as_good(rules, found)
    yield from _nothing_beats_a_constant(rules)
    yield _detectable(rules)


def _trivial_is_as_good(rules: Rules, found: Sequence[Finding]) -> Iterator[Finding]:
    """Of the rules on one number that a finding has convicted, the best one, if noise hides its distance."""
    trivial = [one for one in found if one.code in ONE_NUMBER and one.numbers.get("within_noise")]
    if not trivial:
        return
    best = max(trivial, key=lambda one: one.numbers["share_of_gain"])
    share = best.numbers["share_of_gain"]
    if share < FAIR_SHARE:
        return
    measured = (
        f"the rule of {best.code} gets {rules.say(best.numbers['rule'])}, the better of two plain methods on "
        f"bag summaries {rules.say(rules.strong)}: the difference is within the noise of {rules.splits}"
    )
    why = "a score of a real method on these bags is no evidence that it looks at anything but that number"
    advice = "print the trivial row in every table, and claim only what goes beyond it"
    numbers = {"rule": best.code, "share_of_gain": share}
    yield Finding("BG106", "serious" if best.severity == "serious" else "warning", measured, why, advice, numbers)


def _nothing_beats_a_constant(rules: Rules) -> Iterator[Finding]:
    low, high = rules.interval(rules.constant, rules.strong)
    if low > 0:
        return
    measured = (
        f"the better of two plain methods on bag summaries gets {rules.say(rules.strong)}, a constant "
        f"{rules.say(rules.constant)} ({rules.splits}; "
        f"95 % interval of the gain {rules.gain(low)} to {rules.gain(high)})"
    )
    why = "the labels may be unrelated to the features, or only a method that looks at single instances can tell them"
    advice = "check how labels were joined to bags; report a constant beside every method"
    yield Finding("BG107", "note", measured, why, advice, {"low": low, "high": high})


def _detectable(rules: Rules) -> Finding:
    bags = len(rules.bags)
    measured = (
        f"with {bags} labelled bags and {rules.splits}, two methods must differ by about "
        f"{rules.gain(rules.detectable)} to be told apart four times in five (corrected t-test at 5 %)"
    )
    why = "smaller differences in a table of results are noise, however many digits are printed"
    advice = "add bags rather than repeats, pair the folds of all methods, and print intervals"
    return Finding("BG601", "note", measured, why, advice, {"detectable": rules.detectable, "bags": bags})
