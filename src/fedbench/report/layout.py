"""The shape of a table, independent of LaTeX or text: what stands in its blocks, rows and columns.

All strings are plain Unicode; the writers (:mod:`latex`, :mod:`text`) translate them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from fedbench.results.frame import NOT_RUN, Compared
from fedbench.results.names import ABSENT
from fedbench.study.schema import TableSpec, Value

Axes = Mapping[str, Sequence[Value]]
"""The values of every axis of a table, in order."""
At = Mapping[str, Value]
"""Values of some axes."""
WITHIN = " · "
"""Between the parts of a block's heading."""
METRIC = "metric"
"""The axis of metrics, for a table that has a row or a column for each; else they share a place."""
SIDES = ("ours", "±", "paper", "Δ")
"""Of a number that stand below each other in a wide table."""
WIDEST = 110
"""Characters of a table whose sides stand beside each other."""


class Marks(NamedTuple):
    """How a form writes text, labels of rows, headings, a number that is the best, and a spread."""

    text: Callable[[str], str] = str
    label: Callable[[str], str] = str
    heading: Callable[[str], str] = str
    best: Callable[[str], str] = str
    spread: Callable[[str], str] = str


@dataclass(frozen=True)
class Entry:
    """What stands in one place: ours (``value``, ``spread``), the printed value, the difference.

    ``second`` marks a second metric in the same place, ``item`` is the number behind the strings, None in a table
    that compares nothing. ``part`` names what the place says besides of that number, such as its rank.
    """

    value: str
    spread: str = ""
    best: bool = False
    printed: str = ""
    printed_spread: str = ""
    printed_best: bool = False
    doubtful: bool = False
    delta: str = ""
    symbol: str = ""
    second: bool = False
    item: Compared | None = None
    part: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is no number of ours and nothing to say of one."""
        return self.item.status == NOT_RUN if self.item else self.value in ("", ABSENT)

    @property
    def deviation(self) -> str:
        """The spread alone, for a line of its own."""
        text = self.spread.removeprefix("±").strip()
        return self._wrapped(text[1:-1] if text.startswith("(") else text, text)

    def sides(self, marks: Marks, spread: bool = True) -> tuple[str, str, str]:
        """Return ours, the published value and the difference with its symbol, as a form writes them."""
        ours = self._number(marks, self.value, self.spread if spread else "", self.best)
        paper = self._number(marks, self.printed, self.printed_spread, self.printed_best)
        if self.doubtful:
            paper += marks.text("†")
        return ours, paper, marks.text(f"{self.delta} {self.symbol}".strip())

    def side(self, name: str, marks: Marks) -> str:
        """Return one of :data:`SIDES`."""
        ours, paper, delta = self.sides(marks, spread=False)
        return {"ours": ours, "±": marks.text(self.deviation), "paper": paper, "Δ": delta}[name]

    def _number(self, marks: Marks, value: str, spread: str, best: bool) -> str:
        return self._wrapped((marks.best if best else marks.text)(value) + marks.spread(spread), value)

    def _wrapped(self, text: str, value: str) -> str:
        """Put a second metric's number in parentheses, as papers with two numbers in a cell do."""
        number = any(character.isdigit() for character in value) and not value[0].isalpha()
        return f"({text})" if self.second and number else text


BLANK = Entry("")
"""What stands where nothing is said."""


class Row(NamedTuple):
    """One row: its label, and its entries as ``[metric][column]``."""

    label: str
    entries: list[list[Entry]]


class Block(NamedTuple):
    """Rows under a common heading."""

    heading: str
    rows: list[Row]


@dataclass(frozen=True)
class Grid:
    """A table: the texts of each column's header by level, and blocks of rows with all columns.

    ``compares`` tells that there is a paper's side: every column then holds ours, paper and difference. ``left`` is
    the line about what :func:`fold` left out: how it is called (``absent``) and the datasets of which nothing is there
    (``lacking``). ``stacks`` allows sides below each other.
    """

    stub: str
    columns: list[tuple[str, ...]]
    blocks: list[Block]
    compares: bool = False
    left: str = ""
    absent: str = "Not run"
    lacking: Sequence[str] = ()
    stacks: bool = True

    @cached_property
    def headers(self) -> list[list[tuple[str, int]]]:
        """The levels above the columns, each a list of (text, columns spanned)."""
        depths = range(1, len(self.columns[0]) + 1)
        spans = (itertools.groupby(names[:depth] for names in self.columns) for depth in depths)
        return [[(names[-1], len([*same])) for names, same in level] for level in spans]

    @property
    def names(self) -> list[str]:
        """The full name of each column, all levels of the header joined."""
        return [", ".join(filter(None, names)) for names in self.columns]

    @property
    def rows(self) -> list[Row]:
        """All rows, block after block."""
        return [row for block in self.blocks for row in block.rows]

    @property
    def entries(self) -> list[Entry]:
        """All places, row after row."""
        return [entry for row in self.rows for line in row.entries for entry in line]

    @cached_property
    def wide(self) -> bool:
        """Whether ours, paper and difference beside each other take too much room, so that they go below each other."""
        columns = zip(*(line for row in self.rows for line in row.entries), strict=True)
        sides = (side for column in columns for side in zip(*(e.sides(Marks()) for e in column), strict=True))
        width = max((len(row.label) for row in self.rows), default=0) + sum(
            max(map(len, side)) + 2 for side in sides
        )
        return self.stacks and self.compares and width > WIDEST

    @property
    def stubs(self) -> list[str]:
        """What stands above the labels of rows and, in a table whose sides are below each other, above their names."""
        return [self.stub, ""] if self.wide else [self.stub]

    @property
    def span(self) -> int:
        """How many cells a number takes beside each other."""
        return 3 if self.compares and not self.wide else 1

    def lines(self, marks: Marks) -> list[list[list[str]]]:
        """Return the lines of each block as a form writes them: label and cells; a heading is alone."""
        blocks = []
        for block in self.blocks:
            lines = [[marks.heading(block.heading)]] if block.heading else []
            for row in block.rows:
                lines += self._stacked(row, marks) if self.wide else self._beside(row, marks)
            blocks.append(lines)
        return blocks

    def _beside(self, row: Row, marks: Marks) -> Iterator[list[str]]:
        """Yield a line for each metric of a row, with the sides of each number beside each other."""
        for number, entries in enumerate(row.entries):
            cells = [text for entry in entries for text in entry.sides(marks)[: self.span]]
            yield ["" if number else marks.label(row.label), *cells]

    def _stacked(self, row: Row, marks: Marks) -> Iterator[list[str]]:
        """Yield a line for each side of a row with its name in the second cell, without those that are empty.

        All metrics of a place share a cell.
        """
        label, absent = marks.label(row.label), marks.text(ABSENT)
        for name in SIDES:
            columns = zip(*row.entries, strict=True)
            cells = [
                _shared_cell([entry.side(name, marks) for entry in column], absent) for column in columns
            ]
            if any(cells):
                yield [label, marks.text(name), *cells]
                label = ""


