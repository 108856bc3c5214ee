"""The axes of a panel: linear, logarithmic, or with the upper end spread, so that a plateau near 1 can be read."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from fedbench.report.figures.parts import Across, Panel

SPREAD = "the vertical axis spreads its upper end"
"""What the words of a figure say of such an axis."""
LONG = 1e6
"""Numbers on a linear axis from which they are written as 12M."""
FINEST = 1e-3
"""The least distance from 1 that a spread axis resolves."""
APART = 0.12
"""Of the height of a panel: ticks of a spread axis are at least so far from each other."""
TICKS = (1.0, 0.9, 0.99, 0.999, 0.5, 0.0, 0.95, 0.8, 0.98, 0.7, 0.6, 0.995, *np.arange(0.05, 1, 0.05),
         *np.arange(0.91, 1, 0.01))  # fmt: skip
"""What is labelled on a spread axis where there is room, the most telling first."""


class Spread:
    """The scale ``-log(1 - y + gap)``: equal factors of the error are equal lengths, and 1 is on it."""

    def __init__(self, gap: float) -> None:
        """Take the distance from 1 of the best value, which is as high above 1's tick as the factor 2."""
        self.gap = max(gap, FINEST)

    def up(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return where values lie."""
        return np.asarray(-np.log10(np.maximum(1 + self.gap - np.asarray(values, dtype=float), 1e-12)))

    def down(self, places: ArrayLike) -> NDArray[np.float64]:
        """Return what lies at places."""
        return np.asarray(1 + self.gap - 10 ** -np.asarray(places, dtype=float))


def scale_axes(axes: Axes, panel: Panel, across: Across, spread: bool) -> None:
    """Give a panel that is drawn its scales, limits and ticks; ``spread`` spreads the upper end of its y axis."""
    if across.log:
        axes.set_xscale("log", base=across.base)
        _label_decades(axes.xaxis)
    if across.log_y:
        axes.set_yscale("log")
        _label_decades(axes.yaxis)
    elif spread and panel.curves:
        _spread(axes, panel)
    else:
        _leave_start_out(axes, panel)
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))  # no 2.5: it takes a digit more
    if across.ticks:
        axes.set_xticks(across.ticks, [f"{tick:g}" for tick in across.ticks], minor=False)
        axes.xaxis.set_minor_locator(NullLocator())
    elif not across.log:
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        if axes.xaxis.get_data_interval()[1] >= LONG:  # a common power of ten would stand in the label below
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def _label_decades(axis: Axis) -> None:
    """Label powers of ten, over less than two of them 2 and 5 too, as plain numbers."""
    low, high = axis.get_data_interval()
    subs = (1.0,) if low <= 0 or high / low > 100 else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(10, subs=subs))
    axis.set_minor_locator(NullLocator())
    thousands = EngFormatter(sep="")
    axis.set_major_formatter(lambda at, _: thousands(at) if at >= 1e4 else f"{at:g}")


def _leave_start_out(axes: Axes, panel: Panel) -> None:
    """Leave out what precedes training where the untrained model would take half of the panel.

    A metric that rises begins below what is shown, one that falls above.
    """
    sign = -1 if panel.falls else 1
    started, lowest, highest = _reach(panel)
    margin = 0.08 * (highest - lowest)
    if lowest - started > highest - lowest > 0:
        axes.set_ylim(*sorted((sign * (lowest - margin), sign * (highest + margin))))


def _reach(panel: Panel) -> tuple[float, float, float]:
    """Return the worst value before training, and the worst and best of all others; NaN where there is none.

    Signed so that more is better.
    """
    curves = [curve for curve in panel.curves if curve.repeats is None]
    sign = -1 if panel.falls else 1
    worst, best = ("high", "low") if panel.falls else ("low", "high")
    printed = [sign * float(value) for curve in curves for value in curve.published]
    trained = [sign * float(value) for curve in curves for value in curve.points[worst].iloc[1:]]
    started = [sign * float(curve.points[worst].iloc[0]) for curve in curves]
    tops = [sign * float(value) for curve in curves for value in curve.points[best]]
    return (
        min(started, default=math.nan),
        min([*trained, *printed] if trained else [], default=math.nan),
        max([*tops, *printed] if tops else [], default=math.nan),
    )


def _spread(axes: Axes, panel: Panel) -> None:
    """Spread the upper end of the y axis up to 1, which is labelled; the start is left out as on a linear axis."""
    best = max(float(value) for curve in panel.curves for value in curve.points["mean"])
    scale = Spread(1 - best)
    low = axes.dataLim.y0
    started, lowest, highest = (float(scale.up(value)) for value in _reach(panel))
    if lowest - started > highest - lowest > 0:
        low = float(scale.down(lowest))
    bottom, top = (float(scale.up(value)) for value in (low, 1.0))
    pad = 0.04 * (top - bottom)
    axes.set_yscale("function", functions=(scale.up, scale.down))
    axes.set_ylim(float(scale.down(bottom - pad)), float(scale.down(top + pad)))
    ticks = _apart(scale, bottom - pad, top + pad)
    axes.set_yticks(ticks, ["1.0" if tick == 1 else f"{tick:g}" for tick in ticks])
    axes.yaxis.set_minor_locator(NullLocator())


def _apart(scale: Spread, bottom: float, top: float) -> list[float]:
    """Choose ticks that lie between two places and leave each other room."""
    chosen: dict[float, float] = {}
    for tick in TICKS:
        place = float(scale.up(tick))
        near = min((abs(place - other) for other in chosen.values()), default=math.inf)
        if bottom <= place <= top and near >= APART * (top - bottom):
            chosen[round(float(tick), 3)] = place
    return sorted(chosen)
