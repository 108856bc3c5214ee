"""Intervals, differences, verdicts and rank agreement: every rule a table states is written here once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from fedbench.report.numbers import student

LEVEL = 0.90
"""Of intervals. A verdict needs one end of it beyond a limit, so each is wrong in at most 5 of 100 cases."""
MOST_SEEDS = 99
"""More are not counted: such a cell stays open."""
ROUNDING = 1e-9
"""Differences this small are binary fractions: 0.943 - 0.933 must not exceed a tolerance of 0.01."""


def half_width(std: float | None, n: int, level: float = LEVEL) -> float | None:
    """Half the t-interval of a mean of ``n`` values, ``std`` with ddof 1; None below two values."""
    if std is None or n < 2 or not math.isfinite(std):
        return None
    return student.quantile(0.5 + level / 2, n - 1) * std / math.sqrt(n)


def difference_half_width(
    std: float | None,
    n: int,
    other_std: float | None = None,
    other_n: int | None = None,
    level: float = LEVEL,
) -> float | None:
    """Half the interval of a difference of two means.

    Welch's interval when both sides give a standard deviation over seeds and their number; with one such side
    the other counts as a constant and the interval is one-sided in that sense. None when neither side has an
    interval.
    """
    sides = [
        (s * s / k, k - 1)
        for s, k in ((std, n), (other_std, other_n or 0))
        if s is not None and k >= 2 and math.isfinite(s)
    ]
    variance = sum(v for v, _ in sides)
    if not sides:
        return None
    if variance == 0:
        return 0.0
    freedom = variance**2 / sum(v**2 / df for v, df in sides)
    return student.quantile(0.5 + level / 2, freedom) * math.sqrt(variance)


def seeds_needed(
    std: float,
    room: float,
    other_std: float | None = None,
    other_n: int | None = None,
    level: float = LEVEL,
) -> int | None:
    """How many seeds of spread ``std`` make the half-width of a difference less than ``room``.

    None when more than ``MOST_SEEDS`` are needed, or no number is enough because of the other side's spread.
    """
    for n in range(2, MOST_SEEDS + 1):
        half = difference_half_width(std, n, other_std, other_n, level)
        if half is not None and half < room:
            return n
    return None


MATCHES, BETTER, WORSE, INCONCLUSIVE = "matches", "better", "worse", "inconclusive"
ONE_SEED = "one seed"


@dataclass(frozen=True)
class Verdict:
    """How a measured mean stands to a published one.

    Attributes:
        kind: matches, better, worse, inconclusive, no reference, or the status of a cell that has no mean (not run,
            diverged, failed, ...).
        difference: ours less published.
        half_width: half the interval of the difference; None without one.
        basis: ``one seed`` where there is no interval, so that the tolerance alone decided; else empty.
        seeds: of an inconclusive one, how many seeds would decide if mean and spread stay what they are; None if
            that takes more than ``MOST_SEEDS``.
    """

    kind: str
    difference: float | None = None
    half_width: float | None = None
    basis: str = ""
    seeds: int | None = None


def verdict(
    mean: float,
    published: float,
    tolerance: float,
    std: float | None = None,
    n: int = 1,
    other_std: float | None = None,
    other_n: int | None = None,
    higher_is_better: bool = True,
) -> Verdict:
    """Judge ``mean`` over ``n`` seeds of spread ``std`` against ``published``.

    It matches when the whole interval of the difference lies within the tolerance, and is better or worse when the
    whole interval lies outside; else it is inconclusive. With one seed the difference alone is held against the
    tolerance.
    """
    difference = mean - published
    off = BETTER if (difference > 0) == higher_is_better else WORSE
    beyond = abs(difference) - tolerance
    half = None if std is None or n < 2 else difference_half_width(std, n, other_std, other_n)
    if std is None or half is None:
        return Verdict(MATCHES if beyond <= ROUNDING else off, difference, None, ONE_SEED)
    if abs(difference) + half <= tolerance + ROUNDING:
        return Verdict(MATCHES, difference, half)
    if beyond - half > ROUNDING:
        return Verdict(off, difference, half)
    needed = seeds_needed(std, abs(beyond), other_std, other_n)
    return Verdict(INCONCLUSIVE, difference, half, seeds=needed)


RANKED = 3


def rank_agreement(ours: Mapping[str, float], published: Mapping[str, float]) -> tuple[float | None, int]:
    """Kendall's tau-b between two orders of the methods both sides have, and how many those are.

    None with fewer than ``RANKED`` common methods, too few to tell an order from a toss, or when one side ties all.
    """
    common = [name for name in ours if name in published]
    if len(common) < RANKED:
        return None, len(common)
    left, right = [ours[name] for name in common], [published[name] for name in common]
    if len(set(left)) == 1 or len(set(right)) == 1:
        return None, len(common)
    from scipy import stats as scipy_stats  # a second of import, which most tables have no use for

    return float(scipy_stats.kendalltau(left, right).statistic), len(common)
