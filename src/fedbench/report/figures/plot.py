"""Draw panels of points; layout, legend and ticks are matplotlib's. Knows nothing of papers, cells or scales."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter

from fedbench.report.figures.content import SAMPLES, Content, Panel
from fedbench.report.figures.style import GREY, RC, Style

WIDTH, HEIGHT, LINE = 6.4, 2.1, 0.16
"""Inches: of a figure, of a row of panels, of a line of text."""
ROW, APART = 0.16, 0.62
"""Of a row of a forest plot: inches of each method in it, and the share that they stand apart."""
LETTERS, ENTRIES = 100, 4
"""In a line of text; in a row of the legend at most."""
MARKS = 6
"""Markers along a curve."""
FAR = 6
"""Typical deviations of a seed from its median, about four standard deviations, beyond which it has failed."""
PUBLISHED = "published"
THIN: dict[str, Any] = {"linestyle": (0, (6, 2)), "linewidth": 0.7, "alpha": 0.75}
"""The looks of a published value, in the colour of its method."""
PALE: dict[str, Any] = {"color": "white", "alpha": 0.75, "pad": 1, "linewidth": 0}
WORDS: dict[str, Any] = {"fontsize": 6, "zorder": 6, "bbox": PALE}
"""The looks of words among points, which they stand before."""
MANY = 1e6
"""From here on an axis counts in millions: matplotlib would put a power of ten beside its name."""
Styles = Mapping[str, Style]
"""The looks of curves by their labels, in the order of the legend."""


def draw(content: Content, styles: Styles, title: str = "", words: str = "") -> Figure:
    """Lay the panels out in rows under title and words, with one legend below.

    A panel alone has no title of its own: the figure's says what it shows.
    """
    panels = content.panels
    columns = max(1, min(content.columns, len(panels)))
    rows = math.ceil(len(panels) / columns)
    title = title.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    head = textwrap.fill(title, LETTERS * 3 // 4)
    below = textwrap.fill(words, LETTERS, break_on_hyphens=False)
    head = head if panels else f"{head}\n(no curve to draw)".lstrip()
    lines = f"{head}\n{below}".count("\n") + 3 + len(styles) / _entries(styles)
    stacked = content.look == "rows"
    curves = max((panel.points["curve"].nunique() for panel in panels), default=1)
    high = ROW * len(content.rows) * curves if stacked else HEIGHT
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(WIDTH, high * rows + LINE * lines), layout="constrained")
        FigureCanvasAgg(figure)
        if head:
            figure.suptitle(head, fontsize=9.5, fontweight="bold")
        for index, panel in enumerate(panels):
            axes = figure.add_subplot(rows, columns, index + 1)
            axes.set_title(panel.title.replace(", ", "\n") if len(panels) > 1 else "")
            axes.set_xlabel(content.x_label if index + columns >= len(panels) else "")
            same = index % columns and panel.y_label == panels[index - 1].y_label
            axes.set_ylabel("" if same or stacked else panel.y_label)
            if panel.points.empty:
                axes.text(0.5, 0.5, "no result yet", transform=axes.transAxes, ha="center", color="#777777")
            else:
                LOOKS.get(content.look, _along_x)(axes, panel, content, styles)
        _legend(figure, content, styles, below)
    return figure


def _along_x(axes: Axes, panel: Panel, content: Content, styles: Styles) -> None:
    """Draw means along the x axis, with the band or the seeds that they are of, or a line for each client."""
    _scale(axes, panel, content)
    dots = content.look == "seeds"
    for label, points in panel.curves:
        style, data = styles[label], _on_axes(points, content)
        line: dict[str, Any] = {"color": style.colour, "linestyle": style.dash, "linewidth": style.width}
        if content.look == "clients":
            axes.plot(data["x"], np.array([*data["values"]]), **line)
            continue
        axes.plot(
            data["x"], data["mean"], **line, marker=style.marker, markeredgewidth=0,
            markevery=None if dots else max(1, len(data) // MARKS), zorder=3 + (style.width > 1.5),
        )  # fmt: skip
        if points["published"].notna().any():
            axes.plot(data["x"], data["published"], color=style.colour, zorder=2.2, **THIN)
        if dots:
            seeds = data.explode("values")
            axes.scatter(seeds["x"], seeds["values"], s=5, color=style.colour, alpha=0.45, linewidth=0)
        elif (data["low"] < data["high"]).any():
            axes.fill_between(
                data["x"], data["low"], data["high"], color=style.colour, alpha=0.15, linewidth=0
            )
        if data["broken"].any():
            axes.plot(
                data["x"][-1:], data["mean"][-1:], "x", color=style.colour, markersize=7, mew=1.6, zorder=5
            )
    axes.margins(x=0.02)
    if panel.guide is not None:
        axes.plot((0, 1), panel.guide, color=GREY, **THIN)
        axes.set(xlim=(0, 1), ylim=(0, 1.01))
    elif content.look == "curves":
        _leave_start_out(axes, panel)
    if dots:
        _leave_far_seeds_out(axes, panel)
        _bars(axes, panel, content, styles)
    _remark(axes, panel)


def _rows(axes: Axes, panel: Panel, content: Content, styles: Styles) -> None:
    """Draw the rows from the top: seeds as dots, means as markers, bars where the test samples are counted."""
    curves = dict(panel.curves)
    shown = [label for label in styles if label in curves]  # from the top as in the legend
    shifts = [0.0] if len(shown) == 1 else np.linspace(-APART / 2, APART / 2, len(shown))
    for label, shift in zip(shown, shifts, strict=True):
        style, points = styles[label], curves[label]
        seeds, bars = points.explode("values"), points[points["low"].notna()]
        axes.scatter(seeds["values"], seeds["x"] + shift, s=5, color=style.colour, alpha=0.4, linewidth=0)
        axes.hlines(
            bars["x"] + shift, bars["low"], bars["high"], color=style.colour, linewidth=0.9, alpha=0.7
        )
        axes.plot(points["mean"], points["x"] + shift, style.marker, color=style.colour, mew=0, zorder=3)
        for row in {*range(len(content.rows))} - {*points["x"]}:
            axes.annotate(
                points["remark"].iloc[0], (0.01, row + shift), xycoords=axes.get_yaxis_transform(),
                color=style.colour, va="center", fontsize=6,
            )  # fmt: skip
    counted = panel.points.groupby("x")[[*SAMPLES]].first().reindex(range(len(content.rows)), fill_value=0)
    names = [
        f"{name} ({positives:,} of {positives + negatives:,})" if positives + negatives else name
        for name, positives, negatives in zip(content.rows, *(counted[of] for of in SAMPLES), strict=True)
    ]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    for row in range(1, len(names)):
        axes.axhline(row - 0.5, color="#d0d0d0", linewidth=0.5)
    if content.no_effect is not None:
        axes.axvline(content.no_effect, color="#444444", linewidth=0.6, linestyle="--")


def _matrix(axes: Axes, panel: Panel, _content: Content, _styles: Styles) -> None:
    """Draw the mean counts of a confusion matrix, a row for each label; colour is the share of the row."""
    counts = panel.points["mean"].to_numpy().reshape(2, 2)
    shares = counts / counts.sum(1, keepdims=True)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1.4, aspect="auto")
    axes.set_xticks([0, 1], "\N{MINUS SIGN}+")
    axes.set_yticks([0, 1], "\N{MINUS SIGN}+")
    axes.grid(visible=False)
    for (row, column), count in np.ndenumerate(counts):
        axes.text(
            column,
            row,
            f"{count:.1f}".removesuffix(".0") + f" ({100 * shares[row, column]:.0f} %)",
            ha="center",
            va="center",
        )


LOOKS = {"rows": _rows, "matrix": _matrix}
"""Draws the points of a panel, where they do not stand along an x axis."""


def _bars(axes: Axes, panel: Panel, content: Content, styles: Styles) -> None:
    """Draw the intervals of final values, which may run out of the axes."""
    axes.set_ylim(axes.get_ylim())
    for label, points in panel.curves:
        bars = _on_axes(points, content)
        bars = bars[bars["low"] < bars["high"]]
        axes.vlines(
            bars["x"], bars["low"], bars["high"], color=styles[label].colour, linewidth=0.9, alpha=0.6
        )


def _scale(axes: Axes, panel: Panel, content: Content) -> None:
    """Make axes logarithmic, put ticks at the values of a setting, and count large numbers in millions."""
    if "x" in content.log:
        axes.set_xscale("log")
    elif panel.points["x"].max() >= MANY:
        axes.xaxis.set_major_formatter(EngFormatter())
    if "y" in content.log:
        axes.set_yscale("log")
    if content.ticks:
        axes.set_xticks(content.ticks, [f"{tick:g}" for tick in content.ticks])
        axes.xaxis.minorticks_off()


def _on_axes(points: pd.DataFrame, content: Content) -> pd.DataFrame:
    """Leave out what a logarithmic axis has no place for; the lower end of a spread is cut at the smallest mean."""
    if "x" in content.log:
        points = points[points["x"] > 0]
    if "y" in content.log:
        points = points[points["mean"] > 0]
        points = points.assign(low=points["low"].where(points["low"] > 0, points["mean"].min()))
    return points


def _leave_start_out(axes: Axes, panel: Panel) -> None:
    """Show what training reaches: the untrained model, far away, would press it together."""
    begun = panel.points.groupby("curve").cumcount() > 0
    trained = panel.points.loc[begun, ["low", "high", "published"]].to_numpy(float)
    trained = trained[np.isfinite(trained)]
    if trained.size and np.ptp(trained) and axes.get_yscale() != "log":
        margin = 0.05 * np.ptp(trained)
        axes.set_ylim(trained.min() - margin, trained.max() + margin)


def _leave_far_seeds_out(axes: Axes, panel: Panel) -> None:
    """Fit the axis to the medians of final values; arrows with numbers show seeds far away, which would flatten it.

    Far is a seed that is farther from the medians and published values than these are apart, and than ``FAR`` times
    the deviation that seeds typically have from their median.
    """
    seeds = panel.points.explode("values", ignore_index=True)
    seeds = seeds.assign(value=seeds["values"].astype(float)).dropna(subset="value")
    median = seeds.groupby(["curve", "x"])["value"].transform("median")
    kept = pd.concat([median, panel.points["published"].dropna()])
    reach = max(np.ptp(kept), FAR * (seeds["value"] - median).abs().median())
    far = ~seeds["value"].between(kept.min() - reach, kept.max() + reach)
    if not reach or not far.any() or axes.get_yscale() == "log":
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
    up, end = (1 if low else -1), (x, 0 if low else 1)
    share = axes.transAxes.inverted().transform(axes.get_xaxis_transform().transform(end))[0]
    side, shift, lift = "center", 0, 20  # in the middle above the arrow, else beside it
    if share < 1 / 3:
        side, shift, lift = "left", 5, 4
    elif share > 2 / 3:
        side, shift, lift = "right", -5, 4
    place: dict[str, Any] = {
        "xycoords": axes.get_xaxis_transform(),
        "textcoords": "offset points",
    }
    axes.annotate("", end, (0, 18 * up), arrowprops={"arrowstyle": "->"}, **place)
    axes.annotate(
        words, end, (shift, (lift + 8 * row) * up), ha=side, va="bottom" if low else "top", **place, **WORDS,
    )  # fmt: skip


def _remark(axes: Axes, panel: Panel) -> None:
    """Write what is wrong with curves into a corner, once where it is the same of all."""
    curves = panel.points.drop_duplicates("curve")
    said = curves.query("remark != ''")
    remarks = "\n".join(f"{of.curve}: {of.remark}" for of in said.itertuples())
    if len(said) == len(curves) > 1 and said["remark"].nunique() == 1:
        remarks = f"each curve: {said['remark'].iloc[0]}"
    axes.text(0.98, 0.03, remarks, transform=axes.transAxes, ha="right", color="#444444", **WORDS)


def _entries(labels: Iterable[str]) -> int:
    """Return how many labels fit into a row of the legend, each after its line."""
    return min(ENTRIES, max(1, LETTERS // (max(map(len, labels), default=0) + 9)))


def _legend(figure: Figure, content: Content, styles: Styles, words: str) -> None:
    """Put words and a legend below the panels; a curve of points alone has no line there, either."""
    lines = {
        label
        for panel in content.panels
        for label, points in panel.curves
        if len(points) > 1 and content.look != "rows"
    }
    entries = {
        name: Line2D(
            [], [], color=s.colour, linestyle=s.dash if name in lines else "", linewidth=s.width,
            marker=s.marker, mew=0,
        )
        for name, s in styles.items()
        if name in lines or s.marker
    }  # fmt: skip
    if content.points["published"].notna().any():
        entries[PUBLISHED] = Line2D([], [], color=GREY, **THIN)
    figure.legend(
        entries.values(), entries.keys(), loc="outside lower center", ncols=_entries(entries), handlelength=2.8,
        title=words, title_fontsize=7,
    )  # fmt: skip
