"""The table of data sets: what is trained and tested on, read from the partitions' summaries."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from fedbench.cells import CONFIG_DIR, Config, datasets_run, load_paper, load_scale, resolve
from fedbench.data.summary import DataRow, data_rows
from fedbench.report import latex, text
from fedbench.report.files import TABLES, write_forms
from fedbench.report.layout import ABSENT, Block, Entry, Grid, Row

COLUMNS = ("train", "positive", "negative", "ratio", "test", "sample shape", "clients")


def build(paper_key: str, table_name: str, config: Config, root: Path = Path()) -> list[Path]:
    """Write ``tables/<paper>/<table>.{tex,csv,md,json}`` of a table of kind ``data`` and return the paths.

    A data set that is not partitioned yet keeps its line; the notes say why it is empty.
    """
    config_dir = root / CONFIG_DIR
    paper, scale = load_paper(paper_key, config_dir), load_scale(config.scale, config_dir)
    spec = paper.tables[table_name]
    here = datasets_run(config, paper, scale, spec)
    labels = [*spec.datasets, *(label for label in here if label not in spec.datasets)]
    seed = (config.seeds if config.seeds is not None else scale.seeds)[0]
    setting = {name: spec.settings.get(name, [entry.default])[0] for name, entry in paper.settings.items()}
    method = next(iter(paper.methods))
    rules = {
        label: resolve(paper, scale, label, setting, method, seed, config_dir=config_dir).data
        for label in labels
    }
    rows = data_rows([(label, rule, seed) for label, rule in rules.items()], root / config.data_dir)
    title = f"{spec.title.rstrip('.')}. {spec.caption}".strip()
    grid, notes = shape(rows), _notes(rows, seed)
    frame = pd.DataFrame([{"paper": paper_key, "table": table_name, **asdict(row)} for row in rows])
    frame["shape"] = ["x".join(map(str, row.shape or ())) for row in rows]
    counts = [
        name for name in frame.columns if name in ("train", "positive", "negative", "validation", "test")
    ]
    frame = frame.astype(dict.fromkeys([*counts, "classes", "clients"], "Int64"))
    origin = {label: {"seed": seed, "partition": rule.partition_key(seed)} for label, rule in rules.items()}
    forms = {
        "tex": latex.write(grid, title, notes, f"tab:{paper_key}-{table_name}"),
        "csv": frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"),
        "md": text.markdown(grid, title, notes),
        "json": json.dumps({"paper": paper_key, "table": table_name, "data": origin}, indent=1) + "\n",
    }
    return write_forms(root / TABLES / paper_key / table_name, forms)


def shape(rows: list[DataRow]) -> Grid:
    """Arrange the rows under ``COLUMNS``."""

    def count(value: int | None) -> str:
        return ABSENT if value is None else f"{value:,}"

    def line(row: DataRow) -> Row:
        size = "×".join(map(str, row.shape)) if row.shape else ABSENT
        ratio = ABSENT if row.ratio is None else f"{row.ratio:.4g}"
        numbers = (count(row.train), count(row.positive), count(row.negative), ratio, count(row.test))
        cells = [Entry(cell) for cell in (*numbers, size, count(row.clients))]
        return Row(row.dataset, [cells], [])

    header = [(name, 1) for name in COLUMNS]
    return Grid("Dataset", [header], [Block("", [line(row) for row in rows], [], True)], compares=False)


def _notes(rows: list[DataRow], seed: int) -> list[str]:
    held = {row.dataset: row.validation for row in rows if row.validation}
    first = f"Training samples of all clients together (seed {seed}); ratio: share of positives."
    lines = [first, *(f"{label}: {n:,} samples held out for validation." for label, n in held.items())]
    return lines + [f"{row.dataset}: {row.missing}" for row in rows if row.missing]
