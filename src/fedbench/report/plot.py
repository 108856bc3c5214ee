"""Draw panels of curves: sizes, title, legend and files. Knows nothing of papers, cells or scales."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fedbench.report.style import RC, Style

NO_DATES: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": "fedbench"},
    "svg": {"Date": None, "Creator": "fedbench"},
    "png": {"Software": None},
}
PANEL, SINGLE = (1.95, 1.55), (3.6, 2.4)
"""Inches: width and height of a panel among others, and of one alone."""
LEFT, GAP, RIGHT, BETWEEN = 0.64, 0.5, 0.12, 0.62
"""Inches: for the tick labels of the first panel, between columns, at the right, between rows."""
HANDLE, LETTER = 0.55, 0.068
"""Inches that an entry of the legend takes for its line, and for each letter."""
MARKS = 6
"""Markers along a curve."""


@dataclass(frozen=True)
class Curve:
    """One line of a panel: ``points`` has columns x, mean, low, high; ``remark`` says what is wrong."""

    label: str
    points: pd.DataFrame
    remark: str = ""
    broken: bool = False


@dataclass(frozen=True)
class Bundle:
    """Lines that look alike: one column of ``lines`` each, their index is x."""

    label: str
    lines: pd.DataFrame


@dataclass(frozen=True)
class Panel:
    """One panel: its title, the metric it shows (by name and as the y axis calls it), and what is drawn."""

    title: str
    metric: str
    y_label: str
    curves: list[Curve]
    bundles: list[Bundle] = field(default_factory=list)


def draw(
    panels: Sequence[Panel],
    styles: Mapping[str, Style],
    title: str,
    subtitle: str,
    x_label: str,
    columns: int,
) -> Figure:
    """Lay the panels out in rows of ``columns`` under title and subtitle, with one legend below."""
    with matplotlib.rc_context(RC):
        columns = max(1, min(columns, len(panels)))
        rows = math.ceil(len(panels) / columns)
        wide, high = SINGLE if len(panels) <= 1 else PANEL
        width = LEFT + columns * wide + (columns - 1) * GAP + RIGHT
        heads, lines = textwrap.wrap(title, int(width * 12.5)), textwrap.wrap(subtitle, int(width * 17))
        entry = HANDLE + LETTER * max(map(len, styles), default=0)
        legend_rows = math.ceil(len(styles) / max(1, int(width / entry)))
        top, bottom = 0.4 + 0.17 * len(heads) + 0.13 * len(lines), 0.46 + 0.19 * legend_rows
        height = top + rows * high + max(0, rows - 1) * BETWEEN + bottom
        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        for i, line in enumerate(heads):
            y = 1 - (0.2 + 0.17 * i) / height
            figure.text(0.27 / width, y, line, fontsize=9.5, fontweight="bold", va="center")
        for i, line in enumerate(lines):
            y = 1 - (0.2 + 0.17 * len(heads) + 0.13 * i) / height
            figure.text(0.27 / width, y, line, fontsize=7, color="#444444", va="center")
        for index, panel in enumerate(panels):
            row, column = divmod(index, columns)
            x0 = (LEFT + column * (wide + GAP)) / width
            y0 = 1 - (top + (row + 1) * high + row * BETWEEN) / height
            axes = figure.add_axes((x0, y0, wide / width, high / height))
            _fill(axes, panel, styles)
            axes.set_xlabel(x_label if index + columns >= len(panels) else "")
            axes.set_ylabel(panel.y_label if column == 0 else "")
        if not panels:
            figure.text(0.5, 0.2, "no curve to draw", ha="center", fontsize=9, color="#777777")
        if styles:
            _legend(figure, styles, legend_rows)
    return figure


def _fill(axes: Axes, panel: Panel, styles: Mapping[str, Style]) -> None:
    for bundle in panel.bundles:
        style = styles[bundle.label]
        axes.plot(bundle.lines, color=style.colour, linestyle=style.dash, linewidth=style.width)
    for index, curve in enumerate(panel.curves):
        style, data = styles[curve.label], curve.points
        step = max(1, len(data) // MARKS)
        shift = (
            index * step // max(1, len(panel.curves))
        )  # so that markers of close curves do not hide each other
        axes.plot(
            data["x"], data["mean"], color=style.colour, linestyle=style.dash, linewidth=style.width,
            marker=style.marker, markevery=(shift, step), markeredgewidth=0, zorder=3 + (style.width > 1.5),
        )  # fmt: skip
        if (data["low"] < data["high"]).any():
            axes.fill_between(
                data["x"], data["low"], data["high"], color=style.colour, alpha=0.15, linewidth=0
            )
        if curve.broken:
            end = data.iloc[-1]
            axes.plot(end["x"], end["mean"], "x", color=style.colour, markersize=7, mew=1.6, zorder=5)
    remarks = "\n".join(f"{curve.label}: {curve.remark}" for curve in panel.curves if curve.remark)
    axes.text(0.98, 0.03, remarks, transform=axes.transAxes, ha="right", fontsize=6, color="#444444")
    axes.set_title(panel.title)
    axes.margins(x=0.02)
    _leave_start_below(axes, panel.curves)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))  # no 2.5: it takes a digit more


def _leave_start_below(axes: Axes, curves: Sequence[Curve]) -> None:
    """Begin the y axis at the lowest value after the start where the untrained model would take half of the panel."""
    trained = [float(value) for curve in curves for value in curve.points["low"].iloc[1:]]
    started = [float(curve.points["low"].iloc[0]) for curve in curves]
    lowest = min(trained, default=math.nan)
    highest = max((float(curve.points["high"].max()) for curve in curves), default=math.nan)
    margin = 0.08 * (highest - lowest)
    if started and lowest - min(started) > highest - lowest > 0:
        axes.set_ylim(lowest - margin, highest + margin)


def _legend(figure: Figure, styles: Mapping[str, Style], rows: int) -> None:
    """Put the legend below, its entries in reading order though matplotlib fills it column by column."""
    columns = math.ceil(len(styles) / rows)
    entries = list(styles.items())
    order = [entries[i] for c in range(columns) for i in range(c, len(entries), columns)]
    handles = [
        Line2D([], [], color=s.colour, linestyle=s.dash, linewidth=s.width, marker=s.marker, mew=0)
        for _, s in order
    ]
    figure.legend(
        handles, [name for name, _ in order], loc="lower center", bbox_to_anchor=(0.5, 0.0), ncols=columns,
        handlelength=2.8, columnspacing=1.4,
    )  # fmt: skip


def render(figure: Figure, kind: str) -> bytes:
    """Return a figure as the bytes of a file of ``kind`` (pdf, svg, png), free of dates and versions."""
    stream = io.BytesIO()
    with matplotlib.rc_context(RC):
        figure.savefig(stream, format=kind, metadata=NO_DATES[kind])
    return stream.getvalue()
