"""Measured numbers as CSV to be kept in git: the columns of the published file, and how ours were made."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import pandas as pd

from fedbench.cells import Cell, cells_of
from fedbench.configuration import CONFIG_DIR, load_paper
from fedbench.errors import unknown
from fedbench.report import collect
from fedbench.report.collect import INCOMPLETE, NOT_RUN
from fedbench.report.files import REPRODUCED, write
from fedbench.report.published import load
from fedbench.schema import Config

LACKING = (NOT_RUN, INCOMPLETE)
MADE = ["n_seeds", "status", "commit", "scale", "device_mean", "device_variance", "key"]


def export_reproduced(paper_key: str, table_name: str, config: Config, root: Path = Path()) -> Path:
    """Write ``reproduced/<scale>/<paper>/<table>.csv`` and return its path.

    One row per number that the scale runs: paper, table, dataset, method, the published file's settings,
    metric, mean, std (over seeds, ddof 1), note (why a mean is missing), then how it was made. ``key`` is the
    cell's, a digest of all that decides its runs: where the store lacks some of them, a row that the file has under
    the same key stays, so that a table can be measured bit by bit and on several machines. Other cells that are
    not run yet are rows with that status and no mean.
    """
    paper = load_paper(paper_key, root / CONFIG_DIR)
    if table_name not in paper.tables:
        raise unknown(f"table of {paper_key}", table_name, paper.tables)
    spec = paper.tables[table_name]
    cells = cells_of(config, paper_key, table_name, root / CONFIG_DIR)
    frame = collect.frame(cells, spec.metrics, root).to_dict(orient="records")
    published = load(paper_key, spec.published, root) if spec.published else None
    settings = list(published.settings) if published else list(paper.settings)
    settings += [name for name, values in spec.settings.items() if len(values) > 1 and name not in settings]
    owners = [cell for cell in cells for _ in spec.metrics]
    rows = [_row(row, cell, table_name, settings) for row, cell in zip(frame, owners, strict=True)]
    for row in rows:
        row["metric"] = published.metric_name(row["metric"]) if published else row["metric"]
    columns = ["paper", "table", "dataset", "method", *settings, "metric", "mean", "std", "note", *MADE]
    path = root / REPRODUCED / config.scale / paper_key / f"{table_name}.csv"
    text = pd.DataFrame(rows, columns=columns).to_csv(index=False, float_format="%.6g", lineterminator="\n")
    made = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    if path.exists():
        made = _with_kept(pd.read_csv(path, dtype=str, keep_default_na=False), made)
    return write(path, made.to_csv(index=False, lineterminator="\n"))


def _with_kept(before: pd.DataFrame, made: pd.DataFrame) -> pd.DataFrame:
    """Put a row of the file in the place of a new one that lacks runs, where both have the same key."""
    columns = list(made.columns)
    if list(before.columns) != columns:
        return made
    place = [*columns[: columns.index("mean")], "key"]
    made = made.set_index(place, drop=False)
    done = before[~before["status"].isin(LACKING)].set_index(place, drop=False)
    kept = made.index[made["status"].isin(LACKING)].intersection(done.index)
    made.loc[kept] = done.loc[kept]
    return made


def _row(row: dict[Any, Any], cell: Cell, table_name: str, settings: list[str]) -> dict[str, Any]:
    places = {"n_clients": cell.runs[0].data.clients, **cell.setting}
    shared = {name: row[name] for name in ("paper", "dataset", "method", "metric", "mean", "std")}
    return {
        **shared,
        **{name: places.get(name, math.nan) for name in settings},
        "table": table_name.removeprefix("table"),
        "note": row["reason"],
        **{name: row[name] for name in MADE},
    }
