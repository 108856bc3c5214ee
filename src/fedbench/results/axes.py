"""The axes of a table, and whether its rows and columns place them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedbench.errors import UserError, unknown
from fedbench.results.names import AVERAGE, SLOPE
from fedbench.results.statistics import LEAST
from fedbench.study.plan import Plan
from fedbench.study.references import TRAINING, gain_of
from fedbench.study.schema import TableSpec, Value


def axes(plan: Plan, spec: TableSpec) -> dict[str, list[Value]]:
    """Return the values of each axis of a table: dataset (printed, then our own), settings, method.

    Settings whose cells are pooled are no axis; the axis that is averaged over has the average last, the one along
    which slopes are fitted the slope.
    """
    run = plan.datasets(spec)
    datasets: list[Value] = [*spec.datasets, *(name for name in run if name not in spec.datasets)]
    settings = {name: values for name, values in plan.study.values(spec).items() if name not in spec.pool}
    grid: dict[str, list[Value]] = {"dataset": datasets, **settings, "method": list(spec.methods)}
    if spec.average is not None:
        if spec.average not in grid or spec.average == "method":
            raise unknown("axis to average over", spec.average, grid.keys() - {"method"})
        grid[spec.average] = [*grid[spec.average], AVERAGE]
    if spec.references:
        grid[TRAINING] = [*grid[TRAINING], gain_of(spec.references)]
    if spec.slope is not None:
        _check_slope(spec.slope, grid, settings)
        grid[spec.slope] = [*grid[spec.slope], SLOPE]
    return grid


def _check_slope(
    axis: str, grid: Mapping[str, Sequence[Value]], settings: Mapping[str, Sequence[Value]]
) -> None:
    if axis not in settings:
        raise unknown("setting to fit a slope along", axis, settings)
    numbers = [v for v in grid[axis] if isinstance(v, int | float) and not isinstance(v, bool) and v > 0]
    if len(numbers) < max(LEAST, len(grid[axis])):
        raise UserError(
            f"slope: {axis} takes {', '.join(map(str, grid[axis]))}; a slope of logarithms takes {LEAST} or "
            "more positive numbers"
        )


def axes_placed(plan: Plan, name: str) -> dict[str, list[Value]]:
    """Return the axes of a table of results.

    Raises:
        UserError: it has no metrics, or its rows and columns do not place its axes.
    """
    spec, where = plan.table(name), f"{plan.study.key}/{name}"
    if not spec.metrics:
        raise UserError(f"{where} names no metrics; give it a list such as [test_auc]")
    grid = axes(plan, spec)
    check_axes(spec, grid, where)
    return grid


def check_axes(spec: TableSpec, grid: dict[str, list[Value]], where: str) -> None:
    """Refuse rows and columns that name an axis that the table lacks, or leave out one with several values.

    Metrics may have rows or columns too.
    """
    placed = [*spec.rows, *spec.columns]
    for axis in placed:
        if axis not in (*grid, "metric"):
            raise unknown(f"row or column of {where}", axis, [*grid, "metric"])
    left = [axis for axis, values in grid.items() if len(values) > 1 and axis not in placed]
    if left or not spec.rows:
        what = (
            f"{', '.join(left)} {'take' if left[1:] else 'takes'} several values" if left else "rows is empty"
        )
        raise UserError(f"{where}: {what}; rows and columns must place every axis that varies")
