"""Where the effects of claims come from: the runs of a scale, those shipped with the repository, and print."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pandas as pd

from fedbench import measures
from fedbench.plan.cells import Cell, cells_of
from fedbench.plan.configuration import CONFIG_DIR
from fedbench.plan.schema import Config, FigureSpec, Paper, TableSpec, Value
from fedbench.report.numbers import collect, published, rates
from fedbench.report.numbers.effects import MEAN, Needs, Place, Values
from fedbench.report.numbers.measurement import (
    COSTS,
    FINISHED,
    INCOMPLETE,
    NOT_REACHED,
    NOT_RUN,
    Measurement,
    Repeat,
)
from fedbench.report.numbers.shipped import Shipped


class Pooled(str):
    """The values of a setting whose cells a table pools as repeats of one number, as one value: ``0, 1, 2``."""

    members: tuple[Value, ...]

    def __new__(cls, members: Iterable[Value]) -> Pooled:
        """Join the values."""
        values = tuple(members)
        made = super().__new__(cls, ", ".join(map(str, values)))
        made.members = values
        return made


def shown(paper: Paper, target: str) -> TableSpec | FigureSpec:
    """Return a table or figure by its name."""
    return paper.tables[target] if target in paper.tables else paper.figures[target]


def places_of(paper: Paper, targets: Iterable[str], datasets: Iterable[str] | None = None) -> list[Place]:
    """List the places of tables and figures, each once; on ``datasets`` instead of their own.

    What a table pools is one place, as it is one number in print.
    """
    found: dict[Place, None] = {}
    for target in targets:
        spec = shown(paper, target)
        fitted = spec.pool if isinstance(spec, TableSpec) and spec.kind == "rates" else []
        axes = {name: values for name, values in paper.values(spec).items() if name not in fitted}
        axes |= {name: [Pooled(axes[name])] for name in _pooled_by(spec)}
        for dataset, *values in itertools.product(
            spec.datasets if datasets is None else datasets, *axes.values()
        ):
            found[place_of(str(dataset), dict(zip(axes, values, strict=True)))] = None
    return list(found)


def _pooled_by(spec: TableSpec | FigureSpec) -> list[str]:
    return spec.pool if isinstance(spec, TableSpec) and spec.kind != "rates" else []


def members(place: Place) -> list[Place]:
    """List the places of single cells that one stands for."""
    values = (
        [(axis, one) for one in (value.members if isinstance(value, Pooled) else [value])]
        for axis, value in place
    )
    return [tuple(one) for one in itertools.product(*values)]


def place_of(dataset: str, setting: Mapping[str, Value]) -> Place:
    """Return a dataset and a setting as a place."""
    return (("dataset", dataset), *setting.items())


def words_of(place: Place) -> str:
    """Name a place by its dataset and setting."""
    return ", ".join([str(place[0][1]), *(f"{name} = {value}" for name, value in place[1:])])


class Runs:
    """The runs of a paper at one scale: trained here, else shipped."""

    def __init__(self, config: Config, paper: Paper, targets: Iterable[str], root: Path = Path()) -> None:
        self._root, self._paper, self._scale = root, paper, config.scale
        self._shipped = Shipped(config, paper, root)
        self.cells: dict[tuple[Place, str], Cell] = {}
        self._known: dict[tuple[Place, str, str], Measurement | None] = {}
        for target in targets:
            cells, spec = cells_of(config, paper.key, target, root / CONFIG_DIR), shown(paper, target)
            for cell in cells:
                self.cells[place_of(cell.dataset, cell.setting), cell.method] = cell
            if isinstance(spec, TableSpec) and spec.kind == "rates":
                for one in rates.measure(cells, spec, root, self._shipped):
                    place = place_of(one.dataset, one.setting)
                    self._known[place, one.method, one.metric] = one if one.status != NOT_RUN else None
        self._curves: dict[str, pd.DataFrame] = {}
        self.used: dict[str, Measurement] = {}
        self.diverged: dict[str, None] = {}

    @classmethod
    def over(cls, other: Runs) -> Self:
        """Return a reader of the same runs, which shares what the other has read."""
        reader = cls.__new__(cls)
        reader.__dict__.update(other.__dict__)
        return reader

    @property
    def datasets(self) -> list[str]:
        """The datasets that the scale runs."""
        return list(dict.fromkeys(cell.dataset for cell in self.cells.values()))

    def end(self, place: Place, method: str, metric: str) -> Values:
        """Return the final value of each seed, under one name the mean over seeds where nobody kept single ones.

        Of a pooled place the mean over its cells. A seed that diverged has the worst value that there is, an infinite
        one.
        """
        if len(cells := members(place)) > 1:
            return _averaged([self.end(cell, method, metric) for cell in cells])
        (place,) = cells
        one = self._measured(place, method, metric)
        lost = dict.fromkeys(one.diverged, -self._paper.measure(metric).sign * math.inf) if one else {}
        lost = {} if metric in COSTS else lost
        if one is None or (one.status not in (FINISHED, INCOMPLETE) and not lost):
            return {}
        self.used[one.key] = one
        if lost:
            self.diverged[f"{method} at {words_of(place)}, seed {', '.join(map(str, lost))}"] = None
        if one.averaged:
            return {MEAN: one.mean}
        return {**{seed: value for seed, value in one.values.items() if math.isfinite(value)}, **lost}

    def pace(self, place: Place, method: str, metric: str) -> Values:
        """Return how much each seed still changed in a fifth of its run when it ended, where that is known."""
        if len(cells := members(place)) > 1:
            return _averaged([self.pace(cell, method, metric) for cell in cells])
        one = self._measured(cells[0], method, metric)
        return one.paces if one is not None else {}

    def mean(self, place: Place, method: str, metric: str) -> Values:
        """Return the mean of each seed's curve."""
        return {
            seed: float(curve[metric].mean()) for seed, curve in self._runs(place, method) if metric in curve
        }

    def needed(self, place: Place, method: str, metric: str, target: float, sign: int, x: str) -> Needs:
        """Return the ``x`` at which each seed's curve first reaches a target, and where the curve ends.

        No curve is shipped: without one what a table made of it counts.
        """
        found: dict[Repeat, tuple[float, float]] = {}
        for seed, curve in self._runs(place, method):
            if metric in curve and x in curve and len(curve):
                reached = curve.loc[sign * curve[metric] >= sign * target, x]
                found[seed] = (float(reached.iloc[0]) if len(reached) else math.inf, float(curve[x].iloc[-1]))
        return found or self._needed_as_shipped(place, method, metric, target, x)

    def _needed_as_shipped(self, place: Place, method: str, metric: str, target: float, x: str) -> Needs:
        spent = next((name for name, column in measures.SPENT.items() if column == x), None)
        cell = self.cells.get((place, method))
        if spent is None or cell is None:
            return {}
        one = self._measured(place, method, measures.rounds_to(metric, target, spent))
        if one is None or not one.shipped or one.status not in (FINISHED, INCOMPLETE, NOT_REACHED):
            return {}
        end = cell.runs[0].train.known_rounds if x == "round" else getattr(one.cost, x)
        self.used[one.key] = one
        return {seed: (v, end or v) for seed, v in one.values.items() if end or math.isfinite(v)}

    def _measured(self, place: Place, method: str, metric: str) -> Measurement | None:
        key = place, method, metric
        if key not in self._known:
            setting = dict(place[1:])
            cell = self.cells.get((place, method))
            if cell is None and self._paper.settings.keys() <= setting.keys():  # what is fitted has fewer
                cell = self._shipped.cell(self._scale, str(place[0][1]), setting, method)
            found = collect.measure([cell], [metric], self._root, shipped=self._shipped) if cell else []
            self._known[key] = found[0] if found and found[0].status != NOT_RUN else None
        return self._known[key]

    def _runs(self, place: Place, method: str) -> list[tuple[int, pd.DataFrame]]:
        cell = self.cells.get((place, method))
        found = []
        for run in self._results(cell) if cell else ():
            if cell and run["status"] == FINISHED:
                if run["key"] not in self._curves:
                    self._curves[run["key"]] = collect.curve_of(cell, run["key"], self._root)
                found.append((int(run["seed"]), self._curves[run["key"]]))
        return found

    def _results(self, cell: Cell) -> list[dict[str, Any]]:
        return collect.runs_of(cell, self._root)[0]


