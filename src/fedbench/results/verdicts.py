"""How numbers stand to print and to each other: functions from the frame of a table to more columns of it, or a count.

Our means are within a tolerance of printed numbers, above, below, or not to be told. The frame is that of
:func:`~fedbench.results.compare.comparisons`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fedbench.results.frame import FINISHED
from fedbench.results.statistics import ROUNDING, Array, prediction_half_width, rank_agreement

MATCHES, ABOVE, BELOW, INCONCLUSIVE = "matches", "above published", "below published", "inconclusive"
ONE_SEED = "one seed"
"""The basis of a verdict without an interval: the tolerance alone decided."""
NOT_PUBLISHED = "not published"
"""The verdict on a number that the paper has no value for."""
BOUND = "bound"
"""The verdict where the paper prints a bound of the theory: a measurement is not compared with it."""
GROUP = ["place", "metric"]
"""What the numbers have in common that methods compete in."""


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


def judged(frame: pd.DataFrame, tolerance: float, bound: bool = False) -> pd.DataFrame:
    """Add ``difference``, ``half_width``, ``verdict`` and ``basis``, as print and ours give them.

    The verdict is a word of :func:`hold_against_print`, :data:`NOT_PUBLISHED`, :data:`BOUND`, or the
    status of a number without a mean over all wanted seeds; where nothing is compared there is no difference.
    """
    said = hold_against_print(
        frame["mean"], frame["spread_counted"], frame["n_seeds"], frame["printed"], tolerance,
        frame["comparable_std"], frame["print_seeds"],
    )  # fmt: skip
    full, has = frame["status"] == FINISHED, frame["printed"].notna()
    compares = full & has & (not bound)
    other = frame["status"].where(~full, BOUND).mask(full & ~has, NOT_PUBLISHED)
    return frame.assign(
        difference=np.where(compares, said.difference, np.nan),
        half_width=np.where(compares, said.half_width, np.nan),
        verdict=pd.Series(said.kind, frame.index, dtype=object).where(compares, other),
        basis=pd.Series(said.basis, frame.index, dtype=object).where(compares, ""),
    )


def orders(frame: pd.DataFrame) -> list[float]:
    """Return Kendall's tau of our order of methods with the printed one, of each place and metric that has an order.

    Means that are equal to the digits that the table shows are a tie.
    """
    compares = (frame["status"] == FINISHED) & frame["printed"].notna() & (frame["verdict"] != BOUND)
    known = frame.loc[compares, [*GROUP, "printed"]].assign(ours=rounded(frame["mean"], frame["digits"]))
    parts = known.groupby(GROUP, sort=False)
    taus = [rank_agreement(np.array(part["ours"]), np.array(part["printed"])) for _, part in parts]
    return [tau for tau in taus if not math.isnan(tau)]


def rounded(values: pd.Series[float], digits: pd.Series[int]) -> pd.Series[float]:
    """Return numbers with the digits that the table shows of them."""
    pairs = zip(values, digits, strict=True)
    return pd.Series([round(value, count) for value, count in pairs], values.index, dtype=float)


def best(frame: pd.DataFrame, side: pd.Series[float]) -> pd.Series[bool]:
    """Say which numbers are the best among methods, ours or printed: equal digits are a tie.

    Where all tie there is no best; slopes and gains are no race.
    """
    values = frame["sign"] * rounded(side, frame["digits"]).where(~(frame["slope"] | frame["gain"]))
    groups = values.groupby([frame[name] for name in GROUP], sort=False)
    most = groups.transform("max")
    return (values == most) & (most > groups.transform("min"))
