"""Runs that travel with the repository: ``reproduced/<scale>/<study>.csv``, a row for each run and metric."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fedbench import files, measures
from fedbench.errors import UserError, shortened
from fedbench.plan.cells import Cell
from fedbench.plan.configuration import CONFIG_DIR
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Value
from fedbench.report.files import REPRODUCED
from fedbench.report.numbers import verified
from fedbench.report.numbers.rows import AVERAGED, DIVERGED, FINISHED, NAN, Row, Run
from fedbench.report.numbers.strict_csv import StrictCsv
from fedbench.results import idle

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


def path_of(scale: str, study: str) -> Path:
    """Return the file with the runs of a study at a scale."""
    return REPRODUCED / scale / f"{study}.csv"


class Shipped:
    """The shipped runs of a paper. They are found by the keys that the configuration gives today."""

    def __init__(self, plan: Plan) -> None:
        """Read the files; :class:`UserError` where one is not what ``fedbench export`` writes."""
        self._plan, paper = plan, plan.study
        self._scales: dict[str, list[_File]] = {}
        self._runs: dict[tuple[object, ...], dict[int, Run]] = {}
        studies = [
            key for key in (paper.key, paper.extends) if key
        ]  # the runs of the paper it extends too, by key
        known = sorted(path.stem for path in (CONFIG_DIR / "scales").glob("*.yaml"))
        for scale, study in itertools.product(known if plan.config.shipped else (), studies):
            if mark := files.mark(path_of(scale, study)):
                marks = mark, files.mark(verified.FILE)
                self._scales.setdefault(scale, []).append(_read(path_of(scale, study), *marks))
        self.scales = sorted(self._scales, key=lambda name: (name not in FIRST, name not in FIRST[:1], name))

    def runs(self, cell: Cell, here: Iterable[int] = ()) -> dict[int, Run]:
        """Return the shipped runs of a cell by seed: those it lacks, or all that there are where none is ``here``."""
        present, planned = {*here}, [run.seed for run in cell.runs]
        at = cell.scale, cell.name, *present
        if at not in self._runs:
            self._runs[at] = self._beside(cell, present, planned)
        return self._runs[at]

    def _beside(self, cell: Cell, present: set[int], planned: Sequence[int]) -> dict[int, Run]:
        known = self._scales.get(cell.scale, [])
        shipped = {seed for file in known for seed in file.seeds.get((cell.dataset, cell.method), ())}
        wanted = [seed for seed in planned if seed not in present]
        wanted += [] if present else sorted(shipped - {*planned})
        return self._with_keys(
            known, {seed: cell.runs[0].seeded(seed).key for seed in wanted if seed in shipped}
        )

    def fitted(self, cells: Sequence[Cell]) -> dict[int, Run]:
        """Return what was fitted to several cells of one method, a cell for each budget, by seed."""
        known = self._scales.get(cells[0].scale, [])
        at = cells[0].dataset, cells[0].method
        seeds = sorted({seed for file in known for seed in file.seeds.get(at, ())})
        return self._with_keys(known, {seed: joint_key(cells, seed) for seed in seeds})

    def knows(self, scale: str, dataset: str, method: str) -> bool:
        """Say whether any run of a method on a dataset was shipped of a scale."""
        return any((dataset, method) in file.seeds for file in self._scales.get(scale, []))

    def cell(self, scale: str, dataset: str, setting: Mapping[str, Value], method: str) -> Cell | None:
        """Return a cell that may have shipped runs, at any scale, with the constants that this call asks for.

        None where nothing was, or where the scale has no such cell.
        """
        if not self.knows(scale, dataset, method):
            return None
        with contextlib.suppress(UserError):
            asked = self._plan.config.model_copy(update={"scale": scale})
            return self._plan.at(asked).cell(dataset, setting, method)
        return None

    def has(self, cell: Cell, metrics: Sequence[str]) -> bool:
        """Say whether a run of a cell with all of some metrics is there."""
        runs = self.runs(cell).values()
        return any("" in run or all(metric in run for metric in metrics) for run in runs)

    @staticmethod
    def _with_keys(known: Sequence[_File], keys: Mapping[int, str]) -> dict[int, Run]:
        found = ((seed, file.runs.get(key)) for file in known for seed, key in keys.items())
        return {seed: run for seed, run in found if run is not None}


def joint_key(cells: Sequence[Cell], seed: int) -> str:
    """Return what is written as the key of a number that is fitted to the runs of several cells with one seed."""
    return " ".join(cell.runs[0].seeded(seed).key for cell in cells)


class _File:
    """One file.

    Attributes:
        runs: the rows of each run by its key and metric.
        seeds: that any run of a (dataset, method) has.
    """

    def __init__(self, path: Path) -> None:
        read = StrictCsv(path)
        if lacking := [name for name in ("dataset", *COLUMNS) if name not in read.columns]:
            raise UserError(
                f"{path} lacks the column {', '.join(lacking)}: it is no file that `fedbench export` wrote"
            )
        again = verified.read()
        self.runs: dict[str, dict[str, Row]] = {}
        self.seeds: dict[tuple[str, str], set[int]] = {}
        for row, line in zip(read.rows, read.lines, strict=True):
            try:
                found = _row(row, f"{path}:{line}")
                found = found._replace(again=again.get((found.key, found.metric), ""))
                known = self.runs.setdefault(found.key, {}).setdefault(found.metric, found)
                if known.value != found.value and found.metric:  # two cells may have a run in common
                    raise ValueError(
                        f"{found.metric} of the run {found.key} is {known.value:g} in {known.source}"
                    )
            except ValueError as error:
                raise UserError(f"{path}, line {line}: {shortened(str(error))}") from None
            self.seeds.setdefault((row["dataset"], row["method"]), set()).add(found.seed)


@functools.lru_cache(maxsize=64)
def _read(path: Path, *_marks: files.Mark | None) -> _File:
    return _File(path)


def _row(row: Mapping[str, str], source: str) -> Row:
    """Read a row; ValueError where it is none that an export writes."""
    status, metric, sign = row["status"], row["metric"], row["sign"]
    if status not in (FINISHED, AVERAGED, DIVERGED):
        raise ValueError(f"status is {status!r}; a run is {FINISHED} or {DIVERGED}, a cost may be {AVERAGED}")
    if (metric == "") != (status == DIVERGED):
        raise ValueError(f"a {status} run with the metric {metric!r}")
    if sign and sign not in idle.MEANING:
        raise ValueError(f"sign is {sign!r}; known: {', '.join(idle.MEANING)}")
    seed = int(row["seed"])
    value, pace = (_number(row, name) for name in ("value", "pace"))
    if seed < 0 or math.isnan(value) != (status == DIVERGED):
        raise ValueError(f"seed {seed} with the value {row['value']!r}")
    if (known := _measure(metric)) and not (math.isnan(value) or known.low <= value <= known.high):
        raise ValueError(f"value is {value:g}; {metric} lies between {known.low:g} and {known.high:g}")
    return Row(
        row["key"],
        seed,
        metric,
        value,
        status,
        row["reason"],
        pace,
        sign,
        row["commit"],
        row["hardware"],
        source,
    )


@functools.cache
def _measure(metric: str) -> measures.Measure | None:
    return measures.find(metric)


def _number(row: Mapping[str, str], name: str) -> float:
    text = row[name]
    try:
        value = float(text) if text else NAN
    except ValueError:
        value = NAN
    if text and math.isnan(value):
        raise ValueError(f"{name} is {text!r}, no number")
    return value
