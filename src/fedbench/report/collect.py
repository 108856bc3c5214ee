"""Results on disk as tidy frames: one row per (cell, metric), one row per point of a curve.

Whatever is missing stays visible: a cell without results is a row with status ``not run``, or ``failed`` with the last
words of its job, and no mean is taken over a part of the seeds unless the row says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedbench.cells import Cell
from fedbench.report import logs

RUNS = Path("results", "runs")
FINISHED, INCOMPLETE, DIVERGED, FAILED, NOT_RUN, UNDEFINED = (
    "finished",
    "incomplete",
    "diverged",
    logs.FAILED,
    "not run",
    "undefined",
)
COLUMNS = (
    "paper", "scale", "dataset", "setting", "method", "metric", "mean", "std", "n_seeds", "n_bad", "n_wanted",
    "status", "reason", "commit", "device_mean", "device_variance", "key",
)  # fmt: skip


def runs_of(cell: Cell, root: Path = Path()) -> tuple[list[dict[str, Any]], str]:
    """Return the results on file for the runs of a cell, in the order of its seeds, and why some are missing.

    A result counts only when its key is the cell's: numbers of an older configuration are never shown as this
    one's.
    """
    path = root / cell.path
    try:
        on_file = json.loads(path.read_text(encoding="utf-8"))["runs"]
        by_key = {run["key"]: run for run in on_file}
    except FileNotFoundError:
        return [], ""
    except (ValueError, KeyError, TypeError) as error:
        broken = {
            "status": FAILED,
            "metrics": {},
            "reason": f"{cell.path} is not readable ({error}); delete it",
        }
        return [{"seed": run.seed, "key": run.key, **broken} for run in cell.runs], ""
    found = [by_key[run.key] for run in cell.runs if run.key in by_key]
    lacking = {run.seed for run in cell.runs if run.key not in by_key}
    stale = any(run.get("seed") in lacking for run in on_file)
    return found, "results on file belong to other hyper-parameters or another version" if stale else ""


def frame(cells: Sequence[Cell], metrics: Sequence[str], root: Path = Path()) -> pd.DataFrame:
    """Collect the results of ``cells``: one row per cell and metric, with the columns of ``COLUMNS``.

    ``std`` is over seeds with ddof 1 (NaN for one seed), ``device_mean`` and ``device_variance`` are the
    means over seeds of the mean and variance over the devices' own models. ``mean`` is NaN unless the status
    is ``finished`` (all wanted seeds) or ``incomplete`` (``n_seeds`` of ``n_wanted``).
    """
    rows = []
    for cell in cells:
        runs, missing = runs_of(cell, root)
        failure = _failure(cell, root) if len(runs) < len(cell.runs) else ""
        for metric in metrics:
            summary = _summary(cell, runs, missing, metric, failure)
            rows.append({**_coordinates(cell), "metric": metric, **summary})
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _coordinates(cell: Cell) -> dict[str, Any]:
    return {
        "paper": cell.paper,
        "scale": cell.scale,
        "dataset": cell.dataset,
        "setting": dict(cell.setting),
        "method": cell.method,
        "n_wanted": len(cell.runs),
        "key": cell.key,
    }


def _failure(cell: Cell, root: Path) -> str:
    """Return the last words of a job that ended with an error and left no result, empty where none did."""
    log = logs.log_of(cell, root)
    return f"{log.lines[-1].strip()} ({log.path})" if log is not None and log.says == logs.FAILED else ""


def _summary(
    cell: Cell, runs: Sequence[Mapping[str, Any]], missing: str, metric: str, failure: str
) -> dict[str, Any]:
    finished = [run for run in runs if run["status"] == FINISHED]
    result: dict[str, Any] = {
        "mean": math.nan,
        "std": math.nan,
        "n_seeds": len(finished),
        "n_bad": sum(run["status"] in (DIVERGED, FAILED) for run in runs),
        "reason": "",
        "commit": " ".join(sorted({c for run in runs if (c := run.get("provenance", {}).get("commit", ""))})),
        "device_mean": _mean(finished, f"device_mean_{metric}"),
        "device_variance": _mean(finished, f"device_var_{metric}"),
    }
    for status in (DIVERGED, FAILED):
        bad = [run for run in runs if run["status"] == status]
        if bad:
            reasons = sorted({run.get("reason") or "no reason recorded" for run in bad})
            count = f"{len(bad)} of {len(cell.runs)} seeds" if len(cell.runs) > 1 else "the only seed"
            return {**result, "status": status, "reason": f"{count}: {'; '.join(reasons)}"}
    if not finished and failure:
        return {**result, "status": FAILED, "reason": failure}
    if not finished:
        return {**result, "status": NOT_RUN, "reason": missing}
    if not any(metric in run["metrics"] for run in finished):
        known = sorted(
            {name for run in finished for name in run["metrics"] if not name.startswith("device_")}
        )
        return {
            **result,
            "status": UNDEFINED,
            "reason": f"the runs have no {metric}, only {', '.join(known)}",
        }
    values = [_number(run, metric) for run in finished]
    if not all(map(math.isfinite, values)):
        seeds = ", ".join(
            str(run["seed"]) for run, v in zip(finished, values, strict=True) if not math.isfinite(v)
        )
        return {**result, "status": UNDEFINED, "reason": f"{metric} has no finite value for seed {seeds}"}
    result["mean"] = float(np.mean(values))
    result["std"] = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    if len(finished) < len(cell.runs):
        count = f"{len(finished)} of {len(cell.runs)} seeds are done"
        return {**result, "status": INCOMPLETE, "reason": f"{count}; {missing}" if missing else count}
    return {**result, "status": FINISHED}


def _number(run: Mapping[str, Any], metric: str) -> float:
    value = run["metrics"].get(metric)
    return math.nan if value is None else float(value)


def _seconds(key: str, root: Path) -> float:
    """Return how long a run trained, 0 where the store does not say."""
    path = root / RUNS / key / "run.json"
    try:
        return float(json.loads(path.read_text(encoding="utf-8"))["provenance"]["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def _mean(runs: Sequence[Mapping[str, Any]], metric: str) -> float:
    values = [_number(run, metric) for run in runs]
    return float(np.mean(values)) if values else math.nan


def curves(cells: Sequence[Cell], metric: str, root: Path = Path(), x: str = "iteration") -> pd.DataFrame:
    """Collect the curves: one row per evaluation with dataset, setting, method, seed, status, x, value.

    A run without a ``curve.csv``, or whose curve lacks the metric, contributes no row.
    """
    parts = []
    for cell in cells:
        for run in runs_of(cell, root)[0]:
            path = root / RUNS / run["key"] / "curve.csv"
            if not path.exists():
                continue
            curve = pd.read_csv(path)
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


def clients(cell: Cell, quantity: str, root: Path = Path()) -> pd.DataFrame | None:
    """Return what the method traced for each client in the first seed: index round, one column per client."""
    for run in runs_of(cell, root)[0][:1]:
        path = root / RUNS / run["key"] / "clients.csv"
        if path.exists():
            table = pd.read_csv(path)
            rows = table[table["quantity"] == quantity].set_index("round").drop(columns="quantity")
            return None if rows.empty else rows
    return None


def provenance(cells: Sequence[Cell], root: Path = Path()) -> dict[str, Any]:
    """Say where the numbers come from: commits, versions, hardware, data, seconds, key of every run."""
    listed, commits, hardware, seconds = [], set(), set(), 0.0
    versions: dict[str, set[str]] = {}
    data: dict[str, set[str]] = {}
    for cell in cells:
        runs, _ = runs_of(cell, root)
        by_key = {run["key"]: run for run in runs}
        entries = []
        for spec in cell.runs:
            run = by_key.get(spec.key, {})
            made = run.get("provenance", {})
            commits.add(made.get("commit", ""))
            hardware.add(str(made.get("hardware", "")))
            seconds += _seconds(spec.key, root)
            for name, version in made.get("versions", {}).items():
                versions.setdefault(name, set()).add(str(version))
            if digest := made.get("data"):  # runs of earlier versions have none
                data.setdefault(cell.dataset, set()).add(digest)
            entries.append({"seed": spec.seed, "key": spec.key, "status": run.get("status", NOT_RUN)})
        listed.append({"cell": cell.name, "runs": entries})
    return {
        "commits": sorted(commits - {""}),
        "versions": {name: sorted(found) for name, found in sorted(versions.items())},
        "hardware": sorted(hardware - {""}),
        "data": {name: sorted(found) for name, found in sorted(data.items())},
        "training_seconds": round(seconds, 1),
        "cells": listed,
    }
