"""What a claim compares, with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from fedbench.results.statistics import LEVEL, POWER, Array, half_width, quantile


@dataclass(frozen=True)
class Effect:
    """A mean with its 90 % interval (infinite below two seeds) over ``seeds`` values of spread ``sd``."""

    mean: float
    low: float
    high: float
    seeds: int
    sd: float = math.nan


NONE = Effect(math.nan, math.nan, math.nan, 0)


def effect(low: Array, high: Array | None = None, least: float = 0.0) -> Effect:
    """Return mean and 90 % interval of values [seeds], NaN left out; of bounds, from the lower and the upper.

    They count as spread by ``least`` at least.

    Where both bounds are infinite alike the seed was lost or won: it counts, and has no part in the numbers.
    """
    high = low if high is None else high
    present = ~np.isnan(low)
    known = present & ~(np.isinf(low) & (low == high))
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


def log_ratio(numerator: float, denominator: float, most_n: float, most_d: float) -> tuple[float, float]:
    """Return bounds of log(numerator / denominator); an infinite side was not reached within its ``most``."""
    if math.isinf(numerator) and math.isinf(denominator):
        return -math.inf, math.inf
    low = (
        math.log(min(numerator, most_n)) - math.log(denominator) if math.isfinite(denominator) else -math.inf
    )
    high = math.log(numerator) - math.log(min(denominator, most_d)) if math.isfinite(numerator) else math.inf
    return low, high
