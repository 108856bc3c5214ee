"""What a figure is made of: panels with curves, and the x axis that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from fedbench import metric_table
from fedbench.report.figures.style import Style
from fedbench.results.frame import Measured
from fedbench.results.statistics import COVERAGE, half_width
from fedbench.study.schema import FigureSpec

INTERVAL = f"bars: {COVERAGE:.0%} t-interval, dots: each seed"
"""What is said of the spread where the value of each seed is drawn."""
COLUMNS = 3
"""Panels in a row of a figure whose panels are one axis."""
SAMPLES = ("positives", "negatives")
"""What the CSV of a forest plot has of each row beside its value: the test samples of each class."""


@dataclass(frozen=True)
class Curve:
    """One line of a panel: ``points`` has columns x, mean, low, high; ``remark`` says what is wrong.

    A column ``published`` holds the paper's final value, NaN where it has none. With ``repeats``, the value of each
    seed (columns x, value), low and high are drawn as bars, not as a band; without, ``seeds`` says over how many it is
    the mean. With ``lines``, a column each, these are drawn and not their mean. ``shipped``: some of it came with the
    repository.
    """

    label: str
    points: pd.DataFrame
    remark: str = ""
    broken: bool = False
    repeats: pd.DataFrame | None = None
    shipped: bool = False
    seeds: int = 0
    lines: pd.DataFrame | None = None

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
class Panel:
    """One panel: its title, the metric it shows (by name and as the y axis calls it), and what is drawn.

    Both axes of a panel with a ``guide`` are shares: it is a thin line from the one value at the left to the other at
    the right.
    """

    title: str
    metric: str
    y_label: str
    curves: list[Curve]
    guide: tuple[float, float] | None = None

    @property
    def shipped(self) -> bool:
        """Whether some of it came with the repository."""
        return any(curve.shipped for curve in self.curves)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not self.curves


@dataclass(frozen=True)
class Across:
    """The x axis of all panels: what it is called, whether it or the y axis is logarithmic, where its ticks are.

    A forest plot has names of ``rows``, and ``x`` of its curves is the row; ``none`` is where there is no effect.
    ``matrix``: panels are confusion matrices.
    """

    label: str
    log: bool = False
    log_y: bool = False
    ticks: tuple[float, ...] = ()
    rows: tuple[str, ...] = ()
    none: float | None = None
    matrix: bool = False


def across_of(spec: FigureSpec) -> Across:
    """Return the axis of what a figure is drawn against: what a run spends by its label, else as it is called."""
    label = spec.x
    if spec.kind != "final" and spec.x not in ("iteration", "round", "cycle"):
        measure = metric_table.measure(spec.x)
        label = ", ".join(filter(None, [measure.label, measure.unit]))
    return Across(label, log="x" in spec.log, log_y="y" in spec.log)


def interval(measured: Measured) -> dict[str, float]:
    """Return mean, low and high of a measurement: the t-interval over seeds, the mean itself for one seed."""
    half = float(np.nan_to_num(half_width(measured.std, measured.n_seeds)))
    return {"mean": measured.mean, "low": measured.mean - half, "high": measured.mean + half}


NO_REPEATS = pd.DataFrame({"x": [], "value": []})


def repeats_of(x: float, measured: Measured) -> pd.DataFrame:
    """Return the value of each seed of a measurement that stands at ``x``."""
    return pd.DataFrame({"x": x, "value": [*measured.values.values()]})


def mean_over(spread: str, alone: str = "one seed") -> Callable[[str], str]:
    """Return the words for means over a number of seeds with a ``spread``; of one seed it is ``alone``."""

    def words(seeds: str) -> str:
        if seeds == "1" and alone:
            return alone
        return f"mean over {seeds} seed{'s' * (seeds != '1')}, {spread}" if seeds else ""

    return words


@dataclass(frozen=True)
class Content:
    """What a kind of figure shows.

    Attributes:
        panels: those that have something to show.
        across: their x axis.
        styles: the looks of what is drawn, by label, in the order of the legend.
        datasets: what was run for it.
        runs: says over how many seeds it is, given their number or range, empty where nothing ran.
        columns: panels in a row.
        empty: titles of the panels that have nothing to show.
        missing: what it lacks, or else has to say.
        what: what one of the things drawn is called.
    """

    panels: list[Panel]
    across: Across
    styles: Mapping[str, Style]
    datasets: Sequence[str]
    runs: Callable[[str], str]
    columns: int = COLUMNS
    empty: list[str] = field(default_factory=list)
    missing: str = ""
    what: str = "value"

    @property
    def shipped(self) -> bool:
        """Whether some of it was not trained here but came with the repository."""
        return any(panel.shipped for panel in self.panels)

    @property
    def seeds(self) -> list[int]:
        """Over how many seeds what is drawn are means, ascending, each number once."""
        return sorted({curve.averaged for panel in self.panels for curve in panel.curves} - {0})


def points(panels: Sequence[Panel]) -> pd.DataFrame:
    """Return every point drawn, tidy: panel, metric, curve, x, mean, low, high, the published final value.

    Of a curve of several lines mean, low and high are over these.
    """
    parts = [
        # rows of a forest plot have their own metric
        data.assign(panel=panel.title, metric=data.get("metric", panel.metric), curve=curve.label)
        for panel in panels
        for curve in panel.curves
        for data in [curve.points]
    ]
    columns = ["panel", "metric", "curve", "x", "mean", "low", "high", "published"]
    columns += [name for name in SAMPLES if any(name in part for part in parts)]
    return (
        pd.concat(parts, ignore_index=True).reindex(columns=columns)
        if parts
        else pd.DataFrame(columns=columns)
    )


def spread(wide: pd.DataFrame) -> pd.DataFrame:
    """Reduce one column per seed or client to x, mean, low, high."""
    reduced = pd.DataFrame({"mean": wide.mean(axis=1), "low": wide.min(axis=1), "high": wide.max(axis=1)})
    return reduced.rename_axis("x").reset_index()
