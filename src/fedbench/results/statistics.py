"""Every interval, test and fit: arrays in, arrays out.

Tests are one-sided at level .05 and intervals two-sided at 90 %, so that each end of an interval is a test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Array = NDArray[np.float64]
LEVEL = 0.05
COVERAGE = 1 - 2 * LEVEL
POWER = 0.8
ROUNDING = 1e-9
"""0.943 - 0.933 is a hair above 0.01 in binary."""
SAME = 2e-6
"""Up to which share of the largest value two values are one: shipped ones have six digits."""
OF_STEP = math.sqrt(2 / 12)
"""The spread that rounding to steps of 1 gives the difference of two numbers."""
LEAST = 3
"""Fewest points that a slope is fitted to, and methods that an order is made of."""


def quantile(share: ArrayLike, freedom: ArrayLike) -> Array:
    """Return the value that a ``share`` of Student's t lies below, NaN unless ``freedom`` is positive.

    `scipy.stats` takes a second to import.
    """
    return np.asarray(special.stdtrit(freedom, share))


def tail(t: ArrayLike, freedom: ArrayLike) -> Array:
    """Return the share of Student's t above each ``t``, infinite ones included."""
    return np.asarray(special.stdtr(freedom, -np.asarray(t, dtype=float)))


def least_spread(values: ArrayLike) -> float:
    """Return the least spread over seeds to be believed in a metric, of values that it has; 0 where all are equal.

    A metric moves in steps, the accuracy on n samples in those of 1/n, and two values that differ do so by a step or
    more: the least difference among ``values`` bounds it, without a count of samples. Rounding to steps spreads the
    difference of two values by step sqrt(2/12); that seeds differ by less, or by nothing, is chance.
    """
    ordered = np.sort(np.ravel(np.asarray(values, dtype=float)))
    ordered = ordered[np.isfinite(ordered)]
    apart = np.diff(ordered)
    apart = apart[apart > SAME * np.abs(ordered).max(initial=0.0)]
    return OF_STEP * float(apart.min(initial=math.inf)) if len(apart) else 0.0


def half_width(std: ArrayLike, n: ArrayLike) -> Array:
    """Return half the t-interval of a mean of ``n`` values, ``std`` with ddof 1; NaN below two values."""
    n = np.asarray(n, dtype=float)
    return np.asarray(quantile(1 - LEVEL, n - 1) * np.asarray(std, dtype=float) / np.sqrt(n))


def runs_of_print(print_std: ArrayLike, print_n: ArrayLike) -> Array:
    """Return as how many runs print counts: as it says, else as one, or as two where it prints a spread."""
    return np.asarray(np.fmax(print_n, np.where(np.isfinite(print_std), 2.0, 1.0)))


def prediction_half_width(
    std: ArrayLike, n: ArrayLike, print_std: ArrayLike = np.nan, print_n: ArrayLike = np.nan
) -> Array:
    """Return half the interval of the difference between a mean of ours and a printed one; NaN below two seeds.

    Print is uncertain too. It counts as the mean of some runs (:func:`runs_of_print`), which spread as ours do:
    t s sqrt(1/n + 1/m). Where it prints a spread over runs the interval is Welch's.
    """
    std, n, print_std, print_n = np.broadcast_arrays(
        *(np.asarray(v, dtype=float) for v in (std, n, print_std, print_n))
    )
    welch, m = np.isfinite(print_std), runs_of_print(print_std, print_n)
    ours, theirs = std**2 / n, np.where(welch, print_std, std) ** 2 / m
    variance = ours + theirs
    with np.errstate(divide="ignore", invalid="ignore"):
        both = variance**2 / (ours**2 / (n - 1) + theirs**2 / (m - 1))
    freedom = np.where(welch & (variance > 0), both, n - 1)
    return np.asarray(quantile(1 - LEVEL, freedom) * np.sqrt(variance))


def p_positive(d: Array, among: int = 1, least: float = 0.0) -> Array:
    """Return the p-values of "the mean is not positive" for differences [..., seeds], as [...].

    Student's t, 1 for one seed, of a spread that is ``least`` or more. ``among`` multiplies it (Holm's first step).
    """
    seeds = d.shape[-1]
    if seeds < 2:
        return np.ones(d.shape[:-1])
    mean, sd = d.mean(-1), np.maximum(d.std(-1, ddof=1), least)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(sd > ROUNDING * np.abs(mean), mean / sd * math.sqrt(seeds), np.sign(mean) * np.inf)
    p = among * tail(np.nan_to_num(t, nan=-np.inf, posinf=np.inf, neginf=-np.inf), seeds - 1)
    return np.asarray(np.minimum(p, 1))


