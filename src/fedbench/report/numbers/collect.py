"""Results on disk: a :class:`Measurement` per cell and metric, curves as frames with a row per point.

Whatever is missing stays visible: a cell without results is one with status ``not run``, or ``failed`` with the last
words of its job, and no mean is taken over a part of the seeds unless it says so.
"""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedbench import measures
from fedbench.errors import UserError
from fedbench.plan.cells import Cell
from fedbench.report.numbers import idle, logs, pace
from fedbench.report.numbers.measurement import COSTS, Cost, Measurement, Repeat, of_cell
from fedbench.report.numbers.measurement import DIVERGED as DIVERGED
from fedbench.report.numbers.measurement import FAILED as FAILED
from fedbench.report.numbers.measurement import FINISHED as FINISHED
from fedbench.report.numbers.measurement import INCOMPLETE as INCOMPLETE
from fedbench.report.numbers.measurement import NOT_REACHED as NOT_REACHED
from fedbench.report.numbers.measurement import NOT_RUN as NOT_RUN
from fedbench.report.numbers.measurement import UNDEFINED as UNDEFINED
from fedbench.store import results
from fedbench.store.runs import STORE, Store


def runs_of(cell: Cell, root: Path = Path()) -> tuple[list[dict[str, Any]], str]:
    """Return the results on file for the runs of a cell, in the order of its seeds, and why some are missing.

    A result counts only when its key is the cell's: numbers of an older configuration are never shown as this
    one's. A cell's file has the seeds of the last call alone, so those of earlier calls come from the store.
    """
    try:
        on_file = results.read(cell.path, root)
    except ValueError as error:
        broken = {"status": FAILED, "metrics": {}, "reason": f"{cell.path} {error}"}
        return [{"seed": run.seed, "key": run.key, **broken} for run in cell.runs], ""
    by_key = {run["key"]: run for run in on_file}
    if on_file:
        by_key |= _earlier(cell, by_key, root)
    found = [by_key[run.key] for run in cell.runs if run.key in by_key]
    lacking = {run.seed for run in cell.runs if run.key not in by_key}
    stale = any(run.get("seed") in lacking for run in on_file)
    return found, "results on file belong to other hyper-parameters or another version" if stale else ""


def _earlier(cell: Cell, on_file: Container[str], root: Path) -> dict[str, dict[str, Any]]:
    """Return those runs of a cell that its file lacks and the store has, by their keys."""
    found = {}
    for run in cell.runs:
        if run.key not in on_file:
            with contextlib.suppress(UserError):
                if record := Store(root / STORE).load(run.key):
                    found[run.key] = results.entry(run.seed, record)
    return found


def measure(
    cells: Sequence[Cell], metrics: Sequence[str], root: Path = Path(), data_dir: Path | None = None
) -> list[Measurement]:
    """Collect the results of ``cells``: one measurement per cell and metric, cell after cell.

    With ``data_dir``, where partitions are, runs that predict one class are told from others.
    """
    found = []
    for cell in cells:
        runs, missing = runs_of(cell, root)
        failure = _failure(cell, root) if len(runs) < len(cell.runs) else ""
        curves = {run["key"]: curve_of(cell, run["key"], root) for run in runs if run["status"] == FINISHED}
        for metric in metrics:
            made = runs
            if measures.target(metric):
                made = [_with_rounds_to(cell, run, metric, root) for run in runs]
            elif measures.budget(metric):
                made = [_with_budget(cell, run, metric, root) for run in runs]
            one = _measurement(cell, made, missing, metric, failure, root)
            signs = _signs(cell, made, metric, curves, data_dir)
            found.append(replace(one, signs=signs, paces=_paces(cell, made, metric, curves)))
    return found


def _cost(runs: Sequence[Mapping[str, Any]], root: Path) -> Cost:
    """Return what runs cost; how long they took stands in the store alone, so that cells are the same bytes."""
    seconds = [known for run in runs if (known := seconds_of(run["key"], root))]
    hardware = {str(run.get("provenance", {}).get("hardware", "")) for run in runs}
    counts = {name: [_number(run, name) for run in runs] for name in COSTS[:-1]}
    return Cost(
        **{name: _mean(runs, name) for name in counts},
        seconds=float(np.mean(seconds)) if seconds else math.nan,
        hardware="; ".join(sorted(hardware - {""})),
        equal_costs=" ".join(
            name for name, each in counts.items() if len({*each}) == 1 and math.isfinite(each[0])
        ),
    )


