"""Does a claim hold? The arithmetic, on arrays of effects: pure, and all of it here.

The unit is the seed. All methods of a seed share partitions, participants and batches, so effects are paired by seed;
seeds recur at every place (dataset and setting), so effects are averaged over places first: 12 places with 3 seeds are
3 blocks, not 36 repeats. The tests are those of :mod:`fedbench.results.statistics`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedbench.report.numbers.significance import Effect, detectable, effect, equivalent, p_share, seeds_needed
from fedbench.results.statistics import LEVEL, MANY, ROUNDING, Array, complete, p_above, p_below

Form = Literal["better", "no_worse", "equal", "trend", "ratio", "exists"]
Holds = Literal["all", "average", "most", "some"]
SUPPORTED, CONTRADICTED, UNSUPPORTED, UNDECIDED, NOT_RUN = (
    "supported",
    "contradicted",
    "not supported",
    "undecided",
    "not run",
)
FEWEST = 3
"""Seeds below which nothing is decided."""
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Rule:
    """What is asked of the effects.

    ``better``: each is above ``margin``; ``no_worse``: above -margin; ``equal``: within +-margin; ``trend``: values
    rise from level to level, by more than ``margin`` from the first to the last; ``ratio``: logarithms of at least
    ``margin``; ``exists``: as ``better``, in ``some`` place. ``matters`` is the smallest effect that matters.
    """

    form: Form
    margin: float = 0.0
    matters: float = 0.0
    holds: Holds = "average"


@dataclass(frozen=True)
class Verdict:
    """What the numbers say.

    Attributes:
        kind: supported, contradicted, not supported, undecided or not run.
        whole: the effect averaged over places, for `some` that of the best; of several rivals or conditions the least.
        seeds: how many it rests on.
        places: of each place, the least effect over rivals or conditions.
        won: at how many places the means show what is claimed.
        p: of "not supported"; for `all` of the least certain place, for `some` after Holm.
        p_places: of a signed-rank test over places, which are taken as independent there.
        detectable: the difference found with power .8 by as many seeds.
        needed: the seeds that would find a difference that matters, None where nothing is known about it.
    """

    kind: str
    whole: Effect
    seeds: int = 0
    places: list[Effect] = field(default_factory=list)
    won: int = 0
    p: float = math.nan
    p_places: float = math.nan
    detectable: float = math.nan
    needed: int | None = None


def verdict(values: ArrayLike, rule: Rule) -> Verdict:
    """Judge effects by a rule.

    Args:
        values: [components, places, seeds], NaN where a seed has not run. Components are rivals (method - rival, signed
            so that positive is better) or conditions (by how much each is met); for a trend the levels, in the order in
            which they are said to rise; for a ratio lower and upper bounds of its logarithm.
        rule: what is asked.
    """
    array = np.asarray(values, dtype=float)
    array = array[:, counted(array)]
    if not array.size:
        return Verdict(NOT_RUN, Effect(math.nan, math.nan, math.nan, 0))
    shown = upper = levels = array
    if rule.form == "trend":
        shown = upper = _contrast(levels)
    elif rule.form == "ratio":
        shown, upper = array[:1], array[1:]
    places = [_least(shown[:, i], upper[:, i]) for i in range(shown.shape[1])]
    whole = _least(_averaged(shown), _averaged(upper))
    apart = rule.holds in ("all", "some")
    if rule.holds == "some":
        whole = max(places, key=lambda place: place.mean)
    seeds = min(place.seeds for place in places) if apart else whole.seeds
    won = sum(shows(place.mean, rule) for place in places)
    kind, p = UNDECIDED, math.nan
    if seeds >= (MANY if rule.holds == "most" else FEWEST):
        page = _page(levels, rule) if rule.form == "trend" else None
        p, against, small = page or map(float, decided(shown, rule, upper))
        kind = SUPPORTED if p <= LEVEL else CONTRADICTED if against <= LEVEL else UNDECIDED
        if kind == UNDECIDED and small <= LEVEL:
            kind = UNSUPPORTED
    widest = max([whole, *places] if apart else [whole], key=_sd)
    return Verdict(
        kind, whole, seeds, places, won, p, _across([place.mean for place in places], rule),
        detectable(widest.seeds) * widest.sd, needed(widest.sd, rule),
    )  # fmt: skip


def counted(values: Array) -> Bools:
    """Say which places of effects [components, places, seeds] count: [places].

    Those with as many seeds as a verdict needs. With fewer a place decides nothing, and among the others it would take
    their verdict with it: it waits. Where none has so many, all that ran count.
    """
    seeds = (~np.isnan(values).any(0)).sum(-1)
    enough = seeds >= FEWEST
    return np.asarray(enough if enough.any() else seeds > 0)


def leans(found: Verdict, rule: Rule) -> bool:
    """Say whether the means show what is claimed, whatever their uncertainty."""
    enough = {"all": len(found.places), "most": len(found.places) // 2 + 1, "some": 1}
    return found.won >= enough[rule.holds] if rule.holds in enough else shows(found.whole.mean, rule)


def shows(effect: float, rule: Rule) -> bool:
    """Say whether one effect shows what is claimed, whatever its uncertainty."""
    if rule.form == "equal":
        return abs(effect) <= rule.margin + ROUNDING
    if rule.form == "no_worse":
        return effect > -rule.margin - ROUNDING
    if rule.form == "ratio":
        return effect >= rule.margin - ROUNDING
    return effect > rule.margin + ROUNDING


def decided(
    values: Array, rule: Rule, upper: Array | None = None, among: int = 1
) -> tuple[Array, Array, Array]:
    """Return the p-values that support, contradict, and tell that the effect is smaller than what matters.

    Several places or components: to support ``all``, every one has to hold (intersection-union, each at the level,
    uncorrected); whatever is searched for among many (one contradiction, ``some`` place) is corrected after Holm, whose
    first step is all that the smallest needs. ``most`` asks for the share of places won, over seeds.

    Args:
        values: [components, places, ..., seeds], lower bounds where effects are bounded; the dots are kept.
        rule: what is asked.
        upper: upper bounds, ``values`` where there are none.
        among: in how many ways "smaller than what matters" is searched for.
    """
    upper = values if upper is None else upper
    never = np.ones(values.shape[2:-1])
    if rule.holds == "most":
        tied = np.abs(values - rule.margin) <= ROUNDING
        share = np.where(values > rule.margin + ROUNDING, 1.0, np.where(tied, 0.5, 0.0))
        half = complete(np.where(np.isnan(values), np.nan, share).min(0).mean(0) - 0.5)
        return np.asarray(p_share(half)), np.asarray(p_share(-half)), never
    if rule.holds == "average":
        values, upper = values.mean(1, keepdims=True), upper.mean(1, keepdims=True)
    components, places = values.shape[:2]
    holds, fails, little = _tests(rule)
    if rule.holds == "some":
        found = holds(values, upper, places).max(0).min(0)
        return found, *(test(values, upper, components).min(0).max(0) for test in (fails, little))
    count, ways = components * places, 2 if places > 1 else 1
    against = fails(values, upper, count).min((0, 1))
    small = little(values, upper, among * ways * count).min((0, 1))
    if places > 1:  # too small somewhere, or on average
        _, _, average = decided(values, replace(rule, holds="average"), upper, ways)
        small = np.minimum(small, average)
    return holds(values, upper, 1).max((0, 1)), against, small


def _tests(rule: Rule) -> Sequence[Callable[[Array, Array, int], Array]]:
    """Return the tests that effects hold, are contradicted, are too small.

    Of their bounds [..., seeds] and the number of comparisons that are searched.
    """
    m, enough = rule.margin, max(rule.margin, rule.matters)

    def never(low: Array, _: Array, __: int) -> Array:
        return np.ones(low.shape[:-1])

    if rule.form == "no_worse":
        return (
            lambda low, _, n: p_above(low, -m, n),
            lambda _, high, n: p_below(high, -m, n),
            never,
        )
    if rule.form == "equal":
        return (
            lambda low, high, n: np.maximum(p_above(low, -m, n), p_below(high, m, n)),
            lambda low, high, n: np.minimum(p_above(low, m, n), p_below(high, -m, n)),
            never,
        )
    slack = ROUNDING if rule.form == "ratio" else 0.0  # a ratio of windows is often exactly what is claimed
    return (
        lambda low, _, n: p_above(low, m - slack, n),
        lambda _, high, n: p_below(high, 0.0, n),
        lambda _, high, n: p_below(high, enough - slack, n),
    )


def needed(sd: float, rule: Rule) -> int | None:
    """Return the fewest seeds that decide a difference that matters, None where nothing says what that is.

    For ``no_worse`` and ``equal`` it is the margin; it is never the effect that happened to be seen.
    """
    size = rule.margin if rule.form in ("no_worse", "equal") else rule.matters
    return seeds_needed(equivalent if rule.form == "equal" else detectable, sd, size)


def _averaged(values: Array) -> Array:
    """Average over places, [components, seeds]: over seeds that all places have, NaN elsewhere."""
    return np.asarray(values.mean(1))


def _least(low: Array, high: Array) -> Effect:
    """Return the least effect over components [components, seeds], of the seeds that all of them have."""
    whole = ~np.isnan(low).any(0)
    return min(
        (effect(*pair) for pair in zip(low[:, whole], high[:, whole], strict=True)), key=lambda e: e.mean
    )


def _sd(effect: Effect) -> float:
    return effect.sd if math.isfinite(effect.sd) else -1.0


def _contrast(levels: Array) -> Array:
    """Return the rise from the first to the last level that a straight line fits, [1, places, seeds]."""
    x = np.linspace(-0.5, 0.5, len(levels))
    return np.tensordot(x / (x @ x), levels, 1)[None]


def _page(levels: Array, rule: Rule) -> tuple[float, float, float] | None:
    """Judge a trend over levels [levels, places, seeds] by Page's test, seeds as blocks; None with two levels."""
    if len(levels) < 3:
        return None
    blocks = levels.mean(1).T
    blocks = blocks[~np.isnan(blocks).any(1)]
    rise = _contrast(levels.mean(1)[:, None])[0, 0]
    from scipy import stats  # a second of import: only for trends

    up, down = (float(stats.page_trend_test(side).pvalue) for side in (blocks, blocks[:, ::-1]))
    if np.allclose(blocks, blocks[:, :1], atol=ROUNDING):
        up = down = 1.0
    enough = max(rule.margin, rule.matters)
    steep = float(p_above(rise, rule.margin)) if rule.margin else 0.0
    return max(up, steep), down, float(p_below(rise, enough)) if enough else 1.0


def _across(means: Sequence[float], rule: Rule) -> float:
    """Return the signed-rank p-value over places, of the averages over seeds; NaN below five places."""
    bound = -rule.margin if rule.form == "no_worse" else rule.margin
    d = np.array(means) - bound
    if len(d) < MANY or rule.form == "equal" or not np.isfinite(d).all() or not d.any():
        return math.nan
    from scipy import stats

    plain = len(set(np.abs(d))) == len(d) and d.all()
    method = "exact" if plain else "asymptotic"  # SciPy's own choice with ties is a slow permutation
    return float(stats.wilcoxon(d, alternative="greater", method=method).pvalue)
