"""Results on disk: the rows of runs that were trained here, and their curves as frames with a row for each point."""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from fedbench import metric_table
from fedbench.errors import UserError
from fedbench.results import degenerate_runs
from fedbench.results.frame import COSTS, FINISHED, NAN, UNDEFINED, Row, device_metrics
from fedbench.store import cell_files
from fedbench.store.record import Facts, Record
from fedbench.store.runs import Store
from fedbench.study.cells import Cell

Tables = Mapping[str, pd.DataFrame]
"""Tables of shipped runs by key, such as curves (:func:`fedbench.results.shipped.load_curves`)."""


class Trained(NamedTuple):
    """The runs of a cell that were trained here.

    Attributes:
        records: by seed, in the order of the cell's.
        missing: why others lack, where its file has them of another configuration.
        damaged: what is said of those that the store has and that are not what was written.
    """

    records: dict[int, Record]
    missing: str = ""
    damaged: str = ""


def runs_of(cell: Cell) -> Trained:
    """Return the runs of a cell that were trained here: those the store has by their keys, once a job left its file.

    Only runs with the cell's keys count: numbers of an older configuration are never shown as this one's.
    """
    if not cell.path.exists():
        return Trained({})
    records, damaged = dict[int, Record](), list[str]()
    for run in cell.runs:
        try:
            if record := Store().record(run.key):
                records[run.seed] = record
        except UserError as error:
            damaged.append(str(error))
    listed = cell_files.keys(cell.path) if len(records) < len(cell.runs) else {}
    stale = any(listed.get(run.seed, run.key) != run.key for run in cell.runs if run.seed not in records)
    missing = "results on file belong to other hyper-parameters or another version" if stale else ""
    return Trained(records, missing, "; ".join(damaged))


def rows_of(cell: Cell, records: Mapping[int, Record], metrics: Sequence[str]) -> dict[int, dict[str, Row]]:
    """Return what runs trained here give of some metrics and what they cost, by seed and metric."""
    by_seed: dict[int, dict[str, Row]] = {}
    for seed, run in records.items():
        fact = Row(
            key=run.key,
            seed=seed,
            metric="",
            status=run.status,
            reason=run.reason,
            commit=run.provenance.get("commit", ""),
            hardware=run.provenance.get("hardware", ""),
            source=str(cell.path),
        )
        if run.status != FINISHED:
            by_seed[seed] = {"": fact}
            continue
        given = {**run.metrics, "seconds": run.provenance.get("seconds") or None}
        curve = functools.partial(curve_of, cell, run.key)
        by_seed[seed] = _rows(fact, given, metrics, run.facts, curve)
    return by_seed


def _rows(
    fact: Row, given: dict[str, Any], metrics: Sequence[str], facts: Facts, curve: Callable[[], pd.DataFrame]
) -> dict[str, Row]:
    """Return the rows of a finished run, each made of ``fact``: costs, metrics, and those over clients."""
    beside = [*COSTS, *(name for metric in metrics for name in device_metrics(metric))]
    rows = {
        name: fact._replace(metric=name, value=float(given[name]))
        for name in beside
        if given.get(name) is not None
    }
    known = sorted(name for name in given if not name.startswith("device_") and name != "seconds")
    for metric in metrics:
        value = NAN if given.get(metric) is None else float(given[metric])
        read = {"value": value} if metric in given else _read_off(metric, curve)
        if read is None:
            reason = f"the runs have no {metric}, only {', '.join(known)}"
            of_all, _, site = metric.partition("@")
            if any(name.startswith(f"{of_all}@") for name in known):  # names of sites were checked beforehand
                reason = f"no test sample of {site}"
            rows[metric] = fact._replace(metric=metric, status=UNDEFINED, reason=reason)
            continue
        known_facts: Mapping[str, Any] = facts.get(metric) or _sign_within(metric, facts)
        of_metric = {name: known_facts[name] for name in ("pace", "sign") if name in known_facts}
        rows[metric] = fact._replace(metric=metric, **read, **of_metric)
    return rows


