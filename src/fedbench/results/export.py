"""Runs that were trained here, written to the files of ``reproduced/`` that are kept in git."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fedbench.errors import UserError
from fedbench.outputs import write_output
from fedbench.results import degenerate_runs
from fedbench.results.frame import DIVERGED, FINISHED, Row, frame_of
from fedbench.results.rates import rates_of_cells
from fedbench.results.runs import runs_of_cells
from fedbench.results.shipped import COLUMNS, path_of
from fedbench.results.strict_csv import StrictCsv
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import TableSpec


def export_reproduced(plan: Plan, table_name: str) -> Path:
    """Add the runs of a table that were trained here to ``reproduced/<scale>/<paper>.csv``, and return its path.

    A row for each run and metric: where it stands, then the columns of :class:`~fedbench.results.frame.Row`.
    What the file has of other runs stays: a table can be measured bit by bit and on several machines. A run of the same
    place, method and seed under another key is replaced, as that key is of another configuration.

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
    if made.empty:
        raise UserError(f"no run of {paper.key}/{table_name} at scale {config.scale} was trained here")
    new = _as_texts(made, place)
    path = path_of(config.scale, paper.key)
    if path.exists():
        before = pd.DataFrame(StrictCsv(path).rows)
        later = {name: entry for name, entry in paper.settings.items() if name not in before}
        before = before.assign(**{name: str(entry.default) for name, entry in later.items()})
        new = _with_others(new, before, [*place, "method", "seed"])
    write_output(path, in_order(new, place).to_csv(index=False, lineterminator="\n"))
    return path


def _trained(cells: Sequence[Cell], spec: TableSpec) -> pd.DataFrame:
    """Return the numbers of the runs of cells that were trained here and ended."""
    if spec.kind == "rates":
        rows = rates_of_cells(cells, spec)
    else:
        rows = [row for cell in cells for row in runs_of_cells([cell], spec.metrics_on(cell.dataset))]
    runs = frame_of(rows, Row)
    broken = runs["status"].eq(DIVERGED) & runs["metric"].eq("")
    known = runs["value"].notna() | runs["sign"].eq(degenerate_runs.NO_MODEL)
    return runs[broken | (runs["status"].eq(FINISHED) & known)]


def _as_texts(runs: pd.DataFrame, place: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the file: numbers with six digits, what is not known empty."""
    texts = runs.assign(
        **{name: [str(dict(at).get(name, "")) for at in runs["place"]] for name in place},
        **{name: runs[name].map("{:.6g}".format).replace("nan", "") for name in ("value", "pace")},
    )
    return texts[[*place, *COLUMNS]].astype(str)


def _with_others(new: pd.DataFrame, before: pd.DataFrame, run: list[str]) -> pd.DataFrame:
    """Add the rows of a file that are of other runs, or of metrics that a run's new rows lack.

    A run that stands at another place too, as cells may share it, gets its new numbers there.
    """
    before = before.reindex(columns=list(new.columns), fill_value="")
    ours = new.drop_duplicates(["key", "metric"]).set_index(["key", "metric"])
    shared = before.set_index(["key", "metric"]).index
    for name in ours.columns.difference(run):
        before[name] = [
            ours[name].get(number, value) for number, value in zip(shared, before[name], strict=True)
        ]
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
