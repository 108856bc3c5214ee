"""Build a table of a paper: one spec in, ``.tex``, ``.csv``, ``.md`` and a provenance ``.json`` out."""

from __future__ import annotations

from pathlib import Path

from fedbench.errors import unknown
from fedbench.plan.cells import cells_of
from fedbench.plan.configuration import CONFIG_DIR, load_paper, scale_of
from fedbench.plan.schema import Config, Paper, Scale, TableSpec
from fedbench.plan.untuned import methods_by_dataset, untuned
from fedbench.report.files import TABLES, write_forms
from fedbench.report.numbers import compare, described
from fedbench.report.numbers.origin import provenance
from fedbench.report.tables import data as data_table
from fedbench.report.tables import facts, layout, leaderboard, notes
from fedbench.report.tables.document import Table, stamp
from fedbench.report.tables.fold import empty, fold

DECIMALS = 3
"""Digits of a table whose paper prints none."""


def build(paper_key: str, table_name: str, config: Config, root: Path = Path()) -> list[Path]:
    """Write ``tables/<paper>/<table>.{tex,csv,md,json,macros.tex}`` and return the paths, the ``.tex`` first.

    The same inputs give the same bytes. The PDF is a step of its own: :func:`fedbench.report.document.pdf.build_pdf`.
    """
    table = make(paper_key, table_name, config, root)
    return write_forms(root / TABLES / paper_key / table_name, table.forms())


def show(paper_key: str, table_name: str, config: Config, root: Path = Path(), details: bool = False) -> str:
    """Return a table as plain text for a terminal, the long notes with ``details``; nothing is written."""
    return make(paper_key, table_name, config, root).terminal(details)


def make(paper_key: str, table_name: str, config: Config, root: Path = Path()) -> Table:
    """Assemble a table from what is on disk: results, or partitions for a table of kind ``data``.

    Raises :class:`UserError` for an unknown table, rows and columns that do not fit it, or missing published
    numbers.
    """
    paper, scale = load_paper(paper_key, root / CONFIG_DIR), scale_of(config, root / CONFIG_DIR)
    if table_name not in paper.tables:
        raise unknown(f"table of {paper_key}", table_name, paper.tables)
    spec = paper.tables[table_name]
    if spec.kind == "data":
        return data_table.make(paper, scale, table_name, config, root)
    if spec.kind == "facts":
        return facts.make(paper, scale, table_name, config, root)
    if spec.kind == "leaderboard":
        return leaderboard.make(paper, scale, table_name, config, root)
    return _results(paper, scale, table_name, spec, config, root)


def _results(
    paper: Paper, scale: Scale, table_name: str, spec: TableSpec, config: Config, root: Path
) -> Table:
    axes = compare.axes_placed(config, paper, scale, table_name)
    cells = cells_of(config, paper.key, table_name, root / CONFIG_DIR)
    compared, published = compare.compare(config, paper, scale, spec, cells, root)
    decimals = published.decimals if published else DECIMALS
    if spec.kind == "rates":  # bounds are printed as whole numbers
        decimals = max(paper.measure(metric).decimals for metric in spec.metrics)
    made = provenance(cells, root)
    keys = [run["key"] for cell in made["cells"] for run in cell["runs"]]
    origin = {
        "paper": paper.key,
        "table": table_name,
        "scale": scale.name,
        "stamp": stamp(made["commits"], keys),
        "tolerance": config.tolerance,
        "published": spec.published,
        **made,
    }
    not_tuned = untuned(cells, config, root / CONFIG_DIR)
    measured = {(i.place["dataset"], i.place["method"]) for i in compared if i.here and i.measured.n_seeds}
    grid = layout.layout(paper, spec, axes, compared, decimals)
    shown = notes.Shown(
        paper=paper,
        scale=scale,
        spec=spec,
        cells=cells,
        compared=compared,
        tolerance=config.tolerance,
        decimals=decimals,
        unknown_names=compare.unknown_names(paper, spec, root),
        tasks=described.tasks(cells, root / config.data_dir),
        untuned=methods_by_dataset([cell for cell in not_tuned if (cell.dataset, cell.method) in measured]),
        facts=[*described.trained(cells), *described.chosen(paper, scale, cells, root / CONFIG_DIR)],
        dashes=any(empty(entry) and entry.value for entry in fold(grid).entries),
        mixed_data=[name for name, digests in made["data"].items() if len(digests) > 1],
        other_data=described.other_data(cells, made["data"], root / config.data_dir),
        stamp=origin["stamp"],
    )
    below, details = notes.notes(shown)
    return Table(
        paper=paper.key,
        name=table_name,
        title=notes.caption(spec, scale, compared, cells, config.set),
        grid=grid,
        notes=below,
        details=details,
        rows=compare.tidy(compared, table_name),
        provenance=origin,
    )
