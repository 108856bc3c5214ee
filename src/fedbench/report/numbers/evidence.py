"""What claims are held against: the numbers of a scale's runs, and those in print, as frames of one form.

A row for each run and metric: ``place``, ``method``, ``seed``, ``metric``, ``value``, and what is known of the run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedbench import measures
from fedbench.plan.cells import Cell, path_of
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Paper, TableSpec
from fedbench.report.numbers import collect, published, rates
from fedbench.report.numbers.aggregate import key_of
from fedbench.report.numbers.rows import AVERAGED, COSTS, DIVERGED, NAN, Row, Run
from fedbench.report.numbers.shipped import Shipped
from fedbench.results.places import Place, members, place_of, places_of, shown

COLUMNS = ["place", "method", "seed", "metric", "value", "tried", "pace", "other", "key", "commit", "shipped"]
"""Of a frame of numbers; ``key`` is that of the cell."""
At = tuple[Place, str]
"""A place and a method."""


class Evidence:
    """The runs of a paper at one scale, trained here, else shipped.

    Attributes:
        planned: the places and methods of the ``targets`` that the scale runs, whether it has or not.
        cells: those of which there may be runs, also where the paper has numbers and the scale runs nothing.
    """

    def __init__(
        self, plan: Plan, targets: Sequence[str], metrics: Sequence[str], root: Path = Path()
    ) -> None:  # fmt: skip
        """Read the runs."""
        paper = plan.study
        self._plan, self._root, self._shipped = plan, root, Shipped(plan, root)
        specs = {target: shown(paper, target) for target in targets}
        run = [at for spec in specs.values() for at in plan.places(spec)]
        self.planned = list(
            dict.fromkeys((place_of(dataset, setting), method) for dataset, setting, method in run)
        )
        printed = [
            (member, method)
            for target, spec in specs.items()
            if spec.kind != "rates"
            for place in places_of(paper, [target])
            for member in members(place)
            for method in spec.methods
        ]
        cells = {at: self._cell(*at) for at in (*self.planned, *printed)}
        self.cells = {at: cell for at, cell in cells.items() if cell is not None}
        rows = [row for at, cell in self.cells.items() for row in self._of_cell(*at, cell, metrics)]
        rates_ = {
            name: spec for name, spec in specs.items() if isinstance(spec, TableSpec) and spec.kind == "rates"
        }
        rows += [row for target, spec in rates_.items() for row in self._fitted(target, spec)]
        numbers = pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(COLUMNS[4:8], float))
        numbers = numbers[numbers["value"].notna()]
        self._numbers: dict[str, pd.DataFrame] = {str(name): part for name, part in numbers.groupby("metric")}
        self._none: pd.DataFrame = numbers[:0]

    def of(self, metric: str) -> pd.DataFrame:
        """Return the numbers of one metric."""
        return self._numbers.get(metric, self._none)

    def key(self, at: At) -> str:
        """Return the key of a cell, empty where there is none."""
        return self.cells[at].key if at in self.cells else ""

    @property
    def datasets(self) -> list[str]:
        """The datasets that the scale runs."""
        return list(dict.fromkeys(str(place[0][1]) for place, _ in self.planned))

    def _cell(self, place: Place, method: str) -> Cell | None:
        """Return a cell that has results here or may have been shipped."""
        dataset, setting, name = str(place[0][1]), dict(place[1:]), self._plan.scale.name
        if (self._root / path_of(name, self._plan.study.key, dataset, setting, method)).exists():
            return self._plan.cell(dataset, setting, method)
        return self._shipped.cell(name, dataset, setting, method)

    def _of_cell(
        self, place: Place, method: str, cell: Cell, metrics: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        here, shipped, _, _ = collect.read_rows(cell, metrics, self._root, shipped=self._shipped)
        for metric in metrics:
            runs = {seed: run for seed, run in {**here, **shipped}.items() if "" in run or metric in run}
            rows = {seed: run.get("") or run[metric] for seed, run in runs.items()}
            key = cell.key if here else key_of([row.key for row in rows.values()])
            for seed, row in rows.items():
                yield {
                    **row._asdict(), "place": place, "method": method, "metric": metric, "key": key,
                    "value": self._value(metric, row), "tried": _tried(cell, metric, row, runs[seed]),
                    "shipped": seed in shipped,
                }  # fmt: skip

    def _value(self, metric: str, row: Row) -> float:
        """Return a number of one run; a mean over seeds is none, and one that diverged has the worst that there is."""
        if row.status != DIVERGED:
            return NAN if row.status == AVERAGED else row.value
        return -self._plan.study.measure(metric).sign * math.inf if is_end(metric) else NAN

    def _fitted(self, target: str, spec: TableSpec) -> Iterator[dict[str, Any]]:
        """Yield exponents: places without the setting that they are fitted over."""
        if not any(at in self.cells for at in self.planned):
            return
        for one in rates.measure(self._plan.cells(target), spec, self._root, self._shipped):
            for seed, value in one.values.items():
                names = ("method", "metric", "key", "commit", "shipped")
                facts = {name: getattr(one, name) for name in names}
                yield facts | {"place": place_of(one.dataset, one.setting), "seed": seed, "value": value}


def is_end(metric: str) -> bool:
    """Say whether a metric is what a run ends with: no cost, and nothing that is read off its curve."""
    return metric not in COSTS and not measures.target(metric) and not measures.curve_mean(metric)


def _tried(cell: Cell, metric: str, row: Row, run: Run) -> float:
    """Return how much of a cost a run spent as a whole; of one without a curve as far as its other numbers say so."""
    if (target := measures.target(metric)) is None or not math.isnan(row.tried):
        return row.tried
    x = measures.SPENT[target.spent]
    spent = run[x].value if x in run else NAN
    if x == "round":
        spent = cell.runs[0].train.known_rounds or NAN
    return row.value if math.isnan(spent) and math.isfinite(row.value) else spent


def printed(
    paper: Paper, targets: Sequence[str], metrics: Sequence[str], root: Path = Path()
) -> pd.DataFrame:
    """Return what tables print, as if it were one seed, with the ``target`` that prints it."""
    rows = []
    for target in targets:
        spec = shown(paper, target)
        if not isinstance(spec, TableSpec) or not spec.published:
            continue
        table = published.load(paper.key, spec.published, root, paper.measures)
        for place, method, metric in itertools.product(places_of(paper, [target]), spec.methods, metrics):
            number = table.find(str(place[0][1]), method, dict(members(place)[0][1:]), metric)
            if number is not None and number.mean is not None:
                at = {"target": target, "place": place, "method": method, "metric": metric}
                rows.append({**at, "seed": 0, "value": number.mean})
    return pd.DataFrame(rows, columns=["target", *COLUMNS])


def printed_in(numbers: pd.DataFrame, targets: Sequence[str], metric: str) -> pd.DataFrame:
    """Return what some tables print of a metric; of a place that several have, the first one's value."""
    order = numbers["target"].map({target: at for at, target in enumerate(targets)})
    chosen = numbers[order.notna() & (numbers["metric"] == metric)]
    return chosen.iloc[np.argsort(order[chosen.index], kind="stable")].drop_duplicates(["place", "method"])