def _read_off(metric: str, curve_of_run: Callable[[], pd.DataFrame]) -> dict[str, Any] | None:
    """Read off a curve what a target took, what was reached within a budget, or the mean; None where it has no such.

    Of a target it is said how much of it the run spent; what no evaluation reaches is infinite, with the best value.
    """
    target, budget, mean = (
        metric_table.target(metric),
        metric_table.budget(metric),
        metric_table.curve_mean(metric),
    )
    if not (target or budget or mean):
        return None
    curve = curve_of_run()
    asked = target or budget
    if asked is None:
        return {"value": float(curve[mean].mean())} if mean in curve else None
    name, x = asked.metric, metric_table.SPENT[asked.spent]
    if name not in curve or x not in curve:
        return None
    if budget:
        kept = curve.loc[curve[x] <= budget.amount, name]
        return {"value": float(kept.iloc[-1]) if len(kept) else NAN}
    assert target
    sign = metric_table.sign(name)
    reached = curve.loc[sign * curve[name] >= sign * target.value, x]
    best = "" if len(reached) else f"best {sign * (sign * curve[name]).max():.4g}"
    return {"value": float(next(iter(reached), math.inf)), "reason": best, "tried": float(curve[x].iloc[-1])}


def _sign_within(metric: str, facts: Facts) -> dict[str, str]:
    """Return the sign of a run that learned nothing at all for what it reached within a budget."""
    budget = metric_table.budget(metric)
    sign = facts.get(budget.metric, {}).get("sign") if budget else None
    return {"sign": str(sign)} if sign in (degenerate_runs.FLAT, degenerate_runs.ONE_CLASS) else {}


def curves(cell: Cell, metric: str, x: str, shipped: Tables) -> pd.DataFrame:
    """Collect the curves of a cell: a row for each evaluation with seed, status, here, x, value.

    A run without a curve, or whose curve lacks the metric or x, contributes no row; a damaged one is an error. ``here``
    tells which were trained here, and are not from ``shipped``.
    """
    parts = [
        pd.DataFrame({**run, "x": curve[x], "value": curve[metric]})
        for run, curve in _curves(cell, shipped)
        if metric in curve and x in curve
    ]
    columns = ["seed", "status", "here", "x", "value"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _curves(cell: Cell, shipped: Tables) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield the curve of each run of a cell, shipped where it was not trained here, with its seed and status."""
    trained = runs_of(cell).records
    for run in cell.runs:
        if run.seed in trained:
            status, curve = trained[run.seed].status, curve_of(cell, run.key)
        elif run.key in shipped:
            curve = _with_cycles(cell, shipped[run.key])
            status = str(curve["status"].iloc[0])
        else:
            continue
        yield {"seed": run.seed, "status": status, "here": run.seed in trained}, curve


def curve_of(cell: Cell, key: str) -> pd.DataFrame:
    """Return the curve of a run, empty where there is none.

    The file's columns, and where they are known ``cycle`` (turns of all groups of clients) and ``seconds`` of training
    at each evaluation; those lie beside the curve, which is the same on every machine.
    """
    curve = _with_cycles(cell, table_of(key, "curve.csv"))
    record = Store().record(key)
    seconds = record.provenance.get("curve_seconds", []) if record else []
    if len(seconds) == len(curve):
        curve["seconds"] = seconds
    return curve


def _with_cycles(cell: Cell, curve: pd.DataFrame) -> pd.DataFrame:
    groups = cell.runs[0].train.participation.groups
    return curve.assign(cycle=curve["round"] / groups) if groups is not None and "round" in curve else curve


def table_of(key: str, name: str) -> pd.DataFrame:
    """Return a run's ``curve.csv`` or ``clients.csv`` as it was written, empty where the store has none."""
    content = Store().table(key, name)
    return _parsed(content).copy() if content else pd.DataFrame()


@functools.lru_cache(maxsize=64)
def _parsed(content: bytes) -> pd.DataFrame:
    """Return a table, not to be changed: each metric of a figure asks for the same curves."""
    return pd.read_csv(io.BytesIO(content))


def lacking(cells: Sequence[Cell], names: Sequence[str], shipped: Tables) -> tuple[list[str], list[str]]:
    """Return which columns no curve on file has, and those they have; nothing is lacking where there is no curve."""
    curves = (curve for cell in cells for _, curve in _curves(cell, shipped))
    known = list(dict.fromkeys(str(name) for curve in curves for name in curve.columns))
    return [name for name in names if known and name not in known], known


def clients(cell: Cell, quantity: str, shipped: Tables) -> tuple[pd.DataFrame | None, bool]:
    """Return what the method traced for each client in the first seed, and whether that run was trained here.

    A row for each round, its index, and a column for each client; None where nothing was traced.
    """
    run = next(iter(runs_of(cell).records.values()), None)
    table = table_of(run.key, "clients.csv") if run else shipped.get(cell.runs[0].key, pd.DataFrame())
    if table.empty:
        return None, bool(run)
    rows = table[table["quantity"] == quantity].set_index("round")
    rows = rows.drop(columns=["quantity", "key", "status"], errors="ignore")
    return (None if rows.empty else rows), bool(run)
