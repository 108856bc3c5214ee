"""Results on disk: the runs that were trained here, where they come from, their curves as frames, and logs."""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from fedbench.data.prepared import FORM
from fedbench.errors import UserError
from fedbench.results.frame import FAILED, NOT_RUN
from fedbench.store import cell_files
from fedbench.store.record import Record
from fedbench.store.runs import Store
from fedbench.study.cells import Cell

Tables = Mapping[str, pd.DataFrame]
"""Tables of shipped runs by key, such as curves (:func:`fedbench.results.shipped.load_curves`)."""

UNFINISHED = "interrupted"
"""What a log says of a job that ended neither well nor with an error."""
LOGS = Path("logs", "train")
LINES, WIDTH = 14, 240
"""How much of a log is shown."""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ENDED = re.compile(r"^\s+seed \d+: (finished|diverged)")
BROKEN = re.compile(r"error:|Traceback |[\w.]*(Error|Exception|Interrupt)\b|.*\b(Killed|Segmentation fault)")


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


def other_code(cells: Iterable[Cell]) -> dict[str, int]:
    """Say of each cell with runs that other code made than today's, how many."""
    return {cell.name: n for cell in cells if (n := sum(cell_files.other_code(cell, Store())))}


def provenance(cells: Sequence[Cell]) -> dict[str, Any]:
    """Say what was trained here for cells: commits, versions, hardware, data, seconds, key of every run."""
    trained = [(cell, runs_of(cell).records) for cell in cells]
    made = [(cell.dataset, run.provenance) for cell, records in trained for run in records.values()]
    data = [(dataset, of.get("data", "")) for dataset, of in made]
    listed = []
    for cell, records in trained:
        status = {seed: run.status for seed, run in records.items()}
        runs = [{"seed": of.seed, "key": of.key, "status": status.get(of.seed, NOT_RUN)} for of in cell.runs]
        listed.append({"cell": cell.name, "runs": runs})
    return {
        "commits": sorted({of.get("commit", "") for _, of in made} - {""}),
        "versions": _by_name(pair for _, of in made for pair in of.get("versions", {}).items()),
        "hardware": sorted({of.get("hardware", "") for _, of in made} - {""}),
        # runs of earlier versions have other digests
        "data": _by_name((dataset, digest) for dataset, digest in data if digest.startswith(FORM)),
        "training_seconds": round(sum((of.get("seconds", 0.0) for _, of in made), 0.0), 1),
        "other_code": other_code(cells),
        "cells": listed,
    }


def _by_name(pairs: Iterable[tuple[str, Any]]) -> dict[str, list[str]]:
    known = sorted({(name, str(value)) for name, value in pairs})
    return {name: [value for of, value in known if of == name] for name, _ in known}


def curves(cell: Cell, metric: str, x: str, shipped: Tables) -> pd.DataFrame:
    """Collect the curves of a cell: a row for each evaluation with seed, status, here, x, value.

    A run without a curve, or whose curve lacks the metric or x, contributes no row; a damaged one is an error. ``here``
    tells which were trained here, and are not from ``shipped``.
    """
    trained, parts = runs_of(cell).records, list[pd.DataFrame]()
    for run in cell.runs:
        ran = run.seed in trained
        curve = curve_of(cell, run.key) if ran else _with_cycles(cell, shipped.get(run.key, pd.DataFrame()))
        if metric in curve and x in curve:
            status = trained[run.seed].status if ran else curve["status"]
            of_run = {"seed": run.seed, "status": status, "here": ran}
            parts.append(pd.DataFrame({**of_run, "x": curve[x], "value": curve[metric]}))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


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


@dataclass(frozen=True)
class Log:
    """The end of a job's log: its path, its last lines, and what they say of a cell without results."""

    path: Path
    lines: list[str]
    says: str


def log_of(cell: Cell) -> Log | None:
    """Return the end of the log that the workflow's job of a cell left, None where there is none.

    ``says`` is empty where there is a result, which the job would have removed before it began, or where the log
    tells of an end of all seeds; ``failed`` when an error stands in it; ``interrupted`` otherwise: a job that was
    killed says nothing.
    """
    path = LOGS / Path(*cell.path.parts[2:]).with_suffix(".log")
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    lines = [ESCAPES.sub("", line).rstrip() for line in text.rstrip().split("\n")]
    says = UNFINISHED
    if cell.path.exists():
        says = ""
    elif any(BROKEN.match(line) for line in lines):
        says = FAILED
    elif sum(bool(ENDED.match(line)) for line in lines) >= len(cell.runs):
        says = ""
    return Log(path, [line[:WIDTH] for line in lines[-LINES:]], says)
