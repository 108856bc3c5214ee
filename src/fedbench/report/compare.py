"""Measured beside published: every number of a table with its printed value, difference and verdict."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fedbench.cells import Cell, datasets_run
from fedbench.errors import UserError, unknown
from fedbench.report import collect, stats
from fedbench.report.published import Published, PublishedTable, load
from fedbench.schema import Config, Paper, Scale, TableSpec, Value

Place = tuple[tuple[str, Value], ...]
"""Where a number stands: (axis, value) for dataset, every setting, and method."""


@dataclass(frozen=True)
class Compared:
    """One number of a table: its row of :func:`collect.frame`, whether the scale runs it, its verdict."""

    place: dict[str, Value]
    metric: str
    measured: dict[str, Any]
    published: Published | None
    verdict: stats.Verdict
    here: bool

    @property
    def mean(self) -> float:
        """The mean over all wanted seeds, NaN for any other status (a part of the seeds is never ranked)."""
        return self.measured["mean"] if self.measured["status"] == collect.FINISHED else math.nan

    @property
    def printed(self) -> float:
        """The published value, NaN where there is none."""
        found = self.published.mean if self.published else None
        return math.nan if found is None else found


def axes(config: Config, paper: Paper, scale: Scale, spec: TableSpec) -> dict[str, list[Value]]:
    """Return the values of each axis of a table: dataset (printed, then our own), settings, method."""
    here = datasets_run(config, paper, scale, spec)
    datasets: list[Value] = [*spec.datasets, *(name for name in here if name not in spec.datasets)]
    settings = {
        name: list(spec.settings.get(name, [entry.default])) for name, entry in paper.settings.items()
    }
    return {"dataset": datasets, **settings, "method": list(spec.methods)}


def compare(
    config: Config, paper: Paper, scale: Scale, spec: TableSpec, cells: Sequence[Cell], root: Path = Path()
) -> tuple[list[Compared], PublishedTable | None]:
    """Hold every number of a table against its published value, in the order of its axes and metrics.

    The published table comes with them, unless it has nothing on any of these numbers.
    """
    table = load(paper.key, spec.published, root) if spec.published else None
    by_place = {_place(cell.dataset, cell.setting, cell.method): cell for cell in cells}
    frame = collect.frame(list(by_place.values()), spec.metrics, root)
    measured = {
        (_place(row["dataset"], row["setting"], row["method"]), row["metric"]): row
        for row in (
            {str(name): value for name, value in row.items()} for row in frame.to_dict(orient="records")
        )
    }
    grid = axes(config, paper, scale, spec)
    result = []
    for values in itertools.product(*grid.values()):
        place = dict(zip(grid, values, strict=True))
        setting = {name: value for name, value in place.items() if name not in ("dataset", "method")}
        key = _place(place["dataset"], setting, place["method"])
        for metric in spec.metrics:
            row = measured.get((key, metric)) or _absent(paper, scale, place, setting, metric)
            found = (
                table.find(str(place["dataset"]), str(place["method"]), setting, metric) if table else None
            )
            judged = judge(row, found, config.tolerance, metric)
            result.append(Compared(place, metric, row, found, judged, key in by_place))
    return result, table if any(item.published for item in result) else None


def strangers(paper: Paper, spec: TableSpec, root: Path = Path()) -> list[str]:
    """List the names in a table's published file that nothing of the paper is called."""
    if not spec.published:
        return []
    metrics = {metric for table in paper.tables.values() for metric in table.metrics}
    return load(paper.key, spec.published, root).strangers(paper.methods, metrics)


def judge(row: dict[str, Any], found: Published | None, tolerance: float, metric: str) -> stats.Verdict:
    """Return the verdict on one row of :func:`collect.frame`; without a full mean it is the row's status."""
    if row["status"] != collect.FINISHED:
        return stats.Verdict(row["status"])
    if found is None or found.mean is None:
        return stats.Verdict("no published value")
    std = None if math.isnan(row["std"]) else row["std"]
    half = stats.difference_half_width(std, row["n_seeds"], found.comparable_std, found.n_seeds)
    return stats.verdict(row["mean"], found.mean, tolerance, half, stats.higher_is_better(metric))


def rivals(compared: Sequence[Compared]) -> list[list[Compared]]:
    """Group the numbers that methods compete in: same dataset, settings and metric."""
    groups: dict[tuple[Place, str], list[Compared]] = {}
    for item in compared:
        rest = tuple((axis, value) for axis, value in item.place.items() if axis != "method")
        groups.setdefault((rest, item.metric), []).append(item)
    return list(groups.values())


def agreement(group: Sequence[Compared]) -> tuple[float | None, int]:
    """Kendall's tau between our order of the methods of one group and the published one, and of how many."""
    both = [item for item in group if math.isfinite(item.mean) and math.isfinite(item.printed)]
    ours = {str(item.place["method"]): item.mean for item in both}
    return stats.rank_agreement(ours, {str(item.place["method"]): item.printed for item in both})


def tidy(compared: Sequence[Compared], table_name: str) -> pd.DataFrame:
    """Return the machine-readable form of a table: one row per number, nothing rounded away."""
    rows = []
    for item in compared:
        row, found, judged = item.measured, item.published, item.verdict
        rows.append(
            {
                "paper": row["paper"],
                "table": table_name,
                **item.place,
                "metric": item.metric,
                **{name: row[name] for name in ("mean", "std", "n_seeds", "n_wanted", "status", "reason")},
                "published_mean": found.text if found else "",
                "published_std": found.std_text if found else "",
                "published_note": found.note if found else "",
                "difference": judged.difference,
                "half_width": judged.half_width,
                "verdict": judged.kind,
                "basis": judged.basis,
                **{name: row[name] for name in ("scale", "commit", "device_mean", "device_variance", "key")},
            }
        )
    return pd.DataFrame(rows)


def check_axes(spec: TableSpec, grid: dict[str, list[Value]], where: str) -> None:
    """Refuse rows and columns that name an unknown axis, one twice, or leave out one with several values."""
    placed = [*spec.rows, *spec.columns]
    for axis in placed:
        if axis not in grid:
            raise unknown(f"row or column of {where}", axis, grid)
    twice = sorted({axis for axis in placed if placed.count(axis) > 1})
    if twice:
        raise UserError(f"{where}: {', '.join(twice)} is in rows and columns twice; name each once")
    left = [axis for axis, values in grid.items() if len(values) > 1 and axis not in placed]
    if left or not spec.rows:
        what = f"{', '.join(left)} takes several values" if left else "rows is empty"
        raise UserError(f"{where}: {what}; rows and columns must place every axis that varies")


def _place(dataset: Value, setting: dict[str, Value], method: Value) -> Place:
    return (("dataset", dataset), *setting.items(), ("method", method))


def _absent(
    paper: Paper, scale: Scale, place: dict[str, Value], setting: dict[str, Value], metric: str
) -> dict[str, Any]:
    gap = dict.fromkeys(("mean", "std", "device_mean", "device_variance"), math.nan)
    return {
        "paper": paper.key, "scale": scale.name, "dataset": place["dataset"], "setting": setting,
        "method": place["method"], "metric": metric, **gap, "n_seeds": 0, "n_bad": 0, "n_wanted": 0,
        "status": collect.NOT_RUN, "reason": f"not part of scale {scale.name}", "commit": "", "key": "",
    }  # fmt: skip
