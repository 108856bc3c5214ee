"""What claims compare, with its interval, and the seeds that they need."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedbench.results.statistics import (
    LEVEL,
    POWER,
    RESAMPLES,
    ROUNDING,
    Array,
    complete,
    flipped,
    half_width,
    quantile,
)

MOST_SEEDS = 1000


@dataclass(frozen=True)
class Effect:
    """A mean with its 90 % interval (infinite below two seeds) over ``seeds`` values of spread ``sd``."""

    mean: float
    low: float
    high: float
    seeds: int
    sd: float = math.nan


def effect(low: Array, high: Array | None = None) -> Effect:
    """Return mean and 90 % interval of values [seeds], NaN left out; of bounds, from the lower and the upper."""
    low = complete(low)
    high = low if high is None else complete(high)
    n = len(low)
    if n == 0:
        return Effect(math.nan, math.nan, math.nan, 0)
    bounded = low if np.isfinite(low).all() else high
    mean = float(bounded.mean()) if np.isfinite(bounded).all() else math.nan
    if n < 2:
        return Effect(mean, -math.inf, math.inf, n)
    ends = []
    for side, values in ((-1, low), (1, high)):
        if not np.isfinite(values).all():
            ends.append(side * math.inf)
            continue
        half = float(half_width(values.std(ddof=1), n))
        ends.append(float(values.mean()) + side * half)
    sd = float(bounded.std(ddof=1)) if np.isfinite(bounded).all() else math.nan
    return Effect(mean, ends[0], ends[1], n, sd)


@functools.cache
def detectable(seeds: int) -> float:
    """Return the difference, in standard deviations of paired differences, that ``seeds`` find with power .8."""
    if seeds < 2:
        return math.nan
    from scipy import optimize, stats  # a second of import, where nothing has run there is no use for it

    critical, freedom = -quantile(LEVEL, seeds - 1), seeds - 1

    def lacks(shift: float) -> float:
        return float(stats.nct.sf(critical, freedom, shift)) - POWER

    return float(optimize.brentq(lacks, 0.0, 60.0)) / math.sqrt(seeds)


@functools.cache
def equivalent(seeds: int) -> float:
    """Return the margin, in standard deviations, within which ``seeds`` show two equal means with power .8."""
    if seeds < 2:
        return math.nan
    from scipy import optimize, stats

    t, freedom = -quantile(LEVEL, seeds - 1), seeds - 1
    # both ends inside: |mean| + t s / sqrt(n) < margin, averaged over the spread s that the seeds happen to show
    quantiles = (np.arange(2000) + 0.5) / 2000
    spread = np.sqrt(stats.chi2.ppf(quantiles, freedom) / freedom)

    def lacks(scaled: float) -> float:
        inside = np.maximum(scaled - t * spread, 0.0)
        return float((2 * stats.norm.cdf(inside) - 1).mean()) - POWER

    return float(optimize.brentq(lacks, 0.0, 100.0)) / math.sqrt(seeds)


def p_share(half: Array) -> float:
    """Return the p-value of "not above one half" for shares minus one half [seeds]: sign flips and bootstrap."""
    exact = float(flipped(half))
    if exact > LEVEL:
        return exact
    draws = np.random.default_rng(0).integers(len(half), size=(RESAMPLES, len(half)))
    return max(exact, float((half[draws].mean(-1) <= ROUNDING).mean()))


def seeds_needed(factor: Callable[[int], float], sd: float, size: float) -> int | None:
    """Return the fewest seeds, three at least, whose ``factor`` times ``sd`` is at most ``size``.

    ``factor`` is :func:`detectable` or :func:`equivalent`. None where ``sd`` is unknown or no such number can be run.
    """
    if not (size > 0 and math.isfinite(sd)):
        return None
    low, high = 2, 3
    while factor(high) * sd > size:
        low, high = high, 2 * high
        if low > MOST_SEEDS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if factor(middle) * sd <= size else (middle, high)
    return high


def log_ratio(numerator: float, denominator: float, most_n: float, most_d: float) -> tuple[float, float]:
    """Return bounds of log(numerator / denominator); an infinite side was not reached within its ``most``."""
    if math.isinf(numerator) and math.isinf(denominator):
        return -math.inf, math.inf
    low = (
        math.log(min(numerator, most_n)) - math.log(denominator) if math.isfinite(denominator) else -math.inf
    )
    high = math.log(numerator) - math.log(min(denominator, most_d)) if math.isfinite(numerator) else math.inf
    return low, high
