"""The shape of a table, independent of LaTeX or text: one frame with a row for each place, and what stands in it.

All strings are plain Unicode; the writers (:mod:`latex`, :mod:`text`) translate them.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pandas as pd

from fedbench.plan.schema import TableSpec, Value
from fedbench.report.numbers.names import ABSENT, together
from fedbench.report.numbers.rows import Compared, frame_of, records

Axes = Mapping[str, Sequence[Value]]
"""The values of every axis of a table, in order."""
At = Mapping[str, Value]
"""Values of some axes."""
WITHIN = " · "
"""Between the parts of a block's heading."""
METRIC = "metric"
"""The axis of metrics, for a table that has a row or a column for each; else they share a place."""


class Marks(NamedTuple):
    """How a form writes text, a number that is the best, and a spread."""

    text: Callable[[str], str]
    best: Callable[[str], str]
    spread: Callable[[str], str]


@dataclass(frozen=True)
class Entry:
    """What stands in one place: ours (``value``, ``spread``), the printed value, the difference.

    ``second`` marks a second metric in the same place, ``item`` is the number behind the strings, None in a table
    that compares nothing.
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

    @property
    def deviation(self) -> str:
        """The spread alone, for a line of its own."""
        text = self.spread.removeprefix("±").strip()
        return self._wrapped(text[1:-1] if text.startswith("(") else text, text)

    def sides(self, marks: Marks, spread: bool = True) -> tuple[str, str, str, str]:
        """Return ours, the printed value, the difference and its symbol as a form writes them."""
        ours = self._number(marks, self.value, self.spread * spread, self.best)
        paper = self._number(marks, self.printed, self.printed_spread, self.printed_best)
        return ours, paper + marks.text("†") * self.doubtful, marks.text(self.delta), marks.text(self.symbol)

    def _number(self, marks: Marks, value: str, spread: str, best: bool) -> str:
        return self._wrapped((marks.best if best else marks.text)(value) + marks.spread(spread), value)

    def _wrapped(self, text: str, value: str) -> str:
        """Put a second metric's number in parentheses, as papers with two numbers in a cell do."""
        number = any(character.isdigit() for character in value) and not value[0].isalpha()
        return f"({text})" if self.second and number else text


class Row(NamedTuple):
    """One row: label, entries as ``[metric][column]``, Kendall's tau per metric if methods are columns."""

    label: str
    entries: list[list[Entry]]
    agreement: list[str]


class Block(NamedTuple):
    """Rows under a common heading; ``agreement`` holds one tau per column when methods are rows."""

    heading: str
    rows: list[Row]
    agreement: list[str]


class Spot(NamedTuple):
    """A row of the frame of a table: the numbers of block, row, line (metric) and column, and what stands there.

    ``at`` and ``names`` are the place and the texts of the column by level, ``tau`` is Kendall's of the methods that
    compete there.
    """

    block: int
    heading: str
    row: int
    label: str
    line: int
    column: int
    at: tuple[int, ...]
    names: tuple[str, ...]
    entry: Entry
    tau: str


@dataclass(frozen=True)
class Grid:
    """A table: its frame of ``cells``, every row with all columns.

    ``compares`` tells that there is a paper's side: every column then holds ours, paper and difference. ``taus`` tells
    whether Kendall's tau stands at the end of each ``row`` or ``column``. ``left`` is the line about what :mod:`fold`
    left out, ``absent`` what it says of it.
    """

    stub: str
    cells: pd.DataFrame
    compares: bool = False
    taus: str = ""
    left: str = ""
    absent: str = "Not run"

    @cached_property
    def headers(self) -> list[list[tuple[str, int]]]:
        """The levels above the columns, each a list of (text, columns spanned)."""
        columns = self.cells.drop_duplicates("column")
        places, names = columns["at"].tolist(), columns["names"].tolist()
        levels = []
        for level in range(len(names[0]) if names else 0):
            spans = Counter(at[: level + 1] for at in places)
            texts = {at[: level + 1]: name[level] for at, name in zip(places, names, strict=True)}
            levels.append([(texts[at], span) for at, span in spans.items()])
        return levels

    @cached_property
    def names(self) -> list[str]:
        """The full name of each column, all levels of the header joined."""
        return [", ".join(filter(None, names)) for names in self.cells.drop_duplicates("column")["names"]]

    @cached_property
    def blocks(self) -> list[Block]:
        """The frame as blocks of rows."""
        return [self._block([*part]) for part in _parts(records(self.cells, Spot), "block")]

    def _block(self, cells: Sequence[Spot]) -> Block:
        rows = []
        for row in _parts(cells, "row"):
            lines = _parts(row, "line")
            across = [_first(cell.tau for cell in line) for line in lines] if self.taus == "row" else []
            rows.append(Row(row[0].label, [[cell.entry for cell in line] for line in lines], across))
        columns: dict[int, list[str]] = {}
        for cell in cells:
            if cell.line == cells[0].line:
                columns.setdefault(cell.column, []).append(cell.tau)
        below = [*map(_first, columns.values())]
        return Block(cells[0].heading, rows, below if self.taus == "column" and any(below) else [])

    @property
    def rows(self) -> list[Row]:
        """All rows, block after block."""
        return [row for block in self.blocks for row in block.rows]

    @property
    def entries(self) -> list[Entry]:
        """All places, row after row."""
        return self.cells["entry"].tolist()

    @property
    def has_agreement_column(self) -> bool:
        """Whether a last column holds Kendall's tau."""
        return any(any(row.agreement) for row in self.rows)