def p_above(values: ArrayLike, bound: float, among: int = 1, least: float = 0.0) -> Array:
    """Return the p-values of "the mean is not above ``bound``" of values [..., seeds], NaN left out, as [...].

    With a seed that is lost (-inf) p is 1; one that is won (inf) counts as the best of the others.
    """
    d = np.atleast_1d(np.asarray(values, dtype=float)) - bound
    if np.isfinite(d).all():
        return p_positive(d, among, least)

    def of_seeds(row: Array) -> Array:
        present = row[~np.isnan(row)]
        if np.isneginf(present).any():
            return np.ones(())
        known = present[np.isfinite(present)]
        finite = np.where(np.isfinite(present), present, known.max() if len(known) else 1.0)
        return p_positive(finite, among, least)

    return np.apply_along_axis(of_seeds, -1, d)


def p_below(values: ArrayLike, bound: float, among: int = 1, least: float = 0.0) -> Array:
    """Return the p-values of "the mean is not below ``bound``"."""
    return p_above(-np.asarray(values, dtype=float), -bound, among, least)


def p_differ(d: Array, least: float) -> Array:
    """Return the two-sided p-values of paired differences [pairs, seeds], which spread by ``least`` at least.

    Equal values differ in nothing.
    """
    seeds, mean, sd = d.shape[-1], np.abs(d.mean(-1)), np.maximum(d.std(-1, ddof=1), least)
    same = np.abs(d).max(-1) <= ROUNDING
    return np.where(same, 1.0, 2 * tail(mean / np.where(same, 1.0, sd) * math.sqrt(seeds), seeds - 1))


def holm(ps: Array) -> Array:
    """Return p-values corrected for their number (Holm, 1979)."""
    order = np.argsort(ps)
    stepped = np.maximum.accumulate(ps[order] * np.arange(len(ps), 0, -1))
    result = np.empty_like(stepped)
    result[order] = np.minimum(stepped, 1.0)
    return result


def partial_conjunction(ps: Callable[[int], Array], least: int, places: int) -> Array:
    """Return the p-value of "fewer than ``least`` of the ``places`` hold" (Benjamini and Heller, 2008, Theorem 1).

    The k-th smallest p-value times (m - k + 1), valid whatever the places have in common.

    Args:
        ps: p-values of the places, [places, ...], corrected for so many comparisons.
        least: k, how many have to hold.
        places: m, how many there are.
    """
    return np.asarray(np.sort(ps(places - least + 1), axis=0)[least - 1])


def false_discovery(ps: Sequence[float]) -> list[float]:
    """Return Benjamini and Hochberg's q of each p-value; NaN stays and is not counted."""
    result = np.array(ps, dtype=float)
    known = np.flatnonzero(np.isfinite(result))
    order, count = known[np.argsort(-result[known])], len(known)
    result[order] = np.minimum.accumulate(result[order] * (count / np.arange(count, 0, -1)))
    return [float(q) for q in result]


def page_trend(blocks: Array) -> float:
    """Return Page's p-value of "levels are alike or fall" for blocks [seeds, levels]."""
    from scipy import stats  # a second of import, for trends alone

    return float(stats.page_trend_test(blocks).pvalue)


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the least-squares slope of log ``y`` over log ``x``; nan below three points or without a logarithm."""
    points = np.array([x, y])
    if points.shape[1] < LEAST or not (np.isfinite(points).all() and (points > 0).all()):
        return math.nan
    log_x, log_y = np.log(points)
    return float(np.polyfit(log_x, log_y, deg=1)[0])


def rank_agreement(ours: Array, printed: Array) -> float:
    """Return Kendall's tau-b between two orders; NaN below three values, or where one side ties all."""
    if len(ours) < LEAST or len(set(ours)) == 1 or len(set(printed)) == 1:
        return math.nan
    # scipy.stats takes a second to import
    x, y = (np.sign(np.subtract.outer(side, side)) for side in (ours, printed))
    return float((x * y).sum() / math.sqrt((x**2).sum() * (y**2).sum()))
