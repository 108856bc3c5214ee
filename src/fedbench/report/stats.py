"""Intervals, differences, verdicts and rank agreement: every rule a table states is written here once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scipy import stats as scipy_stats

LEVEL = 0.95
ROUNDING = 1e-9
"""Differences this small are binary fractions: 0.943 - 0.933 must not exceed a tolerance of 0.01."""


def half_width(std: float | None, n: int, level: float = LEVEL) -> float | None:
    """Half the t-interval of a mean of ``n`` values, ``std`` with ddof 1; None below two values."""
    if std is None or n < 2 or not math.isfinite(std):
        return None
    return float(scipy_stats.t.ppf(0.5 + level / 2, n - 1)) * std / math.sqrt(n)


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
    return float(scipy_stats.t.ppf(0.5 + level / 2, freedom)) * math.sqrt(variance)


@dataclass(frozen=True)
class Verdict:
    """How a measured mean stands to a published one.

    ``kind`` is matches, better, worse, no published value, or the status of a cell that has no mean (not run,
    diverged, failed, ...). ``basis`` says what a match rests on: ``tolerance`` when the difference is within
    the configured tolerance, ``interval`` when only the spread over seeds covers it. ``half_width`` is None
    without one.
    """

    kind: str
    difference: float | None = None
    half_width: float | None = None
    basis: str = ""


def verdict(
    mean: float, published: float, tolerance: float, half: float | None = None, higher_is_better: bool = True
) -> Verdict:
    """Judge ``mean`` against ``published``: a match when |difference| <= max(tolerance, half)."""
    difference = mean - published
    size = abs(difference)
    if size <= tolerance + ROUNDING:
        return Verdict("matches", difference, half, "tolerance")
    if half is not None and size <= half + ROUNDING:
        return Verdict("matches", difference, half, "interval")
    return Verdict("better" if (difference > 0) == higher_is_better else "worse", difference, half)


def rank_agreement(ours: Mapping[str, float], published: Mapping[str, float]) -> tuple[float | None, int]:
    """Kendall's tau-b between two orders of the methods both sides have, and how many those are.

    None with fewer than two common methods or when one side ties them all: no order, nothing to agree on.
    """
    common = [name for name in ours if name in published]
    if len(common) < 2:
        return None, len(common)
    left, right = [ours[name] for name in common], [published[name] for name in common]
    if len(set(left)) == 1 or len(set(right)) == 1:
        return None, len(common)
    return float(scipy_stats.kendalltau(left, right).statistic), len(common)


def higher_is_better(metric: str) -> bool:
    """Tell the direction of a metric from its name: losses and errors fall, everything else rises."""
    return not metric.endswith(("loss", "error"))
