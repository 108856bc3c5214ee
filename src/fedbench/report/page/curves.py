"""A cell's curve as a small inline SVG: the seeds as thin lines, their mean in the colours of the figures."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.ticker import MaxNLocator

from fedbench import measures
from fedbench.report.figures.style import Style

WIDTH, HEIGHT = 350, 220
LEFT, RIGHT, TOP, BOTTOM = 46, 18, 26, 34
Points = list[tuple[float, float]]
Columns = dict[str, list[float]]


def read_curve(content: bytes) -> Columns:
    """Read the content of a ``curve.csv``, column by column, NaN where a place is empty."""
    rows = list(csv.DictReader(content.decode().splitlines()))
    return {name: [float(row[name] or "nan") for row in rows] for name in (rows[0] if rows else ())}


@dataclass(frozen=True)
class Line:
    """One seed of a chart: its points, and whether it diverged after the last."""

    seed: int
    points: Points
    diverged: bool

    @classmethod
    def of(cls, seed: int, curve: Columns, x: str, metric: str, diverged: bool) -> Line:
        """Take the finite points of one metric from a curve."""
        pairs = zip(curve.get(x, []), curve.get(metric, []), strict=False)
        return cls(seed, [pair for pair in pairs if all(map(math.isfinite, pair))], diverged)


@dataclass(frozen=True)
class _Axis:
    """One direction of a chart: data limits onto pixels, with ticks."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float, margin: float) -> _Axis:
        low, high = min(values), max(values)
        room = (high - low) * margin if high > low else abs(high) * 0.05 or 1.0
        return cls(low - room, high + room, start, end)

    def __call__(self, value: float) -> str:
        share = (value - self.low) / (self.high - self.low)
        return f"{self.start + share * (self.end - self.start):.1f}".removesuffix(".0")

    def ticks(self, most: int) -> list[float]:
        """Return round values inside the limits."""
        ticks = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(self.low, self.high)
        slack = 1e-9 * (self.high - self.low)
        return [float(tick) for tick in ticks if self.low - slack <= tick <= self.high + slack]


def chart(lines: Sequence[Line], metric: str, x: str, style: Style, printed: float = math.nan) -> Markup:
    """Draw one metric over training; empty where no seed has a point of it.

    Args:
        lines: the seeds of a cell.
        metric: what is drawn, a column of ``curve.csv``.
        x: what it is drawn over, ``iteration`` or ``round``.
        style: the looks of the method in the figures.
        printed: the published final value, a dashed line unless it is NaN.
    """
    lines = [line for line in lines if line.points]
    if not lines:
        return Markup("")
    published = f"published {printed:g}" if math.isfinite(printed) else ""
    values = [y for line in lines for _, y in line.points] + [printed] * bool(published)
    across = _Axis.over([at for line in lines for at, _ in line.points], LEFT, WIDTH - RIGHT, 0.0)
    up = _Axis.over(values, HEIGHT - BOTTOM, TOP, 0.06)
    name, mean, stroke = measures.label(metric), _mean(lines), style.width + 0.4
    ends = f"from {mean[0][1]:.4g} to {mean[-1][1]:.4g}" if mean else "without a point that all seeds have"
    drawn = ASSETS.get_template("chart.svg").render(
        lines=lines, name=name, x=x, style=style, printed=printed, across=across, up=up, mean=mean,
        published=published, summary="; ".join(filter(None, [f"{name} over {x}s, {ends}", published])),
        stroke=f"{stroke:g}", width=WIDTH, height=HEIGHT,
        dashes="" if style.dash == "-" else " ".join(f"{length * stroke:.3g}" for length in style.dash[1]),
        path=lambda points: " ".join(f"{across(at)},{up(y)}" for at, y in points),
        margin={"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM},
    )  # fmt: skip
    return Markup(drawn)


def _mean(lines: Sequence[Line]) -> Points:
    """Average the seeds where each has a value, so a diverged one ends the mean, as in the figures."""
    by_x: dict[float, list[float]] = {}
    for line in lines:
        for at, y in line.points:
            by_x.setdefault(at, []).append(y)
    return [(at, sum(ys) / len(ys)) for at, ys in sorted(by_x.items()) if len(ys) == len(lines)]


def _short(value: float) -> str:
    text = f"{value / 1000:g}k" if 10_000 <= abs(value) < 1e7 else f"{value:.4g}"
    return text.replace("-", "−")


ASSETS = Environment(
    loader=PackageLoader("fedbench.report.page", "assets"), autoescape=True, undefined=StrictUndefined,
    trim_blocks=True, lstrip_blocks=True,
)  # fmt: skip
"""The templates of the page."""
ASSETS.filters["thousands"] = _short
