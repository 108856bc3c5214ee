"""Runs that travel with the repository: ``reproduced/<scale>/<study>.csv``, a row for each run and metric."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from fedbench import files, metric_table
from fedbench.errors import UserError, shortened
from fedbench.outputs import REPRODUCED
from fedbench.results import degenerate_runs
from fedbench.results.frame import AVERAGED, DIVERGED, FINISHED, SHIPPED, Row, Run, records
from fedbench.results.strict_csv import exported
from fedbench.study.cells import Cell
from fedbench.study.configuration import scale_names
from fedbench.study.plan import Plan
from fedbench.study.schema import Value

FIRST = ("paper", "reduced")
"""Scales in the order in which they come near to the paper; others follow."""
COLUMNS = (
    "method",
    "seed",
    "key",
    "metric",
    "value",
    "status",
    "reason",
    "pace",
    "sign",
    "commit",
    "hardware",
)
"""Of a file, after ``dataset`` and the settings of the study."""
NUMBERS = ("seed", "value", "pace")
"""Those that hold numbers."""


def path_of(scale: str, study: str) -> Path:
    """Return the file with the runs of a study at a scale."""
    return REPRODUCED / scale / f"{study}.csv"


class Shipped:
    """The shipped runs of a paper. They are found by the keys that the configuration gives today.

    Attributes:
        scales: that have any, the one that comes nearest to the paper first.
    """

    def __init__(self, plan: Plan) -> None:
        """Read the files; :class:`UserError` where one is not what ``fedbench export`` writes."""
        self._plan, paper = plan, plan.study
        self._runs: dict[str, dict[str, Run]] = {}
        self._seeds: dict[tuple[str, str, str], set[int]] = {}
        # those of the paper it extends too, by key
        studies = filter(None, (paper.key, paper.extends))
        for scale, study in itertools.product(scale_names() if plan.config.shipped else (), studies):
            if mark := files.mark(path_of(scale, study)):
                runs, seeds = _read(path_of(scale, study), mark)
                self._runs.setdefault(scale, {}).update(runs)
                for (dataset, method), of_method in seeds.items():
                    self._seeds.setdefault((scale, dataset, method), set()).update(of_method)
        self.scales = sorted(self._runs, key=lambda name: (name not in FIRST, name not in FIRST[:1], name))

    def runs(self, cell: Cell, trained: Iterable[int] = ()) -> dict[int, Run]:
        """Return the shipped runs of a cell by seed: those it lacks, or all where none is ``trained``."""
        present, shipped = {*trained}, self._seeds.get((cell.scale, cell.dataset, cell.method), set())
        planned = {run.seed: run.key for run in cell.runs}
        keys = {seed: key for seed, key in planned.items() if seed in shipped - present}
        if not present:
            others = sorted(shipped - planned.keys())
            keys |= {seed: cell.runs[0].seeded(seed).key for seed in others}
        return self._with_keys(cell.scale, keys)

    def fitted(self, cells: Sequence[Cell]) -> dict[int, Run]:
        """Return what was fitted to several cells of one method, a cell for each budget, by seed."""
        scale, dataset, method = cells[0].scale, cells[0].dataset, cells[0].method
        seeds = sorted(self._seeds.get((scale, dataset, method), ()))
        return self._with_keys(scale, {seed: joint_key(cells, seed) for seed in seeds})

    def cell(self, scale: str, dataset: str, setting: Mapping[str, Value], method: str) -> Cell | None:
        """Return a cell that may have shipped runs, at any scale, with the constants that this call asks for.

        None where nothing of the method was shipped on the dataset, or where the scale has no such cell.
        """
        if (scale, dataset, method) in self._seeds:
            with contextlib.suppress(UserError):
                asked = self._plan.config.model_copy(update={"scale": scale})
                return self._plan.at(asked).cell(dataset, setting, method)
        return None

    def has(self, cell: Cell, metrics: Sequence[str]) -> bool:
        """Say whether a run of a cell with all of some metrics is there."""
        runs = self.runs(cell).values()
        return any("" in run or all(metric in run for metric in metrics) for run in runs)

    def _with_keys(self, scale: str, keys: Mapping[int, str]) -> dict[int, Run]:
        known = self._runs.get(scale, {})
        return {seed: known[key] for seed, key in keys.items() if key in known}


def joint_key(cells: Sequence[Cell], seed: int) -> str:
    """Return what is written as the key of a number that is fitted to the runs of several cells with one seed."""
    return " ".join(cell.runs[0].seeded(seed).key for cell in cells)


@functools.lru_cache(maxsize=64)
def _read(
    path: Path, _mark: files.Mark | None
) -> tuple[dict[str, dict[str, Row]], dict[tuple[str, str], set[int]]]:
    """Return the rows of each run of a file by its key and metric, and the seeds that any run of a method has."""
    rows = _checked(path)
    runs: dict[str, dict[str, Row]] = {}
    for row in records(rows[[*COLUMNS, "source"]].assign(origin=SHIPPED), Row):
        runs.setdefault(row.key, {}).setdefault(row.metric, row)  # two cells may have a run in common
    seeds = rows.groupby(["dataset", "method"])["seed"].agg(set)
    return runs, dict(zip(seeds.index, seeds, strict=True))


def _checked(path: Path) -> pd.DataFrame:
    """Return the rows of a file; :class:`UserError` where one is none that an export writes."""
    rows = exported(path, ("dataset", *COLUMNS), lambda name: name in NUMBERS)
    rows = rows.astype(dict.fromkeys(NUMBERS, float))
    known = {str(metric): metric_table.find(str(metric)) for metric in rows["metric"].unique()}
    for side in ("low", "high"):
        ends = {metric: getattr(measure, side) for metric, measure in known.items() if measure}
        rows[side] = rows["metric"].map(ends).astype(float)
    rows[["first", "at"]] = rows.groupby(["key", "metric"])[["value", "source"]].transform("first")
    for wrong, what in _faults(rows):
        if wrong.any():
            row = rows[wrong].iloc[0]
            line = row["source"].rpartition(":")[2]
            raise UserError(f"{path}, line {line}: {shortened(what.format_map(row))}")
    return rows.astype({"seed": int})


def _faults(rows: pd.DataFrame) -> list[tuple[pd.Series[bool], str]]:
    """Return what can be wrong with rows: which have it, and what is said of one."""
    value, seed, diverged = rows["value"], rows["seed"], rows["status"] == DIVERGED
    silent = diverged | (rows["sign"] == degenerate_runs.NO_MODEL)
    return [
        (
            ~rows["status"].isin((FINISHED, AVERAGED, DIVERGED)),
            f"status is {{status!r}}; a run is {FINISHED} or {DIVERGED}, a cost may be {AVERAGED}",
        ),
        ((rows["metric"] == "") != diverged, "a {status} run with the metric {metric!r}"),
        (
            ~rows["sign"].isin(("", degenerate_runs.NO_MODEL, *degenerate_runs.MEANING)),
            f"sign is {{sign!r}}; known: {', '.join(degenerate_runs.MEANING)}",
        ),
        ((seed % 1 != 0) | (seed < 0) | (value.isna() != silent), "seed {seed:g} with the value {value:g}"),
        (
            rows["low"].notna() & value.notna() & ~value.between(rows["low"], rows["high"]),
            "value is {value:g}; {metric} lies between {low:g} and {high:g}",
        ),
        (
            (rows["metric"] != "") & ~silent & (value != rows["first"]),
            "{metric} of the run {key} is {first:g} in {at}",
        ),
    ]
