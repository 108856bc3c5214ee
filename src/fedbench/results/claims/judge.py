"""Does a claim hold? The verdict on arrays of effects.

The unit is the seed. All methods of a seed share partitions, participants and batches, so effects are paired by seed;
seeds recur at every place (dataset and setting), so effects are averaged over places first: 12 places with 3 seeds are
3 blocks, not 36 repeats. The tests are those of :mod:`fedbench.results.statistics`.

A run that diverged is no missing value: an effect is -inf where the claimed method diverged, so that the seed is lost,
and inf where its rival did, so that it is won.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedbench.results.claims.effect import NONE, Effect, detectable, effect
from fedbench.results.statistics import (
    LEVEL,
    MANY,
    ROUNDING,
    Array,
    p_above,
    p_below,
    page_trend,
    partial_conjunction,
    signed_rank,
)

Form = Literal["better", "no_worse", "equal", "trend", "ratio", "exists"]
Holds = Literal["all", "average", "most", "some"]
SUPPORTED, CONTRADICTED, UNSUPPORTED, UNDECIDED, NOT_RUN, NOT_TESTABLE, NOT_TESTED = (
    "supported",
    "contradicted",
    "not supported",
    "undecided",
    "not run",
    "not testable",
    "not tested",
)
WON, LOST, OPEN = "won", "lost", "open"
FEWEST = 3
"""Seeds below which nothing is decided."""
Bools = NDArray[np.bool_]
Test = Callable[[Array, Array, int], Array]
"""P-values of effects by their bounds [..., seeds], where so many comparisons are searched."""


@dataclass(frozen=True)
class Rule:
    """What is asked of the effects.

    ``better``: each is above ``margin``; ``no_worse``: above -margin; ``equal``: within +-margin; ``trend``: values
    rise from level to level, by more than ``margin`` from the first to the last; ``ratio``: logarithms of at least
    ``margin``; ``exists``: as ``better``, in ``some`` place, of two conditions: where, and what holds there.
    ``matters`` is the smallest effect that matters.
    """

    form: Form
    margin: float = 0.0
    matters: float = 0.0
    holds: Holds = "average"


@dataclass(frozen=True)
class Verdict:
    """What the numbers say.

    Attributes:
        kind: supported, contradicted, not supported, undecided, not testable or not run.
        whole: the effect averaged over places, for `some` that of the best; of several rivals or conditions the least.
        seeds: how many it rests on.
        places: of each place, the least effect over rivals or conditions.
        outcomes: of each place by itself, won, lost or open.
        shown: at how many places the means show what is claimed.
        p: of "not supported"; for `all` of the least certain place, for `some` and `most` corrected.
        p_places: of a signed-rank test over places, which are taken as independent there.
        detectable: the difference found with power .8 by as many seeds.
        decides: the effect on which the verdict hangs.
        at: at which of the places it is, None for all together.
        against: over which of the components (rivals).
    """

    kind: str
    whole: Effect
    seeds: int = 0
    places: list[Effect] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    shown: int = 0
    p: float = math.nan
    p_places: float = math.nan
    detectable: float = math.nan
    decides: Effect = NONE
    at: int | None = None
    against: int = 0

    def count(self, outcome: str) -> int:
        """Return at how many places this is the outcome."""
        return Counter(self.outcomes)[outcome]


def verdict(values: ArrayLike, rule: Rule) -> Verdict:
    """Judge effects by a rule.

    Args:
        values: [components, places, seeds], NaN where a seed has not run. Components are rivals (method - rival, signed
            so that positive is better) or conditions (by how much each is met); for a trend the levels, in the order in
            which they are said to rise; for a ratio lower and upper bounds of its logarithm.
        rule: what is asked.
    """
    array = np.asarray(values, dtype=float)
    array = array[:, places_with_enough_seeds(array)]
    if not array.size:
        return Verdict(NOT_RUN, NONE)
    shown = upper = levels = array
    if rule.form == "trend":
        shown = upper = _contrast(levels)
    elif rule.form == "ratio":
        shown, upper = array[:1], array[1:]
    places = [_least(shown[:, i], upper[:, i]) for i in range(shown.shape[1])]
    whole = _least(_averaged(shown), _averaged(upper))
    apart = rule.holds in ("all", "some", "most")
    if rule.holds == "some":
        whole = max(places, key=lambda place: place.mean)
    seeds = min(place.seeds for place in places) if apart else whole.seeds
    kind, p, lost = UNDECIDED, math.nan, False
    if seeds >= FEWEST:
        page = _page(levels, rule) if rule.form == "trend" else None
        p, against, small = page or map(float, p_values(shown, rule, upper))
        lost = against <= LEVEL
        kind = SUPPORTED if p <= LEVEL else CONTRADICTED if lost else UNDECIDED
        if kind == UNDECIDED and small <= LEVEL:
            kind = UNSUPPORTED
    if rule.form == "exists" and not any(_mean(shown[0, i]) > 0 for i in range(shown.shape[1])):
        kind = NOT_TESTABLE
    at, component = _deciding(shown, upper, rule, lost)
    widest = max([whole, *places] if apart else [whole], key=_sd)
    return Verdict(
        kind, whole, seeds, places,
        outcomes=[_outcome(shown[:, i : i + 1], upper[:, i : i + 1], rule) for i in range(shown.shape[1])],
        shown=sum(shows(place.mean, rule) for place in places),
        p=p,
        p_places=_across([place.mean for place in places], rule),
        detectable=detectable(widest.seeds) * widest.sd,
        decides=whole if at is None else _finite(shown[component, at], upper[component, at]),
        at=at,
        against=component,
    )  # fmt: skip


def places_with_enough_seeds(values: Array) -> Bools:
    """Say which places of effects [components, places, seeds] count: [places].

    Those with as many seeds as a verdict needs. With fewer a place decides nothing, and among the others it would take
    their verdict with it: it waits. Where none has so many, all that ran count.
    """
    seeds = (~np.isnan(values).any(0)).sum(-1)
    enough = seeds >= FEWEST
    return np.asarray(enough if enough.any() else seeds > 0)


def means_agree(judged: Verdict, rule: Rule) -> bool:
    """Say whether the means show what is claimed, whatever their uncertainty."""
    enough = {"all": len(judged.places), "most": majority(len(judged.places)), "some": 1}
    if rule.holds in enough:
        return judged.shown >= enough[rule.holds]
    return shows(judged.whole.mean, rule)


def majority(places: int) -> int:
    """Return how many places are most of them."""
    return places // 2 + 1


def shows(effect: float, rule: Rule) -> bool:
    """Say whether one effect shows what is claimed, whatever its uncertainty."""
    if rule.form == "equal":
        return abs(effect) <= rule.margin + ROUNDING
    if rule.form == "no_worse":
        return effect > -rule.margin - ROUNDING
    if rule.form == "ratio":
        return effect >= rule.margin - ROUNDING
    return effect > rule.margin + ROUNDING


def p_support(values: Array, rule: Rule, upper: Array | None = None, exact: bool = True) -> Array:
    """Return the p-values that support a claim; arguments as for :func:`p_values`, ``exact`` as in the tests.

    For ``all`` every place has to hold (intersection-union, each at the level, uncorrected), for ``some`` the best one,
    corrected after Holm; ``most`` is a partial conjunction: more than half of the places hold, at each all components.
    """
    values, upper = _laid_out(values, rule, upper)
    holds, places = _tests(rule, exact)[0], values.shape[1]
    if rule.holds == "some":
        return np.asarray(holds(values, upper, places).max(0).min(0))
    if rule.holds == "most":
        return partial_conjunction(lambda n: holds(values, upper, n).max(0), majority(places), places)
    return np.asarray(holds(values, upper, 1).max((0, 1)))


def p_values(
    values: Array, rule: Rule, upper: Array | None = None, among: int = 1
) -> tuple[Array, Array, Array]:
    """Return the p-values that support, contradict, and tell that the effect is smaller than what matters.

    Whatever is searched for among several places or components (one contradiction) is corrected after Holm, whose first
    step is all that the smallest needs. ``most`` is contradicted where so many places fail that no majority is left.

    Args:
        values: [components, places, ..., seeds], lower bounds where effects are bounded; the dots are kept.
        rule: what is asked.
        upper: upper bounds, ``values`` where there are none.
        among: in how many ways "smaller than what matters" is searched for.
    """
    supports = p_support(values, rule, upper)
    values, upper = _laid_out(values, rule, upper)
    components, places = values.shape[:2]
    _, fails, little = _tests(rule)
    if rule.holds == "some":
        return supports, *(test(values, upper, components).min(0).max(0) for test in (fails, little))
    if rule.holds == "most":
        rest = places - majority(places) + 1

        def lost(test: Test) -> Array:
            return partial_conjunction(lambda n: test(values, upper, n * components).min(0), rest, places)

        return supports, lost(fails), lost(little)
    count, ways = components * places, 2 if places > 1 else 1
    against = fails(values, upper, count).min((0, 1))
    small = little(values, upper, among * ways * count).min((0, 1))
    if places > 1:  # too small somewhere, or on average
        _, _, average = p_values(values, replace(rule, holds="average"), upper, ways)
        small = np.minimum(small, average)
    return supports, against, small


def _laid_out(values: Array, rule: Rule, upper: Array | None) -> tuple[Array, Array]:
    """Return lower and upper bounds by place; of ``average`` the average is the one place."""
    upper = values if upper is None else upper
    if rule.holds == "average":
        return _averaged(values)[:, None], _averaged(upper)[:, None]
    return values, upper


def _tests(rule: Rule, exact: bool = True) -> Sequence[Test]:
    """Return the tests that effects hold, are contradicted, are too small."""
    above, below = partial(p_above, exact=exact), partial(p_below, exact=exact)
    m, enough = rule.margin, max(rule.margin, rule.matters)

    def never(low: Array, _: Array, __: int) -> Array:
        return np.ones(low.shape[:-1])

    if rule.form == "no_worse":
        return (
            lambda low, _, n: above(low, -m, n),
            lambda _, high, n: below(high, -m, n),
            never,
        )
    if rule.form == "equal":
        return (
            lambda low, high, n: np.maximum(above(low, -m, n), below(high, m, n)),
            lambda low, high, n: np.minimum(above(low, m, n), below(high, -m, n)),
            never,
        )
    slack = ROUNDING if rule.form == "ratio" else 0.0  # a ratio of windows is often exactly what is claimed
    return (
        lambda low, _, n: above(low, m - slack, n),
        lambda _, high, n: below(high, 0.0, n),
        lambda _, high, n: below(high, enough - slack, n),
    )


def _outcome(low: Array, high: Array, rule: Rule) -> str:
    """Return what one place says by itself, of its bounds [components, 1, seeds]."""
    if (~np.isnan(low).any(0)).sum() < FEWEST:
        return OPEN
    supports, against, _ = p_values(low, replace(rule, holds="all"), high)
    return WON if supports <= LEVEL else LOST if against <= LEVEL else OPEN


def _deciding(low: Array, high: Array, rule: Rule, lost: bool) -> tuple[int | None, int]:
    """Return the place (None: all together) and the component on which the verdict hangs.

    Of ``all`` the least certain, or the one that contradicts; of ``most`` the one that makes a majority, or takes it
    away; of ``some`` the best.
    """
    apart = rule.holds != "average"
    low, high = (low, high) if apart else (_averaged(low)[:, None], _averaged(high)[:, None])
    if low.shape[-1] < 2:
        order = np.array([[-_mean(row) for row in rows] for rows in low])
    else:
        holds, fails, _ = _tests(rule)
        order = -fails(low, high, 1) if lost else holds(low, high, 1)
    order = np.where(np.isnan(order), np.inf, order)
    worst = order.argmax(0)
    ranked = np.argsort(order.max(0), kind="stable")
    places = len(ranked)
    if rule.holds == "some":
        at = int(ranked[0])
    elif rule.holds == "most":
        at = int(ranked[-(places - majority(places) + 1) if lost else majority(places) - 1])
    else:
        at = int(ranked[-1])
    return at if apart else None, int(worst[at])


def _averaged(values: Array) -> Array:
    """Average over places, [components, ..., seeds]: over seeds that all places have, NaN elsewhere.

    A seed that is lost somewhere is lost.
    """
    with np.errstate(invalid="ignore"):
        mean = values.mean(1)
    return np.asarray(np.where(np.isneginf(values).any(1) & ~np.isnan(values).any(1), -np.inf, mean))


def _least(low: Array, high: Array) -> Effect:
    """Return the least effect over components [components, seeds], of the seeds that all of them have."""
    there = ~np.isnan(low).any(0)
    effects = [_finite(*pair) for pair in zip(low[:, there], high[:, there], strict=True)]
    return min(effects, key=lambda e: (math.isnan(e.mean), e.mean))


def _finite(low: Array, high: Array) -> Effect:
    """Return the effect of bounds [seeds]; where both are the same, seeds that were lost or won have no part in it."""
    known = ~(np.isinf(low) & (low == high))
    shown = effect(low[known], high[known])
    return replace(shown, seeds=int((~np.isnan(low)).sum()))


def _mean(row: Array) -> float:
    known = row[np.isfinite(row)]
    return float(known.mean()) if len(known) else math.nan


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
    up, down = page_trend(blocks), page_trend(blocks[:, ::-1])
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
    return signed_rank(d)
