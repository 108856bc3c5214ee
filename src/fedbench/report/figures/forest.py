"""Rows below each other, a mark and its interval in each: of hospitals as medical papers show them, methods apart."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedbench.data.summary import Counts
from fedbench.report.figures.parts import SAMPLES, Across, Content, Curve, Panel, mean_over, repeats_of
from fedbench.report.figures.style import styles_of
from fedbench.report.notes import shared_samples
from fedbench.results.aggregate import measure_cells
from fedbench.results.auc_interval import auc_interval
from fedbench.results.frame import FINISHED, Measured
from fedbench.results.gains import gains, tested
from fedbench.results.names import axis_text
from fedbench.results.places import place_of
from fedbench.results.shipped import Shipped
from fedbench.results.statistics import COVERAGE
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.references import GAINS, TRAINING

ALL = "all test samples"
APART = 0.62
"""Of a row: the room of its methods."""
ROW = 0.16
"""Inches of each method in a row."""
BARS = (
    f"bars: {COVERAGE:.0%} interval of the mean AUC over the draw of test samples (Newcombe 2006); in brackets: "
    "positive test samples of all"
)
OF_GAINS = (
    "bars: {:.0%} interval over seeds and the draw of test samples, {}; in brackets: positive test samples of "
    "all"
)
NO_BARS = "no intervals, as the data of these numbers are not prepared here"


def content(plan: Plan, name: str) -> Content:
    """Return a panel for each dataset with results, a curve for each method; ``x`` of its points is the row."""
    paper, spec, shipped = plan.study, plan.figure(name), Shipped(plan)
    datasets, panels, gained = plan.datasets(spec), [], list[Measured]()
    measure = paper.measure(_base(spec.metrics))
    several = [name for name, values in paper.values(spec).items() if len(values) > 1 and name != TRAINING]
    over = f": federated − {spec.references[0]}" if spec.references else ""
    for dataset in datasets:
        curves, groups = [], dict[str, list[Cell]]()
        for cell in (cell for cell in plan.cells(name) if cell.dataset == dataset):
            at = {"method": cell.method, **cell.setting}
            label = ", ".join(axis_text(paper, axis, at[axis]) for axis in ("method", *several))
            groups.setdefault(label, []).append(cell)
        for label, cells in groups.items():
            measured = measure_cells(cells, spec.metrics, shipped)
            if over:
                measured = gains(plan, measured, spec.references[0])
                gained += measured
            counts = tested(plan, place_of(dataset, cells[0].setting))
            if curve := curve_of(label, measured, counts):
                curves.append(curve)
        if curves:
            panels.append(Panel(dataset, measure.name, measure.label + over, curves))
    none = 0.0 if over else 0.5 if measure.name.endswith("_auc") else None
    rows = tuple(_site(metric) or ALL for metric in spec.metrics)
    across = Across(measure.label + over, rows=rows, none=none)
    styles = styles_of((curve.label for panel in panels for curve in panel.curves), paper)
    counted = any(curve.points["positives"].any() for panel in panels for curve in panel.curves)
    bars = BARS
    if over:
        pairs = [
            (paper.measure(gain.metric).label, gain.paired) for gain in gained if math.isfinite(gain.low)
        ]
        shared = shared_samples(pd.DataFrame(pairs, columns=["label", "paired"]).astype({"paired": bool}))
        bars = OF_GAINS.format(COVERAGE, shared)
    words = mean_over(f"dots: each seed, {bars if counted else NO_BARS}", alone="")
    return Content(panels, across, styles, datasets, words, columns=1)


def fill(axes: Axes, panel: Panel, content: Content) -> None:
    """Draw the rows from the top: seeds as dots, means as markers, bars where the test samples are counted."""
    shifts = [0.0] if len(panel.curves) == 1 else np.linspace(-APART / 2, APART / 2, len(panel.curves))
    for curve, shift in zip(panel.curves, shifts, strict=True):
        style, data = content.styles[curve.label], curve.points
        if curve.repeats is not None:
            dots = curve.repeats["value"], curve.repeats["x"] + shift
            axes.scatter(*dots, s=5, color=style.colour, alpha=0.4, linewidth=0)
        bars = data[data["low"].notna()]
        axes.hlines(
            bars["x"] + shift, bars["low"], bars["high"], color=style.colour, linewidth=0.9, alpha=0.7
        )
        axes.plot(data["mean"], data["x"] + shift, style.marker, color=style.colour, mew=0, zorder=3)
        for row in set(range(len(content.across.rows))).difference(data["x"]):
            axes.annotate(
                curve.remark, (0.01, row + shift), xycoords=axes.get_yaxis_transform(), color=style.colour,
                va="center", fontsize=6,
            )  # fmt: skip
    counted = panel.curves[0].points.set_index("x")[[*SAMPLES]].to_dict("index")
    names = [name + _counts(counted.get(row, {})) for row, name in enumerate(content.across.rows)]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    for row in range(1, len(names)):
        axes.axhline(row - 0.5, color="#d0d0d0", linewidth=0.5)
    if content.across.none is not None:
        axes.axvline(content.across.none, color="#444444", linewidth=0.6, linestyle="--")


def height(panels: Sequence[Panel], across: Across) -> float:
    """Return the inches of a panel."""
    return ROW * len(across.rows) * max((len(panel.curves) for panel in panels), default=1)


def curve_of(label: str, measured: Sequence[Measured], counts: Mapping[str, Counts]) -> Curve | None:
    """Return the values of a method, a row for each of its measurements; None where it has none."""
    rows = [_row(place, one, counts) for place, one in enumerate(measured) if math.isfinite(one.mean)]
    if not rows:
        return None
    repeats = pd.concat(repeats_of(place, one) for place, one in enumerate(measured))
    remark = ", ".join(dict.fromkeys(one.status for one in measured if one.status != FINISHED))
    shipped = any(one.shipped for one in measured)
    return Curve(label, pd.DataFrame(rows), remark, repeats=repeats, shipped=shipped)


def _row(place: int, measured: Measured, counts: Mapping[str, Counts]) -> dict[str, object]:
    site = counts.get(_site(measured.metric), Counts(0, 0, 0))
    positives, negatives = site.positive or 0, site.negative or 0
    low, high = measured.low, measured.high
    if dict(measured.place).get(TRAINING) not in GAINS and _base([measured.metric]).endswith("_auc"):
        low, high = auc_interval(measured.mean, positives, negatives)
    return {"x": place, "metric": measured.metric, "mean": measured.mean, "low": low, "high": high,
            "positives": positives, "negatives": negatives}  # fmt: skip


def _counts(row: Mapping[Hashable, int]) -> str:
    """Say how many of a row's test samples are positive, nothing where they are not counted."""
    return f" ({row['positives']:,} of {sum(row.values()):,})" if any(row.values()) else ""


def _site(metric: str) -> str:
    return metric.partition("@")[2]


def _base(metrics: Sequence[str]) -> str:
    return metrics[0].partition("@")[0]