def _with_rounds_to(cell: Cell, run: dict[str, Any], metric: str, root: Path) -> dict[str, Any]:
    """Add to a run's metrics what it took until an evaluation first reaches a target: infinite where none does.

    A curve that is not there or lacks the metric adds nothing; ``reason`` keeps the best value of one that falls short.
    """
    name, wanted, spent = measures.target(metric) or measures.Target("", math.nan)
    x = measures.SPENT[spent]
    curve = curve_of(cell, run["key"], root)
    if name not in curve or x not in curve or run["status"] != FINISHED:
        return run
    sign = measures.sign(name)
    reached = curve.loc[sign * curve[name] >= sign * wanted, x]
    if len(reached):
        return {**run, "metrics": {**run["metrics"], metric: float(reached.iloc[0])}}
    best = sign * (sign * curve[name]).max()
    return {**run, "metrics": {**run["metrics"], metric: math.inf}, "reason": f"best {best:.4g}"}


def _with_budget(cell: Cell, run: dict[str, Any], metric: str, root: Path) -> dict[str, Any]:
    """Add to a run's metrics the last value of one that was measured within a budget."""
    name, spent, amount = measures.budget(metric) or measures.Budget("", "rounds", math.nan)
    curve, x = curve_of(cell, run["key"], root), measures.SPENT[spent]
    if name not in curve or x not in curve or run["status"] != FINISHED:
        return run
    kept = curve.loc[curve[x] <= amount, name]
    return {**run, "metrics": {**run["metrics"], metric: float(kept.iloc[-1]) if len(kept) else math.nan}}


def _failure(cell: Cell, root: Path) -> str:
    """Return the last words of a job that ended with an error and left no result, empty where none did."""
    log = logs.log_of(cell, root)
    return f"{log.lines[-1].strip()} ({log.path})" if log is not None and log.says == logs.FAILED else ""


def _measurement(
    cell: Cell, runs: Sequence[Mapping[str, Any]], missing: str, metric: str, failure: str, root: Path
) -> Measurement:
    finished = [run for run in runs if run["status"] == FINISHED]
    values: dict[Repeat, float] = {run["seed"]: _number(run, metric) for run in finished}
    status, reason = _status(cell, runs, values, missing, metric, failure)
    return Measurement(
        **of_cell(cell, metric),
        status=status,
        reason=reason,
        values=values,
        n_wanted=len(cell.runs),
        n_bad=sum(run["status"] in (DIVERGED, FAILED) for run in runs),
        commit=" ".join(sorted({c for run in runs if (c := run.get("provenance", {}).get("commit", ""))})),
        device_mean=_mean(finished, f"device_mean_{metric}"),
        device_variance=_mean(finished, f"device_var_{metric}"),
        key=cell.key,
        cost=_cost(finished, root),
        source=str(cell.path) if runs else "",
    )


def _signs(
    cell: Cell, runs: Sequence[Mapping[str, Any]], metric: str, curves: Mapping[str, pd.DataFrame],
    data_dir: Path | None,
) -> dict[Repeat, str]:  # fmt: skip
    """Return what shows of the finished runs of a cell that they learned nothing, by their seeds."""
    specs = {run.seed: run for run in cell.runs}
    found: dict[Repeat, str] = {}
    for run in runs:
        if run["status"] == FINISHED:
            counts = idle.class_counts(specs[run["seed"]], data_dir) if data_dir is not None else {}
            found[run["seed"]] = idle.sign(metric, run["metrics"], curves[run["key"]], counts)
    return {seed: word for seed, word in found.items() if word}


def _paces(
    cell: Cell, runs: Sequence[Mapping[str, Any]], metric: str, curves: Mapping[str, pd.DataFrame]
) -> dict[Repeat, float]:
    """Return how fast the curves of the finished runs of a cell still moved, by their seeds, where that is known."""
    decays = cell.runs[0].train.decay_at
    ended = [run for run in runs if run["status"] == FINISHED]
    found = {run["seed"]: pace.pace(curves[run["key"]], metric, decays) for run in ended}
    return {seed: value for seed, value in found.items() if math.isfinite(value)}


