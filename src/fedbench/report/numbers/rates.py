"""Rates: how many samples and rounds a method needs for a gradient norm epsilon, as exponents of 1/epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from fedbench.plan.cells import Cell
from fedbench.plan.schema import TableSpec, Value
from fedbench.report.numbers import collect
from fedbench.report.numbers.aggregate import measurement
from fedbench.report.numbers.combine import joined
from fedbench.report.numbers.measurement import FINISHED, UNDEFINED, Measurement, Repeat
from fedbench.report.numbers.shipped import Shipped
from fedbench.results.statistics import LEAST, slope

EPSILON = "test_gradient_norm"
SPENT = {"sample_exponent": "samples", "communication_exponent": "round"}
"""What a run spends, by the exponent that is fitted to it."""
LEAST_FALL = 1.2
"""Times that epsilon has to be smaller with the last budget than with the first, or a slope over it says nothing."""
EPSILONS = {
    "mean": "its evaluations after the first of the exact gradient norm, which is the expectation of the theory's "
    "random output",
    "end": "the evaluations in the second half of the exact gradient norm",
}
"""What a run's epsilon is the mean over, by the word in ``epsilon`` of a table."""


def rule(spec: TableSpec) -> str:
    """Say how the exponents of a table are made."""
    return (
        f"ε of a run: the mean over {EPSILONS[spec.epsilon]}. Exponents: slopes of log samples (log rounds) over "
        f"log 1/ε by least squares over the budgets, seed by seed; fewer than {LEAST} budgets, or an ε that does not "
        "fall, give none. The paper's are bounds, which give no verdict."
    )


class Point(NamedTuple):
    """One run: what it reached, and what it spent."""

    epsilon: float
    spent: float


def exponent(points: Sequence[Point]) -> float:
    """Return the slope of log spent over log 1/epsilon; nan for fewer than three points.

    Args:
        points: of the budgets, the smallest first.

    Raises:
        ValueError: an epsilon is 0 or not finite, or does not fall with the budget.
    """
    if bad := [p.epsilon for p in points if not (math.isfinite(p.epsilon) and p.epsilon > 0)]:
        raise ValueError(f"epsilon is {bad[0]}")
    if len(points) >= LEAST and points[0].epsilon < LEAST_FALL * points[-1].epsilon:
        raise ValueError(
            f"epsilon does not fall with the budget: {points[0].epsilon:.3g} with the smallest, "
            f"{points[-1].epsilon:.3g} with the largest"
        )
    found = slope([1 / point.epsilon for point in points], [point.spent for point in points])
    return round(found, 9) + 0.0  # what is 0 but for rounding has no sign


def measure(
    cells: Sequence[Cell], spec: TableSpec, root: Path = Path(), shipped: Shipped | None = None
) -> list[Measurement]:
    """Fit the exponents of cells that differ in the budget alone; a budget that failed is named, never fitted.

    Where nothing was trained here, ``shipped`` gives the exponents that travel with the repository.
    """
    groups: dict[tuple[str, str, tuple[tuple[str, Value], ...]], list[Cell]] = {}
    for cell in cells:
        rest = tuple((name, value) for name, value in cell.setting.items() if name not in spec.pool)
        groups.setdefault((cell.dataset, cell.method, rest), []).append(cell)
    found = []
    for (_, _, rest), group in groups.items():
        for metric in spec.metrics:
            one = _fitted(group, dict(rest), metric, root, spec.epsilon)
            if one.status == collect.NOT_RUN and shipped is not None:
                others = measurement(group[0], metric, {}, shipped.fitted(group))
                one = replace(others, setting=dict(rest)) if others.shipped else one
            found.append(one)
    return found


def _fitted(
    cells: Sequence[Cell], setting: Mapping[str, Value], metric: str, root: Path, epsilon: str
) -> Measurement:
    """Fit one exponent over the budgets of a method, a value for each seed that has them all."""
    spent = SPENT.get(metric)
    if spent is None:
        raise ValueError(f"{metric} is no exponent; a table of kind rates has {', '.join(SPENT)}")
    parts = [_named(part, cell) for cell in cells for part in collect.measure([cell], [EPSILON], root)]
    whole = replace(
        joined(parts, _points(cells, parts), len(cells[0].runs)), metric=metric, setting=setting, paces={}
    )
    if whole.status not in (FINISHED, collect.INCOMPLETE):
        return replace(whole, values={})
    values: dict[Repeat, float] = {}
    for run in cells[0].runs:
        points = [_point(cell, run.seed, spent, root, epsilon) for cell in cells]
        if all(point is not None for point in points):
            try:
                values[run.seed] = exponent([point for point in points if point is not None])
            except ValueError as error:
                return replace(whole, status=UNDEFINED, reason=f"seed {run.seed}: {error}", values={})
    if not values:
        return replace(whole, status=collect.NOT_RUN, reason="no seed has all budgets", values={})
    if len(cells) < LEAST:
        reason = f"{len(cells)} budgets are too few for a slope, which takes {LEAST}"
        return replace(whole, status=UNDEFINED, reason=reason, values={})
    partial = len(values) < len(cells[0].runs)
    return replace(
        whole,
        values=values,
        status=collect.INCOMPLETE if partial else FINISHED,
        reason=f"{len(values)} of {len(cells[0].runs)} seeds have all budgets" if partial else "",
    )


def _points(cells: Sequence[Cell], parts: Sequence[Measurement]) -> dict[Repeat, float]:
    """Return the seeds that some budget has, so that the status says what is missing and what went wrong."""
    return {seed: value for part in parts for seed, value in part.values.items()}


def _named(part: Measurement, cell: Cell) -> Measurement:
    """Put the cell's setting before the reason why it has no value."""
    return replace(part, reason=f"{cell.setting_label}: {part.reason}" if part.reason else "")


def _point(cell: Cell, seed: int, spent: str, root: Path, epsilon: str) -> Point | None:
    """Return what a run reached and spent, None where it is not there."""
    key = next(run.key for run in cell.runs if run.seed == seed)
    curve = collect.curve_of(cell, key, root)
    if EPSILON not in curve or spent not in curve or len(curve) < 2:
        return None
    first = 1 if epsilon == "mean" else len(curve) // 2
    return Point(float(curve[EPSILON].iloc[first:].mean()), float(curve[spent].iloc[-1]))
