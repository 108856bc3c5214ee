"""Runs that were trained here, written to the files of ``reproduced/`` that are kept in git."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedbench.errors import UserError
from fedbench.plan.cells import Cell
from fedbench.plan.plan import Plan
from fedbench.plan.schema import TableSpec, Value
from fedbench.report.files import write
from fedbench.report.numbers import verified
from fedbench.report.numbers.rates import table_of_rates
from fedbench.report.numbers.rows import DIVERGED, FINISHED, OF_ROW, Row
from fedbench.report.numbers.runs import OF_CELL, table_of_runs
from fedbench.report.numbers.shipped import COLUMNS, path_of
from fedbench.report.numbers.strict_csv import StrictCsv

Place = Mapping[str, Value]


def export_reproduced(plan: Plan, table_name: str) -> Path:
    """Add the runs of a table that were trained here to ``reproduced/<scale>/<paper>.csv``, and return its path.

    A row for each run and metric: where it stands, then the columns of :class:`~fedbench.report.numbers.rows.Row`.
    What the file has of other runs stays: a table can be measured bit by bit and on several machines. A run of the same
    place, method and seed under another key is replaced, as that key is of another configuration. A run that the file
    has from other hardware or code with the same numbers stays as it is, and is listed in ``reproduced/verified.csv``.

    Raises:
        UserError: an unknown table; one without measured numbers; nothing of it was trained here; or the file is none
            that this function wrote.
    """
    paper, config, spec = plan.study, plan.config, plan.table(table_name)
    if spec.kind not in ("results", "rates", "leaderboard") or not spec.metrics:
        raise UserError(
            f"{paper.key}/{table_name} has no measured numbers to export; `fedbench table` builds it"
        )
    place = ["dataset", *paper.settings]
    cells = plan.cells(table_name)
    made = _trained(cells, spec)
    if not made:
        raise UserError(f"no run of {paper.key}/{table_name} at scale {config.scale} was trained here")
    rows = [_cells(at, method, row) for at, method, row in made]
    new = pd.DataFrame(rows, columns=[*place, *COLUMNS], dtype=object).fillna("")
    path = path_of(config.scale, paper.key)
    if path.exists():
        before = pd.DataFrame(StrictCsv(path).rows)
        if len(again := verified.repeated(new, before)):
            verified.add(again)
            new = new[~pd.MultiIndex.from_frame(new[verified.NUMBER]).isin(_numbers_of(before, again["key"]))]
        new = _with_others(new, before, [*place, "method", "seed"])
    write(path, in_order(new, place).to_csv(index=False, lineterminator="\n"))
    return path


def _numbers_of(rows: pd.DataFrame, keys: pd.Series[str]) -> pd.MultiIndex:
    """Return which numbers some rows have of the runs with these keys."""
    return pd.MultiIndex.from_frame(rows.loc[rows["key"].isin(keys), verified.NUMBER])


def _trained(cells: Sequence[Cell], spec: TableSpec) -> list[tuple[Place, str, Row]]:
    """Return the numbers of the runs of cells that were trained here and ended, with where they stand."""
    if spec.kind == "rates":
        runs = table_of_rates(cells, spec)
    else:
        runs = pd.concat([table_of_runs([cell], spec.metrics_on(cell.dataset)) for cell in cells])
    broken = runs["status"].eq(DIVERGED) & runs["metric"].eq("")
    ended = runs.loc[broken | (runs["status"].eq(FINISHED) & runs["value"].notna()), [*OF_CELL, *OF_ROW]]
    rows: Iterable[Any] = ended.itertuples(index=False)
    return [(dict(row.place), row.method, Row(*row[len(OF_CELL) :])) for row in rows]


def _cells(place: Place, method: str, row: Row) -> dict[str, str]:
    """Return a row of the file: numbers with six digits, what is not known empty."""
    numbers = {name: getattr(row, name) for name in ("value", "pace")}
    texts = {name: str(getattr(row, name)) for name in COLUMNS if name not in ("method", *numbers)}
    written = {name: "" if pd.isna(number) else f"{number:.6g}" for name, number in numbers.items()}
    return {**{name: str(value) for name, value in place.items()}, "method": method, **texts, **written}


def _with_others(new: pd.DataFrame, before: pd.DataFrame, run: list[str]) -> pd.DataFrame:
    """Add the rows of a file that are of other runs, or of metrics that a run's new rows lack."""
    before = before.reindex(columns=list(new.columns), fill_value="")
    of_new = new.groupby(run)["key"].first().to_dict()
    keys = before.set_index(run).index.map(of_new)
    measured = before.set_index([*run, "metric"]).index.isin(new.set_index([*run, "metric"]).index)
    broken = before.set_index(run).index.isin(new[new["metric"] == ""].set_index(run).index)
    goes_on = (keys == before["key"]) & ~measured & ~broken & (before["metric"] != "")
    return pd.concat([before[pd.isna(keys) | goes_on], new])


def in_order(rows: pd.DataFrame, place: list[str]) -> pd.DataFrame:
    """Sort the rows of a file by place, method, metric and seed: numbers by their values, words after them."""
    return rows.sort_values([*place, "method", "metric", "seed"], key=_ranks, kind="stable")


def _ranks(column: pd.Series[str]) -> pd.Series[int]:
    texts = pd.Series(column.unique())
    numbers = pd.to_numeric(texts, errors="coerce")
    ordered = pd.DataFrame({"number": numbers, "text": texts}).sort_values(["number", "text"])
    return column.map({text: rank for rank, text in enumerate(ordered["text"])})
