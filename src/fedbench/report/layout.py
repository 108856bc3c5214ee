"""The shape of a table, independent of LaTeX or text: headers, blocks of lines, and the entry in every place.

All strings are plain Unicode; the writers (:mod:`latex`, :mod:`text`) translate them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fedbench.cells import Paper, TableSpec, Value
from fedbench.report import collect, stats
from fedbench.report.compare import Compared, agreement, rivals

ABSENT = "–"
SYMBOLS = {"better": "↑", "worse": "↓"}
MATCH_SYMBOLS = {"tolerance": "≈", "interval": "∼"}
METRICS = {
    "test_auc": "test AUC",
    "val_auc": "validation AUC",
    "minority_test_accuracy": "minority accuracy",
    "overall_test_accuracy": "overall accuracy",
    "test_ap": "test AP",
}


GREEK = {"rho": "ρ", "alpha": "α", "delta": "δ", "beta": "β", "gamma": "γ", "mu": "μ"}


def metric_label(metric: str) -> str:
    """Name a metric for a reader: ``test_auc`` is "test AUC"."""
    return METRICS.get(metric, metric.replace("_", " "))


@dataclass(frozen=True)
class Entry:
    """What stands in one place: ours (``value``, ``spread``), the printed value, the difference.

    ``second`` marks a second metric in the same place.
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

    def wrapped(self, text: str) -> str:
        """Put a second metric in parentheses, as papers with two numbers in a cell do."""
        return f"({text})" if self.second and text not in ("", ABSENT) else text


@dataclass(frozen=True)
class Row:
    """One row: label, entries as ``[metric][column]``, Kendall's tau per metric if methods are columns."""

    label: str
    entries: list[list[Entry]]
    agreement: list[str]


@dataclass(frozen=True)
class Block:
    """Rows under a common heading; ``agreement`` holds one tau per column when methods are rows.

    ``here`` is False when the scale runs none of it: the heading says so, and only the paper's side has
    numbers.
    """

    heading: str
    rows: list[Row]
    agreement: list[str]
    here: bool


@dataclass(frozen=True)
class Grid:
    """A whole table. ``headers`` are the levels above the columns, each a list of (text, columns spanned).

    ``compares`` tells that there is a paper's side: every column then holds ours, paper and difference.
    """

    stub: str
    headers: list[list[tuple[str, int]]]
    blocks: list[Block]
    compares: bool

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
    def has_agreement_column(self) -> bool:
        """Whether a last column holds Kendall's tau."""
        return any(any(row.agreement) for row in self.rows)


def axis_name(paper: Paper, axis: str) -> str:
    """Name an axis: a setting with a letter for a name by that letter, any other by its label."""
    if axis in ("dataset", "method"):
        return axis.capitalize()
    return GREEK.get(axis) or (axis if len(axis) == 1 else paper.settings[axis].label)


def axis_text(paper: Paper, axis: str, value: Value) -> str:
    """Name one value of an axis: datasets and methods by themselves, settings as "p = 4"."""
    if axis in ("dataset", "method"):
        return str(value)
    shown = (
        {True: "yes", False: "no"}[value]
        if isinstance(value, bool)
        else f"{value:g}"
        if _real(value)
        else value
    )
    return f"{axis_name(paper, axis)} = {shown}"


def _real(value: Value) -> bool:
    return isinstance(value, int | float)