def _shared_cell(texts: Sequence[str], absent: str) -> str:
    """Join what the metrics of one place show; the same dash or word ("diverged 1/3") for all is said once."""
    shown = [text for text in texts if text]
    once = len(set(shown)) == 1 and (shown[0] == absent or shown[0][0].isalpha())
    return shown[0] if once else " ".join(shown)


def arranged(
    spec: TableSpec, axes: Axes, said: Iterable[tuple[At, Entry]], text: Callable[[str, Value], str]
) -> tuple[list[tuple[str, ...]], list[Block]]:
    """Return the columns and blocks of a table whose ``rows`` and ``columns`` the specification names.

    Args:
        spec: of the table; its metrics share a place unless they are rows or columns.
        axes: the values of each axis; metrics are one.
        said: places and entries. A row without any is left out; a column has all rows.
        text: names a value of an axis.
    """
    order = {axis: {value: number for number, value in enumerate(values)} for axis, values in axes.items()}
    lines = [] if METRIC in (*spec.rows, *spec.columns) else [METRIC]

    def numbers(place: At, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(order[name][place[name]] for name in names)

    def combined(names: Sequence[str]) -> list[tuple[int, ...]]:
        return list(itertools.product(*(range(len(axes[name])) for name in names)))

    def texts(names: Sequence[str], at: Sequence[int]) -> tuple[str, ...]:
        return tuple(text(name, axes[name][number]) for name, number in zip(names, at, strict=True))

    filled = {
        (numbers(at, spec.rows), numbers(at, lines), numbers(at, spec.columns)): entry for at, entry in said
    }
    depths, columns = combined(lines), combined(spec.columns)
    blocks: dict[tuple[int, ...], Block] = {}
    for row in sorted({row for row, _, _ in filled}):
        *outer, label = texts(spec.rows, row)
        entries = [[filled.get((row, line, column), BLANK) for column in columns] for line in depths]
        blocks.setdefault(row[:-1], Block(WITHIN.join(outer), [])).rows.append(Row(label, entries))
    first, *others = [text(METRIC, metric) for metric in spec.metrics]
    alone = first + "".join(f" ({other})" for other in others)
    return [texts(spec.columns, at) or (alone,) for at in columns], [*blocks.values()]


def grid_of(names: Sequence[str], rows: Iterable[tuple[str, str, Sequence[Entry]]], stub: str) -> Grid:
    """Return a table of given rows: heading of the block, label, and an entry for each of the columns' ``names``."""
    blocks: dict[str, Block] = {}
    for heading, label, entries in rows:
        blocks.setdefault(heading, Block(heading, [])).rows.append(Row(label, [[*entries]]))
    return Grid(stub, [(name,) for name in names], [*blocks.values()])


def fold(grid: Grid) -> Grid:
    """Return a grid without the blocks, single rows and columns in which there is no number of ours.

    ``left`` counts, of all places that hold, or would hold, a number of ours, those that were left out; the published
    numbers of these stand in the table's CSV. Where nothing ran all that is printed is shown, and all are counted.
    """
    ran = any(not entry.empty for entry in grid.entries)

    def shows(entries: Iterable[Entry]) -> bool:
        return any(not entry.empty if ran else entry.printed for entry in entries)

    columns = [
        shows(column) for column in zip(*(line for row in grid.rows for line in row.entries), strict=True)
    ]
    alone = [block.heading for block in grid.blocks] == [""]
    blocks = []
    for block in grid.blocks:
        has = [shows(itertools.chain(*row.entries)) for row in block.rows]
        rows = [
            Row(row.label, [[*itertools.compress(line, columns)] for line in row.entries])
            for row in itertools.compress(block.rows, has if alone else [any(has)] * len(has))
        ]
        blocks += [Block(block.heading, rows)] if rows else []
    shown = replace(grid, columns=[*itertools.compress(grid.columns, columns)], blocks=blocks)
    total, kept = (
        sum(entry.item is not None or bool(entry.value) for entry in part.entries) for part in (grid, shown)
    )
    what = f"{grid.absent}: {', '.join(grid.lacking)}" if grid.lacking else grid.absent
    absent = total - kept if ran else total
    left = f"{what} ({absent} of {total} numbers)." if kept < total else ""
    compares = grid.compares and any(entry.printed for entry in shown.entries)
    return replace(shown, compares=compares, left=left)