def _averaged(parts: Sequence[Values]) -> Values:
    """Average the values of each seed that all parts have."""
    shared = [seed for seed in parts[0] if all(seed in part for part in parts)]
    return {seed: sum(part[seed] for part in parts) / len(parts) for seed in shared}


class Print:
    """The paper's own numbers, each as if it were one seed."""

    def __init__(self, paper: Paper, targets: Iterable[str], root: Path = Path()) -> None:
        self._tables: dict[Place, list[published.PublishedTable]] = {}
        for target in targets:
            if name := getattr(shown(paper, target), "published", None):
                table = published.load(paper.key, name, root, paper.measures)
                for place in places_of(paper, [target]):
                    self._tables.setdefault(place, []).append(table)

    def end(self, place: Place, method: str, metric: str) -> Values:
        """Return the value printed in a table that has the place, nothing where there is none."""
        dataset, setting = str(place[0][1]), dict(members(place)[0][1:])
        for table in self._tables.get(place, ()):
            number = table.find(dataset, method, setting, metric)
            if number is not None and number.mean is not None:
                return {0: number.mean}
        return {}

    def mean(self, place: Place, method: str, metric: str) -> Values:
        """Return nothing: no curve is printed in numbers."""
        return {}

    def needed(self, place: Place, method: str, metric: str, target: float, sign: int, x: str) -> Needs:
        """Return nothing: no curve is printed in numbers."""
        return {}
