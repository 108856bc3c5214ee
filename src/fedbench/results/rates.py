"""Rates: how many samples and rounds a method needs for a gradient norm epsilon, as exponents of 1/epsilon."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from fedbench.errors import unknown
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

    Raises:
        UserError: a metric of the table is no exponent.
    """
    if strange := [metric for metric in spec.metrics if metric not in SPENT]:
        raise unknown("exponent", strange[0], SPENT)
    groups: dict[tuple[Place, str], list[Cell]] = {}
    for cell in cells:
        rest = {name: value for name, value in cell.setting.items() if name not in spec.pool}
        groups.setdefault((place_of(cell.dataset, rest), cell.method), []).append(cell)
    return [
        row
        for (place, _), group in groups.items()
        for row in placed(_rows(group, spec, shipped), group, place)
    ]


def _rows(cells: Sequence[Cell], spec: TableSpec, shipped: Shipped | None) -> Iterator[Row]:
    """Yield the exponents of a method, and why some lack."""
    parts: dict[int, list[Row]] = {}
    lacking = []
    for cell in cells:
        for row in runs_of_cells([cell], [EPSILON]):
            said = f"{cell.setting_label}: {row.reason}" if row.reason else ""
            if not row.origin:
                lacking += [said] if said else []
            elif row.metric in ("", EPSILON):
                parts.setdefault(row.seed, []).append(row._replace(reason=said))
    complete = [runs for runs in parts.values() if len(runs) == len(cells)]
    fits = [fit for metric in spec.metrics for runs in complete for fit in _fitted(cells, metric, runs, spec)]
    troubled = {row.metric for row in fits if row.status != FINISHED}
    fits = [row for row in fits if row.status != FINISHED or row.metric not in troubled]
    if not fits and shipped is not None:
        fits = [row for run in shipped.fitted(cells).values() for row in run.values()]
    yield from fits
    if len({row.seed for row in fits}) < len(cells[0].runs):
        reason = "; ".join(lacking) or ("" if fits else "no seed has all budgets")
        yield Row("", -1, "", status=NOT_RUN, reason=reason, origin="")


def _fitted(cells: Sequence[Cell], metric: str, runs: Sequence[Row], spec: TableSpec) -> Iterator[Row]:
    """Yield the exponent of the runs of all budgets with one seed, none where one of them has no curve."""
    seed = runs[0].seed
    made = Row(
        joint_key(cells, seed), seed, metric, status=UNDEFINED,
        sign=next((run.sign for run in runs if run.sign), ""),  # one budget that learned nothing is enough
        commit=" ".join(run.commit for run in runs), source=" ".join(run.source for run in runs),
    )  # fmt: skip
    broken = next((run for run in runs if run.status != FINISHED), None)
    curves = [collect.curve_of(cell, run.key) for cell, run in zip(cells, runs, strict=True)]
    spent = SPENT[metric]
    if broken:
        yield made._replace(status=broken.status, reason=broken.reason)
    elif not all(EPSILON in curve and spent in curve for curve in curves):
        return
    elif len(cells) < LEAST:
        yield made._replace(reason=f"{len(cells)} budgets are too few for a slope, which takes {LEAST}")
    else:
        epsilons = [epsilon_of(curve, spec.epsilon) for curve in curves]
        try:
            value = exponent(epsilons, [float(curve[spent].iloc[-1]) for curve in curves])
            yield made._replace(status=FINISHED, value=value)
        except ValueError as error:
            yield made._replace(reason=f"seed {seed}: {error}")


def epsilon_of(curve: pd.DataFrame, rule: str) -> float:
    """Return the epsilon that a run reached, by a word of :data:`EPSILONS`."""
    first = 1 if rule == "mean" else len(curve) // 2
    return float(curve[EPSILON].iloc[first:].mean())
