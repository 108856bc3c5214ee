"""The runs of the cells that are asked for: a row for each run and metric, trained here or shipped.

All that is said of results is made of them: measurements, what claims are compared with, exports.
Whatever is missing stays visible: a cell some of whose runs lack has a row that says why.

Of a cell the runs that were trained here enter, and shipped ones for the seeds that lack. Of other scales than that
which is asked for shipped runs alone enter: a table does not change with what else was trained on a machine.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from fedbench import metric_table
from fedbench.results import collect, run_facts
from fedbench.results.frame import COSTS, FAILED, FINISHED, NAN, NOT_RUN, UNDEFINED, Row, Run, device_metrics
from fedbench.results.places import Place, place_of
from fedbench.results.shipped import Shipped
from fedbench.store.record import Facts, Record
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import TableSpec


def runs_of_cells(cells: Sequence[Cell], metrics: Sequence[str], shipped: Shipped | None = None) -> list[Row]:
    """Return the runs of cells with some metrics and costs, a row each, in the order of the cells and their seeds.

    Args:
        cells: whose runs are wanted; they are found by their keys.
        metrics: what is wanted of them; one that diverged has a single row instead.
        shipped: runs for the seeds that were not trained here, unless a job failed here.
    """
    return [row for cell in cells for row in _of_cell(cell, metrics, shipped)]


def runs_of_table(plan: Plan, spec: TableSpec, cells: Sequence[Cell], shipped: Shipped) -> list[Row]:
    """Return the runs that a table of results shows: those of its cells, and shipped ones where it has no cell.

    All of a place come from one scale, or methods could not be compared: from the one that has most of them, of equals
    from this one, then from the one nearest to the paper.
    """
    runs = runs_of_cells(cells, spec.metrics, shipped)
    settings, known = plan.study.values(spec), {(row.place, row.method) for row in runs}
    datasets = dict.fromkeys([*spec.datasets, *(str(row.place[0][1]) for row in runs)])
    elsewhere: dict[Place, dict[str, list[Row]]] = {}
    for scale in dict.fromkeys((plan.scale.name, *shipped.scales)):
        for (dataset, *values), method in itertools.product(
            itertools.product(datasets, *settings.values()), spec.methods
        ):
            setting = dict(zip(settings, values, strict=True))
            place = place_of(str(dataset), setting)
            cell = None if (place, method) in known else shipped.cell(scale, str(dataset), setting, method)
            rows = _asked(cell, shipped.runs(cell), spec.metrics) if cell is not None else []
            if any(row.metric not in COSTS for row in rows):  # costs alone fill no cell
                elsewhere.setdefault(place, {}).setdefault(scale, []).extend(rows)
    for by_scale in elsewhere.values():
        runs += max(by_scale.values(), key=lambda rows: len({row.method for row in rows}))
    return runs


def placed(rows: Iterable[Row], cells: Sequence[Cell], place: Place) -> list[Row]:
    """Return rows with what they are of: cells that stand together at a place, one, or one for each budget."""
    first, key = cells[0], " ".join(cell.key for cell in cells)
    return [
        row._replace(
            scale=first.scale, place=place, method=first.method, cell=key,
            planned=len(first.runs),
        )
        for row in rows
    ]  # fmt: skip


def _of_cell(cell: Cell, metrics: Sequence[str], shipped: Shipped | None) -> list[Row]:
    """Return the rows of a cell, and why runs lack."""
    records, missing, failure = collect.runs_of(cell)
    runs: dict[int, Run] = {seed: _of_run(cell, seed, run, metrics) for seed, run in records.items()}
    lacks = len(runs) < len(cell.runs)
    if lacks:
        failure = failure or _failure(cell)
    if shipped is not None and not failure:
        others = shipped.runs(cell, records)
        runs |= {seed: _with_means(run, metrics, shipped.curves) for seed, run in others.items()}
    rows = _asked(cell, runs, metrics)
    if lacks:
        why = Row("", -1, "", status=FAILED if failure else NOT_RUN, reason=failure or missing, origin="")
        rows += placed([why], [cell], place_of(cell.dataset, cell.setting))
    return rows


def _asked(cell: Cell, runs: Mapping[int, Run], metrics: Sequence[str]) -> list[Row]:
    """Return the rows of a cell's runs that are asked for, in the order of its seeds, others after them."""
    order = {run.seed: at for at, run in enumerate(cell.runs)}
    names = {"", *metrics, *COSTS, *(name for metric in metrics for name in device_metrics(metric))}
    rows = [
        _with_tried(row, cell, runs[seed])
        for seed in sorted(runs, key=lambda seed: (order.get(seed, math.inf), seed))
        for name, row in runs[seed].items()
        if name in names
    ]
    return placed(rows, [cell], place_of(cell.dataset, cell.setting))


