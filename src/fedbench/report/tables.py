"""Build a table of a paper: one spec in, ``.tex``, ``.csv``, ``.md`` and a provenance ``.json`` out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fedbench.outputs import TABLES, write_forms
from fedbench.report import facts, leaderboard, results_table
from fedbench.report.document import Table
from fedbench.study.plan import Plan

KINDS: dict[str, Callable[[Plan, str], Table]] = {
    "results": results_table.table_of_results,
    "rates": results_table.table_of_results,
    "facts": facts.facts_table,
    "leaderboard": leaderboard.board_table,
}
"""Makes a table of each kind."""


def save_table(plan: Plan, name: str) -> list[Path]:
    """Write ``tables/<paper>/<table>.{tex,csv,md,json,macros.tex}`` and return the paths, the ``.tex`` first.

    The same inputs give the same bytes. The PDF is a step of its own: :func:`fedbench.report.pdf.build_pdf`.
    """
    return write_forms(TABLES / plan.study.key / name, table_of(plan, name).forms())


def table_of(plan: Plan, name: str) -> Table:
    """Assemble a table from what is on disk: results, or partitions for a table about the data.

    Raises :class:`UserError` for an unknown table, rows and columns that do not fit it, or missing published
    numbers.
    """
    return KINDS[plan.table(name).kind](plan, name)
