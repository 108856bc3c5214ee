"""What a claim compares, with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from fedbench.results.statistics import LEVEL, POWER, Array, complete, half_width, quantile


@dataclass(frozen=True)
class Effect:
    """A mean with its 90 % interval (infinite below two seeds) over ``seeds`` values of spread ``sd``."""

    mean: float
    low: float
    high: float
    seeds: int
    sd: float = math.nan


NONE = Effect(math.nan, math.nan, math.nan, 0)


def effect(low: Array, high: Array | None = None) -> Effect:
    """Return mean and 90 % interval of values [seeds], NaN left out; of bounds, from the lower and the upper."""
    low = complete(low)
    high = low if high is None else complete(high)
    n = len(low)
    if n == 0:
        return NONE
    bounded = low if np.isfinite(low).all() else high
    mean = float(bounded.mean()) if np.isfinite(bounded).all() else math.nan
    if n < 2:
        return Effect(mean, -math.inf, math.inf, n)
    ends = []
    for side, values in ((-1, low), (1, high)):
        if not np.isfinite(values).all():
            ends.append(side * math.inf)
            continue
        ends.append(float(values.mean()) + side * float(half_width(values.std(ddof=1), n)))
    sd = float(bounded.std(ddof=1)) if np.isfinite(bounded).all() else math.nan
    return Effect(mean, ends[0], ends[1], n, sd)


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
