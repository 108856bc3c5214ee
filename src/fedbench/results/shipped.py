"""Runs that travel with the repository: ``reproduced/<scale>/<study>.csv``, a row for each run and metric.

Beside them ``curves`` and ``clients`` have what figures draw of runs, a row for each evaluation that is kept, and
``reproduced/facts.csv`` has counts of data for machines without the pictures.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

import pandas as pd

from fedbench import files
from fedbench.data.summary import Counts
from fedbench.errors import UserError, shortened
from fedbench.outputs import REPRODUCED
from fedbench.project import named
from fedbench.results.frame import SHIPPED, Row, Run, records
from fedbench.study.cells import Cell
from fedbench.study.configuration import scale_names
from fedbench.study.plan import Plan
from fedbench.study.schema import Value

Kind = Literal["curves", "clients"]
Type = Literal["str", "int", "float", "Int64"]
"""Of a column, as pandas calls it."""
NEAREST = ("paper", "reduced")
"""Scales in the order in which they come near to the paper; others follow."""
COLUMNS: Mapping[str, Type] = {
    "method": "str", "seed": "int", "key": "str", "metric": "str", "value": "float", "status": "str", "reason": "str",
    "pace": "float", "sign": "str", "commit": "str", "hardware": "str",
}  # fmt: skip
"""Of a file, after ``dataset`` and the settings of the study."""
OF_CURVES = ("key", "status", "quantity")
"""Columns of curves that hold no numbers; ``quantity`` is of what clients are traced for."""
OF_COUNTS: Mapping[str, Type] = {
    "study": "str", "dataset": "str", "split": "str", "key": "str",
    "n": "Int64", "positive": "Int64", "negative": "Int64",
}  # fmt: skip
"""Columns of counts; ``key`` is that of the data rule and seed (``DataSpec.partition_key``), so that counts of another
rule never show."""

FACTS = "facts.csv"
"""The file of ``reproduced/`` with the counts."""
Facts = Mapping[tuple[str, str], Counts]
"""Counts by key and split."""


def from_paper(scale: str) -> int:
    """Say how far a scale is from the paper, for an order."""
    return NEAREST.index(scale) if scale in NEAREST else len(NEAREST)


def path_of(scale: str, study: str, kind: Kind | Literal[""] = "") -> Path:
    """Return the file with the runs of a study at a scale, or with what is kept of their curves."""
    return REPRODUCED / scale / kind / f"{study}.csv"


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
        # those of the paper it extends too, by key; of a run that both have, the metrics of both, its own first
        studies = filter(None, (paper.key, paper.extends))
        for scale, study in itertools.product(scale_names() if plan.config.shipped else (), studies):
            if mark := files.mark(path_of(scale, study)):
                runs, seeds = _read(path_of(scale, study), mark)
                known = self._runs.get(scale, {})
                both = {key: {**runs[key], **known[key]} for key in runs.keys() & known.keys()}
                self._runs[scale] = {**runs, **known, **both}
                for (dataset, method), of_method in seeds.items():
                    self._seeds.setdefault((scale, dataset, method), set()).update(of_method)
        self.scales = sorted(self._runs, key=lambda name: (from_paper(name), name))

    def runs(self, cell: Cell, trained: Collection[int] = ()) -> dict[int, Run]:
        """Return the shipped runs of a cell by seed: those it lacks, or all where none is ``trained``."""
        shipped = self._seeds.get((cell.scale, cell.dataset, cell.method), set())
        runs = {run.seed: run for run in cell.runs}
        others = () if trained else sorted(shipped - runs.keys())
        runs |= {seed: cell.runs[0].seeded(seed) for seed in others}
        keys = {seed: run.key for seed, run in runs.items() if seed in shipped and seed not in trained}
        return self._with_keys(cell.scale, keys)

    def fitted(self, cells: Sequence[Cell]) -> dict[int, Run]:
        """Return what was fitted to several cells of one method, a cell for each budget, by seed."""
        scale, dataset, method = cells[0].scale, cells[0].dataset, cells[0].method
        seeds = sorted(self._seeds.get((scale, dataset, method), ()))
        return self._with_keys(scale, {seed: joint_key(cells, seed) for seed in seeds})

    @functools.cached_property
    def curves(self) -> Mapping[str, pd.DataFrame]:
        """The shipped curves of the plan's scale, by the keys of their runs."""
        return load_curves(self._plan, "curves")

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
def _read(path: Path, _mark: files.Mark) -> tuple[dict[str, dict[str, Row]], dict[tuple[str, str], set[int]]]:
    """Return the rows of each run of a file by its key and metric, and the seeds that any run of a method has."""
    rows = exported(path, {"dataset": "str", **COLUMNS}, "str")
    rows = rows.assign(origin=SHIPPED, source=[f"{named(path)}:{at}" for at in range(2, len(rows) + 2)])
    runs: dict[str, dict[str, Row]] = {}
    for row in records(rows, Row):
        # two cells may have a run in common
        first = runs.setdefault(row.key, {}).setdefault(row.metric, row)
        if row.metric and first.value != row.value == row.value:
            raise UserError(
                f"{row.source}: {row.metric} of the run {row.key} is {row.value:g}, in {first.source} "
                f"{first.value:g}; remove what is wrong"
            )
    seeds = rows.groupby(["dataset", "method"])["seed"].agg(set)
    return runs, dict(zip(seeds.index, seeds, strict=True))


