"""What a figure is made of: panels with curves or bundles of lines, and the x axis that they share."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pandas as pd

NEAR, STEEP = 0.9, 4.0
"""Where the upper end of a metric begins that cannot exceed 1; how many times its distance from 1 shrinks."""


@dataclass(frozen=True)
class Curve:
    """One line of a panel: ``points`` has columns x, mean, low, high; ``remark`` says what is wrong.

    A column ``published`` holds the paper's final value, NaN where it has none. With ``repeats``, the value of each
    seed (columns x, value), low and high are drawn as bars, not as a band; without, ``seeds`` says over how many it is
    the mean. ``shipped``: some of it came with the repository.
    """

    label: str
    points: pd.DataFrame
    remark: str = ""
    broken: bool = False
    repeats: pd.DataFrame | None = None
    shipped: bool = False
    seeds: int = 0

    @property
    def averaged(self) -> int:
        """Over how many seeds it is the mean, at the place that has most; 0 where none is drawn."""
        if self.repeats is None:
            return self.seeds
        return int(self.repeats["x"].value_counts().max()) if len(self.repeats) else 0

    @property
    def published(self) -> pd.Series[float]:
        """The paper's values, without places that have none."""
        if "published" not in self.points:
            return pd.Series(dtype=float)
        return self.points["published"].dropna()


@dataclass(frozen=True)
class Bundle:
    """Lines that look alike: one column of ``lines`` each, their index is x."""

    label: str
    lines: pd.DataFrame


@dataclass(frozen=True)
class Panel:
    """One panel: its title, the metric it shows (by name and as the y axis calls it), and what is drawn.

    ``falls`` tells that the metric is better the lower it is, ``most`` is the largest value it can have.
    """

    title: str
    metric: str
    y_label: str
    curves: list[Curve]
    bundles: list[Bundle] = field(default_factory=list)
    falls: bool = False
    most: float = math.inf

    @property
    def bounded(self) -> bool:
        """Whether its metric rises to 1."""
        return not self.falls and self.most == 1

    @property
    def plateaus(self) -> bool:
        """Whether curves come so near to 1, from so far, that a linear axis would press their ends together."""
        best = max((float(value) for curve in self.curves for value in curve.points["mean"]), default=0.0)
        later = (float(value) for curve in self.curves for value in curve.points["mean"].iloc[1:])
        worst = min(later, default=1.0)
        return self.bounded and NEAR <= best <= 1 and 1 - worst > STEEP * (1 - best)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not self.curves and not self.bundles


@dataclass(frozen=True)
class Across:
    """The x axis of all panels: what it is called, whether it or the y axis is logarithmic, where its ticks are.

    A forest plot has names of ``rows``, and ``x`` of its curves is the row.
    """

    label: str
    log: bool = False
    log_y: bool = False
    ticks: tuple[float, ...] = ()
    rows: tuple[str, ...] = ()

    @property
    def base(self) -> int:
        """The base of a logarithmic axis: 2 where all ticks are powers of 2, else 10."""
        return (
            2 if self.ticks and all(tick > 0 and math.log2(tick).is_integer() for tick in self.ticks) else 10
        )
