"""Runs that were trained here, written to the files of ``reproduced/`` that are kept in git."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fedbench import files
from fedbench.data.summary import Counts
from fedbench.errors import UserError
from fedbench.outputs import REPRODUCED, csv_text
from fedbench.results import collect, run_facts
from fedbench.results.frame import DIVERGED, FINISHED, Row, frame_of
from fedbench.results.rates import rates_of_cells
from fedbench.results.runs import runs_of_cells
from fedbench.results.shipped import COLUMNS, FACTS, OF_COUNTS, OF_CURVES, Kind, curves_in, exported, path_of
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import TableSpec

POINTS = 100
"""Evaluations that are kept of a run, at equal distances, the first and the last among them."""


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
        before = exported(path, dict.fromkeys(COLUMNS, "str"), "str")
        later = {name: entry for name, entry in paper.settings.items() if name not in before}
        before = before.assign(**{name: str(entry.default) for name, entry in later.items()})
        new = _with_others(new, before, [*place, "method", "seed"])
    files.write(path, in_order(new, place).to_csv(index=False, lineterminator="\n"))
    return path


def _trained(cells: Sequence[Cell], spec: TableSpec) -> pd.DataFrame:
    """Return the numbers of the runs of cells that were trained here and ended."""
    if spec.kind == "rates":
        rows = rates_of_cells(cells, spec)
    else:
        rows = [row for cell in cells for row in runs_of_cells([cell], spec.metrics_on(cell.dataset))]
    runs = frame_of(rows, Row)
    broken = runs["status"].eq(DIVERGED) & runs["metric"].eq("")
    known = runs["value"].notna() | runs["sign"].eq(run_facts.NO_MODEL)
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

    def state(rows: pd.DataFrame) -> pd.Series[str]:
        """Tell a run from that of another configuration, and from itself where it had not diverged, or had."""
        return rows["key"].where(rows["metric"] != "", rows["key"] + " diverged")

    now = new.assign(now=state(new)).drop_duplicates(run)[[*run, "now"]]
    before = before.reindex(columns=new.columns, fill_value="").merge(now, on=run, how="left")
    before = before[before["now"].isna() | (before["now"] == state(before))]
    numbers = new.drop(columns=run).drop_duplicates(["key", "metric"])
    elsewhere = before[[*run, "key", "metric"]].merge(numbers, on=["key", "metric"])
    return pd.concat([before[new.columns], elsewhere, new]).drop_duplicates([*run, "metric"], keep="last")


def in_order(rows: pd.DataFrame, place: list[str]) -> pd.DataFrame:
    """Sort the rows of a file by place, method, metric and seed: numbers by their values, words after them."""
    return rows.sort_values([*place, "method", "metric", "seed"], key=_ranks, kind="stable")


def _ranks(column: pd.Series[str]) -> pd.Series[int]:
    texts = pd.Series(column.unique())
    numbers = pd.to_numeric(texts, errors="coerce")
    ordered = pd.DataFrame({"number": numbers, "text": texts}).sort_values(["number", "text"])
    return column.map({text: rank for rank, text in enumerate(ordered["text"])})


def add_curves(plan: Plan, cells: Sequence[Cell]) -> list[Path]:
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
        _merge(path_of(plan.scale.name, plan.study.key, kind), pd.concat(of_kind))
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
        before = curves_in(path)
        new = pd.concat([before[~before["key"].isin(new["key"])], new])
    first = [name for name in OF_CURVES if name in new]
    new = new[[*first, *(name for name in new if name not in first)]]
    return files.write(path, csv_text(new.sort_values("key", kind="stable")))


def add_counts(study: str, counted: Mapping[tuple[str, str, str], Counts]) -> Path:
    """Write counts by dataset, key and split into the file, in place of those that it has of the same ones."""
    rows = [
        (study, dataset, split, key, counts.n, counts.positive, counts.negative)
        for (dataset, key, split), counts in counted.items()
    ]
    new, path = pd.DataFrame(rows, columns=[*OF_COUNTS]).astype(OF_COUNTS), REPRODUCED / FACTS
    if path.exists():
        before = exported(path, OF_COUNTS, "str")
        new = pd.concat([before, new]).drop_duplicates(["key", "split"], keep="last")
    return files.write(path, csv_text(new.sort_values([*OF_COUNTS][:4])))
