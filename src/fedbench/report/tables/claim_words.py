"""The words of claims: the rules their verdicts follow, effects with their intervals, seeds, and the strip."""

from __future__ import annotations

import math

from fedbench.report.numbers.findings import Finding
from fedbench.report.numbers.names import ABSENT, signed
from fedbench.report.numbers.significance import Effect

PRINT = "In print: at how many places (dataset and setting) the paper's own numbers show the sentence."
STAND_IN = "Only datasets that stand in for the paper's have run: they show what the program does and give no verdict."
RULES = (
    "Verdicts: from the 90 % interval of the effect, paired by seed, averaged over places. Supported: above the "
    "margin; contradicted: below 0 (no worse: below minus the margin); not supported: smaller than the margin or than "
    "what matters; undecided: the rest. One seed never gives a verdict, two give an interval; from five, exact "
    "sign flips confirm the t-test; places with fewer than three seeds wait where others have them. Where all places "
    "have to hold, each place and rival has to; a contradiction among many, or one place that is enough, is corrected "
    "(Holm); most places: a bootstrap over seeds, from five on; trends: Page's test.",
    "Curves still move: below scale paper a verdict counts only if the means would lean the same way after as long a "
    "training again, at the pace of its last two fifths (before step sizes fall).",
    "Effect: of the method over the nearest rival, averaged over places, at the scale nearest to the paper of those "
    "with three seeds; in brackets its 90 % interval. Needed: seeds that would find a difference that matters with "
    "power 0.8. Means only: nobody kept the values of the seeds. Fragile: the means lean another way at another scale, "
    "without one of the seeds, with published instead of tuned constants, at the last evaluation instead of the best "
    "by validation (or the other way round), or after as long a training again, as far as measured.",
)


def effect_text(one: Finding) -> str:
    """Return the effect with its interval, a ratio as a ratio."""
    effect, decimals = one.main.verdict.whole, one.measure.decimals
    if not one.main.ran or math.isnan(effect.mean):
        return ABSENT
    where = f" on {', '.join(one.main.stand_in)}" if one.main.stand_in else ""
    if one.claim.ratio:
        effect = _ratio(effect, inverse=one.claim.ratio.at_most is not None)
        mean, *ends = (f"{value:.2f}".replace("inf", "∞") for value in (effect.mean, effect.low, effect.high))
        mean = f"ratio {mean}"
    else:
        mean, *ends = (
            signed(v, decimals) if math.isfinite(v) else "∞" for v in (effect.mean, effect.low, effect.high)
        )
    return (f"{mean} [{ends[0]}, {ends[1]}]" if effect.seeds > 1 else mean) + where


def seeds_text(one: Finding) -> str:
    """Return how many seeds there are, and how many a verdict needs."""
    if not one.main.ran:
        return ABSENT
    needed = None if one.main.stand_in else one.main.verdict.needed
    more = f", {needed} needed" if needed and needed > one.main.verdict.seeds else ""
    fragile = ", fragile" if one.fragile else ""
    means = ", means only" if one.main.means else ""
    return f"{one.main.verdict.seeds}{means}{more}{fragile}"


def strip_text(one: Finding) -> str:
    """Return which parts of the evidence show what is claimed, and which do not."""
    parts = [
        (word, [part for part, leans in one.strip if leans is way])
        for word, way in (("yes", True), ("no", False))
    ]
    return "; ".join(f"{word}: {', '.join(names)}" for word, names in parts if names)


def _ratio(effect: Effect, inverse: bool) -> Effect:
    """Turn a logarithm into the ratio that the claim speaks of."""
    if inverse:
        return Effect(math.exp(-effect.mean), math.exp(-effect.high), math.exp(-effect.low), effect.seeds)
    return Effect(math.exp(effect.mean), math.exp(effect.low), math.exp(effect.high), effect.seeds)