def _of_run(cell: Cell, seed: int, run: Record, metrics: Sequence[str]) -> Run:
    """Return what a run that was trained here gives: costs, metrics, and those over clients."""
    fact = Row(
        run.key, seed, "", status=run.status, reason=run.reason, commit=run.provenance.get("commit", ""),
        hardware=run.provenance.get("hardware", ""), source=str(cell.path),
    )  # fmt: skip
    if run.status != FINISHED:
        return {"": fact}
    given = {**run.metrics, "seconds": run.provenance.get("seconds") or None}
    rows = {
        name: fact._replace(metric=name, value=float(value))
        for name, value in given.items()
        if value is not None
    }
    return rows | {
        metric: _of_metric(cell, fact._replace(metric=metric), given, run.facts) for metric in metrics
    }


def _of_metric(cell: Cell, row: Row, given: Mapping[str, float | None], facts: Facts) -> Row:
    """Return a row with the value of its metric, given or read off the curve, and what is known of it beside."""
    metric, value = row.metric, given.get(row.metric)
    read = (
        row._replace(value=NAN if value is None else float(value))
        if metric in given
        else _read_off(cell, row)
    )
    if read is None:
        known = sorted(name for name in given if not name.startswith("device_") and name != "seconds")
        reason = f"the runs have no {metric}, only {', '.join(known)}"
        of_all, _, site = metric.partition("@")
        if any(name.startswith(f"{of_all}@") for name in known):  # names of sites were checked beforehand
            reason = f"no test sample of {site}"
        return row._replace(status=UNDEFINED, reason=reason)
    beside = facts.get(metric) or _facts_within(metric, facts)
    return read._replace(pace=float(beside.get("pace", NAN)), sign=str(beside.get("sign", "")))


def _read_off(cell: Cell, row: Row) -> Row | None:
    """Read off a curve what a target took, what was reached within a budget, or the mean; None where it has no such.

    Of a target it is said how much of it the run spent; what no evaluation reaches is infinite, with the best value.
    """
    target, budget = metric_table.target(row.metric), metric_table.budget(row.metric)
    asked, mean = target or budget, metric_table.curve_mean(row.metric)
    if not (asked or mean):
        return None
    curve = collect.curve_of(cell, row.key)
    if asked is None:
        of_run = _mean_over(curve, mean)
        return None if of_run is None else row._replace(value=of_run)
    name, x = asked.metric, metric_table.SPENT[asked.spent]
    if name not in curve or x not in curve:
        return None
    if budget:
        kept = curve.loc[curve[x] <= budget.amount, name]
        return row._replace(value=float(kept.iloc[-1]) if len(kept) else NAN)
    assert target
    sign = metric_table.sign(name, cell.measures)
    reached = curve.loc[sign * curve[name] >= sign * target.value, x]
    best = "" if len(reached) else f"best {sign * (sign * curve[name]).max():.4g}"
    return row._replace(
        value=float(next(iter(reached), math.inf)), reason=best, tried=float(curve[x].iloc[-1])
    )


def _with_means(run: Run, metrics: Sequence[str], curves: collect.Tables) -> Run:
    """Add to a shipped run the means over its curve that are asked for, where its curve was shipped too."""
    if "" in run:  # it diverged
        return run
    first = next(iter(run.values()))
    bare, curve = first._replace(reason="", pace=NAN, sign=""), curves.get(first.key, pd.DataFrame())
    means = {name: _mean_over(curve, mean) for name in metrics if (mean := metric_table.curve_mean(name))}
    known = {name: value for name, value in means.items() if value is not None}
    return {**run, **{name: bare._replace(metric=name, value=value) for name, value in known.items()}}


def _mean_over(curve: pd.DataFrame, metric: str) -> float | None:
    """Return the mean of a metric over a run's iterations, None where its curve lacks it.

    That of the lines between evaluations: in a plain mean the untrained model weighs more where these are few.
    """
    if metric not in curve:
        return None
    known = curve.dropna(subset=metric)
    length = known["iteration"].iloc[-1] - known["iteration"].iloc[0] if len(known) else 0
    return float(np.trapezoid(known[metric], known["iteration"]) / length) if length else NAN


def _facts_within(metric: str, facts: Facts) -> Mapping[str, float | str]:
    """Return the sign of a run that learned nothing at all for what it reached within a budget."""
    budget = metric_table.budget(metric)
    sign = facts.get(budget.metric, {}).get("sign") if budget else None
    return {"sign": str(sign)} if sign in (run_facts.FLAT, run_facts.ONE_CLASS) else {}


def _with_tried(row: Row, cell: Cell, run: Run) -> Row:
    """Add to the row of a target how much the run spent as a whole, without a curve as far as its other rows say so."""
    target = metric_table.target(row.metric)
    if target is None or not math.isnan(row.tried):
        return row
    x = metric_table.SPENT[target.spent]
    spent = run[x].value if x in run else NAN
    if x == "round":
        spent = cell.runs[0].train.known_rounds or NAN
    return row._replace(tried=row.value if math.isnan(spent) and math.isfinite(row.value) else spent)


def _failure(cell: Cell) -> str:
    """Return the last words of a job that ended with an error and left no result, empty where none did."""
    log = collect.log_of(cell)
    return f"{log.lines[-1].strip()} ({log.path})" if log is not None and log.says == FAILED else ""
