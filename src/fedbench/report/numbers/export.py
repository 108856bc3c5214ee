"""Measured numbers as CSV to be kept in git: the columns of the published file, and how ours were made."""

from __future__ import annotations

import io
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from fedbench.errors import UserError, unknown
from fedbench.plan.cells import cells_of
from fedbench.plan.configuration import CONFIG_DIR, load_paper
from fedbench.plan.schema import Config
from fedbench.report.files import REPRODUCED, write
from fedbench.report.numbers import collect, rates, sums
from fedbench.report.numbers.joined import joined
from fedbench.report.numbers.measurement import (
    FAILED,
    FINISHED,
    INCOMPLETE,
    NOT_REACHED,
    NOT_RUN,
    Measurement,
)
from fedbench.report.numbers.published import load
from fedbench.report.numbers.shipped import Shelf, values_of
from fedbench.report.numbers.strict_csv import StrictCsv

LACKING = {NOT_RUN: 0, FAILED: 0, INCOMPLETE: 1}
"""How much a row has of its runs' results; any other status: all of them."""
MADE = ["n_seeds", "status", "commit", "scale", "device_mean", "device_variance", "key"]
KEPT = [
    "values",
    "floats_up",
    "floats_down",
    "samples",
    "seconds",
    "hardware",
    "equal_costs",
    "paces",
    "signs",
]
"""What every run gave and cost, how fast it still moved, what shows that it learned nothing; older rows have less."""


def export_reproduced(paper_key: str, table_name: str, config: Config, root: Path = Path()) -> Path:
    """Write ``reproduced/<scale>/<paper>/<table>.csv``, list its checksum, and return its path.

    One row per number that the scale runs: paper, table, dataset, method, the published file's settings,
    metric, mean, std (over seeds, ddof 1), note (why a mean is missing), then how it was made. ``key`` is the
    cell's, a digest of all that decides its runs; an exponent has those of all its budgets. Where the store lacks some
    of them, a row that the file has under the same key stays, and seeds that the store lacks are taken from a row of
    the same cell that has them, so that a table can be measured bit by bit and on several machines. Other cells that
    are not run yet are rows with that status and no mean.

    Raises:
        UserError: an unknown table; one without measured numbers; the file is not the one that was listed; or a
            measured row of it would be lost, because its cell has another key now and no runs or fewer, or is not part
            of the table.
    """
    paper = load_paper(paper_key, root / CONFIG_DIR)
    if table_name not in paper.tables:
        raise unknown(f"table of {paper_key}", table_name, paper.tables)
    spec = paper.tables[table_name]
    if spec.kind not in ("results", "rates", "leaderboard") or not spec.metrics:
        raise UserError(
            f"{paper_key}/{table_name} has no measured numbers to export; `fedbench table` builds it"
        )
    cells = cells_of(config, paper_key, table_name, root / CONFIG_DIR)
    fitted = spec.kind == "rates"
    measured = rates.measure(cells, spec, root) if fitted else []
    shelf = Shelf(config, paper, root)
    for cell in [] if fitted else cells:
        found = collect.measure([cell], spec.metrics_on(cell.dataset), root, root / config.data_dir)
        measured += [joined(one, [run.seed for run in cell.runs], shelf) for one in found]
    published = load(paper_key, spec.published, root) if spec.published else None
    settings = list(published.settings) if published else list(paper.settings)
    settings += [name for name, values in spec.settings.items() if len(values) > 1 and name not in settings]
    settings = [name for name in settings if not fitted or name not in spec.pool]
    seeds = {cell.key: [run.seed for run in cell.runs] for cell in cells}
    clients = {cell.key: cell.runs[0].data.clients for cell in cells}
    rows = [_row(one, clients[one.key.split()[0]], table_name, settings) for one in measured]
    for row in rows:
        row["metric"] = published.metric_name(row["metric"]) if published else row["metric"]
    columns = [
        "paper",
        "table",
        "dataset",
        "method",
        *settings,
        "metric",
        "mean",
        "std",
        "note",
        *MADE,
        *KEPT,
    ]
    path = root / REPRODUCED / config.scale / paper_key / f"{table_name}.csv"
    text = pd.DataFrame(rows, columns=columns).to_csv(index=False, float_format="%.6g", lineterminator="\n")
    made = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    if path.exists():
        sums.check(root / REPRODUCED, path)
        StrictCsv(path)  # what is no CSV is named with its line
        before = pd.read_csv(path, dtype=str, keep_default_na=False)
        # a setting that the paper did not have then: each row has its default, or the key would be another
        new = {name: str(paper.settings[name].default) for name in settings if name in paper.settings}
        before = before.assign(**{name: value for name, value in new.items() if name not in before})
        stay = ["" if fitted else _exported(one, seeds[one.key], shelf) for one in measured]
        made = _with_kept(before, made, stay, path)
    write(path, made.to_csv(index=False, lineterminator="\n"))
    sums.note(root / REPRODUCED, path)
    return path


