"""Draw panels of curves; layout, legend and ticks are matplotlib's. Knows nothing of papers, cells or scales."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Iterable
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedbench.report.figures import forest
from fedbench.report.figures.parts import Across, Content, Panel
from fedbench.report.figures.style import GREY, RC

NO_DATES: dict[str, dict[str, str | None]] = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": "fedbench"},
    "svg": {"Date": None, "Creator": "fedbench"},
    "png": {"Software": None},
}
WIDTH, HEIGHT, LINE = 6.4, 2.1, 0.16
"""Inches: of a figure, of a row of panels, of a line of text."""
LETTERS, ENTRIES = 100, 4
"""In a line of text; in a row of the legend at most."""
MARKS = 6
"""Markers along a curve."""
FAR = 6
"""Typical deviations of a seed from its median, about four standard deviations, beyond which it has failed."""
PUBLISHED = "published"
THIN: dict[str, Any] = {"linestyle": (0, (6, 2)), "linewidth": 0.7, "alpha": 0.75}
"""The looks of a published value, in the colour of its method."""
FONTS = "DejaVu Sans,Verdana,sans-serif"
"""Verdana has nearly the widths of DejaVu Sans, and systems without the one have the other."""
UNUSED = re.compile(
    r"^.*?(?=<svg)|<metadata>.*?</metadata>|<!--.*?-->|; font-family: 'DejaVu Sans'"
    r'| id="[\w.]+_\d+"| transform="rotate\(-0 .*?\)"',
    re.DOTALL,
)
"""What stands before the figure, who made it, comments, the font, names that nothing refers to, turns by nothing."""


def draw(content: Content, title: str = "", words: str = "") -> Figure:
    """Lay the panels out in rows under title and words, with one legend below.

    A panel alone has no title of its own: the figure's says what it shows.
    """
    panels, across = content.panels, content.across
    columns = max(1, min(content.columns, len(panels)))
    rows = math.ceil(len(panels) / columns)
    head, below = textwrap.fill(title, LETTERS * 3 // 4), textwrap.fill(words, LETTERS)
    lines = f"{head}\n{below}".count("\n") + 3 + len(content.styles) / _entries(content.styles)
    high = forest.height(panels, across) if across.rows else HEIGHT
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(WIDTH, high * rows + LINE * lines), layout="constrained")
        FigureCanvasAgg(figure)
        if head:
            figure.suptitle(head, fontsize=9.5, fontweight="bold")
        if not panels:
            figure.text(0.5, 0.2, "no curve to draw", ha="center", color="#777777")
        for index, panel in enumerate(panels):
            axes = figure.add_subplot(rows, columns, index + 1)
            axes.set_title(panel.title.replace(", ", "\n") if len(panels) > 1 else "")
            axes.set_xlabel(across.label if index + columns >= len(panels) else "")
            axes.set_ylabel(panel.y_label if index % columns == 0 and not across.rows else "")
            fill = forest.fill if across.rows else _matrix if across.matrix else _fill
            fill(axes, panel, content)
            if not across.matrix and not across.rows:  # a title says it, or the row that lacks something
                _remark(axes, panel)
        _legend(figure, content, below)
    return figure


def _fill(axes: Axes, panel: Panel, content: Content) -> None:
    """Draw what a panel shows; intervals of final values may run out of it."""
    styles, across = content.styles, content.across
    _scale(axes, across)
    for curve in panel.curves:
        style, data = styles[curve.label], _on_axes(curve.points, across)
        if curve.lines is not None:
            axes.plot(curve.lines, color=style.colour, linestyle=style.dash, linewidth=style.width)
            continue
        axes.plot(
            data["x"], data["mean"], color=style.colour, linestyle=style.dash, linewidth=style.width,
            marker=style.marker, markevery=max(1, len(data) // MARKS) if curve.repeats is None else None,
            markeredgewidth=0, zorder=3 + (style.width > 1.5),
        )  # fmt: skip
        if len(curve.published):
            axes.plot(data["x"], data["published"], color=style.colour, zorder=2.2, **THIN)
        if curve.repeats is not None:
            axes.scatter(
                curve.repeats["x"], curve.repeats["value"], s=5, color=style.colour, alpha=0.45, linewidth=0
            )
        elif (data["low"] < data["high"]).any():
            axes.fill_between(
                data["x"], data["low"], data["high"], color=style.colour, alpha=0.15, linewidth=0
            )
        if curve.broken:
            axes.plot(
                data["x"][-1:], data["mean"][-1:], "x", color=style.colour, markersize=7, mew=1.6, zorder=5
            )
    axes.margins(x=0.02)
    if panel.guide is None:
        _leave_start_out(axes, panel)
    else:
        axes.plot((0, 1), panel.guide, color=GREY, **THIN)
        axes.set(xlim=(0, 1), ylim=(0, 1.01))
    _leave_far_seeds_out(axes, panel)
    axes.set_ylim(axes.get_ylim())
    _bars(axes, panel, content)


def _matrix(axes: Axes, panel: Panel, content: Content) -> None:
    """Draw the mean counts of a confusion matrix, a row for each label; colour is the share of the row."""
    counts = panel.curves[0].points["mean"].to_numpy().reshape(2, 2)
    shares = counts / counts.sum(1, keepdims=True)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1.4, aspect="auto")
    axes.set_xticks([0, 1], "\N{MINUS SIGN}+")
    axes.set_yticks([0, 1], "\N{MINUS SIGN}+")
    axes.grid(visible=False)
    for (row, column), count in np.ndenumerate(counts):
        axes.text(
            column,
            row,
            f"{count:.1f}".removesuffix(".0") + f" ({shares[row, column]:.0%})",
            ha="center",
            va="center",
        )


def _bars(axes: Axes, panel: Panel, content: Content) -> None:
    """Draw the intervals of final values."""
    for curve in panel.curves:
        bars = _on_axes(curve.points, content.across)
        bars = bars[bars["low"] < bars["high"]]
        if curve.repeats is not None and len(bars):
            colour = content.styles[curve.label].colour
            axes.vlines(bars["x"], bars["low"], bars["high"], color=colour, linewidth=0.9, alpha=0.6)


def _scale(axes: Axes, across: Across) -> None:
    """Make axes logarithmic, and put ticks at the values of a setting."""
    if across.log:
        axes.set_xscale("log")
    if across.log_y:
        axes.set_yscale("log")
    if across.ticks:
        axes.set_xticks(across.ticks, [f"{tick:g}" for tick in across.ticks])
        axes.xaxis.minorticks_off()


def _on_axes(points: pd.DataFrame, across: Across) -> pd.DataFrame:
    """Leave out what a logarithmic axis has no place for; the lower end of a spread is cut at the smallest mean."""
    if across.log:
        points = points[points["x"] > 0]
    if across.log_y:
        points = points[points["mean"] > 0]
        points = points.assign(low=points["low"].where(points["low"] > 0, points["mean"].min()))
    return points


def _leave_start_out(axes: Axes, panel: Panel) -> None:
    """Show what training reaches: the untrained model, far away, would press it together."""
    curves = [curve.points for curve in panel.curves if curve.repeats is None and curve.lines is None]
    if not curves or axes.get_yscale() == "log":
        return
    trained = pd.concat([points.reindex(columns=["low", "high", PUBLISHED])[1:] for points in curves])
    trained = trained.where(np.isfinite(trained))
    low, high = float(trained.min().min()), float(trained.max().max())
    if low < high:
        axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))


def _leave_far_seeds_out(axes: Axes, panel: Panel) -> None:
    """Fit the axis to the medians of final values; arrows with numbers show seeds far away, which would flatten it.

    Far is a seed that is farther from the medians and published values than these are apart, and than ``FAR`` times
    the deviation that seeds typically have from their median.
    """
    drawn = [
        curve.repeats.merge(curve.points[["x", "mean"]], on="x").assign(curve=curve.label)
        for curve in panel.curves
        if curve.repeats is not None
    ]
    if not drawn or axes.get_yscale() == "log":
        return
    seeds = pd.concat(drawn, ignore_index=True)
    median = seeds.groupby(["curve", "x"])["value"].transform("median")
    kept = pd.concat([median, *(curve.published for curve in panel.curves)])
    reach = max(np.ptp(kept), FAR * (seeds["value"] - median).abs().median())
    far = ~seeds["value"].between(kept.min() - reach, kept.max() + reach)
    if not reach or not far.any():
        return
    kept = pd.concat([kept, seeds["value"][~far]])
    margin = 0.1 * np.ptp(kept)
    axes.set_ylim(kept.min() - margin, kept.max() + margin)
    groups: Any = seeds[far].groupby(["x", seeds["value"] < kept.min(), "curve", "mean"])
    for row, ((x, low, name, mean), some) in enumerate(groups):
        values = ", ".join(f"{value:.3f}" for value in some["value"])
        _point_at(axes, x, low, row, f"{name}: seed {values}; mean {mean:.3f}")


def _point_at(axes: Axes, x: float, low: bool, row: int, words: str) -> None:
    """Draw an arrow out of the axes at ``x``, and words beside it in this row."""
    up, left = (1 if low else -1), x <= np.mean(axes.get_xlim())
    place: dict[str, Any] = {
        "xycoords": axes.get_xaxis_transform(),
        "textcoords": "offset points",
        "fontsize": 6,
    }
    at = (x, 0 if low else 1)
    axes.annotate("", at, (0, 18 * up), arrowprops={"arrowstyle": "->"}, **place)
    axes.annotate(
        words, at, (5 if left else -5, (4 + 8 * row) * up), ha="left" if left else "right",
        va="bottom" if low else "top", **place,
    )  # fmt: skip


def _remark(axes: Axes, panel: Panel) -> None:
    """Write what is wrong with curves into a corner."""
    remarks = "\n".join(f"{curve.label}: {curve.remark}" for curve in panel.curves if curve.remark)
    axes.text(0.98, 0.03, remarks, transform=axes.transAxes, ha="right", fontsize=6, color="#444444")
    if panel.empty:
        axes.text(0.5, 0.5, "no result yet", transform=axes.transAxes, ha="center", color="#777777")


def _entries(labels: Iterable[str]) -> int:
    """Return how many labels fit into a row of the legend, each after its line."""
    return min(ENTRIES, max(1, LETTERS // (max(map(len, labels), default=0) + 9)))


def _legend(figure: Figure, content: Content, words: str) -> None:
    """Put words and a legend below the panels."""
    entries = {
        name: Line2D([], [], color=s.colour, linestyle=s.dash, linewidth=s.width, marker=s.marker, mew=0)
        for name, s in content.styles.items()
    }
    if any(len(curve.published) for panel in content.panels for curve in panel.curves):
        entries[PUBLISHED] = Line2D([], [], color=GREY, **THIN)
    figure.legend(
        entries.values(), entries.keys(), loc="outside lower center", ncols=_entries(entries), handlelength=2.8,
        title=words, title_fontsize=7,
    )  # fmt: skip


def render(figure: Figure, kind: str, text: bool = False) -> bytes:
    """Return a figure as the bytes of a file of ``kind`` (pdf, svg, png), free of dates and versions.

    The letters of an ``svg`` are lines, which look alike everywhere, or ``text`` in a font that the reader has.
    """
    stream = io.BytesIO()
    with matplotlib.rc_context({**RC, "svg.fonttype": "none" if text else "path"}):
        figure.savefig(stream, format=kind, metadata=NO_DATES.get(kind))
    return stream.getvalue()


def small_svg(figure: Figure) -> str:
    """Return a figure as SVG on one line, a third as large as matplotlib writes it."""
    drawn = UNUSED.sub("", render(figure, "svg", text=True).decode()).replace("xlink:href", "href")
    drawn = re.sub(r"(\.\d)\d{3,}", r"\1", drawn)
    drawn = re.sub(r" d=\"[^\"]*", lambda path: re.sub(r"(?<!=)\s*([MLCQz])\s*", r"\1", path[0]), drawn)
    drawn = _numbered(drawn, r"(?<=[#\"])[mp][0-9a-f]{10}\b", "i")
    rules: dict[str, str] = {}
    drawn = re.sub(
        r' style="(.*?)"', lambda style: f' class="{rules.setdefault(style[1], f"s{len(rules)}")}"', drawn
    )
    css = f"text{{font-family:{FONTS}}}" + "".join(f".{name}{{{rule}}}" for rule, name in rules.items())
    return " ".join(drawn.replace("</style>", f"{css}</style>", 1).split())


def _numbered(drawn: str, pattern: str, letter: str) -> str:
    """Replace what matches by short names, in order of appearance."""
    names: dict[str, str] = {}
    return re.sub(pattern, lambda name: names.setdefault(name[0], f"{letter}{len(names)}"), drawn)
