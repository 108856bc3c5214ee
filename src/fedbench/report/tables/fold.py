"""What was not run takes one line: a table without empty blocks, rows and columns, and a sentence that names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from fedbench.report.numbers.names import ABSENT
from fedbench.report.numbers.rows import NOT_RUN
from fedbench.report.tables.layout import WITHIN, Entry, Grid

NOT_PREPARED = "Not prepared here"
"""Of tables about the data."""
NAMED = 6
"""Blocks, rows or columns that are named; of more the rest is counted."""


def fold(grid: Grid) -> Grid:
    """Return a grid without the blocks, single rows and columns in which there is no number of ours.

    ``left`` says what was left out. The published numbers of what is left out stand in the table's CSV. Where nothing
    ran all that is printed is shown, so that one sees what is missing.
    """
    cells = grid.cells
    ran = cells.loc[[not empty(entry) for entry in cells["entry"]]]
    if ran.empty:  # then print is laid out, with blanks beside it
        ran = cells.loc[[bool(entry.printed) for entry in cells["entry"]]]
    block, row, column = (cells[part].isin(ran[part]) for part in ("block", "row", "column"))
    alone = {*cells.loc[block, "block"]} == {0} and not cells["heading"].any()
    shown = cells[block & column & (row if alone else True)]
    names = _blocks(cells[~block], cells[block]) or [*cells.loc[~(row if alone else block), "label"]]
    if len(shown):
        names += [", ".join(filter(None, texts)) for texts in cells.loc[~column, "names"]]
    compares = grid.compares and any(entry.printed for entry in shown["entry"])
    return replace(grid, cells=shown, compares=compares, left=_left(grid, shown, [*dict.fromkeys(names)]))


def empty(entry: Entry) -> bool:
    """Tell whether a place has no number of ours and nothing to say of one."""
    if entry.item is not None:
        return bool(entry.item.status == NOT_RUN)
    return entry.value in ("", ABSENT)


def _blocks(gone: pd.DataFrame, kept: pd.DataFrame) -> list[str]:
    """Name blocks by that part of their headings which tells them from those that are there, else by the first."""
    out, left = (
        [heading.split(WITHIN) for heading in dict.fromkeys(part["heading"]) if heading]
        for part in (gone, kept)
    )
    for place in range(min(map(len, out), default=0)):
        names = dict.fromkeys(parts[place] for parts in out)
        if not any(parts[place] in names for parts in left):
            return list(names)
    return [f"the rest of {first}" for first in dict.fromkeys(parts[0] for parts in out)]


def _left(grid: Grid, shown: pd.DataFrame, names: Sequence[str]) -> str:
    """Say what was left out, and how many of all places that hold, or would hold, a number of ours."""
    total, kept = (
        sum(entry.item is not None or bool(entry.value) for entry in part["entry"])
        for part in (grid.cells, shown)
    )
    if not names or total == kept:
        return ""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{grid.absent}: {', '.join(names[:NAMED])}{more} ({total - kept} of {total} numbers)."
