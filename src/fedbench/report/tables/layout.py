"""The shape of a table, independent of LaTeX or text: headers, blocks of lines, and the entry in every place.

All strings are plain Unicode; the writers (:mod:`latex`, :mod:`text`) translate them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fedbench.plan.schema import Paper, TableSpec, Value
from fedbench.report.numbers import rule
from fedbench.report.numbers.compare import Compared, agreement, method_groups
from fedbench.report.numbers.names import (
    ABSENT,
    AGAIN,
    SHIPPED,
    SLOPE,
    axis_name,
    axis_text,
    signed,
    together,
)  # fmt: skip
from fedbench.report.numbers.rows import DIVERGED, FAILED, FINISHED, INCOMPLETE, NOT_REACHED, UNDEFINED

Axes = Mapping[str, Sequence[Value]]
"""The values of every axis of a table, in order."""
At = Mapping[str, Value]
"""Values of some axes."""
WITHIN = " · "
"""Between the parts of a block's heading."""
METRIC = "metric"
"""The axis of metrics, for a table that has a row or a column for each; else they share a place."""


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

    def wrapped(self, text: str) -> str:
        """Put a second metric's number in parentheses, as papers with two numbers in a cell do."""
        number = any(character.isdigit() for character in text) and not text[0].isalpha()
        return f"({text})" if self.second and number else text

    @property
    def deviation(self) -> str:
        """The spread alone, for a line of its own."""
        text = self.spread.removeprefix("±").strip()
        return self.wrapped(text[1:-1] if text.startswith("(") else text)


@dataclass(frozen=True)
class Row:
    """One row: label, entries as ``[metric][column]``, Kendall's tau per metric if methods are columns."""

    label: str
    entries: list[list[Entry]]
    agreement: list[str]


@dataclass(frozen=True)
class Block:
    """Rows under a common heading; ``agreement`` holds one tau per column when methods are rows."""

    heading: str
    rows: list[Row]
    agreement: list[str]


@dataclass(frozen=True)
class Grid:
    """A whole table. ``headers`` are the levels above the columns, each a list of (text, columns spanned).

    ``compares`` tells that there is a paper's side: every column then holds ours, paper and difference. ``left`` is the
    line about what :mod:`fold` left out, ``absent`` what it says of it.
    """

    stub: str
    headers: list[list[tuple[str, int]]]
    blocks: list[Block]
    compares: bool
    left: str = ""
    absent: str = "Not run"

    @property
    def names(self) -> list[str]:
        """The full name of each column, all levels of the header joined."""
        levels = [[text for text, span in level for _ in range(span)] for level in self.headers]
        return [", ".join(filter(None, parts)) for parts in zip(*levels, strict=True)]

    @property
    def rows(self) -> list[Row]:
        """All rows, block after block."""
        return [row for block in self.blocks for row in block.rows]

    @property
    def entries(self) -> list[Entry]:
        """All places, row after row."""
        return [entry for row in self.rows for line in row.entries for entry in line]

    @property
    def has_agreement_column(self) -> bool:
        """Whether a last column holds Kendall's tau."""
        return any(any(row.agreement) for row in self.rows)


def blocks_of(spec: TableSpec, axes: Axes, fixed: Axes) -> Iterator[tuple[At, list[At]]]:
    """Yield, for each block of a table, the values that its rows share, and where each row stands.

    Axes of ``fixed`` that are no rows have their first value.
    """
    *outer, last = spec.rows
    first = {axis: values[0] for axis, values in fixed.items()}
    for values in itertools.product(*(axes[axis] for axis in outer)):
        shared = dict(zip(outer, values, strict=True))
        yield shared, [{**first, **shared, last: value} for value in axes[last]]


def columns_of(spec: TableSpec, axes: Axes) -> list[At]:
    """Return where each column of a table stands."""
    values = itertools.product(*(axes[axis] for axis in spec.columns))
    return [dict(zip(spec.columns, each, strict=True)) for each in values]


