"""Rates: how many samples and rounds a method needs for a gradient norm epsilon, as exponents of 1/epsilon."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from fedbench.results import collect
from fedbench.results.frame import FINISHED, NOT_RUN, UNDEFINED, Row
from fedbench.results.places import Place, place_of
from fedbench.results.runs import placed, runs_of_cells
from fedbench.results.shipped import Shipped, joint_key
from fedbench.results.statistics import LEAST, slope
from fedbench.study.cells import Cell
from fedbench.study.schema import TableSpec

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


def exponent(epsilons: Sequence[float], spent: Sequence[float]) -> float:
    """Return the slope of log spent over log 1/epsilon; nan for fewer than three budgets, the smallest first.

    Raises:
        ValueError: an epsilon is 0 or not finite, or does not fall with the budget.
    """
    if bad := [epsilon for epsilon in epsilons if not (math.isfinite(epsilon) and epsilon > 0)]:
        raise ValueError(f"epsilon is {bad[0]}")
    if len(epsilons) >= LEAST and epsilons[0] < LEAST_FALL * epsilons[-1]:
        raise ValueError(
            f"epsilon does not fall with the budget: {epsilons[0]:.3g} with the smallest, "
            f"{epsilons[-1]:.3g} with the largest"
        )
    fitted = slope([1 / epsilon for epsilon in epsilons], spent)
    return round(fitted, 9) + 0.0  # what is 0 but for rounding has no sign


def rates_of_cells(cells: Sequence[Cell], spec: TableSpec, shipped: Shipped | None = None) -> list[Row]:
    """Return the exponents of cells that differ in the budget alone, in the form of :func:`runs_of_cells`.

    A row for each seed and exponent, under the keys of its budgets' runs; a budget that failed is named, never fitted.
    Where nothing could be fitted here, ``shipped`` gives the exponents that travel with the repository.
    """
    groups: dict[tuple[Place, str], list[Cell]] = {}
    for cell in cells:
        rest = {name: value for name, value in cell.setting.items() if name not in spec.pool}
        groups.setdefault((place_of(cell.dataset, rest), cell.method), []).append(cell)
    rows = []
    for (place, _), group in groups.items():
        rows += placed(_rows(group, spec, shipped), group, place)
    return rows


def _rows(cells: Sequence[Cell], spec: TableSpec, shipped: Shipped | None) -> Iterator[Row]:
    """Yield the exponents of a method, and why some lack."""
    known: dict[int, dict[str, Row]] = {}
    lacking = ""
    for cell in cells:
        for row in runs_of_cells([cell], [EPSILON]):
            said = f"{cell.setting_label}: {row.reason}" if row.reason else ""
            if not row.origin:
                lacking = "; ".join(filter(None, [lacking, said]))
            elif row.metric in ("", EPSILON):
                known.setdefault(row.seed, {})[cell.name] = row._replace(reason=said)
    complete = {seed: [*parts.values()] for seed, parts in known.items() if len(parts) == len(cells)}
    fits = [
        fit
        for metric in spec.metrics
        for seed, parts in complete.items()
        if (fit := _fitted(cells, seed, metric, parts, spec.epsilon)) is not None
    ]
    troubled = {row.metric for row in fits if row.status != FINISHED}
    fits = [row for row in fits if row.status != FINISHED or row.metric not in troubled]
    if not fits and shipped is not None:
        fits = [row for run in shipped.fitted(cells).values() for row in run.values()]
    yield from fits
    if len({row.seed for row in fits}) < len(cells[0].runs):
        lacking = lacking or "no seed has all budgets" * (not fits)
        yield Row("", -1, "", status=NOT_RUN, reason=lacking, origin="")


def _fitted(cells: Sequence[Cell], seed: int, metric: str, parts: Sequence[Row], epsilon: str) -> Row | None:
    """Fit one exponent to the runs of all budgets with one seed; None where one of them has no curve."""
    spent = SPENT.get(metric)
    if spent is None:
        raise ValueError(f"{metric} is no exponent; a table of kind rates has {', '.join(SPENT)}")
    made = Row(
        joint_key(cells, seed),
        seed,
        metric,
        status=UNDEFINED,
        # one budget that learned nothing is enough
        sign=next((part.sign for part in parts if part.sign), ""),
        commit=" ".join(part.commit for part in parts),
        source=" ".join(part.source for part in parts),
    )
    if broken := next((part for part in parts if part.status != FINISHED), None):
        return made._replace(status=broken.status, reason=broken.reason)
    points = [point for cell in cells if (point := _point(cell, seed, spent, epsilon))]
    if len(points) < len(cells):
        return None
    if len(cells) < LEAST:
        return made._replace(reason=f"{len(cells)} budgets are too few for a slope, which takes {LEAST}")
    try:
        return made._replace(status=FINISHED, value=exponent(*zip(*points, strict=True)))
    except ValueError as error:
        return made._replace(reason=f"seed {seed}: {error}")


def _point(cell: Cell, seed: int, spent: str, epsilon: str) -> tuple[float, float] | None:
    """Return the epsilon that a run reached and what it spent, None where it is not there."""
    key = next(run.key for run in cell.runs if run.seed == seed)
    curve = collect.curve_of(cell, key)
    if EPSILON not in curve or spent not in curve:
        return None
    first = 1 if epsilon == "mean" else len(curve) // 2
    return float(curve[EPSILON].iloc[first:].mean()), float(curve[spent].iloc[-1])
