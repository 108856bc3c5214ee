"""Draw panels of curves: sizes, title, legend and files. Knows nothing of papers, cells or scales."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedbench.report.figures import forest
from fedbench.report.figures.axis import scale_axes
from fedbench.report.figures.parts import Across, Content, Curve, Panel
from fedbench.report.figures.style import GREY, RC, Style

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
PUBLISHED = "published"
THIN: dict[str, Any] = {"linestyle": (0, (6, 2)), "linewidth": 0.7, "alpha": 0.75}
"""The looks of a published value, in the colour of its method."""


def draw(content: Content, title: str = "", words: str = "") -> Figure:
    """Lay the panels out in rows under title and words, with one legend below.

    A panel alone has no title of its own: the figure's says what it shows.
    """
    panels, across = content.panels, content.across
    columns = max(1, min(content.columns, len(panels)))
    rows = math.ceil(len(panels) / columns)
    left, wide, high = LEFT, *(SINGLE if len(panels) <= 1 else PANEL)
    if across.rows:
        left, wide, high = forest.sizes(panels, across)
    titles = _titles([panel.title for panel in panels] if len(panels) > 1 else [""], int(wide * TITLE))
    more = TITLE_LINE * (max(map(len, titles), default=1) - 1)
    width = left + columns * wide + (columns - 1) * GAP + RIGHT
    heads, lines = _wrapped(title, width * 12.5), _wrapped(words, width * 17)
    printed = any(len(curve.published) for panel in panels for curve in panel.curves)
    names = [*content.styles, *[PUBLISHED] * printed]
    fit = int(width / (HANDLE + LETTER * max(map(len, names), default=0)))
    legend_rows = math.ceil(len(names) / max(1, fit))
    top = (0.4 if len(panels) > 1 else 0.22) + more + 0.17 * len(heads) + 0.13 * len(lines)
    bottom = 0.46 + 0.19 * legend_rows
    height = top + rows * high + max(0, rows - 1) * (BETWEEN + more) + bottom
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        _head(figure, heads, lines)
        for index, names in enumerate(titles[: len(panels)]):
            row, column = divmod(index, columns)
            x0 = (left + column * (wide + GAP)) / width
            y0 = 1 - (top + (row + 1) * high + row * (BETWEEN + more)) / height
            axes = figure.add_axes((x0, y0, wide / width, high / height), title="\n".join(names))
            axes.set_xlabel(across.label if index + columns >= len(panels) else "")
            axes.set_ylabel(panels[index].y_label if column == 0 and not across.rows else "")
            _fill(axes, panels[index], content)
        if not panels:
            figure.text(0.5, 0.2, "no curve to draw", ha="center", fontsize=9, color="#777777")
        if content.styles:
            _legend(figure, content.styles, legend_rows, printed)
    return figure


def _head(figure: Figure, heads: Sequence[str], lines: Sequence[str]) -> None:
    """Write the title in bold, and the words below it."""
    width, height = figure.get_size_inches()
    looks: dict[str, Any] = {"fontsize": 9.5, "fontweight": "bold"}
    below: dict[str, Any] = {"fontsize": 7, "color": "#444444"}
    down = 0.2
    for line, step, how in (*((h, 0.17, looks) for h in heads), *((t, 0.13, below) for t in lines)):
        figure.text(0.27 / width, 1 - down / height, line, va="center", **how)
        down += step


def _wrapped(text: str, letters: float) -> list[str]:
    """Put a text in lines that do not end in the middle of "p = 4"."""
    hard = "\N{NO-BREAK SPACE}"
    lines = textwrap.wrap(text.replace(" = ", f"{hard}={hard}"), int(letters))
    return [line.replace(hard, " ") for line in lines]


def _titles(titles: Sequence[str], letters: int) -> list[list[str]]:
    """Put titles in lines: one each, unless one is too long; then all are broken between their axes."""
    if all(len(title) <= letters for title in titles):
        return [[title] for title in titles]
    return [[line for part in title.split(", ") for line in textwrap.wrap(part, letters)] for title in titles]


def _fill(axes: Axes, panel: Panel, content: Content) -> None:
    """Draw what a panel shows, and scale its axes."""
    styles, across = content.styles, content.across
    for bundle in panel.bundles:
        style = styles[bundle.label]
        axes.plot(bundle.lines, color=style.colour, linestyle=style.dash, linewidth=style.width)
    if across.rows:
        forest.fill(axes, panel, styles, across)
    for index, curve in enumerate(panel.curves if not across.rows else []):
        style, data = styles[curve.label], _on_axes(curve.points, across)
        step = max(1, len(data) // MARKS)
        # shifted, so that markers of close curves do not hide each other
        marks = (index * step // max(1, len(panel.curves)), step) if curve.repeats is None else None
        axes.plot(
            data["x"], data["mean"], color=style.colour, linestyle=style.dash, linewidth=style.width,
            marker=style.marker, markevery=marks, markeredgewidth=0, zorder=3 + (style.width > 1.5),
        )  # fmt: skip
        if len(curve.published):
            axes.plot(data["x"], data["published"], color=style.colour, zorder=2.2, **THIN)
        if curve.repeats is None and (data["low"] < data["high"]).any():
            axes.fill_between(
                data["x"], data["low"], data["high"], color=style.colour, alpha=0.15, linewidth=0
            )
        if curve.broken:
            end = data.iloc[-1]
            axes.plot(end["x"], end["mean"], "x", color=style.colour, markersize=7, mew=1.6, zorder=5)
    if not across.rows:
        _bars(axes, [curve for curve in panel.curves if curve.repeats is not None], content)
    remarks = "\n".join(f"{curve.label}: {curve.remark}" for curve in panel.curves if curve.remark)
    axes.text(0.98, 0.03, remarks, transform=axes.transAxes, ha="right", fontsize=6, color="#444444")
    if panel.empty:
        axes.text(
            0.5, 0.5, "no result yet", transform=axes.transAxes, ha="center", fontsize=7, color="#777777"
        )
    axes.margins(x=0.02)
    if not across.rows:
        spread = any(other.plateaus for other in content.panels)
        scale_axes(axes, panel, across, spread and panel.bounded)


def _on_axes(points: pd.DataFrame, across: Across) -> pd.DataFrame:
    """Leave out what a logarithmic axis has no place for; the lower end of a spread is cut at the smallest mean."""
    if across.log:
        points = points[points["x"] > 0]
    if across.log_y:
        points = points[points["mean"] > 0]
        points = points.assign(low=points["low"].where(points["low"] > 0, points["mean"].min()))
    return points


def _bars(axes: Axes, curves: Sequence[Curve], content: Content) -> None:
    """Draw each seed as a dot and the intervals as bars, which may run out of the panel."""
    if not curves:
        return
    named = [(curve, content.styles[curve.label].colour) for curve in curves]
    seeds = pd.concat(pd.DataFrame(curve.repeats).assign(colour=colour) for curve, colour in named)
    bars = pd.concat(_on_axes(curve.points, content.across).assign(colour=colour) for curve, colour in named)
    axes.scatter(seeds["x"], seeds["value"], s=5, c=seeds["colour"], alpha=0.45, linewidth=0, zorder=2.5)
    limits = axes.dataLim.frozen()
    bars = bars[bars["low"] < bars["high"]]
    if len(bars):
        colours = bars["colour"].tolist()
        axes.vlines(bars["x"], bars["low"], bars["high"], colors=colours, linewidth=0.9, alpha=0.6)
        axes.dataLim.set(limits)


def _legend(figure: Figure, styles: Mapping[str, Style], rows: int, published: bool) -> None:
    """Put the legend below, its entries in reading order though matplotlib fills it column by column."""
    entries = [
        (name, Line2D([], [], color=s.colour, linestyle=s.dash, linewidth=s.width, marker=s.marker, mew=0))
        for name, s in styles.items()
    ]
    entries += [(PUBLISHED, Line2D([], [], color=GREY, **THIN))] * published
    columns = math.ceil(len(entries) / rows)
    order = [entries[i] for c in range(columns) for i in range(c, len(entries), columns)]
    figure.legend(
        [handle for _, handle in order], [name for name, _ in order], loc="lower center",
        bbox_to_anchor=(0.5, 0.0), ncols=columns, handlelength=2.8, columnspacing=1.4,
    )  # fmt: skip


def render(figure: Figure, kind: str, text: bool = False) -> bytes:
    """Return a figure as the bytes of a file of ``kind`` (pdf, svg, png), free of dates and versions.

    The letters of an ``svg`` are lines, which look alike everywhere, or ``text`` in a font that the reader has.
    """
    stream = io.BytesIO()
    with matplotlib.rc_context({**RC, "svg.fonttype": "none" if text else "path"}):
        figure.savefig(stream, format=kind, metadata=NO_DATES.get(kind))
    return stream.getvalue()
