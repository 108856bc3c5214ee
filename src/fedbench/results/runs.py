"""The runs of the cells that are asked for: a row for each run and metric, trained here or shipped.

All that is said of results is made of them: measurements, what claims are compared with, exports.
Whatever is missing stays visible: a cell some of whose runs lack has a row that says why.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from fedbench import metric_table
from fedbench.results import collect, logs
from fedbench.results.frame import (
    COSTS,
    FAILED,
    NAN,
    NOT_RUN,
    SHIPPED,
    Row,
    Run,
    device_metrics,
)
from fedbench.results.places import Place, place_of
from fedbench.results.shipped import Shipped
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import TableSpec


def runs_of_cells(
    cells: Sequence[Cell], metrics: Sequence[str], shipped: Shipped | None = None, trained: bool = True
) -> list[Row]:
    """Return the runs of cells with some metrics and costs, a row each, in the order of the cells and their seeds.

    Args:
        cells: whose runs are wanted; they are found by their keys.
        metrics: what is wanted of them; one that diverged has a single row instead.
        shipped: runs for the seeds that were not trained here, unless a job failed here.
        trained: whether runs that were trained here count.
    """
    rows = []
    for cell in cells:
        of_cell = of_cells([cell], place_of(cell.dataset, cell.setting))
        rows += [row._replace(**of_cell) for row in _rows(cell, metrics, shipped, trained)]
    return rows


def runs_of_table(plan: Plan, spec: TableSpec, cells: Sequence[Cell], shipped: Shipped) -> list[Row]:
    """Return the runs that a table of results shows: those of its cells, and shipped ones where it has no cell.

    All of a place come from one scale, or methods could not be compared: from the one that has most of them, of equals
    from this one, then from the one nearest to the paper.
    """
    runs = runs_of_cells(cells, spec.metrics, shipped)
    settings, known = plan.study.values(spec), {(row.place, row.method) for row in runs}
    datasets = dict.fromkeys([*spec.datasets, *(str(row.place[0][1]) for row in runs)])
    scales = dict.fromkeys((plan.scale.name, *shipped.scales))
    others = [
        cell
        for scale in scales
        for dataset, *values in itertools.product(datasets, *settings.values())
        for setting in [dict(zip(settings, values, strict=True))]
        for method in spec.methods
        if (place_of(str(dataset), setting), method) not in known
        if (cell := shipped.cell(scale, str(dataset), setting, method)) is not None
    ]
    elsewhere: dict[Place, dict[str, list[Row]]] = {}
    for row in runs_of_cells(others, spec.metrics, shipped, trained=False):
        if row.origin == SHIPPED:
            elsewhere.setdefault(row.place, {}).setdefault(row.scale, []).append(row)
    for by_scale in elsewhere.values():
        runs += max(by_scale.values(), key=lambda rows: len({row.method for row in rows}))
    return runs


def of_cells(cells: Sequence[Cell], place: Place) -> dict[str, Any]:
    """Return what rows say of the cells they are of, which stand together at a place: one, or one for each budget."""
    first, key = cells[0], " ".join(cell.key for cell in cells)
    return {"study": first.paper, "scale": first.scale, "place": place, "method": first.method, "cell": key,
            "planned": len(first.runs)}  # fmt: skip


def _rows(cell: Cell, metrics: Sequence[str], shipped: Shipped | None, trained: bool) -> Iterator[Row]:
    trained_here, missing, failure = {}, "", ""
    if trained:
        records, missing, failure = collect.runs_of(cell)
        trained_here = collect.rows_of(cell, records, metrics)
        if len(records) < len(cell.runs):
            failure = failure or _failure(cell)
    others = shipped.runs(cell, trained_here) if shipped is not None and not failure else {}
    runs, order = {**trained_here, **others}, {run.seed: at for at, run in enumerate(cell.runs)}
    beside = {"", *COSTS, *(name for metric in metrics for name in device_metrics(metric))}
    for seed in sorted(runs, key=lambda seed: (order.get(seed, math.inf), seed)):
        for name, row in runs[seed].items():
            if name in metrics and metric_table.target(name):
                yield row._replace(tried=_tried(cell, name, row, runs[seed]))
            elif name in metrics or name in beside:
                yield row
    if len(trained_here) < len(cell.runs):
        yield Row("", -1, "", status=FAILED if failure else NOT_RUN, reason=failure or missing, origin="")


def _tried(cell: Cell, metric: str, row: Row, run: Run) -> float:
    """Return how much of a cost a run spent as a whole; of one without a curve as far as its other numbers say so."""
    target = metric_table.target(metric)
    if target is None or not math.isnan(row.tried):
        return row.tried
    x = metric_table.SPENT[target.spent]
    spent = run[x].value if x in run else NAN
    if x == "round":
        spent = cell.runs[0].train.known_rounds or NAN
    return row.value if math.isnan(spent) and math.isfinite(row.value) else spent


def _failure(cell: Cell) -> str:
    """Return the last words of a job that ended with an error and left no result, empty where none did."""
    log = logs.log_of(cell)
    return f"{log.lines[-1].strip()} ({log.path})" if log is not None and log.says == logs.FAILED else ""