def layout(
    paper: Paper,
    spec: TableSpec,
    grid: Mapping[str, Sequence[Value]],
    compared: Sequence[Compared],
    decimals: int,
) -> Grid:
    """Arrange the compared numbers as the ``rows`` and ``columns`` of the table say."""
    best, printed_best = _best(compared, decimals)
    by_place = {(_key(item.place, grid), item.metric): item for item in compared}
    fixed = {axis: values[0] for axis, values in grid.items()}
    column_values = list(itertools.product(*(grid[axis] for axis in spec.columns)))
    block_axes, row_axis = spec.rows[:-1], spec.rows[-1]
    taus = {
        (_key(group[0].place, grid, "method"), group[0].metric): agreement(group)
        for group in rivals(compared)
    }

    blocks = []
    for block_values in itertools.product(*(grid[axis] for axis in block_axes)):
        base = {**fixed, **dict(zip(block_axes, block_values, strict=True))}
        places = [{**base, **dict(zip(spec.columns, values, strict=True))} for values in column_values]
        rows = []
        for value in grid[row_axis]:
            here = [{**place, row_axis: value} for place in places]
            entries = []
            for i, metric in enumerate(spec.metrics):
                items = [by_place[_key(place, grid), metric] for place in here]
                line = [_entry(item, id(item) in best, id(item) in printed_best, decimals) for item in items]
                entries.append([replace(entry, second=i > 0) for entry in line])
            across = (
                [taus[_key(here[0], grid, "method"), m] for m in spec.metrics]
                if "method" in spec.columns
                else []
            )
            rows.append(Row(axis_text(paper, row_axis, value), entries, [_tau(tau) for tau in across]))
        below = (
            [taus[_key(p, grid, "method"), spec.metrics[0]] for p in places] if row_axis == "method" else []
        )
        runs = any(
            i.here
            for i in compared
            if all(i.place[a] == v for a, v in zip(block_axes, block_values, strict=True))
        )
        heading = " · ".join(axis_text(paper, *pair) for pair in zip(block_axes, block_values, strict=True))
        heading += " (not run at this scale)" if heading and not runs else ""
        agreed = [_tau(t) for t in below] if any(t is not None for t in below) else []
        blocks.append(Block(heading, rows, agreed, runs))
    compares = any(item.published for item in compared)
    return Grid(axis_name(paper, row_axis), _headers(paper, spec, grid), blocks, compares)


def _key(place: Mapping[str, Value], grid: Mapping[str, Sequence[Value]], but: str = "") -> tuple[Value, ...]:
    return tuple(place[axis] for axis in grid if axis != but)


def _headers(
    paper: Paper, spec: TableSpec, grid: Mapping[str, Sequence[Value]]
) -> list[list[tuple[str, int]]]:
    levels, outer = [], 1
    inner = math.prod(len(grid[axis]) for axis in spec.columns)
    for axis in spec.columns:
        inner //= len(grid[axis])
        levels.append([(axis_text(paper, axis, value), inner) for value in grid[axis]] * outer)
        outer *= len(grid[axis])
    return levels or [[(" (".join(metric_label(m) for m in spec.metrics) + ")" * (len(spec.metrics) - 1), 1)]]


def _best(compared: Sequence[Compared], decimals: int) -> tuple[set[int], set[int]]:
    """Find the best of each group, ours and printed: equal digits are a tie, one alone is not best."""
    ours: set[int] = set()
    printed: set[int] = set()
    for group in rivals(compared):
        sign = 1 if stats.higher_is_better(group[0].metric) else -1
        for chosen, attribute in ((ours, "mean"), (printed, "printed")):
            values = {
                id(i): sign * round(v, decimals) for i in group if math.isfinite(v := getattr(i, attribute))
            }
            if len(values) > 1:
                top = max(values.values())
                chosen |= {key for key, value in values.items() if value == top}
    return ours, printed


def _entry(item: Compared, best: bool, printed_best: bool, decimals: int) -> Entry:
    found, judged = item.published, item.verdict
    value, spread = state_text(item, decimals)
    return Entry(
        value=value,
        spread=spread,
        best=best,
        printed=(found.text or ABSENT) if found else "",
        printed_spread=f"±{found.std_text}" if found and found.comparable_std is not None else "",
        printed_best=printed_best,
        doubtful=bool(found and found.doubt),
        delta="" if judged.difference is None else signed(judged.difference, decimals),
        symbol=SYMBOLS.get(judged.kind) or MATCH_SYMBOLS.get(judged.basis, ""),
    )


def state_text(item: Compared, decimals: int) -> tuple[str, str]:
    """Return our side of an entry and its spread; a cell without a full mean says why in a word."""
    row, status = item.measured, item.measured["status"]
    if status in (collect.FINISHED, collect.INCOMPLETE):
        spread = "" if math.isnan(row["std"]) else f"±{row['std']:.{decimals}f}"
        partial = f" ({row['n_seeds']}/{row['n_wanted']})" if status == collect.INCOMPLETE else ""
        return f"{row['mean']:.{decimals}f}", spread + partial
    if status in (collect.DIVERGED, collect.FAILED):
        return (f"{status} {row['n_bad']}/{row['n_wanted']}" if row["n_wanted"] > 1 else status), ""
    return ("undefined" if status == collect.UNDEFINED else ABSENT), ""


def signed(value: float, decimals: int) -> str:
    """Format a difference with its sign (a real minus); what rounds to nothing has none."""
    text = f"{abs(value):.{decimals}f}"
    return text if float(text) == 0 else ("+" if value > 0 else "−") + text


def _tau(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}".replace("-", "−")
