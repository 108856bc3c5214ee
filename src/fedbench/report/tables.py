"""Build a table of a paper: one spec in, ``.tex``, ``.csv``, ``.md`` and a provenance ``.json`` out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fedbench.cells import CONFIG_DIR, Config, cells_of, load_paper, load_scale
from fedbench.errors import UserError, unknown
from fedbench.report import claims, collect, compare, data_table, latex, layout, notes, text
from fedbench.report.files import TABLES, write_forms

DECIMALS = 3
"""Digits of a table whose paper prints none."""


@dataclass(frozen=True)
class Table:
    """A table ready to be written: its shape and words, its tidy rows, and where they come from."""

    paper: str
    name: str
    title: str
    grid: layout.Grid
    notes: list[str]
    rows: pd.DataFrame
    provenance: dict[str, Any]

    def tex(self) -> str:
        """Return the LaTeX form; it needs the booktabs package only."""
        origin = self.provenance
        comment = f"fedbench: {self.paper}/{self.name}, scale {origin['scale']}, {origin['stamp']}"
        return latex.write(self.grid, self.title, self.notes, f"tab:{self.paper}-{self.name}", comment)

    def markdown(self) -> str:
        """Return the Markdown form."""
        return text.markdown(self.grid, self.title, self.notes)

    def terminal(self) -> str:
        """Return the plain-text form for a terminal."""
        return text.terminal(self.grid, self.title, self.notes)

    def csv(self) -> str:
        """Return the tidy CSV: one row per number with six significant digits."""
        return self.rows.to_csv(index=False, float_format="%.6g", lineterminator="\n")


def make(paper_key: str, table_name: str, config: Config, root: Path = Path()) -> Table:
    """Assemble a results table from the cell results under ``root``; nothing is written.

    Raises :class:`UserError` for an unknown table, rows and columns that do not fit it, or missing published
    numbers.
    """
    config_dir = root / CONFIG_DIR
    paper, scale = load_paper(paper_key, config_dir), load_scale(config.scale, config_dir)
    if table_name not in paper.tables:
        raise unknown(f"table of {paper_key}", table_name, paper.tables)
    spec = paper.tables[table_name]
    if spec.kind != "results" or not spec.metrics:
        raise UserError(f"{paper_key}/{table_name} holds no results to compare; its kind is {spec.kind!r}")
    cells = cells_of(config, paper_key, table_name, config_dir)
    grid_axes = compare.axes(config, paper, scale, spec)
    compare.check_axes(spec, grid_axes, f"{paper_key}/{table_name}")
    compared, published = compare.compare(config, paper, scale, spec, cells, root)
    decimals = published.decimals if published else DECIMALS
    wanted = [claim for claim in paper.claims if claim.table == table_name]
    findings = [claims.check(claim, compared, decimals) for claim in wanted]
    origin = {
        "paper": paper_key,
        "table": table_name,
        "scale": scale.name,
        "tolerance": config.tolerance,
        "published": spec.published,
        "claims": [finding.as_dict() for finding in findings],
        **collect.provenance(cells, root),
    }
    keys = [run["key"] for cell in origin["cells"] for run in cell["runs"]]
    origin["stamp"] = stamp(origin["commits"], keys)
    words = notes.notes(
        paper, scale, spec, compared, published, config.tolerance, findings, origin["stamp"] + ".", decimals
    )
    return Table(
        paper=paper_key,
        name=table_name,
        title=notes.caption(spec, scale, compared),
        grid=layout.layout(paper, spec, grid_axes, compared, decimals),
        notes=words,
        rows=compare.tidy(compared, table_name),
        provenance=origin,
    )


def stamp(commits: Sequence[str], keys: Sequence[str]) -> str:
    """Return the line that ties a table to code and configuration: commits and a digest of all run keys."""
    digest = hashlib.sha256("\n".join(keys).encode()).hexdigest()[:12]
    code = ", ".join(commit[:12] for commit in commits) or "none (nothing run)"
    return f"Runs {digest}, code {code}"


def build(paper_key: str, table_name: str, config: Config, root: Path = Path()) -> list[Path]:
    """Write ``tables/<paper>/<table>.{tex,csv,md,json}`` and return the paths, the ``.tex`` first.

    A table of kind ``data`` is built from the partitions' summaries instead of results. The same inputs give
    the same bytes. The PDF is a step of its own: :func:`fedbench.report.latex.build_pdf`.
    """
    paper = load_paper(paper_key, root / CONFIG_DIR)
    if table_name in paper.tables and paper.tables[table_name].kind == "data":
        return data_table.build(paper_key, table_name, config, root)
    table = make(paper_key, table_name, config, root)
    origin = json.dumps(table.provenance, indent=1, ensure_ascii=False) + "\n"
    forms = {"tex": table.tex(), "csv": table.csv(), "md": table.markdown(), "json": origin}
    return write_forms(root / TABLES / paper_key / table_name, forms)