def layout(paper: Paper, spec: TableSpec, grid: Axes, compared: Sequence[Compared], decimals: int) -> Grid:
    """Arrange the compared numbers as the ``rows`` and ``columns`` of the table say."""
    arranger = _Arranger(paper, spec, grid, compared, decimals)
    compares = any(item.published for item in compared)
    blocks = [block for part in blocks_of(spec, arranger.shown, grid) if (block := arranger.block(*part))]
    return Grid(axis_name(paper, spec.rows[-1]), _headers(paper, spec, arranger.shown), blocks, compares)


class _Arranger:
    """Finds the numbers of a place and turns them into rows and blocks."""

    def __init__(
        self, paper: Paper, spec: TableSpec, grid: Axes, compared: Sequence[Compared], decimals: int
    ) -> None:
        self.paper, self.spec, self.grid = paper, spec, grid
        printed = {item.metric for item in compared if item.published}
        self.decimals, self.printed = decimals, printed
        self.by_place = {(_key(item.place, grid), item.metric): item for item in compared}
        self.best, self.printed_best = _best(compared, self.digits)
        self.taus = {
            (_key(group[0].place, grid, "method"), group[0].metric): _tau(group, self.digits(group[0]))
            for group in method_groups(compared)
        }
        self.placed = METRIC in (*spec.rows, *spec.columns)
        self.shown = {**grid, METRIC: spec.metrics}
        self.columns = columns_of(spec, self.shown)

    def digits(self, item: Compared) -> int:
        """Return how many decimals of a number the table shows: as many as print, else those of its metric."""
        return self.decimals if item.metric in self.printed else item.measure.decimals

    def metrics(self, place: Mapping[str, Value]) -> list[str]:
        """Return the metrics that share a place: one where they are rows or columns, else all."""
        return [str(place[METRIC])] if METRIC in place else self.spec.metrics

    def block(self, shared: At, places: Sequence[At]) -> Block | None:
        """Return the rows at some places, None where no cell is at any of them."""
        axis = self.spec.rows[-1]
        rows = [self.row(place, axis) for place in places if self.exists(place)]
        if not rows:
            return None
        inside = [item for item in self.by_place.values() if shared.items() <= item.place.items()]
        scales = sorted({item.measured.scale for item in inside if item.measured.shipped})
        away = f" ({SHIPPED} scale {', '.join(scales)})"
        if not scales or any(item.here for item in inside):
            away = ""
        heading = WITHIN.join(axis_text(self.paper, *pair) for pair in shared.items())
        below = [self.tau({**places[0], **column}) for column in self.columns]
        return Block(
            heading=heading + away if heading else "",
            rows=rows,
            agreement=below if axis == "method" and any(below) else [],
        )

    def exists(self, place: Mapping[str, Value]) -> bool:
        """Say whether a row has a cell: a method may be run at some settings only."""
        wanted = [{**place, **column} for column in self.columns]
        return any(
            (_key(one, self.grid), metric) in self.by_place for one in wanted for metric in self.metrics(one)
        )

    def row(self, place: Mapping[str, Value], axis: str) -> Row:
        """Return one row: an entry per metric and column."""
        metrics = [""] if self.placed else self.spec.metrics
        entries = [[self.entry({**place, **column}, metric) for column in self.columns] for metric in metrics]
        across = [self.tau(place, metric) for metric in metrics] if self.spec.columns == ["method"] else []
        return Row(axis_text(self.paper, axis, place[axis]), entries, across)

    def tau(self, place: Mapping[str, Value], metric: str | None = None) -> str:
        """Return Kendall's tau over the methods of a place, in its first metric unless one is named."""
        return self.taus.get((_key(place, self.grid, "method"), metric or self.metrics(place)[0]), "")

    def entry(self, place: Mapping[str, Value], metric: str) -> Entry:
        """Return what stands in one place."""
        metric = metric or self.metrics(place)[0]
        item = self.by_place.get((_key(place, self.grid), metric))
        if item is None:
            return Entry("")
        found, verdict = item.published, item.verdict
        digits = self.digits(item)
        value, spread = state_text(item, digits)
        return Entry(
            value=value,
            spread=spread,
            best=id(item) in self.best,
            printed=(found.text or ABSENT) if found else "",
            printed_spread=f"±{found.std_text}" if found and found.comparable_std is not None else "",
            printed_best=id(item) in self.printed_best,
            doubtful=bool(found and found.doubt),
            delta="" if verdict.difference is None else signed(verdict.difference, digits),
            symbol=rule.symbol(verdict),
            second=not self.placed and metric != self.spec.metrics[0],
            item=item,
        )


