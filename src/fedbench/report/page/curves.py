"""A cell's curve as a small inline SVG: the seeds as thin lines, their mean in the colours of the figures."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape
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
        found = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(self.low, self.high)
        slack = 1e-9 * (self.high - self.low)
        return [float(tick) for tick in found if self.low - slack <= tick <= self.high + slack]


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
    values = [y for line in lines for _, y in line.points]
    across = _Axis.over([at for line in lines for at, _ in line.points], LEFT, WIDTH - RIGHT, 0.0)
    up = _Axis.over([*values, *([printed] * math.isfinite(printed))], HEIGHT - BOTTOM, TOP, 0.06)
    name, mean = measures.label(metric), _mean(lines)
    parts = [*_frame(across, up, name, x), *_reference(printed, up)]
    for line in lines if len(lines) > 1 else []:
        parts.append(
            f'<polyline class="seed" points="{_path(line.points, across, up)}" stroke="{style.colour}"/>'
        )
    width = style.width + 0.4
    dash = "" if style.dash == "-" else f' stroke-dasharray="{_dashes(style.dash[1], width)}"'
    looks = f'stroke="{style.colour}" stroke-width="{width:g}"{dash}'
    parts.append(f'<polyline class="mean" points="{_path(mean, across, up)}" {looks}/>')
    for at, y in mean:
        place = f'cx="{across(at)}" cy="{up(y)}" r="2.4" fill="{style.colour}"'
        parts.append(f"<circle {place}><title>{escape(f'{x} {at:g}: {name} {y:.4g}')}</title></circle>")
    for line in lines:
        parts += _cross(line, across, up) if line.diverged else []
    head = f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="'
    return Markup(f'{head}{escape(_summary(name, x, mean, printed))}">{"".join(parts)}</svg>')


def _mean(lines: Sequence[Line]) -> Points:
    """Average the seeds where each has a value, so a diverged one ends the mean, as in the figures."""
    by_x: dict[float, list[float]] = {}
    for line in lines:
        for at, y in line.points:
            by_x.setdefault(at, []).append(y)
    return [(at, sum(ys) / len(ys)) for at, ys in sorted(by_x.items()) if len(ys) == len(lines)]


def _frame(across: _Axis, up: _Axis, y_label: str, x_label: str) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [f'<text class="name" x="4" y="14">{escape(y_label)}</text>']
    for tick in up.ticks(4):
        parts.append(f'<path class="grid" d="M{LEFT} {up(tick)}H{right}"/>')
        parts.append(
            f'<text x="{LEFT - 6}" y="{up(tick)}" dy=".32em" text-anchor="end">{_short(tick)}</text>'
        )
    for tick in across.ticks(5):
        parts.append(f'<text x="{across(tick)}" y="{bottom + 14}" text-anchor="middle">{_short(tick)}</text>')
    middle = (LEFT + right) // 2
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>')
    parts.append(
        f'<text class="name" x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">{escape(x_label)}</text>'
    )
    return parts


def _reference(printed: float, up: _Axis) -> list[str]:
    if not math.isfinite(printed):
        return []
    y, beside = up(printed), "1.1em" if printed > (up.low + up.high) / 2 else "-.4em"
    return [
        f'<path class="published" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>',
        f'<text class="published" x="{LEFT + 5}" y="{y}" dy="{beside}">published {printed:g}</text>',
    ]


def _cross(line: Line, across: _Axis, up: _Axis) -> list[str]:
    at, y = line.points[-1]
    place = f'transform="translate({across(at)} {up(y)})" d="M-4-4 4 4M4-4-4 4"'
    return [f'<path class="cross" {place}><title>seed {line.seed} diverged after this</title></path>']


def _path(points: Points, across: _Axis, up: _Axis) -> str:
    return " ".join(f"{across(at)},{up(y)}" for at, y in points)


def _dashes(lengths: Sequence[float], width: float) -> str:
    return " ".join(f"{length * width:.3g}" for length in lengths)


def _short(value: float) -> str:
    text = f"{value / 1000:g}k" if 10_000 <= abs(value) < 1e7 else f"{value:.4g}"
    return text.replace("-", "−")


def _summary(name: str, x: str, mean: Points, printed: float) -> str:
    ends = f"from {mean[0][1]:.4g} to {mean[-1][1]:.4g}" if mean else "without a point that all seeds have"
    return f"{name} over {x}s, {ends}" + (f"; published {printed:g}" if math.isfinite(printed) else "")
