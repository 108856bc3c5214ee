"""Where the numbers of some cells come from: the runs behind them, what each took, where, and on which data."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fedbench.data import datasets
from fedbench.data.dataset import Dataset
from fedbench.errors import UserError
from fedbench.plan.cells import Cell
from fedbench.report.numbers.collect import runs_of, seconds_of
from fedbench.report.numbers.rows import HERE, NOT_RUN, Run, records
from fedbench.report.numbers.runs import table_of_runs
from fedbench.report.numbers.shipped import Shipped
from fedbench.specs import RunSpec


def provenance(cells: Sequence[Cell]) -> dict[str, Any]:
    """Say what was trained here for cells: commits, versions, hardware, data, seconds, key of every run."""
    listed, commits, hardware, seconds = [], set(), set(), 0.0
    versions: dict[str, set[str]] = {}
    data: dict[str, set[str]] = {}
    for cell in cells:
        runs, _ = runs_of(cell)
        by_key = {run["key"]: run for run in runs}
        entries = []
        for spec in cell.runs:
            run = by_key.get(spec.key, {})
            made = run.get("provenance", {})
            commits.add(made.get("commit", ""))
            hardware.add(str(made.get("hardware", "")))
            seconds += seconds_of(spec.key)
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


@dataclass(frozen=True)
class Behind:
    """A run that ended.

    Attributes:
        cell: the cell that it is for.
        spec: what was trained.
        trained: whether it was trained here; else it came with the repository.
        rows: its numbers by metric; of one that diverged a single row.
    """

    cell: Cell
    spec: RunSpec
    trained: bool
    rows: Run

    @property
    def key(self) -> str:
        """The run's key."""
        return self.spec.key

    @property
    def seconds(self) -> float:
        """How long it trained, NaN where that is not known."""
        return self.rows["seconds"].value if "seconds" in self.rows else math.nan

    @property
    def hardware(self) -> str:
        """What it ran on; of shipped runs that were exported together what all of them ran on."""
        return next(iter(self.rows.values())).hardware

    @property
    def commits(self) -> list[str]:
        """The commits of the code that made it."""
        return next(iter(self.rows.values())).commit.split()

    @property
    def finished(self) -> bool:
        """Whether it did not diverge."""
        return "" not in self.rows


def runs_behind(cells: Sequence[Cell], shipped: Shipped, metrics: Sequence[str] = ()) -> list[Behind]:
    """List the runs of some cells that ended, each once, with their costs and some ``metrics``."""
    of_key = {cell.key: cell for cell in reversed(cells)}
    runs: dict[tuple[str, int], dict[str, Any]] = {}
    for row in records(table_of_runs(cells, metrics, shipped)):
        if row.origin:
            runs.setdefault((row.cell, row.seed), {})[row.metric] = row
    listed: dict[str, Behind] = {}
    for (key, seed), rows in runs.items():
        run, first = of_key[key].runs[0].seeded(seed), next(iter(rows.values()))
        listed.setdefault(run.key, Behind(of_key[key], run, first.origin == HERE, rows))
    return list(listed.values())


def trained_on(cells: Sequence[Cell]) -> list[Dataset]:
    """List the datasets of some cells, each once; one whose definition is gone is left out."""
    described: list[Dataset] = []
    for name in dict.fromkeys(name for cell in cells for name in cell.runs[0].data.datasets):
        with contextlib.suppress(UserError):
            described.append(datasets.get(name))
    return described