def _key(place: Mapping[str, Value], grid: Axes, but: str = "") -> tuple[Value, ...]:
    return tuple(place[axis] for axis in grid if axis != but)


def _headers(paper: Paper, spec: TableSpec, grid: Axes) -> list[list[tuple[str, int]]]:
    levels, outer = [], 1
    inner = math.prod(len(grid[axis]) for axis in spec.columns)
    for axis in spec.columns:
        inner //= len(grid[axis])
        levels.append([(axis_text(paper, axis, value), inner) for value in grid[axis]] * outer)
        outer *= len(grid[axis])
    return levels or [
        [(" (".join(paper.measure(m).label for m in spec.metrics) + ")" * (len(spec.metrics) - 1), 1)]
    ]


def _best(compared: Sequence[Compared], digits: Callable[[Compared], int]) -> tuple[set[int], set[int]]:
    """Find the best of each group, ours and printed: equal digits are a tie; where all tie there is no best."""
    ours: set[int] = set()
    printed: set[int] = set()
    for group in method_groups([item for item in compared if SLOPE not in item.place.values()]):
        sign = group[0].measure.sign
        for chosen, attribute in ((ours, "mean"), (printed, "printed")):
            values = {
                id(i): sign * round(v, digits(i)) for i in group if math.isfinite(v := getattr(i, attribute))
            }
            if len({*values.values()}) > 1:
                top = max(values.values())
                chosen |= {key for key, value in values.items() if value == top}
    return ours, printed


def state_text(item: Compared, decimals: int) -> tuple[str, str]:
    """Return our side of an entry and its spread; a cell without a full mean says why in a word."""
    ours, status = item.measured, item.measured.status
    mark = SHIPPED * ours.shipped + AGAIN * ours.again
    if status in (FINISHED, INCOMPLETE):
        spread = "" if math.isnan(ours.std) else f"±{ours.std:.{decimals}f}"
        partial = f" ({ours.n_seeds}/{ours.n_wanted})" if status == INCOMPLETE else ""
        idle = "".join(f" ({len(runs)}/{ours.n_seeds} {word})" for word, runs in ours.idle.items())
        return f"{ours.mean:.{decimals}f}{mark}", spread + partial + idle
    if status in (DIVERGED, FAILED):
        count = f" {ours.n_bad}/{ours.n_wanted}" if ours.n_bad and ours.n_wanted > 1 else ""
        return f"{status}{count}{mark}", ""
    return (status if status in (UNDEFINED, NOT_REACHED) else ABSENT), ""


def stacked(row: Row, side: Callable[[Entry, str], str], absent: str = ABSENT) -> Iterator[list[str]]:
    """Yield what a row has below each other where its sides are too wide: the side's name, its cells, Kendall's tau.

    All metrics of a place share a cell; a line without anything is left out. ``side`` writes one side of an entry.
    """
    first, *more = row.agreement or [""]
    taus = [first, *(f"({tau})" if tau else "" for tau in more)]
    for name in ("ours", "±", "paper", "Δ"):
        cells = [
            together([side(entry, name) for entry in column], absent)
            for column in zip(*row.entries, strict=True)
        ]
        if any(cells):
            yield [name, *cells, taus.pop(0) if taus else ""]


def _tau(group: Sequence[Compared], decimals: int) -> str:
    """Print Kendall's tau of a group; over a part of its methods it says so."""
    tau, methods = agreement(group, decimals)
    if tau is None:
        return ""
    part = f" ({methods}/{len(group)})" if methods < len(group) else ""
    return f"{tau:.2f}{part}".replace("-", "−")
