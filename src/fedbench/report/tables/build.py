"""Build a table of a paper: one spec in, ``.tex``, ``.csv``, ``.md`` and a provenance ``.json`` out."""

from __future__ import annotations

from pathlib import Path

from fedbench.plan.plan import Plan
from fedbench.plan.untuned import methods_by_dataset
from fedbench.report.files import TABLES, write_forms
from fedbench.report.numbers import compare, described
from fedbench.report.numbers.origin import provenance
from fedbench.report.tables import data as data_table
from fedbench.report.tables import facts, layout, leaderboard, notes
from fedbench.report.tables.document import Table, stamp
from fedbench.report.tables.fold import empty, fold

DECIMALS = 3
"""Digits of a table whose paper prints none."""


def build(plan: Plan, name: str) -> list[Path]:
    """Write ``tables/<paper>/<table>.{tex,csv,md,json,macros.tex}`` and return the paths, the ``.tex`` first.

    The same inputs give the same bytes. The PDF is a step of its own: :func:`fedbench.report.document.pdf.build_pdf`.
    """
    return write_forms(TABLES / plan.study.key / name, make(plan, name).forms())


def show(plan: Plan, name: str, details: bool = False) -> str:
    """Return a table as plain text for a terminal, the long notes with ``details``; nothing is written."""
    return make(plan, name).terminal(details)


def make(plan: Plan, name: str) -> Table:
    """Assemble a table from what is on disk: results, or partitions for a table of kind ``data``.

    Raises :class:`UserError` for an unknown table, rows and columns that do not fit it, or missing published
    numbers.
    """
    kinds = {"data": data_table.make, "facts": facts.make, "leaderboard": leaderboard.make}
    return kinds.get(plan.table(name).kind, _results)(plan, name)


def _results(plan: Plan, name: str) -> Table:
    paper, scale, config, cells = plan.study, plan.scale, plan.config, plan.cells(name)
    spec, axes = plan.table(name), compare.axes_placed(plan, name)
    compared, published = compare.compare(plan, spec, cells)
    decimals = published.decimals if published else DECIMALS
    if spec.kind == "rates":  # bounds are printed as whole numbers
        decimals = max(paper.measure(metric).decimals for metric in spec.metrics)
    made = provenance(cells)
    keys = [run["key"] for cell in made["cells"] for run in cell["runs"]]
    origin = {
        "paper": paper.key,
        "table": name,
        "scale": scale.name,
        "stamp": stamp(made["commits"], keys),
        "tolerance": config.tolerance,
        "published": spec.published,
        **made,
    }
    not_tuned = plan.untuned(cells)
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
        unknown_names=compare.unknown_names(paper, spec),
        tasks=described.tasks(cells, Path(config.data_dir)),
        untuned=methods_by_dataset([cell for cell in not_tuned if (cell.dataset, cell.method) in measured]),
        facts=[*described.trained(cells), *described.chosen(plan, cells)],
        dashes=any(empty(entry) and entry.value for entry in fold(grid).entries),
        mixed_data=[name for name, digests in made["data"].items() if len(digests) > 1],
        other_data=described.other_data(cells, made["data"], Path(config.data_dir)),
        stamp=origin["stamp"],
    )
    below, details = notes.notes(shown)
    return Table(
        paper=paper.key,
        name=name,
        title=notes.caption(spec, scale, compared, cells, config.set),
        grid=grid,
        notes=below,
        details=details,
        rows=compare.tidy(compared, name),
        provenance=origin,
    )
