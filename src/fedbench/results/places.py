"""Where numbers stand: a dataset and a setting, as tables, claims and print name them; the axes of a table."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from fedbench.errors import UserError, unknown
from fedbench.results.names import AVERAGE, SLOPE
from fedbench.results.statistics import LEAST
from fedbench.study.plan import Plan
from fedbench.study.references import TRAINING, gain_over
from fedbench.study.schema import FigureSpec, Paper, TableSpec, Value

Place = tuple[tuple[str, Value], ...]
"""A dataset and a setting: (axis, value) for each axis but the method; in effects without those a claim runs over."""


class Pooled(str):
    """The values of a setting whose cells a table pools as repeats of one number, as one value: ``0, 1, 2``."""

    members: tuple[Value, ...]

    def __new__(cls, members: Iterable[Value]) -> Pooled:
        """Join the values."""
        values = tuple(members)
        made = super().__new__(cls, ", ".join(map(str, values)))
        made.members = values
        return made


def places_of(paper: Paper, targets: Iterable[str], datasets: Iterable[str] | None = None) -> list[Place]:
    """List the places of tables and figures, each once; on ``datasets`` instead of their own.

    What a table pools is one place, as it is one number in print; a setting that exponents are fitted over is no axis.
    """
    places: dict[Place, None] = {}
    for target in targets:
        axes = axes_of(paper, paper.targets[target], datasets)
        places |= dict.fromkeys(
            tuple(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())
        )
    return list(places)


def axes_of(
    paper: Paper, spec: TableSpec | FigureSpec, datasets: Iterable[str] | None = None
) -> dict[str, list[Value]]:
    """Return the values of the axes of a table or figure but the method, as :func:`places_of` combines them."""
    pool = spec.pool if isinstance(spec, TableSpec) else []
    rows: list[Value] = [*(spec.datasets if datasets is None else datasets)]
    axes = {"dataset": rows, **paper.values(spec)}
    if spec.kind == "rates":
        return {name: values for name, values in axes.items() if name not in pool}
    return axes | {name: [Pooled(axes[name])] for name in pool}


def members(place: Place) -> list[Place]:
    """List the places of single cells that one stands for."""
    values = (
        [(axis, member) for member in (value.members if isinstance(value, Pooled) else [value])]
        for axis, value in place
    )
    return list(itertools.product(*values))


def place_of(dataset: str, setting: Mapping[str, Value]) -> Place:
    """Return a dataset and a setting as a place."""
    return (("dataset", dataset), *setting.items())


def without(places: Iterable[Place], axes: Iterable[str]) -> list[Place]:
    """Return the places without some axes, each once."""
    dropped = set(axes)
    return list(dict.fromkeys(tuple(pair for pair in place if pair[0] not in dropped) for place in places))


def words_of(place: Sequence[tuple[str, Value]]) -> str:
    """Name a place by its dataset and settings."""
    return ", ".join([str(place[0][1]), *(f"{name} = {value}" for name, value in place[1:])])


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
        grid[TRAINING] = [*grid[TRAINING], gain_over(spec.references[0])]
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
