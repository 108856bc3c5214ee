"""Rows below each other, as in a forest plot: a mark and its interval in each, of hospitals as of a claim's places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes


def draw_rows(axes: Axes, marks: pd.DataFrame, names: Sequence[str]) -> None:
    """Draw marks in rows, the first row on top.

    Args:
        axes: where.
        marks: a row for each mark: its ``row`` (0 is the first; marks of one row stand a part of it apart), ``mean``,
            ``low`` and ``high`` (no bar where one is not finite), and its looks: ``colour``, ``marker``, ``size``.
        names: of the rows.
    """
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    for (colour, marker, size), alike in marks.groupby(["colour", "marker", "size"], sort=False):
        row, mean, low, high = (alike[name].to_numpy(float) for name in ("row", "mean", "low", "high"))
        bars = np.isfinite(low) & np.isfinite(high)
        axes.hlines(row[bars], low[bars], high[bars], color=colour, linewidth=0.9, alpha=0.7)
        axes.plot(mean, row, str(marker), color=colour, markersize=size, mew=0, zorder=3)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), names)