def _status(
    cell: Cell,
    runs: Sequence[Mapping[str, Any]],
    values: Mapping[Repeat, float],
    missing: str,
    metric: str,
    failure: str,
) -> tuple[str, str]:
    """Return what is to be said of a cell's metric, and why if that is not ``finished``."""
    for status in (DIVERGED, FAILED):
        bad = [run for run in runs if run["status"] == status]
        if bad:
            reasons = sorted({run.get("reason") or "no reason recorded" for run in bad})
            count = f"{len(bad)} of {len(cell.runs)} seeds" if len(cell.runs) > 1 else "the only seed"
            return status, f"{count}: {'; '.join(reasons)}"
    if not values:
        return (FAILED, failure) if failure else (NOT_RUN, missing)
    finished = [run for run in runs if run["status"] == FINISHED]
    if not any(metric in run["metrics"] for run in finished):
        known = {name for run in finished for name in run["metrics"] if not name.startswith("device_")}
        return UNDEFINED, f"the runs have no {metric}, only {', '.join(sorted(known))}"
    if short := [run for run in finished if _number(run, metric) == math.inf and measures.target(metric)]:
        count = f"{len(short)} of {len(values)} seeds: " if len(values) > 1 else ""
        return NOT_REACHED, f"{count}{'; '.join(run['reason'] for run in short)}"
    if undefined := [str(seed) for seed, value in values.items() if not math.isfinite(value)]:
        return UNDEFINED, f"{metric} has no finite value for seed {', '.join(undefined)}"
    if len(values) < len(cell.runs):
        count = f"{len(values)} of {len(cell.runs)} seeds are done"
        return INCOMPLETE, f"{count}; {missing}" if missing else count
    return FINISHED, ""


def _number(run: Mapping[str, Any], metric: str) -> float:
    value = run["metrics"].get(metric)
    return math.nan if value is None else float(value)


def _provenance(key: str, root: Path) -> dict[str, Any]:
    """Return what the store says of how a run was made, nothing where it does not say."""
    with contextlib.suppress(UserError):
        if record := Store(root / STORE).load(key):
            return record.provenance
    return {}


def seconds_of(key: str, root: Path) -> float:
    """Return how long a run trained, 0 where the store does not say."""
    return float(_provenance(key, root).get("seconds", 0.0))


def _mean(runs: Sequence[Mapping[str, Any]], metric: str) -> float:
    values = [_number(run, metric) for run in runs]
    return float(np.mean(values)) if values else math.nan


def curves(cells: Sequence[Cell], metric: str, root: Path = Path(), x: str = "iteration") -> pd.DataFrame:
    """Collect the curves: one row per evaluation with dataset, setting, method, seed, status, x, value.

    A run without a ``curve.csv``, or whose curve lacks the metric or x, contributes no row; a damaged one is an error.
    """
    parts = []
    for cell in cells:
        for run in runs_of(cell, root)[0]:
            curve = curve_of(cell, run["key"], root)
            if metric not in curve or x not in curve:
                continue
            part = pd.DataFrame({"x": curve[x], "value": curve[metric]})
            part.insert(0, "status", run["status"])
            part.insert(0, "seed", run["seed"])
            part.insert(0, "method", cell.method)
            part.insert(0, "setting", [dict(cell.setting)] * len(part))
            part.insert(0, "dataset", cell.dataset)
            parts.append(part)
    columns = ["dataset", "setting", "method", "seed", "status", "x", "value"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def curve_of(cell: Cell, key: str, root: Path = Path()) -> pd.DataFrame:
    """Return the curve of a run, empty where there is none.

    The file's columns, and where they are known ``cycle`` (turns of all groups of clients) and ``seconds`` of training
    at each evaluation; those lie beside the curve, which is the same on every machine.
    """
    curve = _table(key, "curve.csv", root)
    groups = cell.runs[0].train.participation.groups
    if groups is not None and "round" in curve:
        curve["cycle"] = curve["round"] / groups
    seconds = _provenance(key, root).get("curve_seconds", [])
    if len(seconds) == len(curve):
        curve["seconds"] = seconds
    return curve


def _table(key: str, name: str, root: Path) -> pd.DataFrame:
    """Return a run's ``curve.csv`` or ``clients.csv`` as it was written, empty where the store has none."""
    content = Store(root / STORE).table(key, name)
    return pd.read_csv(io.BytesIO(content)) if content else pd.DataFrame()


def lacking(cells: Sequence[Cell], names: Sequence[str], root: Path = Path()) -> tuple[list[str], list[str]]:
    """Return which columns no curve on file has, and those they have; nothing is lacking where there is no curve."""
    curves = (curve_of(cell, run["key"], root) for cell in cells for run in runs_of(cell, root)[0])
    known = list(dict.fromkeys(str(name) for curve in curves for name in curve.columns))
    return [name for name in names if known and name not in known], known


def clients(cell: Cell, quantity: str, root: Path = Path()) -> pd.DataFrame | None:
    """Return what the method traced for each client in the first seed: index round, one column per client."""
    for run in runs_of(cell, root)[0][:1]:
        table = _table(run["key"], "clients.csv", root)
        if not table.empty:
            rows = table[table["quantity"] == quantity].set_index("round").drop(columns="quantity")
            return None if rows.empty else rows
    return None
