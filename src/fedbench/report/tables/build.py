"""Build a table of a paper: one spec in, ``.tex``, ``.csv``, ``.md`` and a provenance ``.json`` out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fedbench.plan.plan import Plan
from fedbench.report.files import TABLES, write_forms
from fedbench.report.numbers import compare
from fedbench.report.numbers.axes import axes_placed
from fedbench.report.numbers.origin import provenance
from fedbench.report.tables import data as data_table
from fedbench.report.tables import facts, layout, leaderboard, notes
from fedbench.report.tables.document import Table, origin, stamp
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
    """Assemble a table from what is on disk: results, or partitions for a table about the data.

    Raises :class:`UserError` for an unknown table, rows and columns that do not fit it, or missing published
    numbers.
    """
    return KINDS.get(plan.table(name).kind, _results)(plan, name)


def _results(plan: Plan, name: str) -> Table:
    """Assemble a table of results or of exponents: each number beside its printed value."""
    spec, cells, axes = plan.table(name), plan.cells(name), axes_placed(plan, name)
    compared, published = compare.compare(plan, spec, cells)
    decimals = published.decimals if published else DECIMALS
    if spec.kind == "rates":  # bounds are printed as whole numbers
        decimals = max(plan.study.measure(metric).decimals for metric in spec.metrics)
    grid = layout.layout(plan.study, spec, axes, compared, decimals)
    made = provenance(cells)
    mark = stamp(made["commits"], [run["key"] for cell in made["cells"] for run in cell["runs"]])
    dashes = any(empty(entry) and entry.value for entry in fold(grid).entries)
    return Table(
        paper=plan.study.key,
        name=name,
        title=notes.caption(plan, name, compared),
        grid=grid,
        notes=notes.below(plan, name, compared, made, dashes),
        details=[*notes.details(plan, name, compared, decimals), f"{mark}."],
        rows=compare.tidy(compared, name),
        provenance=origin(
            plan, name, mark, tolerance=plan.config.tolerance, published=spec.published, **made
        ),
    )


KINDS: dict[str, Callable[[Plan, str], Table]] = {
    "data": data_table.make,
    "facts": facts.make,
    "leaderboard": leaderboard.make,
}
"""Makes a table of each kind; a plain one, of results or exponents, is made here."""
