"""The table of datasets: what is trained and tested on, read from the partitions' summaries."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pandas as pd

from fedbench.data.summary import DataRow, data_rows
from fedbench.report import described
from fedbench.report.document import Table, origin
from fedbench.report.layout import NOT_PREPARED, Entry, listed
from fedbench.results.names import ABSENT
from fedbench.study.plan import Plan

COLUMNS = ("train", "positive", "negative", "ratio", "test", "sample shape", "clients")


def make(plan: Plan, name: str) -> Table:
    """Assemble a table of kind ``data``: the datasets it lists, then our own that the scale runs.

    A dataset that is not partitioned yet keeps its line; the notes say why it is empty.
    """
    paper, spec, seed = plan.study, plan.table(name), plan.seeds[0]
    labels = dict.fromkeys([*spec.datasets, *plan.datasets(spec)])
    setting = {name: first for name, (first, *_) in paper.values(spec).items()}
    method = next(iter(paper.methods))
    cells = [plan.cell(label, setting, method) for label in labels]
    rules = {cell.dataset: cell.runs[0].data for cell in cells}
    rows = data_rows([(label, rule, seed) for label, rule in rules.items()], Path(plan.config.data_dir))
    keys = {label: rule.partition_key(seed) for label, rule in rules.items()}
    return Table(
        paper=paper.key,
        name=name,
        title=described.caption(plan, name),
        grid=listed(COLUMNS, [("", row.dataset, _entries(row)) for row in rows], "Dataset", NOT_PREPARED),
        notes=_notes(rows, seed),
        rows=_tidy(paper.key, name, rows),
        provenance=origin(plan, name, f"partitions of seed {seed}", partitions=keys),
    )


def _tidy(paper: str, table: str, rows: list[DataRow]) -> pd.DataFrame:
    frame = pd.DataFrame([{"paper": paper, "table": table, **asdict(row)} for row in rows])
    frame["shape"] = ["x".join(map(str, row.shape or ())) for row in rows]
    counts = ("train", "positive", "negative", "validation", "test", "classes", "clients")
    return frame.astype(dict.fromkeys(counts, "Int64"))


def _entries(row: DataRow) -> list[Entry]:
    """Return what stands under :data:`COLUMNS`."""
    train, positive, negative, test, clients = (
        ABSENT if count is None else f"{count:,}"
        for count in (row.train, row.positive, row.negative, row.test, row.clients)
    )
    ratio = ABSENT if row.ratio is None else f"{row.ratio:.3g}"
    size = "×".join(map(str, row.shape)) if row.shape else ABSENT
    texts = (train, positive, negative, ratio, test, size, clients)
    return [Entry(ABSENT if row.missing else text) for text in texts]


def _notes(rows: list[DataRow], seed: int) -> list[str]:
    held = {row.dataset: row.validation for row in rows if row.validation}
    first = f"Training samples of all clients together (seed {seed}); ratio: share of positives."
    lines = [first, *(f"{label}: {n:,} samples held out for validation." for label, n in held.items())]
    return lines + ["What is not prepared here has a line in the CSV that says how."] * any(
        row.missing for row in rows
    )
