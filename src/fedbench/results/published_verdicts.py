"""How our means stand to printed numbers: within a tolerance, above, below, or not to be told."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedbench.results.statistics import ROUNDING, Array, prediction_half_width

MATCHES, ABOVE, BELOW, INCONCLUSIVE = "matches", "above published", "below published", "inconclusive"
ONE_SEED = "one seed"
"""The basis of a verdict without an interval: the tolerance alone decided."""


class Verdicts(NamedTuple):
    """Arrays of one shape: ours less print, half the 90 % interval of that (NaN without one), kind and basis."""

    difference: Array
    half_width: Array
    kind: NDArray[np.str_]
    basis: NDArray[np.str_]


def hold_against_print(
    mean: ArrayLike, std: ArrayLike, n: ArrayLike, printed: ArrayLike, tolerance: float,
    print_std: ArrayLike = np.nan, print_n: ArrayLike = np.nan,
) -> Verdicts:  # fmt: skip
    """Judge means over ``n`` seeds of spread ``std`` against printed values.

    A mean matches when the interval of the difference (:func:`~fedbench.results.statistics.prediction_half_width`) lies
    within the tolerance, and is above or below the published value when it lies outside; else it is inconclusive.
    With one seed the difference alone is compared with the tolerance.
    """
    difference = np.asarray(mean, dtype=float) - np.asarray(printed, dtype=float)
    half = prediction_half_width(std, n, print_std, print_n)
    alone = np.isnan(half)
    width, off = np.where(alone, 0.0, half), np.abs(difference)
    side = np.where(difference > 0, ABOVE, BELOW)
    kind = np.select(
        [off + width <= tolerance + ROUNDING, off - width > tolerance + ROUNDING],
        [MATCHES, side],
        INCONCLUSIVE,
    )
    return Verdicts(difference, half, kind, np.where(alone, ONE_SEED, ""))
