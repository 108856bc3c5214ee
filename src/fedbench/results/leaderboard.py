"""The numbers of a leaderboard: who is ahead of whom on each dataset, and in the averages over datasets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fedbench.metric_table import Measure
from fedbench.results import compare
from fedbench.results.aggregate import by_seed
from fedbench.results.claims.judge import FEWEST
from fedbench.results.frame import DIVERGED, FAILED, FINISHED, INCOMPLETE, UNDEFINED, Compared, records
from fedbench.results.places import axes
from fedbench.results.shipped import Shipped
from fedbench.results.statistics import LEVEL, Array, holm, least_spread, p_differ
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import BoardSpec, Paper, TableSpec

LOST = (DIVERGED, FAILED, UNDEFINED)
"""A cell that ended so counts as the control row of random scores."""


@dataclass(frozen=True)
class Rank:
    """The ranks that a method may have: behind all that are shown to be better, before all shown to be worse."""

    best: int
    worst: int

    def __str__(self) -> str:
        return f"{self.best}" if self.best == self.worst else f"{self.best}–{self.worst}"


@dataclass(frozen=True)
class Line:
    """One method of a board.

    Attributes:
        method: its name.
        shown: its numbers, a metric each, rows of :func:`~fedbench.results.compare.comparisons`; none on the
            board of averages.
        values: what it is ranked by, of each seed, larger is better.
        rank: None for a control, and where nothing was run.
        lost: whether its cell failed, so that ``values`` are those of random scores.
        twin: the method that it is with its values of this dataset, whose rank it has; empty mostly.
    """

    method: str
    shown: list[Compared]
    values: Mapping[int, float]
    rank: Rank | None = None
    lost: bool = False
    twin: str = ""

    @property
    def first(self) -> Compared:
        """Its first number."""
        return self.shown[0]

    @property
    def mean(self) -> float:
        """What it is ordered by; NaN where nothing was run."""
        return float(np.mean(list(self.values.values()))) if self.values else math.nan


@dataclass(frozen=True)
class Board:
    """The methods on one dataset (None: averaged over several), the best first, controls and what did not run last."""

    dataset: str | None
    measure: Measure
    lines: list[Line]
    seeds: list[int] = field(default_factory=list)
    over: Sequence[Board] = ()
    """What is averaged."""

    @property
    def ranked(self) -> list[Line]:
        """The lines that have a rank."""
        return [line for line in self.lines if line.rank is not None]

    @property
    def count(self) -> int:
        """How many methods have a rank; twins are one."""
        return sum(not line.twin for line in self.ranked)

    @property
    def scales(self) -> frozenset[str]:
        """At which scale its numbers were measured; several where they were mixed."""
        boards = self.over or [self]
        return frozenset(item.scale for board in boards for line in board.ranked for item in line.shown)

    def front(self, cost: str) -> set[str]:
        """Return the methods that none dominates: as good for no more of ``cost``, or better for as much."""
        best = on_front(
            [getattr(line.first, cost) for line in self.ranked], [line.mean for line in self.ranked]
        )
        return {line.method for line, on in zip(self.ranked, best, strict=True) if on}


def boards(plan: Plan, spec: TableSpec, cells: Sequence[Cell]) -> list[Board]:
    """Collect the boards of a table: averages first, where a scale has several datasets."""
    assert spec.board is not None
    shown, paper = [], plan.study
    shipped = Shipped(plan)
    for name in map(str, axes(plan, spec)["dataset"]):
        if name not in (plan.config.datasets or [name]):
            continue
        alone = {"datasets": [name], "additions": [], "metrics": spec.metrics_on(name)}
        on_dataset = [cell for cell in cells if cell.dataset == name]
        frame = compare.comparisons(plan, spec.model_copy(update=alone), on_dataset, shipped)
        if frame["status"].isin((FINISHED, INCOMPLETE)).any():
            twins = _twins(paper, [*on_dataset, *_from_elsewhere(plan, frame, shipped)])
            shown.append(board_of(name, spec.board, frame, paper.measure(spec.metrics[0]), twins))
    by_scale: dict[frozenset[str], list[Board]] = {}
    for board in shown:
        by_scale.setdefault(board.scales, []).append(board)
    return [*(_averaged(alike, spec.board) for alike in by_scale.values() if len(alike) > 1), *shown]


def _from_elsewhere(plan: Plan, frame: pd.DataFrame, shipped: Shipped) -> list[Cell]:
    """Return the cells of other scales than the plan's whose numbers a frame shows."""
    others = frame[frame["scale"] != plan.scale.name].drop_duplicates("method")
    places = zip(*(others[name] for name in ("scale", "dataset", "place", "method")), strict=True)
    cells = (shipped.cell(scale, data, dict(place[1:]), method) for scale, data, place, method in places)
    return [cell for cell in cells if cell is not None]


