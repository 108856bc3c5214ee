"""What was not run takes one line: a table without empty blocks, rows and columns, and a sentence that names them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from fedbench.report.numbers.names import ABSENT
from fedbench.report.numbers.rows import NOT_RUN
from fedbench.report.tables.layout import WITHIN, Block, Entry, Grid, Row

NOT_PREPARED = "Not prepared here"
"""Of tables about the data."""
NAMED = 6
"""Blocks, rows or columns that are named; of more the rest is counted."""


def fold(grid: Grid) -> Grid:
    """Return a grid without the blocks, single rows and columns in which there is no number of ours.

    ``left`` says what was left out. The published numbers of what is left out stand in the table's CSV.
    """
    kept = [index for index in range(len(grid.names)) if any(_ran(row, index) for row in grid.rows)]
    blocks = [_with(block, kept) for block in grid.blocks if any(map(_any, block.rows))]
    gone = [block for block in grid.blocks if not any(map(_any, block.rows))]
    rows: list[Row] = []
    if len(blocks) == 1 and not blocks[0].heading:
        rows = [row for row in grid.rows if not _any(row)]
        blocks = [replace(blocks[0], rows=[row for row in blocks[0].rows if _any(row)])]
    columns = [name for index, name in enumerate(grid.names) if index not in kept]
    names = _blocks(gone, blocks) or [
        row.label for row in (rows or [*itertools.chain(*(b.rows for b in gone))])
    ]
    names = list(dict.fromkeys([*names, *(columns if blocks else [])]))
    headers = [_header(level, kept) for level in grid.headers] if blocks else grid.headers
    printed = any(
        entry.printed for block in blocks for row in block.rows for line in row.entries for entry in line
    )
    return replace(
        grid,
        headers=headers,
        blocks=blocks,
        compares=grid.compares and printed,
        left=_left(grid, blocks, names),
    )


def empty(entry: Entry) -> bool:
    """Tell whether a place has no number of ours and nothing to say of one."""
    if entry.item is not None:
        return entry.item.measured.status == NOT_RUN
    return entry.value in ("", ABSENT)


def _ran(row: Row, column: int) -> bool:
    return any(not empty(line[column]) for line in row.entries)


def _any(row: Row) -> bool:
    return any(not empty(entry) for line in row.entries for entry in line)


def _with(block: Block, columns: Sequence[int]) -> Block:
    rows = [
        replace(row, entries=[[line[column] for column in columns] for line in row.entries])
        for row in block.rows
    ]
    return replace(
        block, rows=rows, agreement=[block.agreement[i] for i in columns] if block.agreement else []
    )


def _header(level: Sequence[tuple[str, int]], columns: Sequence[int]) -> list[tuple[str, int]]:
    """Keep of each heading as many columns as are left below it."""
    ends = [0, *itertools.accumulate(span for _, span in level)]
    spans = [sum(low <= column < high for column in columns) for low, high in itertools.pairwise(ends)]
    return [(text, span) for (text, _), span in zip(level, spans, strict=True) if span]


def _blocks(gone: Sequence[Block], kept: Sequence[Block]) -> list[str]:
    """Name blocks by that part of their headings which tells them from those that are there, else by the first."""
    out, there = ([block.heading.split(WITHIN) for block in part if block.heading] for part in (gone, kept))
    for place in range(min(map(len, out), default=0)):
        names = dict.fromkeys(parts[place] for parts in out)
        if not any(parts[place] in names for parts in there):
            return list(names)
    return [f"the rest of {first}" for first in dict.fromkeys(parts[0] for parts in out)]


def _left(grid: Grid, blocks: Sequence[Block], names: Sequence[str]) -> str:
    total = sum(_numbers(row) for row in grid.rows)
    here = sum(_numbers(row) for block in blocks for row in block.rows)
    if not names or total == here:
        return ""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{grid.absent}: {', '.join(names[:NAMED])}{more} ({total - here} of {total} numbers)."


def _numbers(row: Row) -> int:
    """Count the places that hold, or would hold, a number of ours."""
    return sum(entry.item is not None or bool(entry.value) for line in row.entries for entry in line)
