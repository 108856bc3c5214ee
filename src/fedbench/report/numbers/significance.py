"""Tests and intervals over seeds: one-sided at level .05, which is what the ends of a 90 % interval say."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedbench.report.numbers import student

Array = NDArray[np.float64]
LEVEL = 0.05
POWER = 0.8
MANY = 5
"""Seeds from which an exact sign flip has to confirm the paired t-test."""
EXACT, RESAMPLES = 12, 9999
"""Up to so many seeds all sign flips are tried, beyond a sample of them."""
MOST_SEEDS = 1000
ROUNDING = 1e-9
"""0.943 - 0.933 is a hair above 0.01 in binary."""


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
        half = -student.quantile(LEVEL, n - 1) * float(values.std(ddof=1)) / math.sqrt(n)
        ends.append(float(values.mean()) + side * half)
    sd = float(bounded.std(ddof=1)) if np.isfinite(bounded).all() else math.nan
    return Effect(mean, ends[0], ends[1], n, sd)


def complete(values: Array) -> Array:
    """Leave out what did not run."""
    return values[~np.isnan(values)]


def p_above(values: ArrayLike, bound: float, among: int = 1) -> Array:
    """Return the p-values of "the mean is not above ``bound``" of values [..., seeds], NaN left out, as [...].

    Paired t, from five seeds exact sign flips too; a miss (an infinite value) shows nothing. With ``among`` so many
    comparisons that are searched, p of the t-test is multiplied by it (Holm's first step). The flips only confirm: a
    verdict takes both, so that they need no correction, and of five seeds they never go below 1/32.
    """
    d = np.atleast_1d(np.asarray(values, dtype=float)) - bound
    if np.isfinite(d).all():
        return p_positive(d, among)

    def one(row: Array) -> Array:
        found = complete(row)
        return p_positive(found, among) if np.isfinite(found).all() else np.ones(())

    return np.apply_along_axis(one, -1, d)


def p_below(values: ArrayLike, bound: float, among: int = 1) -> Array:
    """Return the p-values of "the mean is not below ``bound``"."""
    return p_above(-np.asarray(values, dtype=float), -bound, among)


def p_positive(d: Array, among: int = 1) -> Array:
    """Return the p-values of "the mean is not positive" for differences [..., seeds]."""
    seeds = d.shape[-1]
    mean, sd = d.mean(-1), d.std(-1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(sd > ROUNDING * np.abs(mean), mean / sd * math.sqrt(seeds), np.sign(mean) * np.inf)
    tail: Array = student.tail(np.nan_to_num(t, nan=-np.inf, posinf=np.inf, neginf=-np.inf), seeds - 1)
    p = np.minimum(among * tail, 1)
    return p if seeds < MANY else np.maximum(p, flipped(d))


def flipped(d: Array) -> Array:
    """Return the sign-flip p-values of "symmetric about 0 or lower" for differences [..., seeds]."""
    seeds = d.shape[-1]
    if seeds <= EXACT:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=seeds)))
    else:
        signs = np.random.default_rng(0).choice((1.0, -1.0), size=(RESAMPLES + 1, seeds))
        signs[0] = 1.0
    sums = d @ signs.T
    return np.asarray((sums >= sums[..., :1] - ROUNDING).mean(-1))


@functools.cache
def detectable(seeds: int) -> float:
    """Return the difference, in standard deviations of paired differences, that ``seeds`` find with power .8."""
    if seeds < 2:
        return math.nan
    from scipy import optimize, stats  # a second of import, where nothing has run there is no use for it

    critical, freedom = -student.quantile(LEVEL, seeds - 1), seeds - 1

    def lacks(shift: float) -> float:
        return float(stats.nct.sf(critical, freedom, shift)) - POWER

    return float(optimize.brentq(lacks, 0.0, 60.0)) / math.sqrt(seeds)


@functools.cache
def equivalent(seeds: int) -> float:
    """Return the margin, in standard deviations, within which ``seeds`` show two equal means with power .8."""
    if seeds < 2:
        return math.nan
    from scipy import optimize, stats

    t, freedom = -student.quantile(LEVEL, seeds - 1), seeds - 1
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


def false_discovery(ps: Sequence[float]) -> list[float]:
    """Return Benjamini and Hochberg's q of each p-value; NaN stays and is not counted."""
    known = [i for i, p in enumerate(ps) if not math.isnan(p)]
    result = [math.nan] * len(ps)
    if known:
        from scipy import stats

        for i, q in zip(known, stats.false_discovery_control([ps[i] for i in known]), strict=True):
            result[i] = float(q)
    return result


def log_ratio(numerator: float, denominator: float, most_n: float, most_d: float) -> tuple[float, float]:
    """Return bounds of log(numerator / denominator); an infinite side was not reached within its ``most``."""
    if math.isinf(numerator) and math.isinf(denominator):
        return -math.inf, math.inf
    low = (
        math.log(min(numerator, most_n)) - math.log(denominator) if math.isfinite(denominator) else -math.inf
    )
    high = math.log(numerator) - math.log(min(denominator, most_d)) if math.isfinite(numerator) else math.inf
    return low, high