def _twins(paper: Paper, cells: Sequence[Cell]) -> dict[str, str]:
    """Return which methods are another one with the hyper-parameters of some cells."""
    params = {cell.method: cell.runs[0].params for cell in cells}
    twins: dict[str, str] = {}
    for method, entry in paper.methods.items():
        if entry.twin is None or method not in params:
            continue
        if all(params[method][name] == value for name, value in entry.twin.when.items()):
            twins[method] = twins.get(entry.twin.of, entry.twin.of)
    return twins


def board_of(
    dataset: str, spec: BoardSpec, frame: pd.DataFrame, measure: Measure, twins: Mapping[str, str]
) -> Board:
    """Return the board of a dataset from the numbers of its methods, ranked by their first metric, a ``measure``.

    ``twins`` names for some methods the one that they are here.
    """
    by_method: dict[str, list[Compared]] = {}
    for row in records(frame, Compared):
        by_method.setdefault(row.method, []).append(row)
    guessed = _values(by_method[spec.random][0], measure) if spec.random in by_method else {}
    lines = []
    for method, shown in by_method.items():
        lost = shown[0].status in LOST
        values = guessed if lost else _values(shown[0], measure)
        lines.append(Line(method, shown, values, lost=lost, twin="" if lost else twins.get(method, "")))
    return _ranked(dataset, measure, lines, spec.controls)


def _averaged(parts: Sequence[Board], spec: BoardSpec) -> Board:
    """Average over datasets, seed by seed; a method without all of them stands apart."""
    lines = []
    for method in dict.fromkeys(line.method for board in parts for line in board.lines):
        same = [line for board in parts for line in board.lines if line.method == method]
        twins = {line.twin for line in same}
        means = by_seed([line.values for line in same], np.mean) if len(same) == len(parts) else {}
        lines.append(Line(method, [], means, twin=twins.pop() if len(twins) == 1 else ""))
    return replace(_ranked(None, parts[0].measure, lines, spec.controls), over=parts)


def _ranked(dataset: str | None, measure: Measure, lines: Sequence[Line], controls: Sequence[str]) -> Board:
    """Rank the methods over the seeds that all of them have, and order them; a twin stands below the method it is."""
    ran = {line.method: line for line in lines if line.values and line.method not in controls}
    twins = [line for line in ran.values() if line.twin in ran]
    ranked = [replace(line, twin="") for line in ran.values() if line not in twins]
    ranked.sort(key=lambda line: -line.mean)
    values = pd.DataFrame({line.method: line.values for line in ranked}).dropna()
    placed = []
    for line, rank in zip(ranked, ranks(values.to_numpy().T), strict=True):
        same = [twin for twin in twins if twin.twin == line.method]
        placed += [replace(each, rank=rank) for each in (line, *same)]
    rest = [line for line in lines if line.method not in ran]
    rest.sort(key=lambda line: (line.method not in controls, -line.mean if line.values else math.inf))
    return Board(dataset, measure, [*placed, *rest], values.index.tolist())


def _values(measured: Compared, measure: Measure) -> dict[int, float]:
    if measured.status not in (FINISHED, INCOMPLETE):
        return {}
    return {seed: measure.sign * value for seed, value in measured.values.items() if math.isfinite(value)}


def ranks(values: Array) -> list[Rank]:
    """Rank methods by their means over seeds.

    Two methods are told apart by a two-sided t-test, paired by seed, corrected for all pairs after Holm; differences
    spread by the metric's step at least. Below three seeds all are tied.

    Args:
        values: [methods, seeds], larger is better, no NaN.
    """
    count, seeds = values.shape
    ahead = np.zeros((count, count), dtype=bool)
    pairs = list(itertools.combinations(range(count), 2))
    if seeds >= FEWEST and pairs:
        first, second = (np.array(side) for side in zip(*pairs, strict=True))
        d = values[first] - values[second]
        apart = holm(p_differ(d, least_spread(values))) <= LEVEL
        better = apart & (d.mean(-1) > 0)
        worse = apart & (d.mean(-1) < 0)
        ahead[first[better], second[better]] = True
        ahead[second[worse], first[worse]] = True
    return [Rank(1 + int(ahead[:, i].sum()), count - int(ahead[i].sum())) for i in range(count)]


def on_front(costs: ArrayLike, values: ArrayLike) -> NDArray[np.bool_]:
    """Say which methods are on the Pareto front: none is as good for no more, or better for as much.

    Args:
        costs: [methods], what each spends; NaN where it is not known, which neither dominates nor is dominated.
        values: [methods], what each reaches, larger is better.
    """
    cost, value = np.asarray(costs, dtype=float), np.asarray(values, dtype=float)
    no_worse = (cost[:, None] <= cost) & (value[:, None] >= value)
    better = (cost[:, None] < cost) | (value[:, None] > value)
    return np.asarray(~(no_worse & better).any(axis=0))
