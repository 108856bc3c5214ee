"""What a figure is made of: panels of points along one x axis, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from fedbench import metric_table
from fedbench.report.verdict_words import LEVEL
from fedbench.results.frame import Measured
from fedbench.results.statistics import half_width
from fedbench.study.schema import FigureSpec

INTERVAL = f"mean over {{}}, bars: {LEVEL} t-interval, dots: each seed"
"""What is said of means and their spread where the value of each seed is drawn."""
COLUMNS = 3
"""Panels in a row of a figure whose panels are one axis."""
SAMPLES = ("positives", "negatives")
"""What the points of a forest plot have besides: the test samples of each class."""
POINT = {"curve": "", "x": np.nan, "mean": np.nan, "low": np.nan, "high": np.nan, "published": np.nan,
         "values": None, "seeds": 0, "remark": "", "broken": False, "shipped": False}  # fmt: skip
"""What a point has, with its defaults: the label of its curve; where it stands, with the ends of its
spread; the paper's final value; the value of each seed or client where these are drawn; over how many seeds it is the
mean; of its curve what is wrong, whether a diverged seed ends it, and whether some of it came with the repository."""


def curve(label: str, points: pd.DataFrame, **known: object) -> pd.DataFrame:
    """Return points as those of a curve, with what is ``known`` of all of them and defaults for what they lack."""
    lacking = {name: value for name, value in POINT.items() if name not in points}
    of_all: dict[str, Any] = {**lacking, **known, "curve": label}
    return points.assign(**of_all)


def joined_curves(curves: Iterable[pd.DataFrame | None]) -> pd.DataFrame:
    """Return the points of some curves as one frame; None is a curve without results."""
    known = [points for points in curves if points is not None]
    return pd.concat(known, ignore_index=True) if known else pd.DataFrame(columns=[*POINT])


def means(
    label: str, numbers: Sequence[Measured], remark: str = "", **columns: Sequence[Any]
) -> pd.DataFrame | None:
    """Return measurements as a curve of points with each seed, None where none has a mean.

    Spreads are t-intervals over seeds, the mean itself for one seed. ``columns`` has what else is known of each
    measurement, such as its ``x``.
    """
    mean, n = (np.array([getattr(of, name) for of in numbers]) for name in ("mean", "n_seeds"))
    half = np.nan_to_num([half_width(of.std, of.n_seeds) for of in numbers])
    values = [[*of.values.values()] for of in numbers]
    points = pd.DataFrame(
        {"mean": mean, "low": mean - half, "high": mean + half, "values": values, "seeds": n}
    )
    points = points.assign(**columns)[np.isfinite(mean)]
    shipped = any(of.shipped for of in numbers)
    return curve(label, points, remark=remark, shipped=shipped) if len(points) else None


def spread(wide: pd.DataFrame) -> pd.DataFrame:
    """Reduce one column per seed or client to x, mean, low, high."""
    reduced = pd.DataFrame({"mean": wide.mean(axis=1), "low": wide.min(axis=1), "high": wide.max(axis=1)})
    return reduced.rename_axis("x").reset_index()


@dataclass(frozen=True)
class Panel:
    """One panel: its title, the metric it shows (by name and as the y axis calls it), and what is drawn.

    A row of ``points`` has the columns of :data:`POINT`. Both axes of a panel with a ``guide`` are shares: it is a thin
    line from the one value at the left to the other at the right.
    """

    title: str
    metric: str
    y_label: str
    points: pd.DataFrame
    guide: tuple[float, float] | None = None

    @property
    def curves(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """The label and the points of each curve."""
        return ((str(label), points) for label, points in self.points.groupby("curve", sort=False))


@dataclass(frozen=True)
class Content:
    """What a kind of figure shows.

    Attributes:
        panels: those that have something to show, and gaps between them.
        columns: panels in a row.
        empty: titles of the panels that have nothing to show.
        x_label: what the x axis is called.
        over: says how it is averaged, with ``{}`` in place of ``3 seeds``.
        alone: says that of one seed.
        look: how points are drawn: curves with a band, means with each seed, lines of clients, rows of a forest plot or
            the fields of a matrix.
        log: which axes are logarithmic.
        ticks: where they are on the x axis, empty for matplotlib's.
        rows: names of those of a forest plot, of which ``x`` is the number.
        no_effect: the value of a forest plot that shows none.
        elsewhere: datasets that it may show of other scales.
        missing: what it lacks, or else has to say.
    """

    panels: list[Panel]
    columns: int = COLUMNS
    empty: list[str] = field(default_factory=list)
    x_label: str = ""
    over: str = ""
    alone: str = "one seed"
    look: Literal["curves", "seeds", "clients", "rows", "matrix"] = "curves"
    log: str = ""
    ticks: tuple[float, ...] = ()
    rows: tuple[str, ...] = ()
    no_effect: float | None = None
    elsewhere: tuple[str, ...] = ()
    missing: str = ""

    @cached_property
    def points(self) -> pd.DataFrame:
        """Every point drawn, with the title of its panel."""
        # rows of a forest plot have their own metric
        return joined_curves(
            points.assign(panel=panel.title, metric=points.get("metric", panel.metric))
            for panel in self.panels
            if len(points := panel.points)
        )


def label_of_x(spec: FigureSpec) -> str:
    """Return what the x axis of a figure is called: what a run spends by its label, else as it is named."""
    if spec.x in ("iteration", "round", "cycle"):
        return spec.x
    measure = metric_table.measure(spec.x)
    return ", ".join(filter(None, [measure.label, measure.unit]))
