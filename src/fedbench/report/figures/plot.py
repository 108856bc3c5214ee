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
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullLocator

from fedbench.report.figures.style import RC, Style

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
TITLE, TITLE_LINE = 17, 0.14
"""Letters of a panel's title in an inch, and inches that each line of it after the first takes."""
MARKS = 6
"""Markers along a curve."""


@dataclass(frozen=True)
class Curve:
    """One line of a panel: ``points`` has columns x, mean, low, high; ``remark`` says what is wrong.

    With ``repeats``, the value of each seed (columns x, value), low and high are drawn as bars, not as a band.
    """

    label: str
    points: pd.DataFrame
    remark: str = ""
    broken: bool = False
    repeats: pd.DataFrame | None = None


@dataclass(frozen=True)
class Bundle:
    """Lines that look alike: one column of ``lines`` each, their index is x."""

    label: str
    lines: pd.DataFrame


@dataclass(frozen=True)
class Panel:
    """One panel: its title, the metric it shows (by name and as the y axis calls it), and what is drawn.

    ``falls`` tells that the metric is better the lower it is.
    """

    title: str
    metric: str
    y_label: str
    curves: list[Curve]
    bundles: list[Bundle] = field(default_factory=list)
    falls: bool = False

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not self.curves and not self.bundles


@dataclass(frozen=True)
class Across:
    """The x axis of all panels: what it is called, whether it or the y axis is logarithmic, where its ticks are."""

    label: str
    log: bool = False
    log_y: bool = False
    ticks: tuple[float, ...] = ()

    @property
    def base(self) -> int:
        """The base of a logarithmic axis: 2 where all ticks are powers of 2, else 10."""
        return (
            2 if self.ticks and all(tick > 0 and math.log2(tick).is_integer() for tick in self.ticks) else 10
        )


def draw(
    panels: Sequence[Panel],
    styles: Mapping[str, Style],
    title: str,
    subtitle: str,
    across: Across,
    columns: int,
) -> Figure:
    """Lay the panels out in rows of ``columns`` under title and subtitle, with one legend below."""
    with matplotlib.rc_context(RC):
        columns = max(1, min(columns, len(panels)))
        rows = math.ceil(len(panels) / columns)
        wide, high = SINGLE if len(panels) <= 1 else PANEL
        titles = _titles([panel.title for panel in panels], int(wide * TITLE))
        more = TITLE_LINE * (max(map(len, titles), default=1) - 1)
        width = LEFT + columns * wide + (columns - 1) * GAP + RIGHT
        heads, lines = textwrap.wrap(title, int(width * 12.5)), textwrap.wrap(subtitle, int(width * 17))
        entry = HANDLE + LETTER * max(map(len, styles), default=0)
        legend_rows = math.ceil(len(styles) / max(1, int(width / entry)))
        top, bottom = 0.4 + more + 0.17 * len(heads) + 0.13 * len(lines), 0.46 + 0.19 * legend_rows
        height = top + rows * high + max(0, rows - 1) * (BETWEEN + more) + bottom
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
            y0 = 1 - (top + (row + 1) * high + row * (BETWEEN + more)) / height
            axes = figure.add_axes((x0, y0, wide / width, high / height))
            _fill(axes, panel, styles, across)
            axes.set_title("\n".join(titles[index]))
            axes.set_xlabel(across.label if index + columns >= len(panels) else "")
            axes.set_ylabel(panel.y_label if column == 0 else "")
        if not panels:
            figure.text(0.5, 0.2, "no curve to draw", ha="center", fontsize=9, color="#777777")
        if styles:
            _legend(figure, styles, legend_rows)
    return figure


def _titles(titles: Sequence[str], letters: int) -> list[list[str]]:
    """Put titles in lines: one each, unless one is too long; then all are broken between their axes."""
    if all(len(title) <= letters for title in titles):
        return [[title] for title in titles]
    return [[line for part in title.split(", ") for line in textwrap.wrap(part, letters)] for title in titles]