def _exported(one: Measurement, seeds: list[int], shelf: Shelf) -> str:
    """Return the key of what was exported before if it says all of a number that there is, else nothing.

    It does if it is of this configuration, has the same values of the seeds in the store, and has the seeds asked for,
    or some of them as long as the store cannot add all the others.
    """
    other = shelf.find(one.scale, one.dataset, one.setting, one.method, one.metric)
    if other is None:
        return ""
    there, asked = {*other.values}, {*seeds}
    begun = there < asked and one.status in (NOT_RUN, INCOMPLETE)
    same = all(
        math.isclose(one.values[seed], other.values[seed], rel_tol=1e-5) for seed in there & {*one.values}
    )
    return other.key if there and same and (asked <= there or begun) else ""


def _with_kept(before: pd.DataFrame, made: pd.DataFrame, stay: list[str], path: Path) -> pd.DataFrame:
    """Put a row of the file in the place of a new one with fewer runs, if both have one key or ``stay`` has its key.

    Raises:
        UserError: a measured row of the file would be lost; the message says how many.
    """
    before = before.assign(**{name: "" for name in KEPT if name not in before})
    if set(before.columns) != set(made.columns):
        raise UserError(f"{path} has other columns than the table has now; remove it to start anew")
    before = before[list(made.columns)]
    place = list(made.columns[: made.columns.get_loc("mean")])
    before, made = before.set_index(place, drop=False), made.set_index(place, drop=False)
    shared = made.index.intersection(before.index)
    old, new = before.loc[shared], made.loc[shared]
    less = _amount(old) > _amount(new)
    may = (pd.Series(stay, made.index).loc[shared] == old["key"]) & (less | _lacking_seeds(old, new))
    kept = shared[may | (less & (old["key"] == new["key"]))]
    made.loc[kept] = before.loc[kept]
    now = made.reindex(before.index)
    lost = int(((_amount(before) > _amount(now)) | _lacking_seeds(before, now)).sum())
    if lost:
        raise UserError(
            f"{lost} of {(_amount(before) > 0).sum()} measured rows of {path} would be lost: as configured now, their "
            "cells have no results, or fewer. Give the seeds and datasets that the file was made with (--set seeds=0 "
            "--set datasets=NAME), or remove those rows, or the file, to start anew"
        )
    return made


def _amount(rows: pd.DataFrame) -> pd.Series[int]:
    """Rank rows by how much they have of their runs' results."""
    return rows["status"].map(lambda status: LACKING.get(status, 2)).where(rows["status"].notna(), 0)


def _lacking_seeds(before: pd.DataFrame, made: pd.DataFrame) -> pd.Series[bool]:
    """Say which rows would have fewer seeds than before, or others."""
    fewer = pd.to_numeric(made["n_seeds"]) < pd.to_numeric(before["n_seeds"])
    pairs = [(_seeds(then), _seeds(now)) for then, now in zip(before["values"], made["values"], strict=True)]
    gone = pd.Series([bool(now and then - now) for then, now in pairs], made.index, dtype=bool)
    return (fewer | gone) & made["status"].isin([FINISHED, INCOMPLETE, NOT_REACHED])


def _seeds(values: object) -> set[int]:
    """Return whose values a row has; none where nobody kept them, or the row is not there."""
    return set(values_of({"values": values})) if isinstance(values, str) else set()


def _row(one: Measurement, n_clients: int, table_name: str, settings: list[str]) -> dict[str, Any]:
    places = {"n_clients": n_clients, **one.setting}
    return {
        **{name: getattr(one, name) for name in ("paper", "dataset", "method", "metric", "mean", "std")},
        **{name: places.get(name, math.nan) for name in settings},
        "table": table_name.removeprefix("table"),
        "note": one.reason,
        **{name: getattr(one, name) for name in MADE},
        "values": one.values_text,
        **asdict(one.cost),
        "paces": one.paces_text,
        "signs": one.signs_text,
    }
