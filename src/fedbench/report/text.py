"""The readable forms of a table: Markdown that also lines up as plain text, and the form for a terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace

from tabulate import tabulate

from fedbench.report.layout import Grid, Marks


def _bold(text: str) -> str:
    """Make a number bold without the marks behind it: GitHub ends no bold between a mark and ±."""
    return re.sub(r".*\w", r"**\g<0>**", text, count=1)


MARKDOWN = Marks(heading="**{}**".format, best=_bold)
PLAIN = Marks(best="{}*".format)


def markdown(grid: Grid, title: str, notes: Sequence[str]) -> str:
    """Return the table as a Markdown document: headings of blocks are bold lines, best values are bold.

    A table without any run has title and notes alone.
    """
    head, *rows = map(cells_of, _lines(replace(grid, stacks=False), MARKDOWN))
    table = tabulate(rows, head, tablefmt="github", disable_numparse=True)
    return document(title, [table] if grid.blocks else [], notes)


def document(title: str, table: Sequence[str], notes: Sequence[str]) -> str:
    """Return a Markdown document of a bold title, the lines of a table if there are any, and a list of notes."""
    body = ["", *table] if table else []
    return "\n".join([f"**{escaped(title)}**", *body, "", *(f"* {escaped(note)}" for note in notes), ""])


def cells_of(row: Sequence[str]) -> list[str]:
    """Return texts as cells of a Markdown table."""
    return [escaped(text).replace("|", "\\|") for text in row]


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
    rows = _lines(grid, PLAIN)
    widths = [max(map(len, column)) for column in zip(*(row for row in rows if len(row) > 1), strict=True)]
    body = [
        "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=False)).rstrip() for row in rows
    ]
    rule = "-" * max(map(len, body))
    return "\n".join([*head, rule, body[0], rule, *body[1:], rule, *wrapped, ""])


def _lines(grid: Grid, marks: Marks) -> list[list[str]]:
    """Return header and lines; a heading of a block is a line of one cell, which runs over its neighbours."""
    sides = [text for name in grid.names for text in (f"{name}: ours", "paper", "Δ")]
    head = [*grid.stubs, *(sides if grid.span > 1 else grid.names)]
    return [head, *(line for block in grid.lines(marks) for line in block)]