def _parts(cells: Iterable[Spot], column: str) -> list[list[Spot]]:
    """Part the rows of a table's frame where a column changes."""
    return [[*part] for _, part in itertools.groupby(cells, operator.attrgetter(column))]


def _first(texts: Iterable[str]) -> str:
    return next(filter(None, texts), "")


def arranged(
    spec: TableSpec, axes: Axes, said: Iterable[tuple[At, Entry, str]], text: Callable[[str, Value], str]
) -> pd.DataFrame:
    """Return the frame of a table whose ``rows`` and ``columns`` the specification names.

    Args:
        spec: of the table; its metrics share a place unless they are rows or columns.
        axes: the values of each axis; metrics are one.
        said: the place, the entry, and Kendall's tau or nothing. A row without any is left out; a column has all rows.
        text: names a value of an axis.
    """
    order = {axis: {value: number for number, value in enumerate(values)} for axis, values in axes.items()}
    lines = [] if METRIC in (*spec.rows, *spec.columns) else [METRIC]

    def numbers(place: At, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(order[name][place[name]] for name in names)

    filled = {
        (numbers(at, spec.rows), numbers(at, lines), numbers(at, spec.columns)): stands
        for at, *stands in said
    }
    rows = sorted({row for row, _, _ in filled})
    blocks = {block: number for number, block in enumerate(dict.fromkeys(row[:-1] for row in rows))}
    alone = " (".join(text(METRIC, metric) for metric in spec.metrics) + ")" * (len(spec.metrics) - 1)
    places = itertools.product(*(range(len(axes[name])) for name in spec.columns))
    depths = [(number, number) for number in range(len(axes[METRIC]))] if lines else [(0,)]
    columns = [
        (number, at, _texts(spec.columns, at, axes, text) or (alone,)) for number, at in enumerate(places)
    ]
    records = []
    for number, row in enumerate(rows):
        *outer, label = _texts(spec.rows, row, axes, text)
        of_row = (blocks[row[:-1]], WITHIN.join(outer), number, label)
        for (line, *which), column in itertools.product(depths, columns):
            records.append((*of_row, line, *column, *filled.get((row, tuple(which), column[1]), BLANK)))
    return frame_of(map(Spot._make, records), Spot)


def _texts(
    names: Sequence[str], at: Sequence[int], axes: Axes, text: Callable[[str, Value], str]
) -> tuple[str, ...]:
    """Name the values of some axes, given by their numbers."""
    return tuple(text(name, axes[name][number]) for name, number in zip(names, at, strict=True))


BLANK = (Entry(""), "")
"""What stands where nothing is said."""


def listed(
    names: Sequence[str], rows: Iterable[tuple[str, str, Sequence[Entry]]], stub: str, absent: str = ""
) -> Grid:
    """Return a table of given rows: heading of the block, label, and an entry for each of the columns' ``names``."""
    blocks: dict[str, int] = {}
    records = [
        (blocks.setdefault(heading, len(blocks)), heading, number, label, 0, column, (column,), (name,), entry, "")
        for number, (heading, label, entries) in enumerate(rows)
        for column, (name, entry) in enumerate(zip(names, entries, strict=True))
    ]  # fmt: skip
    return Grid(stub, frame_of(map(Spot._make, records), Spot), absent=absent or Grid.absent)


Line = tuple[str, list[str], str]
"""A line of a table as a form writes it: its label, its cells, Kendall's tau."""


def beside(block: Block, sides: Callable[[Entry], Sequence[str]]) -> Iterator[Line]:
    """Yield the lines of a block with the sides of each entry beside each other."""
    for row in block.rows:
        for number, entries in enumerate(row.entries):
            cells = [text for entry in entries for text in sides(entry)]
            yield "" if number else row.label, cells, row.agreement[number] if row.agreement else ""


def stacked(block: Block, side: Callable[[Entry, str], str], absent: str = ABSENT) -> Iterator[Line]:
    """Yield the lines of a block with the sides below each other, the name of the side in the first cell.

    All metrics of a place share a cell; a line without anything is left out. ``side`` writes one side of an entry.
    """
    for row in block.rows:
        first, *more = row.agreement or [""]
        label, taus = row.label, [first, *(f"({tau})" if tau else "" for tau in more)]
        for name in ("ours", "±", "paper", "Δ"):
            columns = zip(*row.entries, strict=True)
            cells = [together([side(entry, name) for entry in column], absent) for column in columns]
            if any(cells):
                yield label, [name, *cells], taus.pop(0) if taus else ""
                label = ""
