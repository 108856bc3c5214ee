"""Does a claim hold? The verdict on arrays of effects."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fedbench.results.claims.rules import Rule, averaged, bounds_of, by_place, p_fails, p_holds, p_values
from fedbench.results.statistics import (
    LEVEL,
    POWER,
    ROUNDING,
    Array,
    half_width,
    p_above,
    p_below,
    page_trend,
    quantile,
)

SUPPORTED, CONTRADICTED, UNSUPPORTED, UNDECIDED = "supported", "contradicted", "not supported", "undecided"
NOT_RUN, NOT_TESTABLE, NOT_TESTED = "not run", "not testable", "not tested"
WON, LOST, OPEN = "won", "lost", "open"
FEWEST = 3
"""Seeds below which nothing is decided."""
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Effect:
    """A mean with its 90 % interval (infinite below two seeds) over ``seeds`` values of spread ``sd``."""

    mean: float
    low: float
    high: float
    seeds: int
    sd: float = math.nan


NONE = Effect(math.nan, math.nan, math.nan, 0)


@dataclass(frozen=True)
class Verdict:
    """What the numbers say.

    Attributes:
        kind: supported, contradicted, not supported, undecided, not testable or not run.
        overall: the effect averaged over places, for `some` that of the best; of several rivals the least.
        seeds: how many it rests on.
        outcomes: of each place by itself, won, lost or open.
        shown: at how many places the means show what is claimed; of an average whether it does.
        asked: at how many places that is asked, 1 of an average.
        p: of "not supported"; for `all` of the least certain place, for `some` and `most` corrected.
        detectable: the difference found with power .8 by as many seeds.
        decides: the effect on which the verdict hangs.
        at: at which of the places it is, None for all together.
        against: over which of the components (rivals).
    """

    kind: str
    overall: Effect
    seeds: int = 0
    outcomes: list[str] = field(default_factory=list)
    shown: int = 0
    asked: int = 0
    p: float = math.nan
    detectable: float = math.nan
    decides: Effect = NONE
    at: int | None = None
    against: int = 0

    @property
    def tally(self) -> str:
        """At how many of the places that ran the means show it; of an average, whether it does."""
        return f"{self.shown} of {self.asked}" if self.asked else "–"

    def count(self, outcome: str) -> int:
        """Return at how many places this is the outcome."""
        return self.outcomes.count(outcome)


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
    bounds = bounds_of(array, rule)
    single = [bounds[:, :, i : i + 1] for i in range(bounds.shape[2])]
    places = [_least(place, rule) for place in single]
    overall = max(places, key=lambda p: p.mean) if rule.holds == "some" else _least(averaged(bounds), rule)
    apart = [] if rule.holds == "average" else places
    seeds = min(e.seeds for e in apart or [overall])
    p, against, small = _p_values(array, rule) if seeds >= FEWEST else (math.nan,) * 3
    lost = against <= LEVEL
    kind = SUPPORTED if p <= LEVEL else CONTRADICTED if lost else UNSUPPORTED if small <= LEVEL else UNDECIDED
    if rule.form == "exists" and not any(_mean(place[0, 0, 0]) > 0 for place in single):
        kind = NOT_TESTABLE
    asked = by_place(bounds, rule)
    at, component = _deciding(asked, rule, lost)
    widest = max([overall, *apart], key=lambda e: e.sd if math.isfinite(e.sd) else -1.0)
    return Verdict(
        kind, overall, seeds,
        outcomes=[_outcome(place, rule) for place in single],
        shown=sum(rule.shown_by(effect.mean) for effect in apart or [overall]),
        asked=len(apart or [overall]),
        p=p,
        detectable=detectable(widest.seeds) * widest.sd,
        decides=effect(asked[0, component, at], asked[1, component, at], rule.least),
        at=at if apart else None,
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


def means_agree(values: Array, rule: Rule) -> bool | None:
    """Say whether the means of effects show what is claimed, whatever their uncertainty; None where nothing ran."""
    values = values[:, places_with_enough_seeds(values)]
    if not values.size:
        return None
    bounds = by_place(bounds_of(values, rule), rule)
    shown = [rule.shown_by(_least(bounds[:, :, i : i + 1], rule).mean) for i in range(bounds.shape[2])]
    return sum(shown) >= rule.enough(len(shown))


def _p_values(values: Array, rule: Rule) -> tuple[float, float, float]:
    """Return the p-values that support, contradict, tell that it is too little.

    A trend over more than two ``values`` [levels, places, seeds] is judged by Page's test, seeds as blocks.
    """
    if rule.form != "trend" or len(values) < 3:
        support, against, small = map(float, p_values(values, rule))
        return support, against, small
    blocks = values.mean(1).T
    blocks = blocks[~np.isnan(blocks).any(1)]
    rise = bounds_of(values.mean(1, keepdims=True), rule)[0, 0, 0]
    up, down = page_trend(blocks), page_trend(blocks[:, ::-1])
    if np.allclose(blocks, blocks[:, :1], atol=ROUNDING):
        up = down = 1.0
    enough = max(rule.margin, rule.matters)
    steep = float(p_above(rise, rule.margin, least=rule.least)) if rule.margin else 0.0
    return max(up, steep), down, float(p_below(rise, enough, least=rule.least)) if enough else 1.0


def _outcome(bounds: Array, rule: Rule) -> str:
    """Return what one place says by itself, of its bounds [2, components, 1, seeds]."""
    if (~np.isnan(bounds[0]).any(0)).sum() < FEWEST:
        return OPEN
    if p_holds(bounds, rule).max() <= LEVEL:
        return WON
    return LOST if p_fails(bounds, rule, bounds.shape[1]).min() <= LEVEL else OPEN


def _deciding(bounds: Array, rule: Rule, lost: bool) -> tuple[int, int]:
    """Return the place and the component on which the verdict hangs; ``bounds`` are :func:`by_place`.

    Of `all` the least certain, or the one that contradicts; of `most` the one that makes a majority, or takes it away;
    of `some` the best.
    """
    if bounds.shape[-1] < 2:
        order = -bounds[0, ..., 0]
    elif lost:
        order = -p_fails(bounds, rule)
    else:
        order = p_holds(bounds, rule)
    order = np.where(np.isnan(order), np.inf, order)
    ranked = np.argsort(order.max(0), kind="stable")
    at = int(ranked[rule.enough(len(ranked)) - 1])
    return at, int(order[:, at].argmax())


def _least(bounds: Array, rule: Rule) -> Effect:
    """Return the least effect over components, of the seeds that all of them have; bounds [2, components, 1, seeds]."""
    present = ~np.isnan(bounds[0]).any((0, 1))
    effects = [effect(part[0, 0, present], part[1, 0, present], rule.least) for part in bounds.swapaxes(0, 1)]
    return min(effects, key=lambda e: (math.isnan(e.mean), e.mean))


def _mean(row: Array) -> float:
    known = row[np.isfinite(row)]
    return float(known.mean()) if len(known) else math.nan


def effect(low: Array, high: Array | None = None, least: float = 0.0) -> Effect:
    """Return mean and 90 % interval of values [seeds], NaN left out; of bounds, from the lower and the upper.

    They count as spread by ``least`` at least.

    Where both bounds are infinite alike the seed was lost or won: it counts, and has no part in the numbers unless all
    seeds were.
    """
    high = low if high is None else high
    present = ~np.isnan(low)
    known = present & ~(np.isinf(low) & (low == high))
    if len(alike := {*low[present].tolist()}) == 1 and not known.any():
        (end,) = alike
        return Effect(end, end, end, int(present.sum()))
    low, high = low[known], high[known]
    ends = (_end(low, -1, least), _end(high, 1, least)) if known.any() else (math.nan, math.nan)
    shown = low if np.isfinite(low).all() else high
    mean = float(shown.mean()) if len(shown) and np.isfinite(shown).all() else math.nan
    sd = max(float(shown.std(ddof=1)), least) if len(shown) > 1 and math.isfinite(mean) else math.nan
    return Effect(mean, ends[0], ends[1], int(present.sum()), sd)


def _end(values: Array, side: int, least: float) -> float:
    """Return an end of the interval of the mean, infinite where it is not bounded."""
    if len(values) < 2 or not np.isfinite(values).all():
        return side * math.inf
    return float(values.mean()) + side * float(half_width(max(values.std(ddof=1), least), len(values)))


def detectable(seeds: int) -> float:
    """Return the difference, in standard deviations of paired differences, that ``seeds`` find with power .8."""
    if seeds < 2:
        return math.nan
    critical = quantile(1 - LEVEL, seeds - 1)
    return float(special.nctdtrinc(seeds - 1, 1 - POWER, critical)) / math.sqrt(seeds)
