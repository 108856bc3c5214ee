"""Measured numbers as CSV to be kept in git: the columns of the published file, and how ours were made."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd

from fedbench.cells import Cell, cells_of
from fedbench.configuration import CONFIG_DIR, Config, load_paper
from fedbench.errors import unknown
from fedbench.report import collect
from fedbench.report.files import REPRODUCED, write
from fedbench.report.published import load

MADE = ["n_seeds", "status", "commit", "scale", "device_mean", "device_variance"]


def export_reproduced(paper_key: str, table_name: str, config: Config, root: Path = Path()) -> Path:
    """Write ``reproduced/<scale>/<paper>/<table>.csv`` and return its path.

    One row per number that the scale runs: paper, table, dataset, method, the published file's settings,
    metric, mean, std (over seeds, ddof 1), note (why a mean is missing), then how it was made. Cells
    that are not run yet are rows with that status and no mean.
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
    text = pd.DataFrame(rows, columns=columns).to_csv(index=False, float_format="%.6g", lineterminator="\n")
    return write(root / REPRODUCED / config.scale / paper_key / f"{table_name}.csv", text)


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
