"""The readable forms of a table: Markdown that also lines up as plain text, and the form for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from fedbench.report.tables.layout import Entry, Grid, Marks, beside, stacked

WIDEST = 120
"""Characters. A terminal form wider than this puts ours, paper and difference below each other."""
MARKDOWN = Marks(str, "**{}**".format, str)
PLAIN = Marks(str, "{}*".format, str)


def markdown(grid: Grid, title: str, notes: Sequence[str]) -> str:
    """Return the table as a Markdown document: headings of blocks are bold lines, best values are bold.

    A table without any run has title and notes alone.
    """
    title = escaped(title)
    said = [*(f"* {escaped(note)}" for note in notes), ""]
    if not grid.blocks:
        return "\n".join([f"**{title}**", "", *said])
    rows = [[escaped(cell).replace("|", "\\|") for cell in row] for row in _beside(grid, MARKDOWN, "**{}**")]
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join([f"**{title}**", "", *lines, "", *said])


def escaped(text: str) -> str:
    """Return text that begins no tag in Markdown: names of sites and hardware may come from elsewhere."""
    return text.replace("\\", "\\\\").replace("<", "\\<")


def terminal(grid: Grid, title: str, notes: Sequence[str], width: int = 100) -> str:
    """Return the table as plain text: best values carry a ``*``.

    Title and notes are wrapped to ``width`` characters.
    """
    notes = [note.replace("Bold:", "*:", 1) for note in notes]
    wrapped = [part for note in notes for part in textwrap.wrap(note, width, subsequent_indent="  ")]
    head = textwrap.wrap(title, width)
    if not grid.blocks:
        return "\n".join([*head, "", *wrapped, ""])
    rows = _beside(grid, PLAIN, "{}")
    if sum(_widths(rows)) + 2 * len(rows[0]) > WIDEST and grid.compares:
        rows = _stacked(grid)
    widths = _widths(rows)
    body = [
        "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    rule = "-" * max(map(len, body))
    return "\n".join([*head, rule, body[0], rule, *body[1:], rule, *wrapped, ""])


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column; lines that hold a heading alone run over their neighbours."""
    columns = zip(*(row for row in rows if any(row[1:])), strict=True)
    return [max(map(len, column)) for column in columns]


def _beside(grid: Grid, marks: Marks, heading: str) -> list[list[str]]:
    """Return header and lines, the three sides beside each other."""
    parts = 3 if grid.compares else 1

    def sides(entry: Entry) -> list[str]:
        ours, paper, delta, symbol = entry.sides(marks)
        return [ours, paper, f"{delta} {symbol}".strip()][:parts]

    head = [text for name in grid.names for text in [f"{name}: ours", "paper", "Δ"]]
    rows = [[grid.stub, *(head if grid.compares else grid.names), "τ"]]
    for block in grid.blocks:
        if block.heading:
            rows.append([heading.format(block.heading), *[""] * (len(rows[0]) - 1)])
        rows += [[label, *cells, tau] for label, cells, tau in beside(block, sides)]
        if block.agreement:
            taus = [text for tau in block.agreement for text in [tau, "", ""][:parts]]
            rows.append(["order τ", *taus, ""])
    return rows if grid.has_agreement_column else [row[:-1] for row in rows]


def _stacked(grid: Grid) -> list[list[str]]:
    """Return header and lines, ours, paper and difference below each other, a row's metrics in one place."""
    rows = [[grid.stub, "", *grid.names, "τ"]]
    for block in grid.blocks:
        if block.heading:
            rows.append([block.heading, *[""] * (len(rows[0]) - 1)])
        rows += [[label, *cells, tau] for label, cells, tau in stacked(block, _side)]
    return rows if grid.has_agreement_column else [row[:-1] for row in rows]


def _side(entry: Entry, name: str) -> str:
    ours, paper, delta, symbol = entry.sides(PLAIN, spread=False)
    return {"ours": ours, "±": entry.deviation, "paper": paper, "Δ": f"{delta} {symbol}".strip()}[name]
