"""What claims are compared with: the numbers of a scale's runs, as a frame of the form that print has, too.

A row for each run and metric: ``place``, ``method``, ``seed``, ``metric``, ``value``, and what is known of the run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from fedbench.results.aggregate import key_of
from fedbench.results.claims.claim_query import is_end
from fedbench.results.frame import AVERAGED, DIVERGED, HERE, NAN, NUMBER, SHIPPED, Row, frame_of
from fedbench.results.places import Place, members, place_of, places_of, shown
from fedbench.results.rates import rates_of_cells
from fedbench.results.runs import runs_of_cells
from fedbench.results.shipped import Shipped
from fedbench.study.cells import Cell, label_of, path_of
from fedbench.study.plan import Plan
from fedbench.study.schema import Paper, TableSpec


class Evidence:
    """The runs of a paper at one scale, trained here, else shipped.

    Attributes:
        plan: of the scale.
        planned: the places and methods of the ``targets`` that the scale runs, whether it has or not.
        cells: those that may have runs, also where the paper has numbers and the scale runs nothing.
        numbers: of each metric.
    """

    def __init__(self, plan: Plan, targets: Sequence[str], metrics: Sequence[str]) -> None:
        """Read the runs."""
        self.plan, self._shipped = plan, Shipped(plan)
        specs = {target: shown(plan.study, target) for target in targets}
        run = (at for spec in specs.values() for at in plan.places(spec))
        self.planned = list(dict.fromkeys((place_of(data, setting), method) for data, setting, method in run))
        printed = (
            (member, method)
            for target, spec in specs.items()
            if spec.kind != "rates"
            for place in places_of(plan.study, [target])
            for member in members(place)
            for method in spec.methods
        )
        cells = {at: self._cell(*at) for at in (*self.planned, *printed)}
        self.cells = {at: cell for at, cell in cells.items() if cell is not None}
        runs = runs_of_cells([*self.cells.values()], metrics, self._shipped)
        for target, spec in specs.items():
            if not isinstance(spec, TableSpec) or spec.kind != "rates":
                continue
            if any(at in self.cells for at in self.planned):
                fitted = rates_of_cells(plan.cells(target), spec, self._shipped)
                runs += [row for row in fitted if not math.isnan(row.value)]
        numbers = numbers_of(runs, metrics, plan.study)
        self.numbers = {metric: numbers[numbers["metric"] == metric] for metric in metrics}

    @property
    def datasets(self) -> list[str]:
        """The datasets that the scale runs."""
        return list(dict.fromkeys(str(place[0][1]) for place, _ in self.planned))

    def _cell(self, place: Place, method: str) -> Cell | None:
        """Return a cell that has results here or may have been shipped."""
        dataset, setting, scale = str(place[0][1]), dict(place[1:]), self.plan.scale.name
        label = label_of(self.plan.told(dataset, setting))
        if path_of(scale, self.plan.study.key, dataset, label, method).exists():
            return self.plan.cell(dataset, setting, method)
        return self._shipped.cell(scale, dataset, setting, method)


def numbers_of(runs: Sequence[Row], metrics: Sequence[str], paper: Paper) -> pd.DataFrame:
    """Return runs in the form of claims: one that diverged has the worst value of each metric, ``key`` is a cell's."""
    known = frame_of((row for row in runs if row.origin and row.status != AVERAGED), Row)
    cells = known.assign(trained=known["origin"] == HERE).groupby(["place", "method"], sort=False)
    known["trained"] = cells["trained"].transform("any")
    diverged = known[known["status"] == DIVERGED]
    worst = {name: -paper.measure(name).sign * math.inf if is_end(name) else NAN for name in metrics}
    lost = (diverged.assign(metric=name, value=value) for name, value in worst.items())
    numbers = pd.concat([known[known["metric"].isin(metrics)], *lost], ignore_index=True)
    keys = numbers.groupby([*NUMBER], sort=False)["key"].transform(lambda keys: key_of([*keys]))
    numbers["key"] = numbers["cell"].where(numbers["trained"], keys)
    return numbers[numbers["value"].notna()].assign(shipped=numbers["origin"] == SHIPPED)
