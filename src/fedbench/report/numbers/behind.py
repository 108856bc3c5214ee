"""The runs behind the numbers of cells, trained here or shipped: what each took, where, and on which data."""

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
from fedbench.report.numbers.rows import HERE, Run, records
from fedbench.report.numbers.runs import table_of_runs
from fedbench.report.numbers.shipped import Shipped
from fedbench.specs import RunSpec


@dataclass(frozen=True)
class Behind:
    """A run that ended.

    Attributes:
        cell: the cell that it is for.
        spec: what was trained.
        here: whether it was trained here; else it came with the repository.
        rows: its numbers by metric; of one that diverged a single row.
    """

    cell: Cell
    spec: RunSpec
    here: bool
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
