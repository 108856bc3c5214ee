"""Curves that travel with the repository, ``reproduced/<scale>/curves/<study>.csv``, and what clients were traced for.

So that figures can be drawn of runs that were not trained here. A row for each evaluation that is kept of a run.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from fedbench import files
from fedbench.outputs import REPRODUCED, write_output
from fedbench.results import collect
from fedbench.results.strict_csv import exported
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan

POINTS = 100
"""Evaluations that are kept of a run, at equal distances, the first and the last among them."""
TEXTS = ("key", "status", "quantity")
"""Columns that hold no numbers."""
Kind = Literal["curves", "clients"]


def path_of(kind: Kind, scale: str, study: str) -> Path:
    """Return the file with what is kept of the runs of a study at a scale."""
    return REPRODUCED / scale / kind / f"{study}.csv"


def add(plan: Plan, cells: Sequence[Cell]) -> list[Path]:
    """Add the curves of the cells' runs that were trained here, and return the files that were written.

    What was traced for each client is kept of the cells of figures that show it (``kind: duals``).
    """
    figures = plan.study.figures.items()
    names = {cell.name for name, spec in figures if spec.kind == "duals" for cell in plan.cells(name)}
    parts: dict[Kind, list[pd.DataFrame]] = {"curves": [], "clients": []}
    for cell in cells:
        for run in collect.runs_of(cell).records.values():
            told = {"key": run.key, "status": run.status}
            parts["curves"].append(thinned(collect.table_of(run.key, "curve.csv")).assign(**told))
            if cell.name in names:
                parts["clients"].append(thinned(collect.table_of(run.key, "clients.csv")).assign(**told))
    return [
        _merge(path_of(kind, plan.scale.name, plan.study.key), pd.concat(of_kind))
        for kind, of_kind in parts.items()
        if any(len(part) for part in of_kind)
    ]


def thinned(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of some of a run's rounds, :data:`POINTS` at most."""
    if table.empty:
        return table
    rounds = table["round"].unique()
    kept = np.linspace(0, len(rounds) - 1, min(len(rounds), POINTS)).round().astype(int)
    return table[table["round"].isin(rounds[kept])]


def _merge(path: Path, new: pd.DataFrame) -> Path:
    """Write rows into a file; what it has of other runs stays."""
    if path.exists():
        before = _read(path)
        new = pd.concat([before[~before["key"].isin(new["key"])], new])
    first = [name for name in TEXTS if name in new]
    new = new[[*first, *(name for name in new if name not in first)]]
    text = new.sort_values("key", kind="stable").to_csv(index=False, float_format="%.6g", lineterminator="\n")
    return write_output(path, text)


def load_curves(plan: Plan, kind: Kind) -> Mapping[str, pd.DataFrame]:
    """Return what is shipped of the runs of a study and of the one it extends, by their keys; nothing if so asked.

    Raises:
        UserError: a file is none that :func:`add` wrote.
    """
    by_key: dict[str, pd.DataFrame] = {}
    for study in filter(None, (plan.study.key, plan.study.extends) if plan.config.shipped else ()):
        path = path_of(kind, plan.scale.name, study)
        if mark := files.mark(path):
            by_key |= _by_key(path, mark)
    return by_key


@functools.lru_cache(maxsize=16)
def _by_key(path: Path, _mark: files.Mark) -> dict[str, pd.DataFrame]:
    groups = _read(path).groupby("key", sort=False)
    return {str(key): rows.dropna(axis="columns", how="all").reset_index(drop=True) for key, rows in groups}


def _read(path: Path) -> pd.DataFrame:
    return exported(path, ("key", "status", "round"), lambda name: name not in TEXTS).drop(columns="source")
