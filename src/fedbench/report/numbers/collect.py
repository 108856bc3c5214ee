"""Results on disk: the rows of runs that were trained here, and their curves as frames with a row for each point."""

from __future__ import annotations

import contextlib
import functools
import io
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from fedbench import measures
from fedbench.errors import UserError
from fedbench.plan.cells import Cell
from fedbench.report.numbers.rows import COSTS, FAILED, FINISHED, NAN, UNDEFINED, Row, device_metrics
from fedbench.results import idle
from fedbench.store import results
from fedbench.store.record import Facts
from fedbench.store.runs import Store

Tables = Mapping[str, pd.DataFrame]
"""Tables of shipped runs by key, such as curves (:mod:`fedbench.report.numbers.shipped_curves`)."""


def runs_of(cell: Cell) -> tuple[list[dict[str, Any]], str]:
    """Return the results on file for the runs of a cell, in the order of its seeds, and why some are missing.

    A result counts only when its key is the cell's: numbers of an older configuration are never shown as this
    one's. A cell's file has the seeds of the last call alone, so those of earlier calls come from the store.
    """
    try:
        on_file = results.read(cell.path)
    except ValueError as error:
        broken = {"status": FAILED, "metrics": {}, "reason": f"{cell.path} {error}"}
        return [{"seed": run.seed, "key": run.key, **broken} for run in cell.runs], ""
    by_key = {run["key"]: run for run in on_file}
    if on_file:
        by_key |= _earlier(cell, by_key)
    known = [by_key[run.key] for run in cell.runs if run.key in by_key]
    lacking = {run.seed for run in cell.runs if run.key not in by_key}
    stale = any(run.get("seed") in lacking for run in on_file)
    return known, "results on file belong to other hyper-parameters or another version" if stale else ""


def _earlier(cell: Cell, on_file: Container[str]) -> dict[str, dict[str, Any]]:
    """Return those runs of a cell that its file lacks and the store has, by their keys."""
    earlier = {}
    for run in cell.runs:
        if run.key not in on_file:
            with contextlib.suppress(UserError):
                if record := Store().load(run.key):
                    earlier[run.key] = results.entry(run.seed, record)
    return earlier


def rows_of(cell: Cell, runs: Sequence[dict[str, Any]], metrics: Sequence[str]) -> dict[int, dict[str, Row]]:
    """Return what runs trained here give of some metrics and what they cost, by seed and metric."""
    by_seed: dict[int, dict[str, Row]] = {}
    for run in runs:
        made, seed = run.get("provenance", {}), run["seed"]
        fact = Row(
            key=run["key"],
            seed=seed,
            metric="",
            status=run["status"],
            commit=made.get("commit", ""),
            hardware=str(made.get("hardware", "")),
            source=str(cell.path),
        )
        if run["status"] != FINISHED:
            by_seed[seed] = {"": fact._replace(reason=run.get("reason", ""))}
            continue
        given = {**run["metrics"], "seconds": seconds_of(run["key"]) or None}
        curve = functools.partial(curve_of, cell, run["key"])
        by_seed[seed] = _rows(fact, given, metrics, run.get("facts", {}), curve)
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
            rows[metric] = fact._replace(metric=metric, status=UNDEFINED, reason=reason)
            continue
        of_metric: Mapping[str, Any] = facts.get(metric) or _sign_within(metric, facts)
        rows[metric] = fact._replace(metric=metric, **read)._replace(**of_metric)
    return rows


def _read_off(metric: str, curve_of_run: Callable[[], pd.DataFrame]) -> dict[str, Any] | None:
    """Read off a curve what a target took, what was reached within a budget, or the mean; None where it has no such.

    Of a target it is said how much of it the run spent; what no evaluation reaches is infinite, with the best value.
    """
    target, budget, mean = measures.target(metric), measures.budget(metric), measures.curve_mean(metric)
    if not (target or budget or mean):
        return None
    curve = curve_of_run()
    asked = target or budget
    if asked is None:
        return {"value": float(curve[mean].mean())} if mean in curve else None
    name, x = asked.metric, measures.SPENT[asked.spent]
    if name not in curve or x not in curve:
        return None
    if budget:
        kept = curve.loc[curve[x] <= budget.amount, name]
        return {"value": float(kept.iloc[-1]) if len(kept) else NAN}
    assert target
    sign = measures.sign(name)
    reached = curve.loc[sign * curve[name] >= sign * target.value, x]
    best = "" if len(reached) else f"best {sign * (sign * curve[name]).max():.4g}"
    return {"value": float(next(iter(reached), math.inf)), "reason": best, "tried": float(curve[x].iloc[-1])}


def _sign_within(metric: str, facts: Facts) -> dict[str, str]:
    """Return the sign of a run that learned nothing at all for what it reached within a budget."""
    budget = measures.budget(metric)
    sign = facts.get(budget.metric, {}).get("sign") if budget else None
    return {"sign": str(sign)} if sign in (idle.FLAT, idle.ONE_CLASS) else {}


def _provenance(key: str) -> dict[str, Any]:
    """Return what the store says of how a run was made, nothing where it does not say."""
    with contextlib.suppress(UserError):
        if record := Store().load(key):
            return record.provenance
    return {}


def seconds_of(key: str) -> float:
    """Return how long a run trained, 0 where the store does not say."""
    return float(_provenance(key).get("seconds", 0.0))


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
    trained = {run["key"]: run for run in runs_of(cell)[0]}
    for run in cell.runs:
        if run.key in trained:
            status, curve = trained[run.key]["status"], curve_of(cell, run.key)
        elif run.key in shipped:
            curve = _with_cycles(cell, shipped[run.key])
            status = str(curve["status"].iloc[0])
        else:
            continue
        yield {"seed": run.seed, "status": status, "here": run.key in trained}, curve


def curve_of(cell: Cell, key: str) -> pd.DataFrame:
    """Return the curve of a run, empty where there is none.

    The file's columns, and where they are known ``cycle`` (turns of all groups of clients) and ``seconds`` of training
    at each evaluation; those lie beside the curve, which is the same on every machine.
    """
    curve = _with_cycles(cell, table_of(key, "curve.csv"))
    seconds = _provenance(key).get("curve_seconds", [])
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
    run = next(iter(runs_of(cell)[0]), None)
    table = table_of(run["key"], "clients.csv") if run else shipped.get(cell.runs[0].key, pd.DataFrame())
    if table.empty:
        return None, bool(run)
    rows = table[table["quantity"] == quantity].set_index("round")
    rows = rows.drop(columns=["quantity", "key", "status"], errors="ignore")
    return (None if rows.empty else rows), bool(run)