def _fill(axes: Axes, panel: Panel, styles: Mapping[str, Style], across: Across) -> None:
    for bundle in panel.bundles:
        style = styles[bundle.label]
        axes.plot(bundle.lines, color=style.colour, linestyle=style.dash, linewidth=style.width)
    for index, curve in enumerate(panel.curves):
        style, data = styles[curve.label], _on_axes(curve.points, across)
        step = max(1, len(data) // MARKS)
        # shifted, so that markers of close curves do not hide each other
        marks = (index * step // max(1, len(panel.curves)), step) if curve.repeats is None else None
        axes.plot(
            data["x"], data["mean"], color=style.colour, linestyle=style.dash, linewidth=style.width,
            marker=style.marker, markevery=marks, markeredgewidth=0, zorder=3 + (style.width > 1.5),
        )  # fmt: skip
        if curve.repeats is not None:
            _bars(axes, data, curve.repeats, style)
        elif (data["low"] < data["high"]).any():
            axes.fill_between(
                data["x"], data["low"], data["high"], color=style.colour, alpha=0.15, linewidth=0
            )
        if curve.broken:
            end = data.iloc[-1]
            axes.plot(end["x"], end["mean"], "x", color=style.colour, markersize=7, mew=1.6, zorder=5)
    remarks = "\n".join(f"{curve.label}: {curve.remark}" for curve in panel.curves if curve.remark)
    axes.text(0.98, 0.03, remarks, transform=axes.transAxes, ha="right", fontsize=6, color="#444444")
    if panel.empty:
        axes.text(
            0.5, 0.5, "no result yet", transform=axes.transAxes, ha="center", fontsize=7, color="#777777"
        )
    axes.margins(x=0.02)
    _scale_axes(axes, panel, across)


def _on_axes(points: pd.DataFrame, across: Across) -> pd.DataFrame:
    """Leave out what a logarithmic axis has no place for; the lower end of a spread is cut at the smallest mean."""
    if across.log:
        points = points[points["x"] > 0]
    if across.log_y:
        points = points[points["mean"] > 0]
        points = points.assign(low=points["low"].where(points["low"] > 0, points["mean"].min()))
    return points


def _bars(axes: Axes, data: pd.DataFrame, repeats: pd.DataFrame, style: Style) -> None:
    """Draw each seed as a dot and the interval as a bar, which may run out of the panel."""
    axes.scatter(repeats["x"], repeats["value"], s=5, color=style.colour, alpha=0.45, linewidth=0, zorder=2.5)
    limits = axes.dataLim.frozen()
    if (data["low"] < data["high"]).any():
        axes.vlines(data["x"], data["low"], data["high"], color=style.colour, linewidth=0.9, alpha=0.6)
        axes.dataLim.set(limits)


def _scale_axes(axes: Axes, panel: Panel, across: Across) -> None:
    if across.log:
        axes.set_xscale("log", base=across.base)
        _label_decades(axes.xaxis)
    if across.log_y:
        axes.set_yscale("log")
        _label_decades(axes.yaxis)
    else:
        _leave_start_out(axes, panel)
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))  # no 2.5: it takes a digit more
    if across.ticks:
        axes.set_xticks(across.ticks, [f"{tick:g}" for tick in across.ticks], minor=False)
        axes.xaxis.set_minor_locator(NullLocator())
    elif not across.log:
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))


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
    curves = [curve for curve in panel.curves if curve.repeats is None]
    sign = -1 if panel.falls else 1
    worst, best = ("high", "low") if panel.falls else ("low", "high")
    trained = [sign * float(value) for curve in curves for value in curve.points[worst].iloc[1:]]
    started = [sign * float(curve.points[worst].iloc[0]) for curve in curves]
    lowest = min(trained, default=math.nan)
    highest = max((sign * float(v) for curve in curves for v in curve.points[best]), default=math.nan)
    margin = 0.08 * (highest - lowest)
    if started and lowest - min(started) > highest - lowest > 0:
        axes.set_ylim(*sorted((sign * (lowest - margin), sign * (highest + margin))))


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
