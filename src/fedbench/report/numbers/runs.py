"""One table of runs: a row for each run and metric, trained here or shipped, of the cells that are asked for.

All that is said of results is made of it: measurements, what claims are compared with, exports, what was trained where.
Whatever is missing stays visible: a cell some of whose runs lack has a row that says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from fedbench import measures
from fedbench.plan.cells import Cell
from fedbench.report.numbers import collect, logs
from fedbench.report.numbers.rows import (
    COSTS,
    FAILED,
    NAN,
    NOT_RUN,
    OF_ROW,
    Row,
    Run,
    device_metrics,
    frame_of,
)
from fedbench.report.numbers.shipped import Shipped
from fedbench.results.places import place_of

OF_CELL = {"study": str, "scale": str, "place": tuple, "method": str, "cell": str, "planned": int}
"""Columns before those of :class:`Row`: ``cell`` is the cell's key, ``planned`` how many seeds are wanted."""


def table_of_runs(
    cells: Sequence[Cell], metrics: Sequence[str], shipped: Shipped | None = None, trained: bool = True
) -> pd.DataFrame:  # fmt: skip
    """Return the runs of cells with some metrics and costs, a row each, in the order of the cells and their seeds.

    Args:
        cells: whose runs are wanted; they are found by their keys.
        metrics: what is wanted of them; one that diverged has a single row instead.
        shipped: runs for the seeds that were not trained here, unless a job failed here.
        trained: whether runs that were trained here count.
    """
    rows = [
        (*told, *row)
        for cell in cells
        for told in [_told(cell)]
        for row in _rows(cell, metrics, shipped, trained)
    ]
    return frame_of(rows, OF_CELL | OF_ROW)


def _told(cell: Cell) -> tuple[Any, ...]:
    """Return what :data:`OF_CELL` names."""
    return cell.paper, cell.scale, place_of(cell.dataset, cell.setting), cell.method, cell.key, len(cell.runs)


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
            if name in metrics and measures.target(name):
                yield row._replace(tried=_tried(cell, name, row, runs[seed]))
            elif name in metrics or name in beside:
                yield row
    if len(trained_here) < len(cell.runs):
        yield Row("", -1, "", status=FAILED if failure else NOT_RUN, reason=failure or missing, origin="")


def _tried(cell: Cell, metric: str, row: Row, run: Run) -> float:
    """Return how much of a cost a run spent as a whole; of one without a curve as far as its other numbers say so."""
    target = measures.target(metric)
    if target is None or not math.isnan(row.tried):
        return row.tried
    x = measures.SPENT[target.spent]
    spent = run[x].value if x in run else NAN
    if x == "round":
        spent = cell.runs[0].train.known_rounds or NAN
    return row.value if math.isnan(spent) and math.isfinite(row.value) else spent


def _failure(cell: Cell) -> str:
    """Return the last words of a job that ended with an error and left no result, empty where none did."""
    log = logs.log_of(cell)
    return f"{log.lines[-1].strip()} ({log.path})" if log is not None and log.says == logs.FAILED else ""
