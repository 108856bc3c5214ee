"""The readable forms of a table: Markdown that also lines up as plain text, and the form for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace

from fedbench.report.tables.layout import Entry, Grid, stacked

WIDEST = 120
"""Characters. A terminal form wider than this puts ours, paper and difference below each other."""


def markdown(grid: Grid, title: str, notes: Sequence[str]) -> str:
    """Return the table as a Markdown document: headings of blocks are bold lines, best values are bold.

    A table without any run has title and notes alone.
    """
    said = [*(f"* {note}" for note in notes), ""]
    if not grid.blocks:
        return "\n".join([f"**{title}**", "", *said])
    rows = [[cell.replace("|", "\\|") for cell in row] for row in _side_by_side(grid, bold="**")]
    widths = [max(3, *(len(row[i]) for row in rows)) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join([f"**{title}**", "", *lines, "", *said])


def terminal(grid: Grid, title: str, notes: Sequence[str], width: int = 100) -> str:
    """Return the table as plain text: best values carry a ``*``.

    Title and notes are wrapped to ``width`` characters.
    """
    notes = [note.replace("Bold:", "*:", 1) for note in notes]
    wrapped = [part for note in notes for part in textwrap.wrap(note, width, subsequent_indent="  ")]
    head = textwrap.wrap(title, width)
    if not grid.blocks:
        return "\n".join([*head, "", *wrapped, ""])
    rows = _side_by_side(grid, bold="")
    if sum(_widths(rows)) + 2 * len(rows[0]) > WIDEST and grid.compares:
        rows = _stacked(grid)
    widths = _widths(rows)

    def line(row: Sequence[str]) -> str:
        return "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip()

    rule = "-" * max(len(line(row)) for row in rows)
    body = [line(row) for row in rows]
    return "\n".join([*head, rule, body[0], rule, *body[1:], rule, *wrapped, ""])


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column; lines that hold a heading alone run over their neighbours."""
    return [
        max(len(cell) for cell in column)
        for column in zip(*(row for row in rows if any(row[1:])), strict=True)
    ]


def _side_by_side(grid: Grid, bold: str) -> list[list[str]]:
    """Return header and lines, the three sides beside each other."""
    parts = 3 if grid.compares else 1
    tau = grid.has_agreement_column
    head = [text for name in grid.names for text in [f"{name}: ours", "paper", "Δ"][:parts]]
    head = [grid.stub, *(head if grid.compares else grid.names), *(["τ"] if tau else [])]
    body: list[list[str]] = []
    for block in grid.blocks:
        if block.heading:
            body.append([f"{bold}{block.heading}{bold}", *[""] * (len(head) - 1)])
        for row in block.rows:
            for metric, entries in enumerate(row.entries):
                cells = [text for entry in entries for text in _cells(entry, bold)[:parts]]
                body.append(["" if metric else row.label, *cells, *([row.agreement[metric]] if tau else [])])
        if block.agreement:
            taus = [text for t in block.agreement for text in [t, "", ""][:parts]]
            body.append(["order τ", *taus, *([""] if tau else [])])
    return [head, *body]


def _stacked(grid: Grid) -> list[list[str]]:
    """Return header and lines, ours, paper and difference below each other, a row's metrics in one place."""
    tau = grid.has_agreement_column
    body: list[list[str]] = [[grid.stub, "", *grid.names, *(["τ"] if tau else [])]]
    for block in grid.blocks:
        if block.heading:
            body.append([block.heading, *[""] * (len(body[0]) - 1)])
        for row in block.rows:
            lines = [line if tau else line[:-1] for line in stacked(row, _side)]
            body += [["" if number else row.label, *line] for number, line in enumerate(lines)]
    return body


def _side(entry: Entry, name: str) -> str:
    if name == "±":
        return entry.deviation
    ours, paper, delta = _cells(replace(entry, spread="") if name == "ours" else entry, "")
    return {"ours": ours, "paper": paper, "Δ": delta}[name]


def _cells(entry: Entry, bold: str) -> list[str]:
    def number(value: str, spread: str, best: bool) -> str:
        if not best:
            return entry.wrapped(value + spread)
        return entry.wrapped(f"{bold}{value}{bold}{spread}" if bold else f"{value}*{spread}")

    printed = number(entry.printed, entry.printed_spread, entry.printed_best) + (
        "†" if entry.doubtful else ""
    )
    return [number(entry.value, entry.spread, entry.best), printed, f"{entry.delta} {entry.symbol}".strip()]