def load_curves(plan: Plan, kind: Kind) -> Mapping[str, pd.DataFrame]:
    """Return what is shipped of the runs of a study and of the one it extends, by their keys; nothing if so asked.

    Raises:
        UserError: a file is none that ``fedbench export`` wrote.
    """
    by_key: dict[str, pd.DataFrame] = {}
    for study in filter(None, (plan.study.key, plan.study.extends) if plan.config.shipped else ()):
        path = path_of(plan.scale.name, study, kind)
        if mark := files.mark(path):
            by_key |= _by_key(path, mark)
    return by_key


@functools.lru_cache(maxsize=16)
def _by_key(path: Path, _mark: files.Mark) -> dict[str, pd.DataFrame]:
    groups = curves_in(path).groupby("key", sort=False)
    return {str(key): rows.dropna(axis="columns", how="all").reset_index(drop=True) for key, rows in groups}


def curves_in(path: Path) -> pd.DataFrame:
    """Return a file of curves; :class:`UserError` where it is none that an export wrote."""
    rows = exported(path, {"key": "str", "status": "str", "round": "int"})
    if words := [name for name in rows.select_dtypes(exclude="number") if name not in OF_CURVES]:
        raise UserError(f"{path}: not all of {words[0]} are numbers")
    return rows


def read_facts() -> Facts:
    """Return the shipped counts; :class:`UserError` where they are none that an export wrote."""
    if not (REPRODUCED / FACTS).exists():
        return {}
    rows = exported(REPRODUCED / FACTS, OF_COUNTS, "str").astype(object)
    columns = (rows[name].where(rows[name].notna(), None) for name in [*OF_COUNTS][2:])
    return {(key, split): Counts(*counts) for split, key, *counts in zip(*columns, strict=True)}


def exported(path: Path, columns: Mapping[str, Type], others: Type | None = None) -> pd.DataFrame:
    """Return a CSV that ``fedbench export`` wrote: numbers that are empty as NaN, texts as empty ones.

    Args:
        path: of the file.
        columns: that it must have, with their types.
        others: the type of all others, None for what they look like.

    Raises:
        UserError: it is no such file.
    """
    types = defaultdict(lambda: others, columns) if others else columns
    try:
        rows = pd.read_csv(path, dtype=types, keep_default_na=False, na_values=[""])
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{path} is not a file that `fedbench export` wrote: {shortened(str(error))}"
        ) from None
    if lacking := [name for name in columns if name not in rows]:
        raise UserError(
            f"{path} lacks the column {lacking[0]}: it is not a file that `fedbench export` wrote"
        )
    return rows.fillna(dict.fromkeys(rows.select_dtypes(exclude="number"), ""))
